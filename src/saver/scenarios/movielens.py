"""The paper's Experiment 2: which of 30 movies to show, from statistics of MovieLens 1M."""

from __future__ import annotations

import os
from importlib import resources

import numpy as np

from saver._types import Floats, Ints
from saver.errors import InvalidData, InvalidProblem
from saver.problem import Empirical, Gaussian, Law, Scenario
from saver.problem.checks import between, whole
from saver.scenarios.assembly import always, bandit_model, scenario
from saver.scenarios.ratings import MovieTable, most_rated, movie_table, rating_matrix, read_ratings


def movielens(
    *,
    ratings: str | os.PathLike[str] | None = None,
    actions: int = 30,
    most_movies: int = 128,
    most_users: int = 128,
    rank4: bool = False,
    good_target: float = 0.4,
    constraint_variance: float = 0.01,
    alpha: float = 0.25,
    delta: float = 0.05,
    episodes: int = 8000,
) -> Scenario:
    """A bandit over movies in order of rating variance; the least variable is the baseline and the safest.

    Without `ratings` the embedded table makes Gaussian rewards. With the path of a `ratings.dat` the table is
    rebuilt from it (`most_movies`, `most_users`) and rewards are drawn from its real ratings.
    `rank4` uses the table's statistics after rank-4 completion instead, always Gaussian.
    The target gives `good_target` to rows 0 and 1 and shares the rest.
    """
    actions = whole("actions", actions, 3)
    most_movies, most_users = whole("most_movies", most_movies, 1), whole("most_users", most_users, 1)
    good_target = between("good_target", good_target, 0.0, 0.5, closed=(True, True))
    if ratings is None:
        movies, reward = _from_table(_embedded(actions), rank4)
    else:
        if most_movies < actions:
            raise InvalidProblem(f"most_movies is {most_movies}; it must be at least actions = {actions}")
        found = read_ratings(ratings)
        matrix, movie_ids = rating_matrix(*found, most_movies=most_movies, most_users=most_users)
        if rank4:
            movies, reward = _from_table(movie_table(matrix, movie_ids, actions), rank4)
        else:
            chosen = most_rated(matrix, actions)
            movies = movie_ids[chosen]
            if np.isnan(matrix[:, chosen]).all(axis=0).any():
                raise InvalidData(
                    f"some of the {actions} movies have no rating by the {most_users} chosen users; "
                    "pass fewer actions or more most_users"
                )
            reward = Empirical([[column[~np.isnan(column)] for column in matrix[:, chosen].T]])
    mdp = bandit_model(actions, [f"movie {number}" for number in movies])
    shared = (1 - 2 * good_target) / (actions - 2)
    return scenario(
        "movielens",
        mdp,
        reward=reward,
        constraint_mean=_safety(reward.variance[0]),
        target=[[good_target] * 2 + [shared] * (actions - 2)],
        baseline=always(mdp, 0),
        alpha=alpha,
        delta=delta,
        constraint_variance=constraint_variance,
        episodes=episodes,
    )


def embedded_table() -> MovieTable:
    """The table that ships with the package: 30 movies."""
    text = resources.files("saver.scenarios").joinpath("data/movielens30.csv").read_text(encoding="utf-8")
    header, *rows = text.split()
    columns = np.array([[float(cell) for cell in row.split(",")] for row in rows]).T
    named = dict(zip(header.split(","), columns, strict=True))
    whole_numbers = {name: named.pop(name).astype(np.int64) for name in ("movie_id", "raters")}
    return MovieTable(**whole_numbers, **named)


def _embedded(actions: int) -> MovieTable:
    table = embedded_table()
    if actions != len(table.movie_id):
        raise InvalidProblem(
            f"actions is {actions}, but the embedded table has {len(table.movie_id)} movies; "
            "pass ratings=... to choose another number"
        )
    return table


def _from_table(table: MovieTable, rank4: bool) -> tuple[Ints, Law]:
    if rank4:
        order = np.argsort(table.rank4_variance, kind="stable")
        return table.movie_id[order], Gaussian([table.rank4_mean[order]], [table.rank4_variance[order]])
    return table.movie_id, Gaussian([table.rating_mean], [table.rating_variance])


def _safety(variance: Floats) -> Floats:
    """1 for the least variable movie, 0 for the most variable one."""
    span = variance.max() - variance.min()
    return np.array([1.0 - (variance - variance.min()) / (span if span > 0 else 1.0)])
