"""Campaigns whose workers and leaders are really killed (kill -9), at random moments, again and again.

Workers ask, play in a simulated bandit and tell, each in a process of its own; of a leader the clients are
eight of its threads. They ask for one trial or for several at once, and tell them in any order, one by one or
together. What each was answered it wrote down itself, in a file of its own, before it went on. In
the end: `lost` are tells that were answered and are not in the journal, `doubled` trials that were told or
handed out twice, `verified` whether all records, snapshots and the state belong together and replay gives the
state bit by bit, `lowest` the least that the true budget ever was, all trials that were asked counted as run
in the order of asking: the promise is that it stays at or above 0.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tables import Table

import saver
from saver import scenarios
from saver.errors import CampaignEnded, TooManyOut
from saver.simulator.truth import Truth

EPISODES, LEASE, CLIENTS, SEVERAL = 100_000, 2.0, 8, 6
BANDIT = scenarios.bandit()
COLUMNS = (
    "store", "mode", "kills", "asked", "told", "abandoned", "late", "lost", "doubled", "verified", "lowest",
    "records", "seconds",
)  # fmt: skip
WORKERS = 3
LIFE = (0.05, 0.6)  # seconds that one lives after its first answer


def opened(url: str, mode: str = "embedded") -> Any:
    return saver.open(
        url,
        "chaos",
        BANDIT.problem,
        "saver-opt",
        episodes=EPISODES,
        seed=1,
        lease=LEASE,
        max_out=64,
        mode=mode,
    )


def work(campaign: Any, notes: int) -> None:
    """Ask, play, tell; every answer is noted in one write."""
    rng = np.random.default_rng(os.getpid() + threading.get_ident() % 10_000)
    while True:
        n = int(rng.integers(1, SEVERAL))
        try:
            trials = [campaign.ask()] if n == 1 else campaign.ask(n=n)
        except (TooManyOut, CampaignEnded):
            time.sleep(0.05)
            continue
        note(notes, ["asked"] * len(trials), trials)
        played = [(trials[i], *episode(trials[i], rng)) for i in rng.permutation(len(trials))]
        if rng.random() < 0.5:
            note(notes, campaign.tell_all(played), [trial for trial, *_ in played])
            continue
        for trial, *columns in played:
            note(notes, [campaign.tell(trial, *columns)], [trial])


def note(notes: int, words: list[str], trials: list[Any]) -> None:
    text = "".join(f"{word} {trial.number}\n" for word, trial in zip(words, trials, strict=True))
    os.write(notes, text.encode())


def episode(trial: Any, rng: np.random.Generator) -> tuple[list[Any], ...]:
    """What the simulated world makes of a trial."""
    action, world = trial.act(0, 0), BANDIT.world
    reward = float(rng.normal(world.reward.mean[0, action], world.reward.variance[0, action] ** 0.5))
    constraint = float(np.clip(rng.normal(world.constraint.mean[0, action], 0.1), 0.0, 1.0))
    return [0], [action], [reward], [constraint]


def live(url: str, path: str, mode: str) -> None:
    """One life."""
    notes = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        try:
            campaign = opened(url, mode)
            break
        except saver.errors.StoreFailed:  # the one before is being buried
            time.sleep(0.02)
    threads = [
        threading.Thread(target=work, args=(campaign, notes), daemon=True)
        for _ in range(CLIENTS if mode == "leader" else 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def killed(url: str, folder: Path, kills: int, mode: str) -> Counter[str]:
    """Let processes live and kill them; what they noted, counted by answer and trial."""
    warm()
    forked, rng, lives = multiprocessing.get_context("fork"), random.Random(1), 0
    alive: list[tuple[Any, Path, float]] = []
    done = 0
    while done < kills:
        while len(alive) < (1 if mode == "leader" else WORKERS) and done + len(alive) < kills:
            lives += 1
            path = folder / f"notes-{mode}-{lives}"
            process = forked.Process(target=live, args=(url, str(path), mode))
            process.start()
            alive.append((process, path, 0.0))
        for i, (process, path, end) in enumerate(alive):
            if end == 0.0 and path.exists() and path.stat().st_size:
                alive[i] = (process, path, time.monotonic() + rng.uniform(*LIFE))
            elif end and time.monotonic() > end:
                os.kill(process.pid, signal.SIGKILL)
                process.join()
                del alive[i]
                done += 1
                break
            elif not process.is_alive():
                raise RuntimeError(f"a worker ended by itself: {path}")
        time.sleep(0.005)
    found: Counter[str] = Counter()
    for path in folder.glob(f"notes-{mode}-*"):
        found.update(path.read_text().splitlines())
    return found


def warm() -> None:
    """Load what is compiled, once for all children."""
    campaign = saver.Campaign(BANDIT.problem, "saver-opt", 20)
    for _ in range(5):
        trial = campaign.ask()
        campaign.tell(trial, [0], [trial.act(0, 0)], [0.0], [0.5])


def row(store: str, url: str, folder: Path, kills: int, mode: str) -> list[Any]:
    """Kill, and count."""
    began = time.monotonic()
    noted = killed(url, folder, kills, mode)
    seconds = time.monotonic() - began
    with opened(url) as campaign:
        verified, events = campaign.verify(), campaign.records()
    told = Counter(record.trial for record in events if record.kind == "told")
    asked = Counter(record.trial for record in events if record.kind == "asked")
    answered = [int(line.split()[1]) for line in noted if line.startswith("told")]
    handed = [line for line in noted if line.startswith("asked") and noted[line] > 1]
    lost = sum(number not in told for number in answered)
    doubled = len(handed) + sum(count > 1 for count in (*told.values(), *asked.values()))
    print(store, mode, kills, len(told), lost, doubled, f"{seconds:.0f} s", file=sys.stderr, flush=True)
    kinds = Counter(record.kind for record in events)
    return [
        store, mode, kills, f"{len(asked):,}", f"{len(told):,}", kinds["abandoned"], kinds["late"], lost,
        doubled, "yes" if verified.records == len(events) else "no", lowest(url), f"{len(events):,}",
        f"{seconds:.0f}",
    ]  # fmt: skip


def lowest(url: str) -> float:
    """The least of the true budget, after any trial."""
    truth = Truth(BANDIT)
    with opened(url) as campaign:
        worths = []
        for record in campaign.records():
            event = record.event if record.kind == "asked" else None
            if event is not None:
                worths.append(_worth(truth, campaign, event))
    budgets = np.cumsum(np.array(worths) - truth.required[0])
    return float(budgets.min()) if len(budgets) else 0.0


def _worth(truth: Truth, campaign: Any, event: Any) -> float:
    if isinstance(event.policy, str):
        rows = {"baseline": BANDIT.problem.baseline, "explore": BANDIT.problem.mdp.uniform}[event.policy]
        return float(np.sum(rows * truth.means[0]))
    return float(truth.means[0][0, int(event.policy[0])])


@contextlib.contextmanager
def stores() -> Iterator[dict[str, str]]:
    """An empty one of each kind."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from journal.stores import empty, server  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder, server() as uri:
        yield {"sqlite": f"sqlite:///{folder}/run.db", "postgres": empty("postgres", folder, uri)}


def table(workers: int = 300, leaders: int = 50) -> Table:
    rows = []
    with stores() as urls:
        for store, url in urls.items():
            for mode, kills in (("embedded", workers), ("leader", leaders)):
                with tempfile.TemporaryDirectory() as folder:
                    rows.append(row(store, url, Path(folder), kills, mode))
    return Table("chaos", __doc__ or "", COLUMNS, rows)


if __name__ == "__main__":
    print(table().markdown())
