"""From logs to a problem: what comes back of a known world, how often intervals hold, and how fast it is."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from logged_world import Shop
from tables import Table

from saver import Bounded, Episode, Guardrail, History, Problem
from saver.data import Fitted, read_log
from saver.estimate import Log
from saver_audit.judge import tail

LOGS, EPISODES, FAR = 1000, 20_000, 4.0
ROWS = (1_250_000, 2_500_000, 5_000_000, 10_000_000)
CHUNK = 100_000  # episodes
ABOUT = f"""
{LOGS:,} logs of {EPISODES:,} episodes, written by a known policy in a known world of 50 states and 3 actions,
with labels, read and fitted by `read_log(...).fit(6)`. `numbers` is how many estimates there are in all logs
(moves that are expected 20 times or more), `beyond 4` how many of them are further than 4 standard errors
from the truth, `expected` how many chance puts there if they were normal, `largest` the distance of the
furthest in the first log. Standard errors of moves, of the baseline and of mean rewards are from the truth.
"""
COVERAGE = f"""
In how many of the same {LOGS:,} logs the 95 % interval holds the truth; `by chance` is the probability of as
few or fewer if it does so with probability .95. `target` is another policy than the logged one.
"""
SPEED = """
A Parquet file of labelled rows (7 columns, whole numbers for episodes) to a problem with its history:
`read_log`, `fit`, `Fitted.problem`, in a process of its own. `memory` is the most that the process had,
`before` what it had with the library imported. `processor s` and the microseconds a row count what the
process used itself: the machine, of two cores, did other work besides.
"""
BULK = f"""
{EPISODES:,} episodes of 6 steps at most, taken in one by one and all at once.
"""
SCRIPT = """
import json, resource, sys, time
import numpy as np, pyarrow.parquet, saver
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
before, began, at_work = peak(), time.perf_counter(), time.process_time()
log = saver.data.read_log(sys.argv[1], next_state="next_state")
read = time.perf_counter()
fitted = log.fit(6)
fit = time.perf_counter()
fitted.problem(fitted.baseline, {"complaint": {"alpha": 0.1, "cost": True}})
done = time.perf_counter()
used = time.process_time() - at_work
print(json.dumps([read - began, fit - read, done - fit, done - began, used, before, peak()]))
"""


def errors(shop: Shop, fitted: Fitted) -> dict[str, Any]:
    """Each estimate less the truth, in standard errors."""
    S, A = shop.reward.shape
    counts, P = fitted.sums.rewards.counts, shop.P.reshape(S * A, S + 1)
    seen = np.zeros((S * A, S + 1))
    for (pair, state), count in fitted.sums.moves.items():
        seen[pair, state] = count
    seen[:, S] = fitted.sums.ends
    n = seen.sum(axis=1, keepdims=True)
    often = (P > 0) & (n * P > 20)
    moves = (seen - n * P)[often] / np.sqrt((n * P * (1 - P))[often])
    visits, b = counts.sum(axis=1, keepdims=True), shop.policy
    truth = {"reward": shop.value(b, shop.reward), "complaint": shop.value(b, shop.complaint)}
    found = {"reward": fitted.reward, **fitted.values}
    return {
        "moves": moves,
        "baseline": ((fitted.baseline - b) / np.sqrt(b * (1 - b) / visits)).ravel(),
        "mean rewards": ((fitted.sums.rewards.mean - shop.reward) * np.sqrt(counts)).ravel(),
        "values": np.array(
            [(found[name].value - value) / found[name].stderr for name, value in truth.items()]
        ),
    }


def round_trips() -> tuple[list[Any], list[Any]]:
    shop = Shop.drawn()
    target = np.roll(shop.policy, 1, axis=1)
    truths = {
        "reward of the baseline": shop.value(shop.policy, shop.reward),
        "complaint of the baseline": shop.value(shop.policy, shop.complaint),
        "reward of the target, certainty": shop.value(target, shop.reward),
        "reward of the target, importance": shop.value(target, shop.reward),
    }
    apart: dict[str, list[Any]] = {}
    held, widths = dict.fromkeys(truths, 0), {name: list[float]() for name in truths}
    for seed in range(LOGS):
        fitted = read_log(shop.log(EPISODES, seed), next_state="next_state").fit(6)
        for name, found in errors(shop, fitted).items():
            apart.setdefault(name, []).append(found)
        other = fitted.off_policy(target)
        answers = (fitted.reward, fitted.values["complaint"], other.certainty, other.importance)
        for (name, truth), answer in zip(truths.items(), answers, strict=True):
            held[name] += answer.interval[0] < truth < answer.interval[1]
            widths[name].append(answer.interval[1] - answer.interval[0])
    rows = []
    for name, parts in apart.items():
        every = np.abs(np.concatenate(parts))
        largest = float(np.abs(parts[0]).max())
        rows.append((name, f"{len(every):,}", int(np.sum(every > FAR)), 6.33e-5 * len(every), largest))
    judged = [
        (name, truths[name], float(np.median(widths[name])) / 2, f"{count} of {LOGS}",
         tail(LOGS, LOGS - count, 0.05))
        for name, count in held.items()
    ]  # fmt: skip
    return rows, judged


def written(folder: Path, rows: int) -> Path:
    """A Parquet file with so many rows, and those that the last episode needs."""
    import pyarrow.parquet as pq

    shop, path, done, seed = Shop.drawn(), folder / f"{rows}.parquet", 0, 0
    writer: Any = None
    while done < rows:
        table = shop.log(CHUNK, seed, first=seed * CHUNK)
        if table.num_rows > rows - done:  # whole episodes: until before the first that begins later
            begins = np.flatnonzero(table["step"].to_numpy() == 0)
            table = table.slice(0, int(begins[np.searchsorted(begins, rows - done)]))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
        done, seed = done + table.num_rows, seed + 1
    writer.close()
    return path


def speeds() -> list[Any]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in ROWS:
            path = written(Path(folder), rows)
            words = [sys.executable, "-c", SCRIPT, str(path)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            read, fit, stated, total, used, before, peak = json.loads(done.stdout)
            row = (f"{rows:,}", read, fit, stated, total, used, 1e6 * used / rows)
            found.append((*row, f"{before:.2f} GB", f"{peak:.2f} GB"))
            path.unlink()
    return found


def bulk() -> list[Any]:
    shop = Shop.drawn()
    many = read_log(shop.log(EPISODES, 0), next_state="next_state")
    fitted = many.fit(6)
    guard = Guardrail("complaint", Bounded(0, 1), alpha=0.1, cost=True)
    problem = Problem(fitted.model, fitted.baseline, fitted.baseline, guardrails=(guard,))
    listed: list[Episode] = list(many)

    def one_by_one() -> None:
        log = Log(fitted.model, fitted.baseline)
        for episode in listed:
            log.add(episode)

    def at_once() -> None:
        Log(fitted.model, fitted.baseline).extend(many)

    timed = {
        "estimate.Log": (one_by_one, at_once),
        "History.of": (lambda: History.of(problem, listed), lambda: History.of(problem, many)),
    }
    rows = []
    for name, calls in timed.items():
        seconds = []
        for call in calls:
            began = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - began)
        rows.append((name, *seconds, seconds[0] / seconds[1]))
    return rows


def table() -> Table:
    rows, held = round_trips()
    return Table(
        "logs", ABOUT, ("of", "numbers", "beyond 4", "expected", "largest"), rows,
        (
            Table("intervals", COVERAGE, ("interval", "truth", "half-width", "holds", "by chance"), held),
            Table("rows", SPEED, ("rows", "read s", "fit s", "problem s", "all s", "processor s", "us a row",
                                  "before", "memory"), speeds()),
            Table("many at once", BULK, ("taken in by", "one by one s", "at once s", "times"), bulk()),
        ),
    )  # fmt: skip
