"""Every kind of store, empty; and worlds to play in."""

from __future__ import annotations

import itertools
import os
import tempfile
from contextlib import contextmanager

import numpy as np
import psycopg

import saver
from saver import scenarios
from saver.journal.memory import shelf

KINDS = ("memory", "sqlite", "postgres")
BANDIT = scenarios.bandit()
_numbers = itertools.count(1)


@contextmanager
def server():
    """A PostgreSQL server of its own; it stops when the block ends."""
    with tempfile.TemporaryDirectory() as folder:  # where its own user can go, unlike pytest's folders
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        import pgserver

        found = pgserver.get_server(f"{folder}/data")
        try:
            yield found.get_uri()
        finally:
            found.cleanup()


def empty(kind, folder, uri=None):
    """The URL of a store that holds nothing."""
    if kind == "memory":
        shelf.cache_clear()
        return "memory:"
    if kind == "sqlite":
        return f"sqlite:///{folder}/run.db"
    name = f"store{next(_numbers)}"
    with psycopg.connect(uri, autocommit=True) as base:
        base.execute(f"create database {name}")
    return uri.replace("/postgres?", f"/{name}?")


def outcome(number):
    """What a bandit pays in a trial: the same whoever plays it."""
    rng = np.random.default_rng(number)
    return float(rng.normal()), float(rng.uniform(0.2, 1.0))


def told(trial):
    """A trial of the bandit, played."""
    reward, constraint = outcome(trial.number)
    return [0], [trial.act(0, 0)], [reward], [constraint]


def opened(url, **options):
    """A campaign of the bandit, made or found."""
    given = {"problem": BANDIT.problem, "collector": "saver-opt", "episodes": 60, "seed": 3} | options
    return saver.open(url, "shop", **given)
