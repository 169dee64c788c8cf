"""From a MovieLens `ratings.dat` to the small table of movies that the scenario uses.

MovieLens 1M: F. M. Harper and J. A. Konstan, The MovieLens Datasets, ACM TiiS 5(4), 2015.
Its ratings may not be redistributed, so only statistics of them ship with the package.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from saver._types import Floats, Ints
from saver.errors import InvalidData

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
        file = Path(path).open(encoding="latin-1")  # noqa: SIM115  (closed below; errors of opening are apart)
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or cause
        raise InvalidData(
            f"cannot read ratings from {path}: {reason}; give the path of a ratings.dat file"
        ) from None
    users, movies, ratings = [], [], []
    with file:
        for number, line in enumerate(file, start=1):
            try:
                user, movie, rating = _parse(line)
            except ValueError:
                raise InvalidData(
                    f"{path}, line {number}: {line.rstrip()[:80]!r} is not UserID::MovieID::Rating or "
                    f"UserID::MovieID::Rating::Timestamp with a rating above 0 and at most {LARGEST:g}; "
                    "correct or remove the line"
                ) from None
            users.append(user)
            movies.append(movie)
            ratings.append(rating)
    if not users:
        raise InvalidData(f"{path} holds no ratings; give the path of a ratings.dat file")
    return np.array(users), np.array(movies), np.array(ratings)


def _parse(line: str) -> tuple[int, int, float]:
    user, movie, rating, *rest = line.split("::")
    found = int(user), int(movie), float(rating)
    if len(rest) > 1 or not (0 <= found[0] < 2**62 and 0 <= found[1] < 2**62 and 0 < found[2] <= LARGEST):
        raise ValueError
    if rest:
        int(rest[0])
    return found


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
    result: Ints = chosen[np.argsort(variance, kind="stable")]
    return result


def movie_table(matrix: Floats, movie_ids: Ints, count: int) -> MovieTable:
    """Statistics of the `count` movies with most raters, before and after completion."""
    chosen = most_rated(matrix, count)
    rated, low = matrix[:, chosen], complete(matrix)[:, chosen]
    return MovieTable(
        movie_id=movie_ids[chosen],
        raters=(~np.isnan(rated)).sum(axis=0),
        rating_mean=np.nanmean(rated, axis=0),
        rating_variance=np.nanvar(rated, axis=0),
        rank4_mean=low.mean(axis=0),
        rank4_variance=low.var(axis=0),
    )


def _most_frequent(ids: Ints, count: int, what: str) -> Ints:
    unique, frequency = np.unique(ids, return_counts=True)
    if len(unique) < count:
        raise InvalidData(
            f"the ratings have only {len(unique)} {what} to choose {count} from; pass a smaller most_{what}"
        )
    result: Ints = unique[np.lexsort((unique, -frequency))][:count]
    return result
