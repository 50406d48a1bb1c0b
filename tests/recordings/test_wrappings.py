"""A log says the same in whatever it was kept: every recording in every form.

Tables and findings are those of the log as RocketMQ wrote it, but for the one that says what was
taken off. Line numbers are the file's, so they are compared where a line is a line of the file.
"""

import re
import tempfile
from functools import cache
from pathlib import Path

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.audited import audit_folder
from tests.recordings.rewritten import Files, files_of, written
from tests.recordings.tables import DATA, Tables
from tests.recordings.wrappings import CARRIERS, FORMS, wrapped_files

SMALL = ("join-leave", "broker-loss-4.9")
"""Clients of 5.1+, which name their process and write GMT+8, and of 4.9, which do neither."""
OTHERS = sorted({path.name for path in DATA.iterdir() if path.is_dir()} - set(SMALL))
OTHER_LINES = ("cri-parts", "docker", "encoder", "csv")
"""Forms in which a line is several lines of the file, or several are one."""
AS_WRITTEN = ("lines", "understood", "time_zone")
"""Columns of ``coverage`` that tell how the file was written."""
SETTINGS = "collection.toml"
_LINE = re.compile(r"(\.log(?:\.gz)?):\d+")
BY_AUDIT = ("cri-parts", "docker", "spring-3", "dateless")


def rows_of(tables: Tables, *, sources: bool) -> dict[str, list[str]]:
    """Each table's rows as text, in order, without what says that something was taken off.

    Args:
        tables: of one run.
        sources: with the numbers of lines.
    """
    texts = {
        name: [
            repr(sorted((k, v) for k, v in row.items() if v is not None and k not in AS_WRITTEN))
            for row in rows
            if row.get("rule_id") != "INGEST_WRAPPED"
        ]
        for name, rows in tables.items()
    }
    return {
        name: sorted(rows if sources else (_LINE.sub(r"\1", row) for row in rows))
        for name, rows in texts.items()
    }


def events_of(tables: Tables) -> list[str]:
    """All events without where they come from."""
    events = tables["cluster_events"]
    return sorted(repr({k: v for k, v in row.items() if k != "source"}) for row in events)


def unwrapped(files: Files, wrapped: Files) -> Files:
    """The files, with the settings that the wrapped ones were given."""
    return files | {SETTINGS: wrapped[SETTINGS]}


@cache
def plain_tables(recording: str, settings: bytes) -> Tables:
    """What `ingest` makes of a recording as RocketMQ wrote it, with these settings."""
    with tempfile.TemporaryDirectory() as folder:
        files = files_of(recording) | {SETTINGS: settings}
        return ingest_collection(written(files, Path(folder))).tables


def assert_same(recording: str, form: str, folder: Path) -> None:
    files = files_of(recording)
    wrapped = wrapped_files(files, form)
    assert wrapped != files
    plain = plain_tables(recording, wrapped[SETTINGS])
    done = ingest_collection(written(wrapped, folder)).tables
    assert any(row["rule_id"] == "INGEST_WRAPPED" for row in done["findings"])
    sources = form not in OTHER_LINES
    expected, found = rows_of(plain, sources=sources), rows_of(done, sources=sources)
    assert expected.keys() == found.keys()
    for name, rows in expected.items():
        assert found[name] == rows, name


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("recording", SMALL)
def test_a_recording_in_every_form(recording: str, form: str, tmp_path: Path) -> None:
    assert_same(recording, form, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("recording", OTHERS)
def test_all_recordings_in_every_form(recording: str, form: str, tmp_path: Path) -> None:
    assert_same(recording, form, tmp_path)


@pytest.mark.parametrize("form", BY_AUDIT)
def test_findings_and_verdicts_are_the_same(form: str, tmp_path: Path) -> None:
    files = files_of("pathologies")
    wrapped = wrapped_files(files, form)
    plain = audit_folder(written(unwrapped(files, wrapped), tmp_path / "plain"))
    done = audit_folder(written(wrapped, tmp_path / "wrapped"))
    assert rows_of(done, sources=False) == rows_of(plain, sources=False)


def test_a_wrapped_log_that_is_compressed(tmp_path: Path) -> None:
    """As docker and kubelet leave a log that they rotated."""
    files = files_of("join-leave")
    wrapped = wrapped_files(files, "docker")
    packed = {
        name.replace(".log", ".1.log.gz") if name.endswith("broker.log") else name: content
        for name, content in wrapped.items()
    }
    assert packed.keys() != wrapped.keys()
    plain = ingest_collection(written(files, tmp_path / "plain")).tables
    done = ingest_collection(written(packed, tmp_path / "wrapped")).tables
    assert events_of(done) == events_of(plain)


def test_parts_of_a_rotated_log_are_in_order_of_the_lines_inside(tmp_path: Path) -> None:
    """Whatever the parts are called: their first lines say which was first."""
    files = files_of("join-leave")
    wrapped = wrapped_files(files, "kubectl-prefix")
    parts = dict(wrapped)
    for name in [name for name in wrapped if name.endswith("broker.log")]:
        lines = parts.pop(name).splitlines(keepends=True)
        stem = name.removesuffix(".log")
        parts[f"{stem}.1.log"] = b"".join(lines[: len(lines) // 2])
        parts[f"{stem}.2.log"] = b"".join(lines[len(lines) // 2 :])
    plain = ingest_collection(written(files, tmp_path / "plain")).tables
    done = ingest_collection(written(parts, tmp_path / "wrapped")).tables
    assert events_of(done) == events_of(plain)


def test_every_carrier_is_named(tmp_path: Path) -> None:
    files = files_of("join-leave")
    for form in CARRIERS:
        folder = written(wrapped_files(files, form), tmp_path / form)
        (one, *_) = [
            row
            for row in ingest_collection(folder).tables["findings"]
            if row["rule_id"] == "INGEST_WRAPPED"
        ]
        assert one["severity"] == "INFO"
        assert "brokers/broker-a/broker.log" in one["evidence"]["files"]
