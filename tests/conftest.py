from hypothesis import settings
from samples import chosen

settings.register_profile("saver", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("saver")


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="all cases of the large grids, not samples of them")


def pytest_collection_modifyitems(config, items):
    """Samples of the large grids, unless all are asked for, or some by name."""
    named = any("::" in str(word) for word in config.args)
    if not config.getoption("--full") and not named:
        items[:], left = chosen(items)
        config.hook.pytest_deselected(items=left)
