"""The README, the guides and the examples run and print what they say; their tables are the measured ones."""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

import saver
from saver.problem import codec

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = [path for path in PAGES if "```python" in path.read_text("utf-8")]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)  # code, and what it prints
DRAWN = re.compile(
    r"\b(simulate|diagnose|regret_rate|show|measure|Campaign|campaign\.\w+)\("
)  # code whose last digits may differ elsewhere
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?%?")


def near(shown, said):
    """Whether two numbers agree: to 5 %, to one in the last digit, or to three points of a percentage."""
    if said.endswith("%"):
        return shown.endswith("%") and abs(float(shown[:-1]) - float(said[:-1])) <= 3.0
    digits = len(said.partition(".")[2])
    return abs(float(shown) - float(said)) <= max(0.05 * abs(float(said)), 1.01 * 10.0**-digits)


def agree(shown, said):
    """Whether two texts are the same but for small differences in their numbers."""
    numbers = NUMBER.findall(shown), NUMBER.findall(said)
    words = NUMBER.sub("#", shown).split(), NUMBER.sub("#", said).split()
    return words[0] == words[1] and all(near(*pair) for pair in zip(*numbers, strict=True))


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_the_blocks_of_a_guide_run_in_order_and_print_what_stands_below_them(path, monkeypatch):
    for kept in ("NAMES", "_READERS"):  # what a page registers is for that page
        monkeypatch.setattr(codec, kept, dict(getattr(codec, kept)))
    names = {"__name__": "__main__"}
    for code, said in BLOCK.findall(path.read_text(encoding="utf-8")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        printed = out.getvalue()
        if said and DRAWN.search(code):
            assert agree(printed, said), f"{path.name} says\n{said}but this is printed:\n{printed}"
        elif said:
            assert printed == said


def rows(path, head):
    """The cells of a Markdown table, by its first line."""
    table = path.read_text(encoding="utf-8").partition(head + "\n")[2].partition("\n\n")[0]
    return [[cell.strip(" `*") for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]


@pytest.fixture(scope="module")
def measured():
    """Columns of the table of `make numbers`, by (scenario, collector, K)."""
    head = "| scenario | collector | K | runs | K * MSE | limit | violations | baseline | unused |"
    table = rows(ROOT / "benchmarks" / "results" / "numbers.md", head)
    return {(row[0], row[1], int(row[2])): [float(cell) for cell in row[5:7]] for row in table}


def test_the_readme_is_for_a_newcomer_and_its_table_is_the_measured_one(measured):
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1000
    table = rows(ROOT / "README.md", "| collector | plays | bandit | grid | broken | promise |")
    assert len(table) == 5
    for name, _, bandit, gridworld, broken, promise in table:
        assert float(bandit) == measured["bandit", name, 1000][0]
        assert [float(gridworld), float(broken)] == measured["gridworld", name, 1000]
        assert (promise == "yes") == saver.COLLECTORS[name].promises


def test_the_page_of_collectors_names_all_and_its_table_is_the_measured_one(measured):
    page = ROOT / "docs" / "collectors.md"
    named = rows(page, "| collector | design | knows | behind |")
    assert {name.strip(" `") for row in named for name in row[0].split(",")} == set(saver.COLLECTORS)
    table = rows(page, "| K | bandit 1000 | 5000 | tree 1000 | 5000 | grid 1000 | 5000 |")
    for name, *errors in table:
        cases = [(scenario, name, k) for scenario in ("bandit", "tree", "gridworld") for k in (1000, 5000)]
        assert [float(error) for error in errors] == [measured[case][0] for case in cases]


def test_every_text_block_belongs_to_a_python_block():
    for path in GUIDES:
        text = path.read_text(encoding="utf-8")
        assert text.count("```text\n") == sum(said != "" for _, said in BLOCK.findall(text))


def test_small_differences_are_forgiven_and_others_are_not():
    assert agree("K * MSE 2.91, broken 2.0%", "K * MSE  2.90, broken 1.5%")
    assert not agree("K * MSE 3.10", "K * MSE 2.90")
    assert not agree("broken 9.0%", "broken 1.5%")
    assert not agree("saver 2.90", "saver-opt 2.90")
    assert not agree("2.90", "2.90 2.90")


# what each example's output must hold, and what of it is checked
PRINTED = {
    "ask_tell.py": r"told 999, of .* (?P<baseline>\d+)\n"
    r"certified budget (?P<budget>[-.\d]+)\nvalue .* interval (?P<low>[.\d]+) to (?P<high>[.\d]+)\n",
    "compare_collectors.py": r"(?s)less than (?P<limit>[.\d]+) in the long run.*saver  +(?P<saver>[.\d]+) \+-"
    r".*saver-opt  +(?P<best>[.\d]+) \+- (?P<error>[.\d]+)",
    "from_logs.py": r"(?s)0% of the target covered, certified budget 0\.0.*stderr (?P<without>[.\d]+)\n"
    r".*40% of the target covered, certified budget 0\.0.*stderr (?P<logs>[.\d]+)\n",
    "frozen_lake.py": r"in (?P<low>[-.\d]+) to (?P<high>[-.\d]+) of the walks; .* is (?P<truth>[-.\d]+)\n"
    r"certified budget (?P<budget>[-.\d]+), (?P<baseline>\d+) of 500 baseline",
    "taxi.py": r"earns (?P<low>[-.\d]+) to (?P<high>[-.\d]+); the truth is (?P<truth>[-.\d]+)\n"
    r"certified budget (?P<budget>[-.\d]+), (?P<baseline>\d+) of 600 baseline",
    "cliff_walking.py": r"worth (?P<low>[-.\d]+) to (?P<high>[-.\d]+); the truth is (?P<truth>[-.\d]+)\n"
    r"certified budget (?P<budget>[-.\d]+), (?P<baseline>\d+) of 500 baseline",
    "blackjack.py": r"worth (?P<low>[-.\d]+) to (?P<high>[-.\d]+)\n"
    r"certified budget (?P<budget>[-.\d]+), (?P<baseline>\d+) of 3000 baseline",
    "own_model.py": r"(?s)affordable: .*predicted .*, exact: (?P<predicted>[.\d]+)\n"
    r".*safe-on-policy: (?P<target>[.\d]+),.*saver-opt: (?P<best>[.\d]+),",
}


def kept(n, truth, width, baseline):
    """The truth is in a useful interval, the budget is kept, and more than the baseline was played."""
    inside = n["low"] < truth < n["high"] < n["low"] + width
    return inside and n["budget"] >= 0 and n["baseline"] < baseline


CHECKS = {
    "ask_tell.py": lambda n: (
        n["budget"] >= 0 and n["low"] < 3.9 + 0.4 * 3.9 < n["high"] and n["baseline"] < 500
    ),
    "compare_collectors.py": lambda n: n["limit"] == 2.678 and n["limit"] < n["best"] < n["saver"] / 1.5,
    "from_logs.py": lambda n: n["logs"] < n["without"],
    # truths of value iteration; that of blackjack by 20,000 games, with a standard error of .007
    "frozen_lake.py": lambda n: n["truth"] == 0.346 and kept(n, 0.346, 0.2, 400),
    "taxi.py": lambda n: n["truth"] == 2.39 and kept(n, 2.39, 30.0, 300),
    "cliff_walking.py": lambda n: n["truth"] == -45.03 and kept(n, -45.03, 10.0, 300),
    "blackjack.py": lambda n: kept(n, -0.152, 0.3, 2000),
    "own_model.py": lambda n: n["best"] < 0.9 * n["target"] and abs(n["best"] / n["predicted"] - 1) < 0.1,
}


def test_every_example_is_checked():
    assert {path.name for path in EXAMPLES} == set(PRINTED) == set(CHECKS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_prints_sense(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    shown = capsys.readouterr().out
    found = re.search(PRINTED[path.name], shown)
    assert found, shown
    assert CHECKS[path.name]({name: float(number) for name, number in found.groupdict().items()}), shown
