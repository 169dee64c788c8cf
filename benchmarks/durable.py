"""Campaigns in SQLite, durability "power": episodes a second, over bare commits in the same run.

A bare commit writes one small row of the same database by one process, as fast as the disk lets it. An
episode is an ask and a tell of a bandit, played by nobody. `least` is the slowest process over the mean of
all. `at most` is the same ratio if a journal cost nothing at all: a leader decides every episode, as memory
does; of four processes one decides it and three apply it, on as many cores as there are. The first table is
of the disk that is there, the second of one that takes 2 ms longer to keep what is written, as disks across
a network do. Bare commits and memory are measured before and after each way: machines and disks wander, and
2 ms of sleep have taken 25. Below: what an episode costs early and late, and how long it takes to read a
campaign anew.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chaos
from tables import Table

import saver
from saver.journal import sqlite

SECONDS, WARM, SLOW = 5.0, 6.0, 0.002
BANDIT = chaos.BANDIT
CORES, SHARED = len(os.sched_getaffinity(0)), "embedded, 4 processes"
FEW, MANY, RECORDS = 1000, 100_000, 100_000
LONG = """One trial out at a time where nothing else is said: each look of the ledger grows with what is out.
Reading anew checks the chain, applies every record, and compares the state and all snapshots bit by bit."""


def opened(path: Path, **options: Any) -> Any:
    given = {"episodes": 10**6, "seed": 1, "max_out": 1000} | options
    return saver.open(path, "speed", BANDIT.problem, "saver-opt", **given)


def told(trial: Any) -> tuple[list[Any], ...]:
    return [0], [trial.act(0, 0)], [0.1 * (trial.number % 7)], [0.5 + 0.01 * (trial.number % 9)]


def play(campaign: Any, until: float, batch: int | None = None) -> int:
    """Ask and tell until then; how many."""
    done = 0
    while time.monotonic() < until:
        trials = [campaign.ask()] if batch is None else campaign.ask(n=batch)
        if batch is None:
            campaign.tell(trials[0], *told(trials[0]))
        else:
            campaign.tell_all([(trial, *told(trial)) for trial in trials])
        done += len(trials)
    return done


@contextlib.contextmanager
def slower(seconds: float) -> Iterator[None]:
    """Disks that take so much longer to keep what is written."""
    real = sqlite.to_disk

    def to_disk(log: int) -> None:
        real(log)
        time.sleep(seconds)

    sqlite.to_disk = to_disk
    try:
        yield
    finally:
        sqlite.to_disk = real


def bare(folder: Path, longer: float = 0.0) -> float:
    """Commits of one row a second."""
    base = sqlite3.connect(folder / "bare.db", isolation_level=None)
    base.execute("pragma journal_mode = wal")
    base.execute("pragma synchronous = full")
    base.execute("create table if not exists event (seq integer primary key, body text)")
    began, done = time.monotonic(), 0
    while time.monotonic() < began + SECONDS:
        base.execute("begin immediate")
        base.execute("insert into event (body) values (?)", ("x" * 100,))
        base.execute("commit")
        done += 1
        if longer:
            time.sleep(longer)
    base.close()
    return done / SECONDS


def in_memory() -> float:
    campaign = saver.Campaign(BANDIT.problem, "saver-opt", 10**6, seed=1)
    return play(campaign, time.monotonic() + SECONDS) / SECONDS


def leader(folder: Path, clients: int = 8, batch: int | None = None) -> float:
    """Threads that ask for one trial and tell it, or for several at once."""
    with opened(folder / f"leader-{clients}-{batch}.db", mode="leader") as campaign:
        play(campaign, time.monotonic() + WARM / 2, batch)
        done, until = [0] * clients, time.monotonic() + SECONDS

        def work(i: int) -> None:
            done[i] = play(campaign, until, batch)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(done) / SECONDS


def _process(path: Path, start: float, counts: Any, i: int) -> None:
    with opened(path) as campaign:
        play(campaign, start - WARM / 2)  # compiled code is loaded when it is first used
        time.sleep(max(0.0, start - time.monotonic()))
        counts[i] = play(campaign, start + SECONDS)


def embedded(folder: Path, processes: int = 4) -> tuple[float, float]:
    """Episodes a second, and the slowest process over the mean."""
    opened(folder / "shared.db").close()
    context, start = multiprocessing.get_context("fork"), time.monotonic() + WARM
    counts = context.Array("q", processes)
    workers = [
        context.Process(target=_process, args=(folder / "shared.db", start, counts, i))
        for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = [int(counts[i]) for i in range(processes)]
    return sum(found) / SECONDS, min(found) / (sum(found) / processes)


def applying(folder: Path) -> float:
    """Seconds in which a process takes over an episode that another has decided."""
    path, episodes = folder / "applying.db", 900  # too few for a snapshot
    with opened(path, mode="leader", durability="process") as campaign:
        for _ in range(episodes):
            trial = campaign.ask()
            campaign.tell(trial, *told(trial))
    began = time.monotonic()
    opened(path, mode="read").close()
    return (time.monotonic() - began) / episodes


def growth(folder: Path) -> list[list[Any]]:
    """A long campaign: the cost of an episode early and late, and opening it."""
    with opened(folder / "long.db", mode="leader", durability="process") as campaign:
        costs = {}
        done = 0
        for mark in (FEW, MANY):
            while done < mark:
                campaign.tell_all([(trial, *told(trial)) for trial in campaign.ask(n=100)])
                done += 100
            began = time.process_time()
            for _ in range(500):
                trial = campaign.ask()
                campaign.tell(trial, *told(trial))
            costs[mark] = (time.process_time() - began) / 500
            done += 500
        campaign.snapshot()
    at_snapshot = opening(folder)
    after, later = records_later(folder, 1)
    _, crowded = records_later(folder, 999)
    return [
        [f"an episode after {MANY:,} over one after {FEW:,}", costs[MANY] / costs[FEW]],
        ["opening at a snapshot, ms", 1e3 * at_snapshot],
        [f"opening {after:,} records after one, ms", 1e3 * later],
        ["the same, 999 trials out at once, ms", 1e3 * crowded],
        ["reading 100,000 records anew, s", replay(folder, 1)],
        ["the same, 100 trials out at once, s", replay(folder, 100)],
    ]


def opening(folder: Path) -> float:
    """Seconds."""
    began = time.monotonic()
    opened(folder / "long.db").close()
    return time.monotonic() - began


def records_later(folder: Path, out: int) -> tuple[int, float]:
    """Records after a new snapshot, so many trials out at once, and the seconds of opening then."""
    with opened(folder / "long.db", mode="leader", durability="process") as campaign:
        place = campaign.snapshot()
        for _ in range(999 // out):
            for trial in [campaign.ask() for _ in range(out)]:
                campaign.tell(trial, *told(trial))
        after = campaign.last - place
    return after, opening(folder)


def replay(folder: Path, out: int) -> float:
    """Seconds of verifying 100,000 records, chain, state and all snapshots."""
    path = folder / f"replay-{out}.db"
    with opened(path, mode="leader", durability="process") as campaign:
        for _ in range(RECORDS // 2 // out):
            campaign.tell_all([(trial, *told(trial)) for trial in campaign.ask(n=out)])
    with opened(path, mode="read") as campaign:
        began = time.monotonic()
        records = campaign.verify().records
        return float((time.monotonic() - began) * RECORDS / records)


def rates(folder: Path, longer: float = 0.0) -> list[list[Any]]:
    """Episodes a second on one disk."""
    folder.mkdir()
    ways: dict[str, Callable[[], tuple[float, Any]]] = {
        "leader, 8 clients": lambda: (leader(folder), ""),
        "the same, ask(n=16)": lambda: (leader(folder, batch=16), ""),
        "leader, 1 client, ask(n=16)": lambda: (leader(folder, 1, batch=16), ""),
        SHARED: lambda: embedded(folder),
    }
    found, rows, applied = [(bare(folder, longer), in_memory())], [], applying(folder)
    for way, measured in ways.items():
        with slower(longer) if longer else contextlib.nullcontext():
            rate, least = measured()
        found.append((bare(folder, longer), in_memory()))
        commits, core = (sum(pair) / 2.0 for pair in zip(*found[-2:], strict=True))
        most = CORES / (1.0 / core + 3.0 * applied) if way == SHARED else core
        rows.append([way, rate, rate / commits, most / commits, rate / core, least])
    commits, core = (sum(each) / len(found) for each in zip(*found, strict=True))
    return [
        ["bare commits", commits, 1.0, "", commits / core, ""],
        ["in memory", core, core / commits, "", 1.0, ""],
        *rows,
    ]


def table() -> Table:
    chaos.warm()
    columns = ("what", "a second", "over bare commits", "at most", "over memory", "least")
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        rows, slow = rates(folder / "quick"), rates(folder / "slow", SLOW)
        more = growth(folder)
    return Table(
        "durable", __doc__ or "", columns, rows,
        more=(
            Table("A slower disk", f"Every flush takes {1e3 * SLOW:g} ms longer.", columns, slow),
            Table("Long campaigns", LONG, ("what", "is"), more),
        ),
    )  # fmt: skip


if __name__ == "__main__":
    print(table().markdown())
