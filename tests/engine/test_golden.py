"""The same seeds give the same numbers as before; `make golden` writes them anew."""

import json

import pytest
from golden import FILE, NEVER, measure, rows

pytestmark = pytest.mark.slow

KEPT = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", rows())
def test_equal_seeds_give_the_numbers_they_gave_before(row):
    assert measure(row) == KEPT[row]


def test_every_row_is_kept_and_no_other():
    assert set(KEPT) == set(rows())
    assert sum(row.split()[2] in NEVER for row in KEPT) == 72
