"""Steps are data: they can be shipped to another process, which computes the same rows."""

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from types import FunctionType

import pytest

from saver import experiments
from saver.errors import InvalidData, InvalidProblem
from saver.experiments import Experiment
from saver.experiments.catalogue import plan_reproduce, plan_run
from saver.experiments.tables import TABLES
from saver_audit import plan_audit

pytestmark = pytest.mark.slow

MINE = Experiment("mine", "Mine", "bandit", ("saver", "uniform"), 40, (3, 3, 3), options={"alpha": 0.3})
PLANS = {
    "reproduce": lambda: plan_reproduce("quick", 3, 1),
    "run": lambda: plan_run(MINE, 3, 1),
    "audit": lambda: plan_audit("quick", 3, 1),
}


@pytest.mark.parametrize("name", PLANS)
def test_every_step_can_be_shipped(name):
    steps = PLANS[name]().steps
    assert len({step.name for step in steps}) == len(steps)
    for step in steps:
        assert pickle.loads(pickle.dumps(step)) == step
        assert isinstance(step.work, FunctionType)
        assert step.work.__closure__ is None
        assert step.kind in TABLES
        assert step.weight > 0


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        ("run", "mine.saver"),
        ("run", "limits.bandit"),
        ("reproduce", "design.tree"),
        ("audit", "random-graph.graph-5"),
        ("audit", "hostile-rare-disasters.bandit"),
        ("audit", "losses.5-percent-lost-lowest-outcomes.rare-disasters.0.05"),
    ],
)
def test_another_process_computes_the_same_rows(plan, name):
    (step,) = (step for step in PLANS[plan]().steps if step.name == name)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        shipped = pool.submit(step.rows).result()
    table = TABLES[step.kind]
    assert table.text(shipped) == table.text(step.rows())
    assert shipped


def test_ticks_add_up_to_one():
    for name in ("random-bandit.bandit-0", "losses.100-out-best-first.all-or-nothing.0.05"):
        (step,) = (step for step in PLANS["audit"]().steps if step.name == name)
        told = []
        step.rows(told.append)
        assert sum(told) == pytest.approx(1.0)


def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = [("tree", "exact", 0.1 + 0.2, 1e-300, float("inf"), True), ("tree", "dag", 1.0, -0.0, 5.0, False)]
    path = tmp_path / "limits.csv"
    path.write_text(TABLES["limits"].text(rows))
    found = TABLES["limits"].read(path)
    assert [tuple(row.values()) for row in found] == rows
    assert found[0]["safe"] is True
    assert path.read_text().splitlines()[1] == "tree,exact,0.30000000000000004,1e-300,inf,yes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a whole table"),
        ("scenario,design\n", "is not a whole table"),
        ("scenario,design,state,action,visits\ntree,exact,0,1\n", "is not a whole table"),
        ("scenario,design,state,action,visits\ntree,exact,0.5,1,2\n", "'0.5' for state.*a whole number"),
        ("scenario,design,state,action,visits\ntree,exact,0,1,few\n", "'few' for visits.*a number"),
    ],
)
def test_a_damaged_table_is_named(tmp_path, text, message):
    path = tmp_path / "designs.csv"
    path.write_text(text)
    with pytest.raises(InvalidData, match=message):
        TABLES["designs"].read(path)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("reproduce", {"level": "fast"}, "level is 'fast'; it must be one of quick, default, full"),
        ("audit", {"level": "fast"}, "level is 'fast'; it must be one of quick, full"),
        ("reproduce", {"jobs": 0}, "jobs is 0"),
        ("audit", {"seed": -1}, "seed is -1"),
        ("run", {"experiment": "bandit"}, "experiment is str"),
        ("run", {"experiment": MINE, "seed": 1.5}, "seed is 1.5"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(tmp_path, name, given, message):
    with pytest.raises(InvalidProblem, match=message):
        getattr(experiments, name)(tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_progress_is_told_every_stage_from_0_to_1(tmp_path):
    told = []
    experiments.run(tmp_path, MINE, progress=lambda *all_of_it: told.append(all_of_it))
    for stage in ("computing", "figures"):
        shares = [share for name, _, share in told if name == stage]
        assert shares[0] == 0.0
        assert shares[-1] == 1.0
        assert shares == sorted(shares)
    assert ("computing", "mine.uniform") in {(stage, what) for stage, what, _ in told}
