"""An ingest that begins at the end of another gives the rows of one over both collections."""

import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.ingest import opening_evidence
from rebalance_core.ingest.collection import Collection, open_collection
from rebalance_core.ingest.in_process import Ingested, read_collection
from rebalance_core.ingest.opening_evidence import (
    ContinuedCollection,
    OpeningEvidence,
    file_rows,
    kept_evidence,
    known_logs,
    with_opening,
)
from rebalance_core.ingest.rows import by_name
from rebalance_core.model.errors import InputRefused
from tests.recordings.continued_nights import OF_THE_FIRST, Rows, collection_of
from tests.recordings.nights import TwoNights, two_nights
from tests.recordings.tables import RECORDINGS

NAMING_FILES = ("source", "summary", "evidence")
"""Columns that differ where a log lost its name to another."""


def kept(collection: Collection, read: Ingested) -> tuple[OpeningEvidence, pa.Table]:
    """Return the state that a run leaves, and its evidence."""
    last_ms = {file.name: file.last_ms for file in read.stats}
    files = pa.Table.from_batches([file_rows(collection, last_ms, read.end_ms, read.left_out)])
    evidence = pa.Table.from_batches(list(kept_evidence(read.evidence, read.end_ms)))
    return OpeningEvidence.read("state", "FIRST", files), evidence


def continued(second: Path, first: Path) -> tuple[ContinuedCollection, pa.Table]:
    """Return the second night's collection after the first's, and the evidence of that."""
    earlier = open_collection(first)
    state, evidence = kept(earlier, read_collection(earlier))
    return with_opening(open_collection(second), state), evidence


def read_on(second: Path, first: Path) -> Ingested:
    collection, evidence = continued(second, first)
    return read_collection(collection, opening=collection.rows(evidence.to_batches()))


def rows_of(tables: Mapping[str, Sequence[Any]], left_out: Sequence[str] = ()) -> dict[str, Rows]:
    return {
        name: Counter(
            json.dumps({k: v for k, v in row.items() if k not in left_out}, sort_keys=True)
            for row in rows
        )
        for name, rows in tables.items()
        if rows and name != OF_THE_FIRST
    }


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_rows_are_those_of_one_run_over_both_nights(
    recording: str, seed: int, tmp_path: Path
) -> None:
    nights = two_nights(collection_of(recording), tmp_path, seed)
    whole = read_collection(open_collection(nights.both))
    left_out = NAMING_FILES if nights.gone else ()
    expected = rows_of(by_name(whole.tables), left_out)
    assert rows_of(by_name(read_on(nights.second, nights.first).tables), left_out) == expected


def test_three_nights_are_those_of_one_run_over_all(tmp_path: Path) -> None:
    later = two_nights(collection_of("nightly"), tmp_path / "later", 1)
    earlier = two_nights(later.first, tmp_path / "earlier", 2, rotates=False)
    first = open_collection(earlier.first)
    state, evidence = kept(first, read_collection(first))
    second = with_opening(open_collection(earlier.second), state)
    read = read_collection(second, opening=second.rows(evidence.to_batches()))
    state, evidence = kept(second, read)
    third = with_opening(open_collection(later.second), state)
    read = read_collection(third, opening=third.rows(evidence.to_batches()))
    whole = read_collection(open_collection(later.both))
    assert rows_of(by_name(read.tables), NAMING_FILES) == rows_of(
        by_name(whole.tables), NAMING_FILES
    )


@pytest.fixture
def nights(tmp_path: Path) -> TwoNights:
    return two_nights(collection_of("join-leave"), tmp_path / "nights", 0)


def test_a_log_is_read_from_where_the_first_night_ended(nights: TwoNights) -> None:
    first = {file.name: file for file in open_collection(nights.first).files if file.is_log}
    collection, _ = continued(nights.second, nights.first)
    logs = [file for file in collection.own_files if file.is_log and file.begins_at]
    assert logs
    for log in logs:
        assert log.begins_at in {file.size for file in first.values()}
        before = collection.path_of(log).read_bytes()[: log.begins_at]
        assert log.lines_before == before.count(b"\n")


def test_an_older_copy_of_a_log_adds_nothing(nights: TwoNights) -> None:
    collection, _ = continued(nights.first, nights.both)
    logs = [file for file in collection.own_files if file.is_log]
    unused = {file.name: file.why for file in collection.unused}
    cut = {
        file.name
        for file in open_collection(nights.first).files
        if file.is_log and file.size < (nights.both / file.name).stat().st_size
    }
    assert not {file.name for file in logs} & {n for n in cut if n in unused}
    assert any("FIRST has read further" in why for why in unused.values())


@pytest.mark.parametrize("grew", [b"", b"2026-11-22 09:00:00 INFO T - one more\n"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("before", ["", ".gz"])
def test_a_log_that_filled_up_behind_the_same_head_is_another(
    tmp_path: Path, before: str, suffix: str, grew: bytes
) -> None:
    nights = two_nights(collection_of("join-leave"), tmp_path, 0, rotates=False)
    name = max(
        (file for file in open_collection(nights.first).files if file.is_log),
        key=lambda file: file.size,
    ).name
    first, second = nights.first / name, nights.second / name
    read = first.read_bytes().rpartition(b"\n")[0] + b"\n"
    head = opening_evidence.HEAD_BYTES
    assert len(read) > 2 * head
    other = read[:head] + read[head:].swapcase()
    _replace(first, before, read)
    _replace(second, suffix, read, grew)
    collection, _ = continued(nights.second, nights.first)
    log = next(f for f in collection.own_files if f.name == name + suffix)
    assert (log.begins_at > 0) == (before == suffix == "")
    assert not [f for f in collection.files if f.earlier and f.name.startswith(name)]
    _replace(second, suffix, other, grew)
    collection, _ = continued(nights.second, nights.first)
    log = next(f for f in collection.own_files if f.name == name + suffix)
    assert log.begins_at == 0
    if before and not suffix:  # of an unpacked log, the head alone is known
        return
    earlier = [f for f in collection.files if f.earlier and f.name.startswith(name)]
    assert collection.kept[name + before].name == earlier[0].name


def _replace(log: Path, suffix: str, *parts: bytes) -> None:
    log.unlink(missing_ok=True)
    packed = [gzip.compress(part, mtime=0) if suffix else part for part in parts]
    log.with_name(log.name + suffix).write_bytes(b"".join(packed))


@pytest.mark.parametrize("recording", ["join-leave", "nightly"])
def test_a_state_without_endings_is_continued_by_whole_logs(recording: str, tmp_path: Path) -> None:
    nights = two_nights(collection_of(recording), tmp_path, 0, rotates=False)
    collection = open_collection(nights.first)
    state, evidence = kept(collection, read_collection(collection))
    assert known_logs(state, "FIRST") != "FIRST\n"
    state = replace(state, files=tuple(replace(file, ending="") for file in state.files))
    assert known_logs(state, "FIRST") == "FIRST\n"
    second = with_opening(open_collection(nights.second), state)
    assert not any(file.begins_at for file in second.files)
    read = read_collection(second, opening=second.rows(evidence.to_batches()))
    whole = read_collection(open_collection(nights.both))
    assert rows_of(by_name(read.tables), NAMING_FILES) == rows_of(
        by_name(whole.tables), NAMING_FILES
    )


def test_the_same_collection_twice_gives_its_own_rows() -> None:
    folder = collection_of("nightly")
    whole = read_collection(open_collection(folder))
    again = read_on(folder, folder)
    assert rows_of(by_name(again.tables)) == rows_of(by_name(whole.tables))


def test_a_file_refused_by_the_first_night_is_not_reported_again(
    nights: TwoNights, tmp_path: Path
) -> None:
    log = next(nights.first.rglob("broker.log"))
    content = log.read_bytes()
    broken = b"2026-11-21 11:28:55 INFO t - new consumer connected, group: g nothing else\n"
    log.write_bytes(content + broken if content.endswith(b"\n") else content + b"\n" + broken)
    (nights.second / log.relative_to(nights.first)).write_bytes(log.read_bytes())
    first = read_collection(open_collection(nights.first))
    assert _rejected(first)
    assert not _rejected(read_on(nights.second, nights.first))


def _rejected(read: Ingested) -> Sequence[Any]:
    rows: Sequence[Any] = by_name(read.tables).get("rejected", [])
    return rows


def test_what_is_old_is_not_handed_on(nights: TwoNights, monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = {f.name for f in open_collection(nights.first).files if not f.is_log}
    collection, _ = continued(nights.second, nights.first)
    assert dumps <= {file.name for file in collection.files if file.earlier}
    monkeypatch.setattr(opening_evidence, "KEPT_MS", 0)
    end_ms = collection.opening.end_ms
    handed_on = [f for f in continued(nights.second, nights.first)[0].files if f.earlier]
    assert {file.written_ms for file in handed_on if not file.is_log} == {end_ms}


def test_a_state_of_another_cluster_is_refused(nights: TwoNights) -> None:
    settings = nights.second / "collection.toml"
    settings.write_text(settings.read_text().replace("DefaultCluster", "Other"))
    with pytest.raises(InputRefused, match="--state FIRST: belongs to the cluster DefaultCluster"):
        continued(nights.second, nights.first)


@pytest.mark.parametrize("night", ["first", "second"])
def test_a_state_of_other_names_is_refused(nights: TwoNights, night: str) -> None:
    settings = getattr(nights, night) / "collection.toml"
    settings.write_text("redacted = true\n" + settings.read_text())
    with pytest.raises(InputRefused, match="gives members different names each night"):
        continued(nights.second, nights.first)


def test_a_file_of_another_cluster_is_not_handed_on(nights: TwoNights) -> None:
    collection = open_collection(nights.first)
    read = read_collection(collection)
    names = {f.file.name for f in kept(collection, replace(read, left_out=frozenset()))[0].files}
    log = next(name for name in names if name.endswith("broker.log"))
    left_out = kept(collection, replace(read, left_out=frozenset({log})))[0].files
    assert {f.file.name for f in left_out} == names - {log}


def test_a_state_in_another_form_is_refused(
    nights: TwoNights, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = open_collection(nights.first)
    monkeypatch.setattr(opening_evidence, "FORM", 99)
    files = pa.Table.from_batches([file_rows(collection, {}, 0)])
    monkeypatch.undo()
    with pytest.raises(InputRefused, match="another version of rebalance-core wrote it"):
        OpeningEvidence.read("state", "FIRST", files)
