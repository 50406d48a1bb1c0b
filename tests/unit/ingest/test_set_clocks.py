"""Clocks that were set while their hosts logged: each part of a log has an offset of its own."""

import gzip
import itertools
import random
import re
import shutil
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.ingest.collection import CollectedFile, open_collection
from rebalance_core.ingest.file_reader import MOST_STEPS, FileReader, FileStats, Pause
from rebalance_core.ingest.in_process import ingest_collection, total_stats
from rebalance_core.ingest.log_parts import by_position
from tests.recordings.tables import DATA, ingested_recording
from tests.unit.ingest.skewed_clocks import BEAT, _later, _stamped, ingested, named

EVENT = ("event_type", "consumer_group", "client_id", "source")
HEAD = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def set_at(recording: str, host: str, at: str, seconds: int, target: Path, *, before: bool) -> Any:
    """Tables of a recording with a host's clock off by seconds before a time, or since then."""
    shutil.copytree(DATA / recording / "collection", target)
    stamp = partial(_stamped, ms=1_000 * seconds)
    for path in (target / host).rglob("*.log*"):
        packed, text = path.suffix == ".gz", path.read_bytes()
        lines = (gzip.decompress(text) if packed else text).splitlines(keepends=True)
        text = b"".join(_off(line, at.encode(), seconds, stamp, before) for line in lines)
        path.write_bytes(gzip.compress(text, 1) if packed else text)
    return ingest_collection(target).tables


def _off(line: bytes, at: bytes, seconds: int, stamp: Any, before: bool) -> bytes:
    head = HEAD.match(line)
    if head is None or (head[0] < at) is not before:
        return line
    return BEAT.sub(stamp, _later(head[0], seconds) + line[19:])


@pytest.mark.parametrize(
    ("recording", "host", "at", "seconds", "before"),
    [
        ("join-leave", "brokers/broker-b", "2026-11-21 11:29:20", -60, False),
        ("join-leave", "brokers/broker-b", "2026-11-21 11:29:20", 60, True),
        ("join-leave-5.5", "brokers/broker-b", "2026-11-22 15:23:49", -60, False),
        ("pop", "namesrv", "2026-11-22 15:08:59", 300, True),
        # set forward, which alone looks like a pause
        ("pop", "brokers/broker-a", "2026-11-22 15:08:54", 60, False),
        ("pathologies", "clients/x2", "2026-11-21 11:38:49", -10, False),
    ],
)
def test_each_part_of_a_log_is_corrected_by_its_own_offset(
    recording: str, host: str, at: str, seconds: int, before: bool, tmp_path: Path
) -> None:
    tables = set_at(recording, host, at, seconds, tmp_path / "c", before=before)
    whole = ingested_recording(recording).tables
    texts = [text for text in named(tables) if host.partition("/")[0] in text]
    assert len(named(tables)) == len(texts) == 1
    assert ("until it was set" if before else "after it was set") in texts[0]
    assert "read as corrected" in texts[0]
    rows = [row for row in tables["coverage"] if row["clock_error_ms"]]
    error = max(row["clock_error_ms"] for row in rows)
    (off,) = {row["clock_offset_ms"] for row in rows if row["clock_offset_ms"]}
    assert abs(off + 1000 * seconds) <= error
    times, right = (
        {tuple(row.get(name) for name in EVENT): row["event_ms"] for row in of["cluster_events"]}
        for of in (tables, whole)
    )
    for event in times.keys() & right.keys():
        assert abs(times[event] - right[event]) <= error, event
    assert len(times.keys() & right.keys()) >= len(right) // 2


def test_what_goes_back_before_its_first_line_may_be_of_two_files(tmp_path: Path) -> None:
    """The older file stands behind the newer: both are compared with the others, and right."""
    shutil.copytree(DATA / "join-leave" / "collection", tmp_path / "c")
    path = tmp_path / "c" / "brokers" / "broker-b" / "broker.log"
    lines = path.read_bytes().splitlines(keepends=True)
    newer = next(n for n, line in enumerate(lines) if line[:19] > b"2026-11-21 11:29:20")
    path.write_bytes(b"".join([*lines[newer:], *lines[:newer]]))
    tables = ingest_collection(tmp_path / "c").tables
    assert named(tables) == []


def test_nothing_shows_when_a_clock_was_right_that_no_other_log_is_compared_with(
    tmp_path: Path,
) -> None:
    lines = [f"2026-11-22 15:{m:02}:{s:02}" for m in range(4) for s in range(0, 60, 5)]
    text = "".join(f"{time} INFO main - a routine line\n" for time in [*lines, *lines[12:]])
    tables = ingested(tmp_path, {"brokers/a/broker.log": text})
    (found,) = named(tables)
    assert "The clock of brokers/a was set back by 185.0 s" in found
    assert "nothing shows when it was right" in found
    (note,) = [row["note"] for row in tables["coverage"] if row["kind"] == "broker_log"]
    assert "no evidence shows which is right" in note


def stats_of(times: list[str], begins: int = 0) -> FileStats:
    stats = FileStats("brokers/a/broker.log", "broker_log", begins=begins)
    for number, time in enumerate(times):
        if stats.ended_at:
            stats.step_back(begins + number + 1, stats.ended_at, time)
        stats.begun_at, stats.ended_at = stats.begun_at or time, time
        stats.mark("join a", number)
    return stats


def at(*seconds: int) -> list[str]:
    base = datetime.fromisoformat("2026-11-22 15:00:00")
    return [str(base + timedelta(seconds=second)) for second in seconds]


def test_lines_of_threads_out_of_order_are_no_step() -> None:
    assert stats_of(at(0, 5, 4, 3, 8)).parts() == [stats_of(at(0, 5, 4, 3, 8))]


@pytest.mark.parametrize("stray", [-30, 30])
def test_a_line_that_a_thread_wrote_late_is_no_step(stray: int, tmp_path: Path) -> None:
    times = at(0, 5, 10, 15, 20 + stray, 25, 30, 35) if stray > 0 else at(0, 60, 65, 35, 70, 75)
    text = "".join(f"{time} INFO main - a routine line\n" for time in times)
    tables = ingested(tmp_path, {"brokers/a/broker.log": text})
    assert named(tables) == []
    assert [row["note"] for row in tables["coverage"] if row["kind"] == "broker_log"] == [None]


def test_a_log_that_goes_back_often_was_put_together_out_of_order() -> None:
    stats = stats_of(at(*range(100, 0, -10)))
    assert len(stats.steps_back) == MOST_STEPS + 1
    assert len(stats.parts()) == 1


@pytest.mark.parametrize("cut", [3, 4, 5, 7])
def test_a_step_is_where_it_was_in_whatever_splits_the_log_is_read(
    cut: int, tmp_path: Path
) -> None:
    times = at(0, 10, 20, 30, 5, 15, 25, 8, 18)
    path = tmp_path / "brokers" / "a" / "broker.log"
    path.parent.mkdir(parents=True)
    path.write_text("a split log\n")
    (tmp_path / "collection.toml").write_text('cluster = "C"\n')
    begins = 1_000
    (total,) = total_stats(
        open_collection(tmp_path), [stats_of(times[:cut]), stats_of(times[cut:], begins)]
    )
    steps = [(step.before, step.after) for step in total.steps_back]
    assert steps == [(*at(30, 5),), (*at(25, 8),)]
    for step, line in zip(total.steps_back, (4, 7), strict=True):
        assert step.position == line + 1 if line < cut else begins + 1 + line - cut
    assert [len(part.marks["join a"]) for part in total.parts()] == [4, 3, 2]


@pytest.mark.parametrize("seed_of_log", range(60))
def test_a_line_that_stands_alone_is_no_step_in_whatever_splits_the_log_is_read(
    seed_of_log: int, tmp_path: Path
) -> None:
    """Steps and periods are those of the whole log, wherever it is cut in up to four splits."""
    chance = random.Random(seed_of_log)
    path = tmp_path / "brokers" / "a" / "broker.log"
    path.parent.mkdir(parents=True)
    path.write_text("a split log\n")
    (tmp_path / "collection.toml").write_text('cluster = "C"\n')
    collection = open_collection(tmp_path)
    second, seconds = 0, list[int]()
    for _ in range(8):
        second += chance.choice((1, 5, 10, -8))
        late = chance.random() < 0.3
        seconds.append(max(0, second - 30 * late))
    times = at(*seconds)

    def steps_of(*parts: FileStats) -> tuple[object, ...]:
        (total,) = total_stats(collection, parts)
        steps = [(step.before, step.after, step.period) for step in total.steps_back]
        return steps, total.period

    def read_from(times: list[str], begins: int = 0) -> FileStats:
        file = CollectedFile("brokers/a/broker.log", "broker_log", "a")
        reader = FileReader(file, "UTC", ("a",))
        lines = pa.array([f"{time} INFO main - a routine line" for time in times])
        assert list(reader.read_lines(lines, begins)) == []
        reader.stats.begins = begins
        return reader.stats

    whole = steps_of(read_from(times))
    for _ in range(8):
        cuts = [0, *sorted(chance.sample(range(1, 8), chance.randint(1, 3))), 8]
        splits = [
            read_from(times[begin:end], 1_000 * begin) for begin, end in itertools.pairwise(cuts)
        ]
        assert steps_of(*splits) == whole, (seconds, cuts)


def test_the_longest_pauses_of_a_log_are_kept_in_order() -> None:
    stats = FileStats("brokers/a/broker.log", "broker_log")
    lengths = (30, 90, 40, 20, 80, 50, 70)
    for position, seconds in enumerate(lengths):
        stats.pause(Pause(position, "", "", 0, 1_000 * seconds))
    assert [pause.after_ms // 1_000 for pause in stats.pauses] == [90, 40, 80, 50, 70]


def test_a_log_is_cut_where_its_clock_was_set_forward() -> None:
    stats = stats_of(at(0, 10, 20, 80, 90))
    stats.mark("late", 200)
    last, first = at(20, 80)
    stats.pauses = [Pause(4, last, first, 3, 3)]
    assert len(stats.parts()) == 1
    stats.set_forward = (4,)
    before, after = stats.parts()
    assert (before.begun_at, before.last_line, after.first_line_at, after.ended_at) == (
        *at(0, 20, 80, 90),
    )
    assert (before.marks, after.marks) == (
        {"join a": [0, 1, 2], "late": [200]},
        {"join a": [3, 4], "late": [200]},
    )
    assert after.since == 4


def test_positions_before_the_first_part_are_of_it() -> None:
    clock = by_position({0: 5, 100: 7})
    assert [clock.at(position) for position in (-1, 0, 99, 100, 10**12)] == [5, 5, 5, 7, 7]
