"""The MovieLens table: the embedded one, and one rebuilt from a small file by other means."""

import numpy as np
import pytest

from saver import Bounded, Empirical, Gaussian, scenarios
from saver.errors import InvalidData, InvalidProblem
from saver.scenarios.movielens import complete, embedded_table, movie_table, rating_matrix, read_ratings

# Movies 10, 20, 30 are most rated (4, 4, 3 of 5 users); 40 is rated twice, by users 1 and 5.
# Of those three, users 1, 2, 3 rated 3, 3, 3 and users 4 and 5 one each.
RATINGS = {
    (1, 10): 5, (2, 10): 4, (3, 10): 3, (4, 10): 1,
    (1, 20): 2, (2, 20): 2, (3, 20): 5, (5, 20): 5,
    (1, 30): 4, (2, 30): 4, (3, 30): 4,
    (1, 40): 1, (5, 40): 1,
}  # fmt: skip


@pytest.fixture
def ratings_file(tmp_path):
    def write(lines):
        path = tmp_path / "ratings.dat"
        path.write_text("".join(lines), encoding="latin-1")
        return path

    return write


def lines(columns=3):
    tail = "::978300760" if columns == 4 else ""
    return [f"{u}::{m}::{r}{tail}\n" for (u, m), r in RATINGS.items()]


def test_embedded_table():
    table = embedded_table()
    assert len(table.movie_id) == 30
    assert (table.movie_id[0], table.raters[0], table.rating_mean[0]) == (1198, 125, 0.9312)
    assert np.all(np.diff(table.rating_variance) >= 0)
    asked = scenarios.movielens()
    assert isinstance(asked.world.reward, Gaussian)
    np.testing.assert_array_equal(asked.world.reward.mean[0], table.rating_mean)
    span = table.rating_variance[-1] - table.rating_variance[0]
    assert asked.world.constraint.mean[0, 3] == pytest.approx(1 - (0.018912 - 0.014787) / span)
    assert (asked.world.constraint.mean.max(), asked.world.constraint.mean.min()) == (1.0, 0.0)
    np.testing.assert_allclose(asked.problem.target[0], [0.4, 0.4] + [0.2 / 28] * 28)
    assert asked.problem.mdp.action_names[0] == "movie 1198"
    completed = scenarios.movielens(rank4=True)
    np.testing.assert_array_equal(completed.world.reward.variance[0], np.sort(table.rank4_variance))
    assert completed.world.constraint.mean[0, 0] == 1.0


@pytest.mark.parametrize("columns", [3, 4])
def test_a_small_file_gives_the_table_worked_out_by_hand(ratings_file, columns):
    path = ratings_file(lines(columns))
    asked = scenarios.movielens(ratings=path, actions=3, most_movies=3, most_users=3)
    # Over users 1, 2, 3: movie 30 is 4, 4, 4 (variance 0); 10 is 5, 4, 3 (2/3); 20 is 2, 2, 5 (2).
    assert asked.problem.mdp.action_names == ("movie 30", "movie 10", "movie 20")
    assert isinstance(asked.world.reward, Empirical)
    assert asked.problem.reward == Bounded(0.0, 1.0)  # ratings are from 0 to 1
    np.testing.assert_allclose(asked.world.reward.mean, [[4 / 5, 4 / 5, 3 / 5]])
    np.testing.assert_allclose(asked.world.reward.variance, [[0, 2 / 3 / 25, 2 / 25]], atol=1e-15)
    np.testing.assert_allclose(sorted(asked.world.reward.samples[0][2]), [0.4, 0.4, 1.0])
    np.testing.assert_allclose(asked.world.constraint.mean, [[1.0, 1 - 1 / 3, 0.0]])


def test_ties_go_to_the_lower_id_and_to_the_more_popular_movie(ratings_file):
    found = read_ratings(ratings_file(lines()))
    matrix, movies = rating_matrix(*found, most_movies=2, most_users=4)
    assert movies.tolist() == [10, 20]  # 4 ratings each: the lower id first
    # Users 1, 2, 3 rated both, 4 and 5 one each: the lower id, 4, is taken.
    np.testing.assert_allclose(matrix * 5, [[5, 2], [4, 2], [3, 5], [1, np.nan]])
    table = movie_table(matrix, movies, 1)
    assert table.movie_id.tolist() == [10]
    matrix, movies = rating_matrix(*found, most_movies=3, most_users=3)
    table = movie_table(matrix, movies, 2)  # all have 3 raters: the two more popular
    assert sorted(table.movie_id.tolist()) == [10, 20]
    assert table.raters.tolist() == [3, 3]


def test_completion_recovers_a_low_rank_matrix():
    rng = np.random.default_rng(0)
    truth = rng.random((12, 2)) @ rng.random((2, 12))
    holes = truth.copy()
    for i in range(12):
        holes[i, i] = np.nan
    found = complete(holes, rank=2, tolerance=1e-12)
    np.testing.assert_allclose(found, truth, atol=1e-6)
    np.testing.assert_allclose(complete(truth, rank=2), truth, atol=1e-12)


def test_completion_by_hand():
    # Rank 1 of [[1, 1], [1, x]]: the missing entry starts at its column's mean, 1, and stays there.
    np.testing.assert_allclose(complete(np.array([[1.0, 1.0], [1.0, np.nan]]), rank=1), np.ones((2, 2)))


def test_rank4_columns_are_statistics_of_the_completed_matrix():
    rng = np.random.default_rng(1)
    matrix = rng.random((30, 4)) @ rng.random((4, 12)) + 0.01 * rng.random((30, 12))
    matrix[rng.random((30, 12)) < 0.05] = np.nan
    table = movie_table(matrix, np.arange(12), 5)
    low = complete(matrix)[:, table.movie_id]
    np.testing.assert_allclose(table.rank4_mean, low.mean(axis=0))
    np.testing.assert_allclose(table.rank4_variance, low.var(axis=0))
    np.testing.assert_allclose(table.rating_mean, np.nanmean(matrix[:, table.movie_id], axis=0))
    np.testing.assert_allclose(table.rating_variance, np.nanvar(matrix[:, table.movie_id], axis=0))
    np.testing.assert_array_equal(table.raters, (~np.isnan(matrix[:, table.movie_id])).sum(axis=0))


BROKEN = ["1::2", "1::2::x", "a::2::3", "1::2::6", "1::2::0", "1,2,3", "1::2::3::4::5", "1::2::3::late", "",
          "1::2::nan", "99999999999999999999::2::3", "-1::2::3"]  # fmt: skip


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_line_is_named(ratings_file, line):
    path = ratings_file([*lines()[:4], line + "\n", *lines()[4:]])
    with pytest.raises(InvalidData, match=r"ratings\.dat, line 5: .* is not UserID::MovieID::Rating"):
        scenarios.movielens(ratings=path)


def test_empty_missing_and_small_files(ratings_file, tmp_path):
    with pytest.raises(InvalidData, match="holds no ratings; give the path"):
        scenarios.movielens(ratings=ratings_file([]))
    with pytest.raises(InvalidData, match=r"cannot read ratings from .*nowhere: No such file"):
        scenarios.movielens(ratings=tmp_path / "nowhere")
    with pytest.raises(InvalidData, match="Is a directory"):
        scenarios.movielens(ratings=tmp_path)
    for odd in (5, "", None, b"ratings.dat", "a\0b"):
        with pytest.raises(InvalidData, match=r"give the path of a ratings\.dat file"):
            read_ratings(odd)
    path = ratings_file(lines())
    with pytest.raises(InvalidData, match="only 4 movies to choose 128 from; pass a smaller most_movies"):
        scenarios.movielens(ratings=path)
    with pytest.raises(InvalidData, match="only 5 users to choose 128 from; pass a smaller most_users"):
        scenarios.movielens(ratings=path, actions=3, most_movies=3)
    with pytest.raises(InvalidProblem, match="most_movies is 2; it must be at least actions = 3"):
        scenarios.movielens(ratings=path, actions=3, most_movies=2)
    twice = ratings_file([*lines(), "1::10::2\n"])
    with pytest.raises(InvalidData, match="user 1 rated movie 10 2 times"):
        scenarios.movielens(ratings=twice, actions=3, most_movies=3, most_users=3)


def test_a_completion_that_does_not_settle_is_said():
    rng = np.random.default_rng(1)
    matrix = rng.random((20, 8))
    matrix[rng.random((20, 8)) < 0.1] = np.nan
    with pytest.raises(InvalidData, match=r"still changes by .* after 50 rounds: .* are missing"):
        complete(matrix, rounds=50)


def test_rank4_of_a_file_is_gaussian(tmp_path):
    rng = np.random.default_rng(2)
    path = tmp_path / "ratings.dat"
    path.write_text("".join(f"{u}::{m}::{rng.integers(1, 6)}\n" for u in range(1, 13) for m in range(1, 7)))
    asked = scenarios.movielens(ratings=path, actions=4, most_movies=6, most_users=12, rank4=True)
    table = movie_table(*rating_matrix(*read_ratings(path), most_movies=6, most_users=12), 4)
    assert isinstance(asked.world.reward, Gaussian)
    order = np.argsort(table.rank4_variance)
    np.testing.assert_array_equal(asked.world.reward.mean[0], table.rank4_mean[order])
