"""One word for one thing: the pages that say where things are name files that are there."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "saver"
FILE = re.compile(r"(?<![\w/.])\w+/[\w/]*\w\.py\b")
PLACE = re.compile(r"[\w/]+(?:\.py|/)")


def places_named(page):
    """The files and folders in the last column of a page's tables, each with its row."""
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and (found := PLACE.findall(cells[-1])) and PLACE.match(cells[-1]):
            folder = PACKAGE
            for place in found:
                path = PACKAGE / place if "/" in place else folder / place
                folder = path if path.is_dir() else path.parent
                yield cells[0], path


@pytest.mark.parametrize("name", ["paper.md", "vocabulary.md"])
def test_what_a_page_says_stands_in_a_file_stands_in_one(name):
    found = list(places_named(ROOT / "docs" / name))
    assert len(found) > 25
    assert [(row, path) for row, path in found if not path.exists()] == []


def test_every_file_that_a_page_or_a_docstring_names_is_there():
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", *PACKAGE.rglob("*.py")]
    named = {(page, place) for page in pages for place in FILE.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 50
    homes = (ROOT, ROOT / "src", PACKAGE)
    assert [one for one in named if not any((home / one[1]).exists() for home in homes)] == []


def test_what_is_named_in_backticks_beside_a_file_is_defined_there():
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]*\| `([a-z_]+)`[^|]*\| ([\w/]+\.py) \|$", page, re.M)
    assert len(rows) >= 2
    for name, place in rows:
        assert re.search(rf"^def {name}\b", (PACKAGE / place).read_text(encoding="utf-8"), re.M), name


def test_no_file_name_stands_in_two_rooms():
    names = Counter(path.name for path in PACKAGE.rglob("*.py") if not path.name.startswith("__"))
    assert [name for name, times in names.items() if times > 1] == []


def test_files_and_functions_are_short():
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 350, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                has_words = ast.get_docstring(node) is not None
                first = node.body[0].end_lineno + 1 if has_words else node.body[0].lineno
                assert node.end_lineno - first < 60, (path, node.name)


def test_what_a_proof_says_is_in_a_file_or_a_class_is_there():
    texts = {path.stem: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    classes = {name: text for text in texts.values() for name in re.findall(r"^class (\w+)", text, re.M)}
    pages = [ROOT / "docs" / "proof.md", *(ROOT / "docs" / "proof").glob("*.md")]
    named = {one for page in pages for one in re.findall(r"`(\w+)\.(\w+)`", page.read_text(encoding="utf-8"))}
    named = {one for one in named if one[0] not in ("saver", "campaign") and one[1] != "py"}
    assert len(named) > 10
    for home, name in sorted(named):
        assert home in texts or home in classes, home
        if home in texts:
            assert re.search(rf"^(def|class) {name}\b|^{name} = ", texts[home], re.M), (home, name)
