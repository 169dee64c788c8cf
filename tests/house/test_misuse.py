"""Every public entry against malformed input: a clear error or a right answer, never a crash."""

import io
import json
import math
import struct
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import saver
from saver.engine.runs import Runs
from saver.errors import SaverError

pytestmark = pytest.mark.slow

FUZZ = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
BANDIT, TREE = saver.SCENARIOS["bandit"](), saver.SCENARIOS["tree"](depth=2)
NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**40), 10**40),
    st.sampled_from(
        [0.0, -0.0, 1e-320, 1e308, -1e308, math.nan, math.inf, True, None, "1", b"1", 1j, [], {}]
    ),
)
ARRAYS = st.one_of(
    NUMBERS,
    st.lists(NUMBERS, max_size=4),
    st.lists(st.lists(NUMBERS, max_size=4), max_size=4),
    st.just(np.ma.masked_array([[0.5, 0.5]], mask=[[True, False]])),
    st.just(np.array([["a", "b"]])),
    st.just(np.zeros((0, 3))),
    st.just(np.full((1, 12), np.nan)),
    st.just(np.zeros((2, 2, 2, 2))),
    st.just(iter([1, 2])),
)


def attempt(call, *arguments, **options):
    """What came of it, or None if it was refused in the house's way; any other exception is a bug."""
    try:
        return call(*arguments, **options)
    except SaverError as error:
        return None if len(str(error)) > 10 else "an error that says nothing"


def refused(call, *arguments, **options):
    """Whether it was refused."""
    return attempt(call, *arguments, **options) is None


def sane(made):
    """Whether everything that a value holds is in order: finite numbers, distributions that sum to 1."""
    if isinstance(made, float | np.floating):
        return bool(np.isfinite(made))
    if isinstance(made, np.ndarray):
        return made.dtype.kind != "f" or bool(np.isfinite(made).all())
    if isinstance(made, saver.Mdp):
        whole = abs(made.start.sum() - 1.0) < 1e-6 and bool(np.isfinite(made.transitions.data).all())
        return whole and made.horizon >= 1 and 0.0 < made.discount <= 1.0
    if hasattr(made, "policy"):
        rows = made.policy.sum(axis=-1)
        return bool(np.allclose(rows, 1.0) and made.policy.min() >= 0.0)
    if isinstance(made, tuple):
        return all(sane(part) for part in made)
    return made is None or not isinstance(made, str)


@FUZZ
@given(transitions=ARRAYS, horizon=NUMBERS, discount=NUMBERS, start=ARRAYS, terminal=ARRAYS)
def test_models(transitions, horizon, discount, start, terminal):
    dense = np.zeros((2, 2, 2))
    for made in (
        attempt(saver.Mdp, transitions, 2),
        attempt(saver.Mdp, dense, horizon),
        attempt(saver.Mdp, dense, 2, discount=discount),
        attempt(saver.Mdp, dense, 2, start=start),
        attempt(saver.Mdp, dense, 2, terminal=terminal),
        attempt(saver.Mdp.from_edges, transitions, 2, 2, 2),
        attempt(saver.Mdp.from_edges, [(0, 0, 1, 1.0)], horizon if not _long(horizon) else 2, 2, 2),
    ):
        assert sane(made)


@FUZZ
@given(value=ARRAYS, number=NUMBERS)
def test_problems_worlds_and_promises(value, number):
    for name in ("target", "baseline"):
        made = attempt(replace, BANDIT.problem, **{name: value})
        assert made is None or np.allclose(getattr(made, name).sum(axis=-1), 1.0)
    for name in ("alpha", "delta", "baseline_value", "reward_scale", "constraint"):
        made = attempt(replace, BANDIT.problem, **{name: number})
        assert made is None or (0 < made.alpha <= 1 and 0 < made.delta < 1 and made.baseline_value > 0)
    for law in (saver.Bernoulli, saver.Empirical, lambda v: saver.Gaussian(v, 1.0)):
        made = attempt(law, value)
        assert made is None or (sane(made.mean) and np.all(made.variance >= 0))
    made = attempt(saver.Gaussian, [[0.5]], value)
    assert made is None or np.all(made.variance >= 0)
    for made in (attempt(saver.SubGaussian, number), attempt(saver.SubGaussian, 0.1, number)):
        assert made is None or (made.scale >= 0 and made.floor < made.ceiling)
    made = attempt(saver.Bounded, number, 1.0)
    assert made is None or made.low < made.high
    made = attempt(replace, BANDIT, episodes=number)
    assert made is None or made.episodes >= 1
    assert refused(saver.World, BANDIT.problem.mdp, value, BANDIT.world.constraint)


@FUZZ
@given(value=ARRAYS, number=NUMBERS)
def test_designs_and_bellman(value, number):
    mdp, target, variance = TREE.problem.mdp, TREE.problem.target, TREE.world.reward.variance
    found = [
        *(attempt(design, mdp, value, variance) for design in (saver.design.tree, saver.design.dag)),
        *(attempt(design, mdp, target, value) for design in (saver.design.tree, saver.design.dag)),
        attempt(saver.design.exact, TREE.problem, value),
        attempt(saver.design.exact, TREE.problem, variance, value),
        attempt(saver.design.exact, TREE.problem, variance, seconds=number, tolerance=0.5),
        attempt(TREE.world.value, value),
        attempt(TREE.world.constraint_value, value),
        attempt(saver.problem.minimising, mdp, value),
    ]
    assert all(sane(made) for made in found)
    limit = attempt(saver.design.limit, mdp, target, variance, value)
    assert limit is None or limit >= 0


@FUZZ
@given(states=ARRAYS, actions=ARRAYS, rewards=ARRAYS, constraints=ARRAYS)
def test_tell_never_takes_what_cannot_have_happened(states, actions, rewards, constraints):
    campaign = saver.Campaign(TREE.problem, "saver", 10, seed=1)
    trial = campaign.ask()
    good = saver.Player(TREE.world, 3).run(trial)
    before = json.dumps(campaign.state())
    for place, value in enumerate((states, actions, rewards, constraints)):
        told = list(good)
        told[place] = value
        attempt(campaign.tell, trial, *told)
        if campaign.budget.episodes:
            return  # it can have happened
        assert json.dumps(campaign.state()) == before  # refused whole
    campaign.tell(trial, *good)
    assert campaign.counts.sum() == len(good)


@FUZZ
@given(number=NUMBERS, value=ARRAYS)
def test_campaigns_and_simulations(number, value):
    for made in (
        attempt(saver.Campaign, BANDIT.problem, "saver", number if not _long(number) else 5),
        attempt(saver.Campaign, BANDIT.problem, number, 5),
        attempt(saver.Campaign, BANDIT.problem, "saver", 5, seed=number),
        attempt(saver.Campaign, BANDIT.problem, "saver", 5, history=value),
        attempt(saver.Campaign, BANDIT.problem, "saver", 5, knowledge=value),
    ):
        assert made is None or made.budget.certified == 0.0
    for name in ("episodes", "runs", "seed", "checkpoints", "engine", "threads"):
        given = {"episodes": 5, "runs": 1, name: number if not _long(number) else 3}
        made = attempt(saver.simulate, BANDIT, "saver", **given)
        assert made is None or sane(made.budget)
    made = attempt(saver.simulate, BANDIT, "saver", episodes=5, runs=1, checkpoints=value)
    assert made is None or made.checkpoints[-1] == 5
    for name in ("bonus", "caution", "replan", "knows", "ledger", "gate", "track", "explore"):
        made = attempt(saver.Collector, **{name: number})
        assert made is None or (made.bonus >= 0 <= made.caution and made.replan >= 1)


def _long(number):
    return isinstance(number, int | float) and not isinstance(number, bool) and 50 < number < 10**9


@settings(FUZZ, max_examples=20)
@given(number=NUMBERS)
def test_diagnoses_and_estimates(number):
    for made in (attempt(saver.diagnose, BANDIT, number), attempt(saver.diagnose, BANDIT, stderr=number)):
        assert made is None or json.dumps(made.to_dict(), allow_nan=False)
    made = attempt(saver.Campaign(BANDIT.problem, "saver", 5).estimate, number)
    assert made is None or made.covered == 0.0
    assert refused(saver.theory.regret_rate, BANDIT, level=number, budgets=[10, 20])
    assert refused(saver.estimate.Log, BANDIT.problem.mdp, number)


@FUZZ
@given(
    state=st.recursive(
        NUMBERS.filter(lambda v: not isinstance(v, complex | bytes)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=12,
    )
)
def test_a_broken_state_is_refused(state):
    assert refused(saver.Campaign.restore, BANDIT.problem, "saver", state)


@pytest.fixture(scope="module")
def healthy():
    campaign = saver.Campaign(TREE.problem, "saver-opt", 20, seed=1)
    player = saver.Player(TREE.world, 2)
    for _ in range(12):
        trial = campaign.ask()
        campaign.tell(trial, *player.run(trial))
    campaign.ask()
    return json.dumps(campaign.state())


@FUZZ
@given(data=st.data())
def test_a_state_with_one_thing_changed_is_refused_or_right(healthy, data):
    """Anywhere in the state: another value, a missing key, a shorter list."""
    state = json.loads(healthy)
    place = state
    for _ in range(data.draw(st.integers(0, 5))):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        nested = [key for key in keys if isinstance(place[key], dict | list) and place[key]]
        if not nested:
            break
        place = place[data.draw(st.sampled_from(nested))]
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    key = data.draw(st.sampled_from(keys))
    if data.draw(st.booleans()):
        del place[key]
    else:
        place[key] = data.draw(st.sampled_from([None, "x", -1, 1e300, math.nan, [], {}, [[1]], True]))
    try:
        campaign = saver.Campaign.restore(TREE.problem, "saver-opt", state)
    except SaverError:
        return
    assert campaign.state() == json.loads(healthy)  # nothing was changed after all


def archive(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in files.items():
            file.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def header(shape, kind="<f8"):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (64 - (len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


HOSTILE = {
    "empty": b"",
    "text": b"not a zip",
    "cut zip": archive(estimates=header((2, 2)) + bytes(32))[:-20],
    "a pickle": archive(estimates=header((1,), "|O") + b"cos\nsystem\n(S'true'\ntR."),
    "a terabyte": archive(checkpoints=header((10**12,), "<i8")),
    "negative shape": archive(checkpoints=header((-5,), "<i8") + bytes(40)),
    "other names": archive(something=header((1,)) + bytes(8)),
    "strings": archive(checkpoints=header((1,), "<U4") + bytes(16)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(tmp_path, name):
    path = tmp_path / "runs.npz"
    path.write_bytes(HOSTILE[name])
    assert refused(Runs.load, path)


def test_sizes_are_checked_before_anything_is_allocated(tmp_path):
    """A file of a few hundred bytes that claims petabytes: refused, in no time and no memory."""
    path = tmp_path / "runs.npz"
    found = saver.simulate(BANDIT, "saver", episodes=5, runs=2)
    found.save(path)
    with zipfile.ZipFile(path) as file:
        parts = {name.removesuffix(".npy"): file.read(name) for name in file.namelist()}
    parts["budget"] = header((10**15,))
    path.write_bytes(archive(**parts))
    assert refused(Runs.load, path)


@FUZZ
@given(data=st.data())
def test_a_flipped_byte_is_refused_or_changes_nothing_else(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("flip") / "runs.npz"
    saver.simulate(BANDIT, "saver", episodes=5, runs=2).save(path)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        found = Runs.load(path)
    except SaverError:
        return
    assert found.estimates.shape == (2, len(found.checkpoints))


@pytest.mark.parametrize(
    "content",
    [b"", b"::::", b"1::2\n", b"a::b::c\n", b"1::2::nan\n", b"1::2::inf\n", b"\xff\xfe\x00", b"1::2::5\n" * 3,
     b"9" * 400 + b"::1::5\n", b"1::1::1e400\n", b"-1::1::3\n"],
)  # fmt: skip
def test_hostile_ratings_are_refused(tmp_path, content):
    path = tmp_path / "ratings.dat"
    path.write_bytes(content)
    assert refused(saver.scenarios.movielens, ratings=path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("worst_budget", lambda v: np.full_like(v, np.nan)),
        ("worst_budget", lambda v: v + 100.0),
        ("stderr", lambda v: -np.ones_like(v)),
        ("checkpoints", lambda v: -v),
        ("checkpoints", lambda v: v[::-1]),
        ("baseline_share", lambda v: v + 2.0),
    ],
)
def test_runs_that_no_simulation_gives_are_refused(tmp_path, name, change):
    path = tmp_path / "runs.npz"
    saver.simulate(BANDIT, "saver", episodes=20, runs=3).save(path)
    with np.load(path) as file:
        data = dict(file)
    data[name] = change(data[name])
    np.savez(path, **data)
    with pytest.raises(SaverError, match=f"{name} cannot be"):
        Runs.load(path)
