"""Logs from every kind of source, and what is refused of them, with its place."""

import gzip
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from data_room.logs import SMALL, Shop

from saver.data import cells, read_log, sources
from saver.errors import InvalidData, SaverError


def as_csv(tmp_path, columns):
    path = tmp_path / "log.csv"
    pa.csv.write_csv(pa.table(columns), path)
    return path


def as_parquet(tmp_path, columns):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(columns), path)
    return path


class Stream:
    """Nothing but a stream."""

    def __init__(self, table):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


SOURCES = {
    "csv": as_csv,
    "parquet": as_parquet,
    "pandas": lambda _, columns: pd.DataFrame(columns),
    "polars": lambda _, columns: pl.DataFrame(columns),
    "arrow": lambda _, columns: pa.table(columns),
    "batches": lambda _, columns: pa.table(columns).to_reader(max_chunksize=2),
    "dict": lambda _, columns: columns,
    "stream": lambda _, columns: Stream(pa.table(columns)),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_episodes_in_order_of_first_appearance(tmp_path, kind):
    found = read_log(SOURCES[kind](tmp_path, SMALL))
    assert found.ids.tolist() == ["b", "a"]
    assert found.offsets.tolist() == [0, 2, 5]
    assert found.state_labels == ("x", "y")
    assert found.action_labels == ("2", "10")  # by size, not by letters
    assert found.states.tolist() == [0, 1, 0, 1, 0]
    assert found.actions.tolist() == [0, 1, 0, 1, 0]
    assert found.rewards.tolist() == [2.0, 1.0, 3.0, 4.0, 5.0]
    assert found.constraints["complaint"].tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]
    assert found.final_states.tolist() == [-2, -2]
    assert found.complete.all()
    first = next(iter(found))
    assert first.constraints["complaint"].tolist() == [1.0, 0.0]


def test_other_names_categories_and_numbered_episodes_from_step_one():
    table = pd.DataFrame(
        {
            "visit": [7, 7, 3], "t": [1, 2, 1], "page": pd.Categorical(["b", "a", "b"]),
            "offer": [True, False, True], "euro": [1, 2, 3], "angry": [True, False, False],
            "p": [0.5, 1.0, 0.25], "who": ["old", "old", "new"],
        }
    )  # fmt: skip
    found = read_log(
        table, episode="visit", step="t", state="page", action="offer", reward="euro",
        guardrails={"complaint": "angry"}, propensity="p", kind="who",
    )  # fmt: skip
    assert found.ids.tolist() == [7, 3]
    assert found.states.tolist() == [1, 0, 1]
    assert found.action_labels == ("false", "true")
    assert found.propensities.tolist() == [0.5, 1.0, 0.25]
    assert found.kinds.tolist() == ["old", "new"]
    assert found.select("new").rewards.tolist() == [3.0]


def test_next_states_are_followed_a_missing_one_or_one_never_met_is_an_end():
    columns = {"episode": [1, 1, 2, 3], "step": [0, 1, 0, 0], "state": [5, 6, 5, 6], "action": [0, 0, 0, 0]}
    columns |= {"reward": [0.0] * 4, "next_state": [6.0, np.nan, 9.0, 5.0]}
    found = read_log(pd.DataFrame(columns), guardrails={}, next_state="next_state")
    assert found.final_states.tolist() == [-1, -1, 0]


def test_a_guardrail_that_was_not_measured_in_an_episode_is_missing_there():
    columns = SMALL | {"complaint": [0.0, 1.0, None, None, None]}
    found = read_log(pa.table(columns))
    assert [one.constraints["complaint"] is None for one in found] == [False, True]


def test_rows_in_any_order_are_the_same_log():
    table = Shop.drawn(5, 2, 4).log(200, 0)
    mixed = table.take(np.random.default_rng(1).permutation(table.num_rows))
    one, other = read_log(table), read_log(mixed)
    assert one.ids.tolist() == list(range(200))
    back = np.argsort(other.ids)
    for place, number in zip(range(200), back, strict=True):
        assert one[place].rewards.tolist() == other[int(number)].rewards.tolist()


def changed(name, row, value):
    columns = {key: list(column) for key, column in SMALL.items()}
    columns[name][row] = value
    return columns


CELLS = {
    "reward missing": (changed("reward", 2, None), "reward", "line 4", "row 2", "it is missing"),
    "reward nan": (
        changed("reward", 2, float("nan")),
        "reward",
        "line 4",
        "row 2",
        "must be a finite number",
    ),
    "reward huge": (changed("reward", 3, 1e300), "reward", "line 5", "row 3", "1e+300"),
    "state missing": (changed("state", 1, None), "state", "line 3", "row 1", "it is missing"),
    "gap": (changed("step", 4, 3), "step", "line 6", "row 4", "step 2 of the episode is missing"),
    "twice": (changed("step", 3, 0), "step", "line 5", "row 3", "step 0 of the episode has two rows"),
    "late": (changed("step", 1, 2), "step", "line 2", "row 0", "begins at step 1; step 0 is missing"),
    "part": (changed("complaint", 3, None), "complaint", "line 5", "row 3", "other steps of the episode"),
}


@pytest.mark.parametrize("case", CELLS)
def test_a_broken_cell_is_named_by_file_line_and_column(tmp_path, case):
    columns, column, line, row, what = CELLS[case]
    path = as_csv(tmp_path, columns)
    with pytest.raises(InvalidData) as csv:
        read_log(path)
    assert str(csv.value).startswith(f"{path}, {line}, column {column!r}: ")
    assert what in str(csv.value) or case == "reward nan"  # Arrow writes nan as it is
    path = as_parquet(tmp_path, columns)
    with pytest.raises(InvalidData) as parquet:
        read_log(path)
    assert str(parquet.value).startswith(f"{path}, {row}, column {column!r}: ")
    assert what in str(parquet.value)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, float("nan")])
def test_propensities_outside_0_to_1_are_refused(bad):
    columns = SMALL | {"propensity": [1.0, 1.0, 0.5, bad, 1.0]}
    with pytest.raises(InvalidData, match=r"the table, row 3, column 'propensity': it (is|must)"):
        read_log(pa.table(columns), propensity="propensity")


def test_a_next_state_that_the_next_row_contradicts_is_refused():
    columns = SMALL | {"next_state": [None, "y", "y", "y", None]}
    with pytest.raises(InvalidData, match=r"row 3, column 'next_state': it is 'y', but .* is in 'x'"):
        read_log(pa.table(columns), next_state="next_state")


@pytest.mark.parametrize("kind", SOURCES)
def test_a_missing_column_is_named_with_those_that_there_are(tmp_path, kind):
    columns = {name: column for name, column in SMALL.items() if name != "reward"}
    with pytest.raises(InvalidData, match=r"has no column 'reward'.*episode, step, state, action, complaint"):
        read_log(SOURCES[kind](tmp_path, columns))


@pytest.mark.parametrize("column", ["state", "action"])
def test_a_text_among_numbers_in_a_csv_is_named_by_line(tmp_path, column):
    rows = {"state": ["7", "8", "8"], "action": ["0", "1", "0"]}
    rows[column][1] = "x"
    lines = [f"{i},0,{s},{a},1.0" for i, (s, a) in enumerate(zip(*rows.values(), strict=True))]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["episode,step,state,action,reward", *lines]) + "\n")
    with pytest.raises(InvalidData, match=rf"line 3, column '{column}': 'x' is a text, and '[07]' above it"):
        read_log(path, guardrails={})
    said = pd.read_csv(path, dtype={column: str})
    assert "x" in getattr(read_log(said, guardrails={}), f"{column}_labels")


def test_a_number_among_texts_in_a_csv_is_named_by_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("episode,step,state,action,reward\na,0,s,l,1\nb,0,s,r,1\nc,0,s,3,1\n")
    with pytest.raises(InvalidData, match="line 4, column 'action': '3' is a whole number, and 'l' above"):
        read_log(path, guardrails={})


def test_mixed_types_in_a_label_column_are_named_by_row():
    with pytest.raises(InvalidData, match="row 3, column 'state': 7 is int, and above it is str"):
        read_log(pd.DataFrame(changed("state", 3, 7)))
    with pytest.raises(InvalidData, match="row 3, column 'state': 7 is int, and above it is str"):
        read_log(changed("state", 3, 7))


def test_types_that_are_no_labels_and_no_numbers_are_refused():
    with pytest.raises(InvalidData, match=r"column 'state': it has broken numbers"):
        read_log(pa.table(SMALL | {"state": [0.5, 1.0, 1.0, 0.5, 1.0]}))
    with pytest.raises(InvalidData, match=r"column 'state': it has the type list"):
        read_log(pa.table(SMALL | {"state": [[1], [1], [1], [1], [1]]}))
    with pytest.raises(InvalidData, match=r"column 'reward': it has the type string"):
        read_log(pa.table(SMALL | {"reward": ["1", "2", "3", "4", "5"]}))
    with pytest.raises(InvalidData, match=r"row 1, column 'step': it is 0.5; it must be a whole number"):
        read_log(pa.table(SMALL | {"step": [1, 0.5, 0, 1, 2]}))
    with pytest.raises(InvalidData, match="source is list"):
        read_log([1, 2])


def test_an_empty_file_and_a_table_without_rows_are_refused(tmp_path):
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(InvalidData, match=r"empty\.csv is empty"):
        read_log(tmp_path / "empty.csv")
    (tmp_path / "head.csv").write_text("episode,step,state,action,reward,complaint\n")
    with pytest.raises(InvalidData, match=r"head\.csv has no rows"):
        read_log(tmp_path / "head.csv")
    with pytest.raises(InvalidData, match="has no rows"):
        read_log(pa.table(SMALL).slice(0, 0))
    with pytest.raises(InvalidData, match="cannot read"):
        read_log(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_parquet_file_is_refused(tmp_path, share):
    path = tmp_path / "log.parquet"
    pq.write_table(Shop.drawn(5, 2, 4).log(500, 0), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InvalidData, match=r"log\.parquet is no whole Parquet file"):
        read_log(path)


def test_a_damaged_parquet_file_is_refused_or_read_but_never_crashes(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(Shop.drawn(5, 2, 4).log(500, 0), path)
    data = path.read_bytes()
    rng, refused = np.random.default_rng(0), 0
    for _ in range(40):
        bad = bytearray(data)
        for place in rng.integers(4, len(data) - 8, 20):
            bad[place] = int(rng.integers(256))
        path.write_bytes(bytes(bad))
        try:
            assert len(read_log(path)) > 0
        except SaverError as error:
            refused += "log.parquet" in str(error)
    assert refused > 20


def test_other_encodings_are_refused_with_the_line(tmp_path):
    text = "episode,step,state,action,reward,complaint\n1,0,café,a,1,0\n"
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode("utf-16"))
    with pytest.raises(InvalidData, match=r"log\.csv, line 1: its encoding is UTF-16"):
        read_log(path)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidData, match=r"log\.csv, line 2: byte 0xe9 is not UTF-8"):
        read_log(path)
    path.write_bytes(text.encode("utf-16-le"))
    with pytest.raises(InvalidData, match=r"log\.csv"):
        read_log(path)
    path.write_bytes(text.encode("utf-8-sig"))
    assert read_log(path).state_labels == ("café",)


def test_lines_are_counted_with_the_empty_ones(tmp_path):
    path = tmp_path / "log.csv"
    head = "episode,step,state,action,reward,complaint\n"
    path.write_text(head + "1,0,a,b,1,0\n\n1,1,a,b,oops,0\n")
    with pytest.raises(InvalidData, match=r"log\.csv, line 4, column 'reward': .*oops"):
        read_log(path)
    path.write_text(head + "1,0,a,b,1,0\n\n1,1,a,b,2\n")
    with pytest.raises(InvalidData, match=r"log\.csv, line 4: Expected 6 columns, got 5"):
        read_log(path)


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 2**12)
    path = tmp_path / "log.csv"
    path.write_text("episode,step,state,action,reward,complaint\n1,0,a,b,1,0\n" + "x" * 2**16)
    with pytest.raises(InvalidData, match=r"log\.csv"):
        read_log(path)


def test_packed_files_are_refused_unread(tmp_path):
    text = b"episode,step,state,action,reward,complaint\n" + b"1,0,a,b,1,0\n" * 100
    with gzip.open(tmp_path / "log.csv.gz", "wb") as file:
        file.write(text)
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as made:
        made.writestr("log.csv", text)
    for name, kind in (("log.csv.gz", "gzip"), ("log.zip", "zip")):
        with pytest.raises(InvalidData, match=rf"{name} is packed \({kind}\)"):
            read_log(tmp_path / name)


def test_a_parquet_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    """A column of one value takes no room in a file, and a lot in memory."""
    n = 3_000_000
    same = pa.array(np.zeros(n, dtype=np.int64))
    bomb = pa.table(dict.fromkeys(SMALL, same))
    pq.write_table(bomb, tmp_path / "bomb.parquet", compression="zstd")
    assert (tmp_path / "bomb.parquet").stat().st_size < 100_000
    monkeypatch.setattr(sources, "ROWS", 1_000_000)
    with pytest.raises(InvalidData, match=r"has 3,000,000 rows; one log may have 1,000,000"):
        read_log(tmp_path / "bomb.parquet")
    with pytest.raises(InvalidData, match="one log may have 1,000,000"):
        read_log(bomb.to_reader(max_chunksize=10_000))
    wide = pa.table(SMALL | {"state": ["x" * 50_000_000 for _ in range(5)]})
    pq.write_table(wide, tmp_path / "wide.parquet", compression="zstd", use_dictionary=False)
    assert (tmp_path / "wide.parquet").stat().st_size < 100_000
    monkeypatch.setattr(sources, "GROUP", 2**20)
    with pytest.raises(InvalidData, match="column 'state': it unpacks to more than a log may hold"):
        read_log(tmp_path / "wide.parquet")


def test_too_many_labels_are_refused(monkeypatch):
    monkeypatch.setattr(cells.Labels.__init__, "__defaults__", ((), 3))
    columns = {name: list(range(5)) for name in SMALL} | {"step": [0] * 5}
    with pytest.raises(InvalidData, match="column 'state': it has more than 3 different labels"):
        read_log(pa.table(columns))


def test_a_missing_package_is_named_with_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SaverError, match=r"needs pyarrow: pip install 'saver-rl\[data\]'"):
        read_log(SMALL)
