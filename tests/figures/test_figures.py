"""Figures and report as a reader sees them: nothing overlaps, signs are explained, a thing has one name."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from catalogues import small_catalogue
from matplotlib.text import Text

import saver
from saver import experiments
from saver.errors import InvalidData
from saver.experiments import EXPERIMENTS, Experiment, pictures
from saver.experiments.catalogue import PRICES, SAFE
from saver.experiments.folder import Folder, Results
from saver.experiments.report import COLLECTED, claim_rows
from saver.figures import curves as progress
from saver.figures.style import LOOKS, MINUS, figure, label_lines, log_marks, number_text, save
from saver.scenarios import find_scenario

pytestmark = pytest.mark.slow

NUMBER = re.compile(rf"{MINUS}?(\d+(\.\d+)?k?|\d(\.\d+)?e{MINUS}?\d+)")
BOTH = ("price", "design-tree")  # saved as they are, of the others no pdf: it takes as long as the rest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of everything, and its figures as they were before they were saved: name -> figure."""
    out, found = tmp_path_factory.mktemp("made"), {}

    def keep(made, folder, name, kinds=("png", "pdf")):
        found[name] = made
        return save(made, folder, name, kinds if name in BOTH else ("png",))

    with pytest.MonkeyPatch.context() as patch:
        small_catalogue(patch)
        patch.setattr(pictures, "save", keep)
        patch.setattr("saver.figures.designs.save", keep)
        outcome = experiments.reproduce(out, level="quick")
    return outcome, found


def words(drawn):
    """All that is written in a figure, but for the numbers at its axes."""
    texts = [text.get_text() for axes in drawn.axes for text in axes.texts]
    texts += [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    return texts + [text.get_text() for text in drawn.texts]


def test_everything_is_made_from_one_small_run(made):
    outcome = made[0]
    folder, figures, found = Folder.find(outcome.folder), outcome.figures, outcome.claims
    # a figure of panels for each group, one for each experiment, two designs, regret and price
    assert len({path.stem for path in figures}) == 2 + len(EXPERIMENTS) + 2 + 2
    assert {path.suffix for path in figures if path.stem in BOTH} == {".png", ".pdf"}
    for path in figures:
        head = path.read_bytes()[:8]
        assert head.startswith(b"\x89PNG" if path.suffix == ".png" else b"%PDF"), path
    html = (folder.path / "report.html").read_text(encoding="utf-8")
    assert html.count("data:image/png;base64,") == len({path.stem for path in figures})
    assert "http" not in re.sub(r"base64,[^\"]*", "", html)  # nothing is fetched
    text = (folder.path / "report.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\((figures/[^)]*)\)", text):
        assert (folder.path / link).exists()
    assert [row["claim"] for row in folder.read("claims")] == [claim.claim for claim in found]
    assert len(found) > 30
    assert [row["collector"] for row in outcome.numbers if row["experiment"] == "tree-long"] == list(SAFE)
    for row in claim_rows(found):
        assert f"| {' | '.join(row)} |" in text
    assert "finished" in folder.manifest()
    assert not list(folder.path.rglob("*.part"))


@pytest.mark.parametrize("name", ["paper", "long", "regret", *EXPERIMENTS])
def test_no_leader_crosses_another_or_runs_under_a_name(made, name):
    drawn = made[1][name]
    drawn.draw_without_rendering()
    for axes in drawn.axes:
        names = [text for text in axes.texts if text.arrow_patch is not None]
        boxes = [Text.get_window_extent(text) for text in names]  # without the leader
        assert len(names) >= 2
        leaders = []
        for i, text in enumerate(names):
            arrow = text.arrow_patch
            leaders.append(arrow.get_transform().transform_path(arrow.get_path()))
            others = boxes[:i] + boxes[i + 1 :]
            assert not any(leaders[-1].intersects_bbox(box, filled=False) for box in others), text.get_text()
            assert not any(boxes[i].overlaps(box) for box in others), text.get_text()
        sides = np.array([path.vertices[np.argsort(path.vertices[:, 0])][[0, -1], 1] for path in leaders])
        left, right = sides[np.argsort(sides[:, 1])].T  # two that start together do not cross
        assert np.all(np.diff(left) >= -0.5)
        assert np.all(np.diff(right) > 0)


def test_every_guardrail_has_a_panel_in_its_own_units(tmp_path, monkeypatch):
    found = {}
    monkeypatch.setattr(
        pictures, "save", lambda made, folder, name, kinds=(): found.setdefault(name, made) and []
    )
    mine = Experiment("mine", "Mine", "shop", ("saver", "uniform"), 60, (2, 2, 2))
    experiments.run(tmp_path, mine)
    drawn = found["mine"]
    names = [axes.get_ylabel() for axes in drawn.axes[2:]]
    assert names == ["complaints: violation", "latency: violation", "refunds: violation"]
    assert "the violation that the collector believes possible" in words(drawn)
    rows = Results(Folder.find(tmp_path)).guards("mine")["latency"]["saver"]
    ends = {line.get_ydata()[-1] for line in drawn.axes[3].get_lines()}
    assert ends >= {-rows.end("budget"), -rows.end("believed"), 0.0}


def test_budgets_of_several_guardrails_share_an_axis_each_with_its_name():
    episodes = np.array([1.0, 2.0, 3.0])
    with figure(1, 1, 3.4, 2.0) as (_, axes):
        place = axes[0, 0]
        progress.budget(place, episodes, {"complaints": episodes - 1.5, "latency": 4 * episodes})
        lines = [line for line in place.get_lines() if len(line.get_xdata()) == 3]
        np.testing.assert_array_equal([line.get_ydata()[-1] for line in lines], [1.5, 12.0])
        assert [text.get_text() for text in place.texts] == ["complaints", "latency"]
        assert place.get_ylim()[0] <= -0.5


def test_names_that_end_together_are_pushed_apart():
    with figure(1, 1, 3.4, 2.0) as (_, axes):
        place = axes[0, 0]
        place.plot([0, 1], [1, 2])
        place.set_yscale("log")
        label_lines(place, [(name, 1.5, "black") for name in "abcdef"])
        heights = sorted(text.xyann[1] for text in place.texts)
        assert np.diff(heights).min() > 0.07
        assert heights[0] >= 0.0


@pytest.mark.parametrize(
    ("name", "signs"),
    [
        ("paper", ["± 1 standard error", "exact safe limit", "constraint is broken"]),
        ("long", ["± 1 standard error", "exact safe limit", "constraint is broken"]),
        ("tree", ["± 1 standard error", "exact safe limit", "constraint is broken"]),
        ("regret", ["± 2 standard errors", "fitted power law; in brackets half of the 95 % interval"]),
        ("price", ["alpha 0.25,\nas in the experiments"]),
        (
            "design-tree",
            ["action 0", "action 1", "width of an edge", "the numbers say it on the first 2 steps"],
        ),
        ("design-gridworld", ["number and shade of a cell", "arrow: a direction"]),
    ],
)
def test_every_sign_is_explained_in_the_figure(made, name, signs):
    said = " | ".join(words(made[1][name]))
    for sign in signs:
        assert sign in said


def test_the_marked_alpha_is_that_of_the_experiments():
    assert {find_scenario(name).problem.alpha for name in PRICES} == {pictures.MARKED}


def test_a_collector_has_one_name_everywhere(made):
    outcome, figures = made
    for name, experiment in EXPERIMENTS.items():
        assert set(experiment.collectors) <= set(words(figures[name]))
    for claim in outcome.claims:
        named = re.findall("`([^`]*)`", claim.claim + claim.measured)
        assert set(named) <= set(saver.COLLECTORS)
        assert not re.search("SaVeR|SEPEC|oracle|on-policy", re.sub("`[^`]*`", "", claim.claim))


def test_every_collector_has_a_look_and_a_marker_of_its_own():
    assert set(LOOKS) == set(saver.COLLECTORS) == set(COLLECTED)
    for kind in ("colour", "marker"):
        assert len({getattr(look, kind) for look in LOOKS.values()}) == len(LOOKS)
    assert len({str(look.dashes) + str(look.width) for look in LOOKS.values()}) == len(LOOKS)


def test_a_marker_means_the_same_in_both_panels(made):
    used = {}
    for axes in made[1]["regret"].axes:
        for line in axes.get_lines():
            if line.get_marker() != "None" and len(line.get_xdata()) > 2:
                used.setdefault(line.get_color(), set()).add(line.get_marker())
    assert used["#D55E00"] == {LOOKS["saver"].marker}
    assert used["#0072B2"] == {LOOKS["saver-opt"].marker}


def test_ticks_are_of_one_style(made):
    for name, drawn in made[1].items():
        if name.startswith("design"):
            continue
        for axes in drawn.axes:
            for axis in (axes.xaxis, axes.yaxis):
                shown = [label.get_text() for label in axis.get_ticklabels()]
                assert 2 <= len(shown) <= 9, (name, shown)
                assert all(NUMBER.fullmatch(text) for text in shown), (name, shown)
                assert len({"e" in text for text in shown if text != "0"}) == 1, (name, shown)
                assert axis.get_minorticklocs().size == 0


@pytest.mark.parametrize(
    ("value", "tiny", "text"),
    [
        (0, False, "0"),
        (0.05, False, "0.05"),
        (-2500, False, f"{MINUS}2.5k"),
        (30_000, False, "30k"),
        (2e-5, True, f"2e{MINUS}5"),
        (1e-3, True, f"1e{MINUS}3"),
        (0.1 + 0.2, False, "0.3"),
    ],
)
def test_numbers_at_axes(value, tiny, text):
    assert number_text(value, tiny) == text


def test_marks_of_log_axes_are_powers_of_ten_or_ones_twos_and_fives():
    assert log_marks(3e-4, 40) == pytest.approx([1e-3, 1e-2, 1e-1, 1, 10])
    assert log_marks(0.7, 12) == pytest.approx([1, 2, 5, 10])


def test_a_figure_that_cannot_be_written_is_named_as_the_user_does(tmp_path):
    with figure(1, 1, 2, 2) as (drawn, _), pytest.raises(InvalidData) as refused:
        save(drawn, tmp_path / "nowhere", "mine", ("png",))
    assert str(refused.value).startswith(f"cannot write {tmp_path / 'nowhere' / 'mine.png'}: No such file")


def test_the_report_of_a_run_explains_what_was_run_and_nothing_else(tmp_path):
    mine = Experiment("mine", "Mine", "bandit", ("uniform", "saver-opt"), 30, (3, 3, 3))
    experiments.run(tmp_path, mine)
    text = (tmp_path / "report.md").read_text(encoding="utf-8").partition("## Settings")[0]
    assert "`uniform` takes all actions equally often" in text
    assert "`saver-opt` plans" in text
    assert "MSE is the mean squared error given the visits" in text
    for other in set(saver.COLLECTORS) - {"uniform", "saver-opt"}:
        assert f"`{other}`" not in text
    for word in ("SEPEC", "claim", "Figures 1 and 2", "oracle", "MovieLens"):
        assert word not in text


class Cells(HTMLParser):
    """The heads of each table, and the names that its cells carry."""

    def __init__(self):
        super().__init__()
        self.tables, self.metas, self.head = [], [], False

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.head = tag == "th"
        if tag == "table":
            self.tables.append(([], []))
        elif tag == "td":
            self.tables[-1][1].append(given["data-name"])
        elif tag == "meta":
            self.metas.append(given)

    def handle_data(self, data):
        if self.head:
            self.tables[-1][0].append(data)


def test_a_narrow_screen_shows_tables_as_rows_of_name_and_value(made):
    page = (made[0].folder / "report.html").read_text(encoding="utf-8")
    found = Cells()
    found.feed(page)
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in found.metas
    assert len(found.tables) == 2
    for head, cells in found.tables:
        assert cells == head * (len(cells) // len(head))
    narrow = page[page.index("@media(max-width:48rem)") :]
    assert "table,tbody,tr,td{display:block}" in narrow
    assert "td::before{content:attr(data-name)" in narrow
    assert "white-space:pre-wrap" in page


def test_a_folder_is_drawn_again_with_the_same_words(made):
    results = Results(Folder.find(made[0].folder))
    assert [name for name, _ in pictures.pictures(results)] == list(made[1])


def test_bars_of_pairs_bear_their_names(tmp_path):
    from saver.figures import designs

    table = np.array([[0.5, 0.5], [0.25, 0.75]])
    with figure(1, 2, 3.0, 2.0) as (_, axes):
        designs._bars(axes[0, 0], table, 1.0, ["home, old", "home, new", "list, old", "list, new"])
        designs._bars(axes[0, 1], table, 1.0, None)
        said = [[mark.get_text() for mark in axes[0, i].get_xticklabels()] for i in (0, 1)]
    assert said == [["home, old", "home, new", "list, old", "list, new"], ["0,0", "0,1", "1,0", "1,1"]]
    names = ["home, old", "home, new", "list, old", "list, new"]
    assert designs.picture_designs({"target": table}, "shop", tmp_path / "a.png", names).stat().st_size > 0
