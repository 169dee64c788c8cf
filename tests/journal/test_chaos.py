"""A few kills of real processes; `make chaos` does hundreds."""

import chaos
import pytest
from journal.stores import empty

# workers of the test runner have threads
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize(("mode", "kills"), [("embedded", 8), ("leader", 3)])
def test_what_was_answered_is_kept_and_nothing_is_counted_twice(tmp_path, uri, kind, mode, kills):
    cells = chaos.row(kind, empty(kind, tmp_path, uri), tmp_path, kills, mode)
    found = dict(zip(chaos.COLUMNS, cells, strict=True))
    assert (found["lost"], found["doubled"], found["verified"]) == (0, 0, "yes")
    assert int(found["told"].replace(",", "")) > kills
    assert found["lowest"] >= 0.0
