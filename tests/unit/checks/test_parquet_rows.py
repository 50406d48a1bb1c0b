"""Read Parquet files whole and in pieces."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.checks import parquet_rows
from rebalance_core.checks.conform import conform, unknown_columns
from rebalance_core.checks.parquet_rows import ParquetTable, pieces_of
from rebalance_core.checks.table_reading import read_table
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import READ_ISSUES, SOURCE
from rebalance_core.model.errors import InputRefused

TOPICS = [f"T{n}" for n in range(10)]


def files_of(folder: Path) -> list[str]:
    """Two files, one of three row groups; the second lacks a column and has it in its path."""
    first = folder / "day=1" / "part-0.parquet"
    second = folder / "day=2" / "part-1.parquet"
    for file in (first, second):
        file.parent.mkdir(parents=True)
    rows = pa.table({"topic": TOPICS, "perm": list(range(10))})
    pq.write_table(rows, first, row_group_size=4)
    pq.write_table(rows.slice(0, 2).drop_columns("perm"), second)
    return [str(first), str(second)]


def test_rows_are_the_same_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_of(tmp_path)
    table = ParquetTable.of("events", files)
    assert table.names == ["topic", "perm", "day"]
    whole = table.whole(files)
    assert whole.to_pylist() == [
        {"topic": topic, "perm": perm, "day": day, SOURCE: f"part-{part}.parquet:{row}"}
        for part, day, rows in ((0, "1", range(1, 11)), (1, "2", range(1, 3)))
        for row, topic in zip(rows, TOPICS, strict=False)
        for perm in [row - 1 if part == 0 else None]
    ]
    for bytes_of_piece, at_once, pieces in ((1 << 20, 1 << 17, 2), (0, 3, 4)):
        monkeypatch.setattr(parquet_rows, "_WHOLE_BYTES", bytes_of_piece)
        monkeypatch.setattr(parquet_rows, "_ROWS_AT_ONCE", at_once)
        found = pieces_of("events", files)
        assert len(found) == pieces
        parts = [rows for piece in found for rows in table.rows(piece)]
        assert all(len(rows) <= at_once for rows in parts)
        assert pa.concat_tables(parts).equals(whole)


def test_what_is_no_parquet_or_of_other_types_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(tmp_path)
    table = ParquetTable.of("events", files)
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"topic": [["no text"]]}), other)
    with pytest.raises(InputRefused, match="events cannot be read as parquet: "):
        list(table.rows(pieces_of("events", [str(other)])[0]))
    other.write_text("no Parquet")
    (piece,) = pieces_of("events", [str(other)])
    for read in (
        lambda: list(table.rows(piece)),
        lambda: table.whole([*files, str(other)]),
        lambda: ParquetTable.of("events", [str(other)]),
    ):
        with pytest.raises(InputRefused, match="events cannot be read as parquet: "):
            read()
    monkeypatch.setattr(parquet_rows, "_WHOLE_BYTES", 0)
    with pytest.raises(InputRefused, match="events cannot be read as parquet: "):
        pieces_of("events", [str(other)])


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    rows = pa.table({"topic": TOPICS})
    twice = pa.Table.from_arrays([*rows.columns, *rows.columns], ["topic", "topic"])
    file = str(tmp_path / "twice.parquet")
    pq.write_table(twice, file)
    with pytest.raises(InputRefused, match=r"twice\.parquet names topic more than once"):
        ParquetTable.of("events", [file])
    events = INPUT_TABLES["cluster_events"]
    with pytest.raises(InputRefused, match="cluster_events names topic more than once"):
        conform(events, twice)


def test_many_unknown_columns_take_linear_time_and_a_short_message(tmp_path: Path) -> None:
    names = [f"x{number}" for number in range(5_000)]
    row = {"cluster": ["c"], "event_ms": [1], "sequence": [1], "event_type": ["BROKER_UP"]}
    file = tmp_path / "cluster_events.parquet"
    pq.write_table(pa.table(row | {name: [1] for name in names}), file)
    began = time.process_time()
    rows, unknown = read_table(INPUT_TABLES["cluster_events"], str(file))
    assert time.process_time() - began < 10  # it was 60 when each was looked up by its name
    assert (len(rows), sorted(names)) == (1, unknown)
    assert unknown_columns("cluster_events", unknown).endswith(" and 4,980 more")


def test_lists_of_lists_and_bytes_are_no_texts() -> None:
    events = INPUT_TABLES["cluster_events"]
    row = {"cluster": ["c"], "event_ms": [1], "sequence": [1], "event_type": ["CONSUMER_JOIN"]}
    for column, values in (
        ("subscriptions", pa.array([[["T"]]])),
        ("subscriptions", pa.array([[b"T"]])),
        ("topic", pa.array([b"T"])),
        ("topic", pa.array([b"T"], pa.binary(1))),
    ):
        found = conform(events, pa.table(row | {column: values})).to_pylist()[0]
        assert found[column] is None
        assert [issue["code"] for issue in found[READ_ISSUES]] == ["BAD_TYPE"]
    good = conform(events, pa.table(row | {"subscriptions": pa.array([["T"]])})).to_pylist()[0]
    assert good["subscriptions"] == ["T"]
