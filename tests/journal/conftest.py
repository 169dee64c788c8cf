import pytest
from journal.stores import KINDS, empty, server


@pytest.fixture(scope="session")
def uri():
    with server() as found:
        yield found


@pytest.fixture(params=KINDS)
def url(request, tmp_path):
    """Every kind of store."""
    known = request.getfixturevalue("uri") if request.param == "postgres" else None
    return empty(request.param, tmp_path, known)
