"""Logs in splits are counted as whole ones, wherever a split begins."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import identify, open_collection
from rebalance_core.ingest.file_reader import FileReader, FileStats
from rebalance_core.ingest.in_process import (
    read_file,
    read_range,
    reader_of,
    total_stats,
    understood,
)
from rebalance_core.ingest.whole_cluster import whole_refusals
from rebalance_core.spark.collection_files import FileReaders, _weight, dealt_out, read_splits
from rebalance_core.storage.access import S3Access
from rebalance_core.storage.place import Place, place_of

HEAD = "2026-11-21 11:28:35,123 INFO RocketmqClient - "
COMMIT = "[persistAll] Group: g ClientId: c updateConsumeOffsetToBroker MessageQueue ["
LINES = {
    "good": [
        HEAD + "x",
        "java.lang.X: y",
        "\tat a.B.c(D.java:1)",
        "",
        HEAD + "z",
        "other",
        "\tat b",
    ],
    "spring": ["INFO 1 --- " + COMMIT, "org.x.MQException: no", "\tat a.B.c(D.java:1)", ""] * 4,
    "stack first": ["\tat a.B.c(D.java:1)"] * 3 + [HEAD + "x", "\tat a.B.c(D.java:1)"],
    "stack only": ["\tat a.B.c(D.java:1)"] * 5,
}
UNDERSTOOD = {"good": 4, "spring": 0, "stack first": 2, "stack only": 0}
"""A stack trace counts below an understood line only."""


def batches(path: Path, lines: list[str], starts: list[int]) -> Iterator[pa.RecordBatch]:
    """The lines of the splits that begin at these bytes; of the second the rows in two batches."""
    offsets = [sum(len(line) + 1 for line in lines[:n]) for n in range(len(lines))]
    begins = [max(start for start in starts if start <= offset) for offset in offsets]
    columns = pa.array(lines), pa.array([str(path)] * len(lines)), pa.array(begins, pa.int64())
    whole = pa.RecordBatch.from_arrays(list(columns), ["line", "path", "start"])
    middle = len(lines) // 2
    yield whole.slice(0, middle)
    yield whole.slice(middle)


@pytest.mark.parametrize("name", LINES)
def test_splits_are_counted_as_one_file(name: str, tmp_path: Path) -> None:
    lines = LINES[name]
    (tmp_path / "collection.toml").write_text('cluster = "C"\n')
    path = tmp_path / "clients" / "c" / "rocketmq_client.log"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines))
    collection = open_collection(tmp_path)
    reader = reader_of(collection, collection.files[0], Assumptions())
    list(read_file(reader, place_of(path)))
    assert reader.stats.understood == UNDERSTOOD[name]

    def told(parts: list[FileStats]) -> Any:
        refused = {n: asdict(r) for n, r in whole_refusals(parts).items()}
        return understood(collection, parts), refused

    expected = told(total_stats(collection, [reader.stats]))
    size = len("\n".join(lines))
    for start in range(1, size, 7):
        readers = FileReaders({str(path): reader})
        pieces = read_splits(batches(path, lines, [0, start]), readers)
        parts = [piece for piece in pieces if isinstance(piece, FileStats)]
        assert told(total_stats(collection, reversed(parts))) == expected, start
        parts = []
        for begin, length in ((0, start), (start, size - start)):
            part = reader_of(collection, collection.files[0], Assumptions())
            list(read_range(part, place_of(path), begin, length))
            parts.append(part.stats)
        assert told(total_stats(collection, reversed(parts))) == expected, start


def test_files_are_dealt_out_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of a store in parts, a packed log as what it unpacks to, and all of them once."""
    monkeypatch.setattr("rebalance_core.spark.collection_files._RANGE_BYTES", 300_000)
    (tmp_path / "collection.toml").write_text('cluster = "C"\n')
    folder = tmp_path / "brokers" / "a"
    folder.mkdir(parents=True)
    (folder / "broker.log").write_bytes(b"x" * 999 + b"\n" + b"y" * 999_000)
    (folder / "broker.1.log.gz").write_bytes(b"\x1f\x8b" + b"z" * 60_000)
    for number in range(40):
        (folder / f"config-17952320000{number:02}").mkdir()
        (folder / f"config-17952320000{number:02}" / "topics.json").write_text("{}")
    collection = open_collection(tmp_path)
    made = {
        str(collection.path_of(file)): reader_of(collection, file, Assumptions())
        for file in collection.files
    }
    store = Place("s3://b/c", "b/c", S3Access("b"))
    for root, parts_of_log in ((store, 4), (place_of(tmp_path), 1)):
        dealt = dealt_out(FileReaders(made, root), 3)
        logs = [piece for _, piece in dealt if piece[0].endswith("broker.log")]
        assert len(logs) == parts_of_log
        if root is store:
            assert sorted(start for _, start, _ in logs) == [0, 300_000, 600_000, 900_000]
            assert sum(size or 0 for _, _, size in logs) == 1_000_000
            loads = [0, 0, 0]
            for part, (url, _, size) in dealt:
                loads[part] += (size or made[url].file.size * (10 if "gz" in url else 1)) + 32_768
            assert max(loads) < 1.25 * min(loads)
        assert len({piece for _, piece in dealt}) == len(dealt) == 41 + parts_of_log


def test_a_packed_log_that_is_continued_weighs_what_it_unpacks_to() -> None:
    """An earlier run's bytes are counted unpacked, and may be more than the file has packed."""
    assumed = Assumptions()
    readers: dict[str, FileReader] = {}
    for number in range(40):
        file = identify(f"brokers/b{number}/broker.1.log.gz", 60 << 20)
        assert file is not None
        file = replace(file, begins_at=700 << 20, left_out=700 << 20, lines_before=1)
        readers[f"/c/{file.name}"] = FileReader(file, assumed.time_zone, (), {})
    parts = Counter(part for part, _ in dealt_out(FileReaders(readers, place_of("/c")), 8))
    assert parts == dict.fromkeys(range(8), 5)


def test_a_log_that_is_continued_weighs_what_is_new() -> None:
    file = identify("brokers/b/broker.log", 100)
    assert file is not None
    assert _weight(replace(file, begins_at=60)) == 40
    assert _weight(replace(file, begins_at=900, left_out=900)) == 100
