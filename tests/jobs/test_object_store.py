"""Outputs in an object store: what is there is what a local run writes."""

import gc
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.run.output_folder import LOCK_NAME, OutputLock, StoreFolder
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.paths import ATTEMPTS, RUN_NAME
from rebalance_core.engine import table_writer
from rebalance_core.storage.place import place_of
from tests.object_store import closed_port, denying_store
from tests.recordings.tables import DATA
from tests.unit.process.propagation.inputs import unknown_member, write_tables
from tests.unit.producers.recorded import write_input

TABLES = DATA / "join-leave" / "tables"
SIMULATE = ("simulate", "--input", TABLES)
MADE = re.compile(r"Made by .* at <time.*?</time>")
SECONDS = 20.0
"""A store that does not answer is told within."""

pytestmark = pytest.mark.unit


def run(*words: object) -> int:
    return main(None, list(map(str, words)))


def record_of(location: object) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((place_of(str(location)) / RUN_NAME).read_text() or "null")
    return record


def rows_of(location: str) -> dict[str, int]:
    """Rows of every table that lies there, as a reader of the bucket sees them."""
    folder = place_of(location)
    return {
        name: ds.dataset(
            f"{folder.path}/{name}", filesystem=folder.file_system, format="parquet"
        ).count_rows()
        for name in folder.names()
        if name in ALL_TABLES
    }


def same(local: Path, store: str) -> None:
    """Both have the same tables, and only what a local run leaves."""
    here, there = record_of(local), record_of(store)
    assert there["outputs"] == here["outputs"]
    assert rows_of(store) == {name: table["rows"] for name, table in there["outputs"].items()}
    assert place_of(store).names() == place_of(local).names()
    assert (there["rejected"], there["run_on"]) == (here["rejected"], "process")


@pytest.mark.parametrize(
    "job",
    [
        lambda _: SIMULATE,
        lambda _: ("generate", "--groups", "3", "--seed", "3"),
        lambda _: ("ingest", "--collection", DATA / "join-leave" / "collection"),
        lambda _: ("audit", "--collection", DATA / "join-leave" / "collection"),
        lambda _: (
            *("audit", "--collection", DATA / "join-leave" / "collection"),
            "--redact-clients",
        ),
        lambda _: ("plan", "--input", TABLES, "--strategy", "AVG_BY_CIRCLE"),
        lambda folder: ("producers", "--input", write_input(folder)),
        lambda folder: (
            *("propagate", "--seeds", 3, "--handover-seeds", 1),
            *("--input", write_tables(folder, unknown_member())),
        ),
    ],
    ids=[
        *("simulate", "generate", "ingest", "audit", "redacted", "plan", "producers", "propagate"),
    ],
)
def test_every_job_writes_the_same(
    job: Callable[[Path], tuple[object, ...]], tmp_path: Path, bucket: str
) -> None:
    words = job(tmp_path / "in")
    local, store = tmp_path / "out", f"{bucket}/runs/1"
    assert run(*words, "--output", local) == run(*words, "--output", store)
    same(local, store)


def test_results_in_a_bucket_are_read(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--previous` and `--ledger`, wherever they lie."""
    audit = ("audit", "--collection", DATA / "join-leave" / "collection")
    pages = []
    for folder in (tmp_path / "first", f"{bucket}/first"):
        code = run(*audit, "--output", folder)
        assert run(*audit, "--output", f"{folder}-next", "--previous", folder) == code
        page = (place_of(f"{folder}-next") / "report.html").read_text()
        pages.append(MADE.sub("", page or "none"))
    assert pages[0] == pages[1]
    assert "previous" in pages[0]
    assert run(*SIMULATE, "--output", f"{bucket}/ledger") == 0
    capsys.readouterr()
    question = ["--group", "order-service", "--queue", "OrderTopic/broker-a/0"]
    question += ["--at", "2026-11-21T03:30:00Z"]
    assert run("explain", "--ledger", f"{bucket}/ledger", *question) == 0
    assert "Why " in capsys.readouterr().out


def test_an_earlier_result_is_replaced_only_when_told(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"{bucket}/run"
    assert run("generate", "--groups", 2, "--output", store) == 0
    first = record_of(store)
    assert run(*SIMULATE, "--output", store) == 5
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert record_of(store) == first
    assert run(*SIMULATE, "--output", store, "--overwrite") == 0
    assert run(*SIMULATE, "--output", tmp_path / "local") == 0
    same(tmp_path / "local", store)


def test_what_is_not_ours_is_never_overwritten(
    bucket: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place_of(bucket) / "run" / "thesis.txt").write_text("years of work")
    for words in (("--overwrite", "--break-lock"), ("--dry-run",)):
        assert run(*SIMULATE, "--output", f"{bucket}/run", *words) == 5
        assert "never overwritten" in capsys.readouterr().err
    assert place_of(f"{bucket}/run").names() == ["thesis.txt"]


def test_two_runs_are_kept_apart(bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = StoreFolder(place_of(f"{bucket}/run"))
    with OutputLock(folder):
        assert run(*SIMULATE, "--output", folder.location) == 5
        assert "another run holds it (process" in capsys.readouterr().err
        assert folder.names() == [LOCK_NAME]
    assert folder.names() == []


def test_of_two_that_make_a_file_at_once_one_sees_the_other(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one looked before, and writes while this one waits."""
    folder = StoreFolder(place_of(bucket))

    def wait(_: float) -> None:
        folder.replace_text("file", "theirs")

    monkeypatch.setattr("rebalance_core.cli.run.output_folder.time.sleep", wait)
    with pytest.raises(FileExistsError):
        folder.create_text("file", "ours")
    assert folder.read_text("file") == "theirs"


def test_a_failure_while_writing_leaves_a_record_and_no_table(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError("When uploading part for key 'x' in bucket 'b': AWS Error NETWORK_CONNECTION "
                      "during UploadPart operation: curlCode: 28")  # fmt: skip

    with monkeypatch.context() as patched:
        patched.setattr(table_writer.TableWriter, "_flush", fail)
        assert run(*SIMULATE, "--output", f"{bucket}/run") == 1
    told = capsys.readouterr().err
    assert "the store failed, and there is no result" in told
    assert "this is a bug" not in told
    gc.collect()  # no writer is left that would write late
    assert place_of(f"{bucket}/run").names() == [RUN_NAME]
    record = record_of(f"{bucket}/run")
    assert (record["status"], "NETWORK_CONNECTION" in record["error"]) == ("FAILED", True)
    assert run(*SIMULATE, "--output", f"{bucket}/run") == 0  # a failed run is in nobody's way


def test_files_that_a_dead_run_left_are_cleared(bucket: str) -> None:
    store = f"{bucket}/run"
    assert run(*SIMULATE, "--output", store) == 0
    (place_of(store) / ATTEMPTS / "late" / "epochs" / "part-0.parquet").write_text("late")
    assert run(*SIMULATE, "--output", store, "--overwrite") == 0
    assert ATTEMPTS not in place_of(store).names()


def test_no_bucket(bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("--dry-run",)):
        assert run(*SIMULATE, "--output", f"{bucket}-none/run", *words) == 2
        told = capsys.readouterr().err
        assert f"cannot be written: there is no bucket {bucket[6:]}-none" in told


def test_no_permission(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with denying_store() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        for words in ((), ("--dry-run",)):
            assert run(*SIMULATE, "--output", f"{bucket}/run", *words) == 2
            told = capsys.readouterr().err
            assert "is denied (ACCESS_DENIED)" in told
            assert "not set" not in told
        assert run("explain", "--ledger", f"{bucket}/run", "--group", "g", "--queue", "t/b/0",
                   "--at", 1) == 4  # fmt: skip


def test_no_credentials(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with denying_store() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        assert run(*SIMULATE, "--output", f"{bucket}/run") == 2
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set" in capsys.readouterr().err


def test_nobody_answers(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with closed_port() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        began = time.monotonic()
        assert run(*SIMULATE, "--output", f"{bucket}/run") == 2
        assert time.monotonic() - began < SECONDS
        assert f"{endpoint} does not answer" in capsys.readouterr().err
