"""The paper's Experiment 2: which of 30 movies to show, from statistics of MovieLens 1M.

From a MovieLens `ratings.dat` to the small table of movies that the scenario uses.

MovieLens 1M: F. M. Harper and J. A. Konstan, The MovieLens Datasets, ACM TiiS 5(4), 2015.
Its ratings may not be redistributed, so only statistics of them ship with the package.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from saver._types import Floats, Ints
from saver.errors import InvalidData, InvalidProblem
from saver.problem import Empirical, Gaussian, Law, Scenario
from saver.problem.checks import whole
from saver.scenarios.assembly import Stakes, always, bandit_model, favouring, scenario

LARGEST = 5.0  # stars


@dataclass(frozen=True, eq=False)
class MovieTable:
    """Statistics of the chosen movies, one row each, sorted by `rating_variance`; ratings are in [0, 1].

    `rank4_*` are statistics of the rank-4 completion of the users x movies matrix.
    """

    movie_id: Ints
    raters: Ints
    rating_mean: Floats
    rating_variance: Floats
    rank4_mean: Floats
    rank4_variance: Floats


def read_ratings(path: str | os.PathLike[str]) -> tuple[Ints, Ints, Floats]:
    """Users, movies and ratings of a file of `UserID::MovieID::Rating[::Timestamp]` lines."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InvalidData(f"ratings is {path!r}; give the path of a ratings.dat file")
    try:
        lines = Path(path).read_text(encoding="latin-1").split("\n")
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or cause
        raise InvalidData(
            f"cannot read ratings from {path}: {reason}; give the path of a ratings.dat file"
        ) from None
    rows = []
    for number, line in enumerate(lines if lines[-1] else lines[:-1], start=1):
        try:
            user, movie, rating, *rest = line.split("::")
            (time,) = rest or ("0",)
            row = int(user), int(movie), float(rating), int(time)
            if not (0 <= row[0] < 2**62 and 0 <= row[1] < 2**62 and 0 < row[2] <= LARGEST):
                raise ValueError
        except ValueError:
            raise InvalidData(
                f"{path}, line {number}: {line.rstrip()[:80]!r} is not UserID::MovieID::Rating or "
                f"UserID::MovieID::Rating::Timestamp with a rating above 0 and at most {LARGEST:g}; "
                "correct or remove the line"
            ) from None
        rows.append(row)
    if not rows:
        raise InvalidData(f"{path} holds no ratings; give the path of a ratings.dat file")
    users, movies, ratings, _ = zip(*rows, strict=True)
    return np.array(users), np.array(movies), np.array(ratings)


def rating_matrix(
    users: Ints, movies: Ints, ratings: Floats, *, most_movies: int, most_users: int
) -> tuple[Floats, Ints]:
    """The users x movies block that is rated most, NaN where unrated, ratings in [0, 1], and the movie ids.

    The `most_movies` most-rated movies, by popularity; of the users, those who rated most of these movies;
    ties go to the lower id.
    """
    pair = np.column_stack([users, movies])
    _, first, count = np.unique(pair, axis=0, return_index=True, return_counts=True)
    if (twice := np.flatnonzero(count > 1)).size:
        user, movie = pair[first[twice[0]]]
        raise InvalidData(f"user {user} rated movie {movie} {count[twice[0]]} times; keep one rating of each")
    chosen_movies = _most_frequent(movies, most_movies, "movies")
    kept = np.isin(movies, chosen_movies)
    chosen_users = np.sort(_most_frequent(users[kept], most_users, "users"))
    kept &= np.isin(users, chosen_users)
    matrix = np.full((most_users, most_movies), np.nan)
    order = np.argsort(chosen_movies)
    column = order[np.searchsorted(chosen_movies, movies[kept], sorter=order)]
    matrix[np.searchsorted(chosen_users, users[kept]), column] = ratings[kept] / LARGEST
    return matrix, chosen_movies


def complete(matrix: Floats, rank: int = 4, tolerance: float = 1e-8, rounds: int = 10_000) -> Floats:
    """The low-rank matrix that agrees with itself where `matrix` is NaN.

    Missing entries start at column means; then the truncated SVD refills them until none changes by
    `tolerance`.
    """
    missing = np.isnan(matrix)
    rated = np.maximum((~missing).sum(axis=0), 1)
    filled = np.where(missing, np.where(missing, 0.0, matrix).sum(axis=0) / rated, matrix)
    for _ in range(rounds):
        # The leading right singular vectors, from the Gram matrix: a quarter of the time of an SVD.
        _, v = np.linalg.eigh(filled.T @ filled)
        low: Floats = (filled @ v[:, -rank:]) @ v[:, -rank:].T
        change = np.abs(low - filled)[missing].max(initial=0.0)
        filled = np.where(missing, low, filled)
        if change < tolerance:
            return low
    raise InvalidData(
        f"the rank-{rank} completion of the {matrix.shape[0]} x {matrix.shape[1]} ratings still changes by "
        f"{change:.2g} after {rounds} rounds: {missing.mean():.0%} are missing; choose fewer movies or users"
    )


def most_rated(matrix: Floats, count: int) -> Ints:
    """The columns of the `count` movies with most raters (ties by popularity), sorted by variance."""
    raters = (~np.isnan(matrix)).sum(axis=0)
    chosen = np.argsort(-raters, kind="stable")[:count]
    variance = np.nanvar(matrix[:, chosen], axis=0)
    return np.take(chosen, np.argsort(variance, kind="stable"))


def movie_table(matrix: Floats, movie_ids: Ints, count: int) -> MovieTable:
    """Statistics of the `count` movies with most raters, before and after completion."""
    chosen = most_rated(matrix, count)
    rated, low = matrix[:, chosen], complete(matrix)[:, chosen]
    return MovieTable(
        movie_id=movie_ids[chosen], raters=(~np.isnan(rated)).sum(axis=0),
        rating_mean=np.nanmean(rated, axis=0), rating_variance=np.nanvar(rated, axis=0),
        rank4_mean=low.mean(axis=0), rank4_variance=low.var(axis=0),
    )  # fmt: skip


def _most_frequent(ids: Ints, count: int, what: str) -> Ints:
    unique, frequency = np.unique(ids, return_counts=True)
    if len(unique) < count:
        raise InvalidData(
            f"the ratings have only {len(unique)} {what} to choose {count} from; pass a smaller most_{what}"
        )
    return unique[np.lexsort((unique, -frequency))][:count]


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
    The target gives `good_target` to rows 0 and 1 and shares the rest. Constraint means are 1 for the least
    variable movie, 0 for the most variable one.
    """
    actions = whole("actions", actions, 3)
    most_movies, most_users = whole("most_movies", most_movies, 1), whole("most_users", most_users, 1)
    target = favouring(np.arange(actions) < 2, good_target, "good_target")
    if ratings is None:
        table = embedded_table()
        if actions != len(table.movie_id):
            raise InvalidProblem(
                f"actions is {actions}, but the embedded table has {len(table.movie_id)} movies; "
                "pass ratings=... to choose another number"
            )
        movies, reward = _from_table(table, rank4)
    else:
        if most_movies < actions:
            raise InvalidProblem(f"most_movies is {most_movies}; it must be at least actions = {actions}")
        matrix, ids = rating_matrix(*read_ratings(ratings), most_movies=most_movies, most_users=most_users)
        chosen = most_rated(matrix, actions)
        if rank4:
            movies, reward = _from_table(movie_table(matrix, ids, actions), rank4)
        elif np.isnan(matrix[:, chosen]).all(axis=0).any():
            raise InvalidData(
                f"some of the {actions} movies have no rating by the {most_users} chosen users; "
                "pass fewer actions or more most_users"
            )
        else:
            movies = ids[chosen]
            reward = Empirical([[column[~np.isnan(column)] for column in matrix[:, chosen].T]])
    mdp, variance = bandit_model(actions, [f"movie {number}" for number in movies]), reward.variance
    safe = 1.0 - (variance - variance.min()) / (np.ptp(variance) or 1.0)
    stakes = Stakes(alpha, delta, constraint_variance, episodes)
    return scenario("movielens", mdp, stakes, reward, safe, target, baseline=always(mdp, 0))


def embedded_table() -> MovieTable:
    """The table that ships with the package: 30 movies."""
    file = resources.files("saver.scenarios").joinpath("data/movielens30.csv")
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = np.genfromtxt(lines, delimiter=",", names=True, dtype=None, encoding="utf-8")
    return MovieTable(**{name: rows[name].copy() for name in lines[0].split(",")})


def _from_table(table: MovieTable, rank4: bool) -> tuple[Ints, Law]:
    if rank4:
        order = np.argsort(table.rank4_variance, kind="stable")
        return table.movie_id[order], Gaussian([table.rank4_mean[order]], [table.rank4_variance[order]])
    return table.movie_id, Gaussian([table.rating_mean], [table.rating_variance])
