"""Problems, collectors and scenarios go to JSON files and come back bit by bit; what is broken is refused."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import saver
from saver import COLLECTORS, SCENARIOS, Collector, Episode
from saver.errors import InvalidData
from saver.problem import codec
from saver.problem.codec import fingerprint, pack, read, unpack

DATA = Path(__file__).parents[1] / "data"


def same(one, two):
    """Whether two values hold the same, bit by bit."""
    if dataclasses.is_dataclass(one):
        return type(one) is type(two) and all(
            same(getattr(one, f.name), getattr(two, f.name)) for f in dataclasses.fields(one)
        )
    if hasattr(one, "indptr"):
        return all(np.array_equal(getattr(one, n), getattr(two, n)) for n in ("indptr", "indices", "data"))
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()
    if isinstance(one, dict):
        return list(one) == list(two) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_come_back_bit_by_bit(name, tmp_path):
    for value in (SCENARIOS[name](), SCENARIOS[name]().problem):
        saver.save(value, tmp_path / "kept.json")
        again = saver.load(tmp_path / "kept.json")
        assert same(again, value)
        assert fingerprint(again) == fingerprint(value)


@pytest.mark.parametrize("name", COLLECTORS)
def test_collectors_come_back(name, tmp_path):
    saver.save(COLLECTORS[name], tmp_path / "kept.json")
    assert saver.load(tmp_path / "kept.json") == COLLECTORS[name]


def test_odd_numbers_names_and_data_come_back(tmp_path):
    mdp = saver.Mdp(
        np.array([[[0.1, 0.9], [0, 0]], [[1 / 3, 2 / 3], [1.0, 0.0]]]), 3, discount=0.1 + 0.2,
        start=[0.25, 0.75], state_names=["süd", "nord"], action_names=["a", "b"],
        available=np.array([[True, False], [True, True]]),
    )  # fmt: skip
    law = saver.Empirical([[[0.1], [0.2, 0.3]], [[1e-300], [5.0, -1.0]]])
    for value in (mdp, saver.World(mdp, law, law, outcome="shared"), saver.Bernoulli([[0.1, 0.2]])):
        saver.save(value, tmp_path / "kept.json")
        again = saver.load(tmp_path / "kept.json")
        assert fingerprint(again) == fingerprint(value)
    assert saver.load(tmp_path / "kept.json").mean.tolist() == [[0.1, 0.2]]


def test_strings_stay_as_they_are(tmp_path):
    mdp = saver.Mdp(np.zeros((2, 1, 2)), 1, state_names=["room [1,  2]", "[ 3 ]"])
    saver.save(mdp, tmp_path / "kept.json")
    assert saver.load(tmp_path / "kept.json").state_names == ("room [1,  2]", "[ 3 ]")


def test_arrays_of_both_kinds_come_back():
    for value in (
        np.array([[0.0, 1.5, -0.0], [np.nan, np.inf, 1e-308]]),
        np.zeros((3, 0)),
        np.arange(5),
        np.array([True, False]),
        np.zeros((20, 20)),
        np.array(2.5),
    ):
        for small in (False, True):
            again = unpack(json.loads(json.dumps(pack(value, small=small))))
            assert again.dtype == value.dtype
            np.testing.assert_array_equal(again, value)


@pytest.mark.parametrize("small", [False, True])
def test_what_is_read_at_once_is_what_is_unpacked(small):
    value = {
        "numbers": np.array([1.5, np.nan, -np.inf]), "table": np.eye(3, dtype=np.int64), "none": None,
        "keys": {(1, "a"): 2.0, (3, "b"): np.inf}, "set": {2, 1}, "tuple": (1, [2.5, "x"]),
        "episode": Episode(["a", 0], [1, 0], [0.5, 1.0], {"one": [1.0, 2.0], "other": None}),
        "problem": SCENARIOS["tree"]().problem, "empty": {}, "list": [{"~ no tag": 1}, []],
    }  # fmt: skip
    text = json.dumps(pack(value, small=small, few=2 * small))
    assert pack(read(text)) == pack(unpack(json.loads(text))) == pack(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"~": "nobody"}', "'nobody'"),
        ('{"~": ["moments"]}', r"\['moments'\]"),
        ('[{"~": null}]', "None"),
        ('{"~": "moments", "counts": 1, "other": 2}', "'other' in a moments"),
        ('{"a": 1} {"b": 2}', "after 8 characters"),
    ],
)
def test_what_cannot_be_read_is_refused(text, message):
    with pytest.raises(InvalidData, match=message):
        read(text)


def test_files_of_the_first_format_open():
    before = dataclasses.replace(COLLECTORS["saver-opt"], fallback="baseline")  # it had no other then
    assert saver.load(DATA / "collector-1.json") == before
    asked = saver.scenarios.gridworld(size=2, horizon=3).problem  # it promised nothing about rewards then
    assert same(saver.load(DATA / "problem-1.json"), dataclasses.replace(asked, reward=None))


def test_a_new_field_with_a_default_changes_no_fingerprint(monkeypatch):
    for kept in ("NAMES", "_READERS"):  # other tests read what is registered
        monkeypatch.setattr(codec, kept, dict(getattr(codec, kept)))
    before = fingerprint(COLLECTORS["saver-opt"])
    later = codec.portable("collector")(
        dataclasses.make_dataclass("Later", [("novelty", int, 3)], bases=(Collector,), frozen=True)
    )
    grown = later(**vars(COLLECTORS["saver-opt"]))
    assert fingerprint(grown) == before
    assert fingerprint(dataclasses.replace(grown, novelty=4)) != before


def test_what_differs_has_another_fingerprint():
    problem = SCENARIOS["bandit"]().problem
    prints = {
        fingerprint(each)
        for each in (
            problem,
            dataclasses.replace(problem, alpha=0.2),
            dataclasses.replace(problem, delta=0.01),
            dataclasses.replace(problem, constraint=saver.SubGaussian(0.2)),
            dataclasses.replace(problem, constraint=saver.Bounded(0.0, 1.0)),
            dataclasses.replace(problem, target=problem.baseline),
        )
    }
    assert len(prints) == 6


@pytest.mark.parametrize(
    "promise", [saver.SubGaussian(0.2, -1.0, 3.0, next_state=True), saver.Bounded(-1.0, 2.0, next_state=True)]
)
def test_a_promise_about_next_states_comes_back_and_its_default_stays_at_home(promise, tmp_path):
    plain = dataclasses.replace(promise, next_state=False)
    problem = dataclasses.replace(SCENARIOS["bandit"]().problem, constraint=promise)
    saver.save(problem, tmp_path / "kept.json")
    assert saver.load(tmp_path / "kept.json").constraint == promise
    assert pack(promise)["next_state"] is True
    assert "next_state" not in pack(plain)  # as written before there was one: the same fingerprint
    before = {name: value for name, value in pack(promise).items() if name != "next_state"}
    assert unpack(before) == plain
    assert fingerprint(unpack(before)) == fingerprint(plain) != fingerprint(promise)
    text = (
        (tmp_path / "kept.json").read_text(encoding="utf-8").replace('"next_state": true', '"next_state": 1')
    )
    (tmp_path / "kept.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidData, match="next_state is 1; it must be True or False"):
        saver.load(tmp_path / "kept.json")


def my_design(statistics):
    return statistics.problem.target


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Collector(design=my_design), "my_design cannot be written: a function is no plain data"),
        ({"a": 1}, "dict was given; saver.save writes problems, collectors"),
        (5, "int was given"),
        ("a.json", r"the first argument is the path 'a.json'; call saver.save\(value, path\)"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name_and_nothing_is_written(value, message, tmp_path):
    with pytest.raises(InvalidData, match=message):
        saver.save(value, tmp_path / "kept.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a file that saver.save wrote"),
        ("[1, 2]", "it does not say what it holds"),
        ('{"saver": 2, "holds": {}}', "has format 2; this version reads 1"),
        ('{"saver": 1, "holds": {"~": "nothing"}}', "it holds a 'nothing', which this version does not know"),
        ('{"saver": 1, "holds": {"~": "collector", "speed": 3}}', "it has 'speed' in a collector"),
        ('{"saver": 1, "holds": {"~": "collector", "design": "best"}}', "design is 'best'"),
        ('{"saver": 1, "holds": {"~": "gaussian", "mean": 3}}', "is not a file that saver.save wrote"),
        (
            '{"saver": 1, "holds": {"~": "bernoulli", "mean": '
            '{"~": "array", "kind": "f8", "shape": [100000, 1000000], "at": [], "is": []}}}',
            r"claims the shape \(100000, 1000000\)",
        ),
        (
            '{"saver": 1, "holds": {"~": "bernoulli", "mean": {"~": "array", "kind": "O8", "shape": [1]}}}',
            "is not a file that saver.save wrote",
        ),
        (
            '{"saver": 1, "holds": {"~": "bernoulli", "mean": {"~": "array", "kind": "f8", "shape": [2], '
            '"zip": "eJxjYKAtAAAAUAAB"}}}',
            "holds another number of bytes",
        ),
        (
            '{"saver": 1, "holds": {"~": "bernoulli", "mean": {"~": "array", "kind": "f8", "shape": [1, 1], '
            '"zip": "AAAA"}}}',
            "is not a file that saver.save wrote",
        ),
    ],
)
def test_broken_files_are_refused(text, message, tmp_path):
    (tmp_path / "kept.json").write_text(text)
    with pytest.raises(InvalidData, match=message) as found:
        saver.load(tmp_path / "kept.json")
    assert str(tmp_path / "kept.json") in str(found.value)


def test_missing_files_and_folders_are_said(tmp_path):
    with pytest.raises(InvalidData, match=r"cannot read .*none.json: No such file"):
        saver.load(tmp_path / "none.json")
    with pytest.raises(InvalidData, match="the first argument is the path"):
        saver.save(str(tmp_path / "kept.json"), COLLECTORS["saver"])
    with pytest.raises(InvalidData, match=r"cannot write .*none/kept.json: No such file"):
        saver.save(COLLECTORS["saver"], tmp_path / "none" / "kept.json")
