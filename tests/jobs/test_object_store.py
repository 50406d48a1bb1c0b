"""Outputs in an object store: what is there is what a local run writes."""

import gc
import gzip
import json
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from rebalance_core.checks.table_reading import read_table
from rebalance_core.cli.main import main
from rebalance_core.cli.run.output_folder import OutputLock
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.run_names import ATTEMPTS, LOCK_NAME, RUN_NAME
from rebalance_core.engine import table_writer
from rebalance_core.ingest import opening_evidence
from rebalance_core.storage.access import S3Access
from rebalance_core.storage.place import Place, place_of
from tests.object_store import BROKEN, DENIED, THROTTLED, closed_port, denying_store, upload
from tests.recordings.tables import DATA
from tests.unit.process.propagation_inputs import unknown_member, write_tables
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


def test_an_earlier_result_is_replaced_only_on_request(
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
        assert "never overwrites" in capsys.readouterr().err
    assert place_of(f"{bucket}/run").names() == ["thesis.txt"]


@pytest.mark.parametrize("name", ["..", ".", "", "../run-2", "thesis"])
def test_a_record_removes_nothing_but_tables(
    bucket: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = place_of(f"{bucket}/run")
    kept = [folder / "thesis" / "1.txt", place_of(f"{bucket}/run-2/kept"), place_of(f"{bucket}/x")]
    for file in kept:
        file.write_text("years of work")
    assert run("generate", "--groups", 1, "--output", f"{bucket}/other") == 0
    record = record_of(f"{bucket}/other")
    record["outputs"] = {name: {"rows": 1, "digest": "d"}}
    for status in ("OK", "FAILED"):
        (folder / RUN_NAME).write_text(json.dumps(record | {"status": status}))
        code = run(*SIMULATE, "--output", folder.url, "--overwrite")
        assert code == (0 if name == "thesis" else 5), capsys.readouterr().err
        assert all(file.read_text() for file in kept)


def test_a_table_that_is_torn_is_refused(bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    store, out = f"{bucket}/fleet", f"{bucket}/out"
    assert run("generate", "--groups", 1, "--output", store) == 0
    (file,) = (place_of(store) / "queue_offsets").files()
    rows = pq.read_table(file.path, filesystem=file.file_system)
    pq.write_table(rows.slice(0, 5), file.path, filesystem=file.file_system)
    capsys.readouterr()
    for job in ("simulate", "plan", "audit"):
        assert run(job, "--input", store, "--output", out) == 4
        assert "queue_offsets has 5 rows" in capsys.readouterr().err
    (place_of(store) / RUN_NAME).move_to(place_of(store) / LOCK_NAME)
    assert run("simulate", "--input", store, "--output", out) == 4
    assert "a run is writing here or died here" in capsys.readouterr().err
    assert run("simulate", "--input", bucket, "--output", out) == 5
    assert f"is in --input {bucket}" in capsys.readouterr().err


def test_two_runs_are_kept_apart(bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = place_of(f"{bucket}/run")
    with OutputLock(folder):
        assert run(*SIMULATE, "--output", folder.url) == 5
        assert "another run holds it (process" in capsys.readouterr().err
        assert folder.names() == [LOCK_NAME]
    assert folder.names() == []


def test_of_two_that_make_a_file_at_once_one_sees_the_other(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one looked before, and writes while this one waits."""
    file = place_of(bucket) / "file"

    def wait(_: float) -> None:
        file.write_text("theirs")

    monkeypatch.setattr("rebalance_core.storage.place.time.sleep", wait)
    with pytest.raises(FileExistsError):
        file.create_text("ours")
    assert file.read_text() == "theirs"


def test_a_failure_while_writing_leaves_a_record_and_no_table(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(
            "When uploading part for key 'x' in bucket 'b': AWS Error NETWORK_CONNECTION "
            "during UploadPart operation: curlCode: 28"
        )

    with monkeypatch.context() as patched:
        patched.setattr(table_writer.TableWriter, "_flush", fail)
        assert run(*SIMULATE, "--output", f"{bucket}/run") == 6
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
        assert f"cannot be written: bucket {bucket[6:]}-none does not exist" in told


def test_no_permission(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with denying_store() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        for words in ((), ("--dry-run",)):
            assert run(*SIMULATE, "--output", f"{bucket}/run", *words) == 6
            told = capsys.readouterr().err
            assert "is denied (ACCESS_DENIED)" in told
            assert "not set" not in told
        assert (
            run(
                "explain",
                "--ledger",
                f"{bucket}/run",
                "--group",
                "g",
                "--queue",
                "t/b/0",
                "--at",
                1,
            )
            == 6
        )


def test_no_credentials(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with denying_store() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        assert run(*SIMULATE, "--output", f"{bucket}/run") == 6
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "said"),
    [(THROTTLED, "the store throttles (http"), (BROKEN, "reports an internal error")],
    ids=["throttles", "broken"],
)
def test_a_store_that_is_at_fault(
    bucket: str,
    answer: tuple[int, bytes],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Exit code 6: another try may do, wherever it came up."""
    monkeypatch.setattr("rebalance_core.storage.access.ATTEMPTS", 2)  # a third is after seconds
    with denying_store(answer) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        for words in (
            (*SIMULATE, "--output", f"{bucket}/run"),
            ("simulate", "--input", f"{bucket}/in", "--output", tmp_path, "--run-on", "process"),
        ):
            assert run(*words) == 6
            assert said in capsys.readouterr().err


@pytest.mark.parametrize("form", ["parquet", "jsonl", "jsonl.gz", "csv"])
def test_a_bucket_is_read_as_a_folder(bucket: str, tmp_path: Path, form: str) -> None:
    """Tables of every format: the same rows, whichever the place."""
    local = tmp_path / "in"
    local.mkdir()
    for path in TABLES.iterdir():
        name = path.name.partition(".")[0]
        rows = read_table(ALL_TABLES[name], str(path))[0].select(ALL_TABLES[name].column_names)
        write_as(form, local / f"{name}.{form}", rows)
    for path in local.iterdir():
        with (place_of(f"{bucket}/in") / path.name).file_system.open_output_stream(
            f"{bucket.partition('://')[2]}/in/{path.name}", compression=None
        ) as file:
            file.write(path.read_bytes())
    (place_of(f"{bucket}/in") / "_SUCCESS").write_text("")
    words = ("simulate", "--run-on", "process")
    for place, output in ((local, "here"), (f"{bucket}/in", "there")):
        assert run(*words, "--input", place, "--output", tmp_path / output) == 0
    here, there = (record_of(tmp_path / name) for name in ("here", "there"))
    assert (here["outputs"], here["run_id"]) == (there["outputs"], there["run_id"])
    sizes = [{each["table"]: each["bytes"] for each in run["inputs"]} for run in (here, there)]
    assert sizes[0] == sizes[1]
    assert all(each["file_list_sha256"] for each in there["inputs"])


def write_as(form: str, path: Path, rows: pa.Table) -> None:
    if form == "parquet":
        pq.write_table(rows, path)
        return
    if form == "csv":
        texts = [
            column
            if not pa.types.is_list(column.type)
            else pa.array(
                [None if value is None else json.dumps(value) for value in column.to_pylist()]
            )
            for column in rows.columns
        ]
        csv.write_csv(pa.table(texts, names=rows.column_names), path)
        return
    lines = "".join(json.dumps(row) + "\n" for row in rows.to_pylist()).encode()
    path.write_bytes(gzip.compress(lines) if form.endswith("gz") else lines)


def test_every_job_reads_a_bucket(bucket: str, tmp_path: Path) -> None:
    assert (
        run(
            "ingest", "--collection", DATA / "join-leave" / "collection", "--output", f"{bucket}/in"
        )
        == 0
    )
    assert (
        run(
            "ingest",
            "--collection",
            DATA / "join-leave" / "collection",
            "--output",
            tmp_path / "in",
        )
        == 0
    )
    for number, job in enumerate(
        (
            ("audit",),
            ("plan", "--strategy", "AVG_BY_CIRCLE"),
            ("propagate", "--seeds", 3, "--handover-seeds", 1),
        )
    ):
        codes = [
            run(
                *job,
                "--run-on",
                "process",
                "--input",
                place,
                "--output",
                tmp_path / f"{n}-{number}",
            )
            for n, place in enumerate((tmp_path / "in", f"{bucket}/in"))
        ]
        assert codes[0] == codes[1]
        here, there = (record_of(tmp_path / f"{n}-{number}") for n in range(2))
        assert (here["outputs"], here["run_id"]) == (there["outputs"], there["run_id"])


@pytest.mark.parametrize("job", ["ingest", "audit"])
def test_a_collection_is_read_where_it_lies(job: str, bucket: str, tmp_path: Path) -> None:
    """Rotated, compressed, copied and broken files too; the audit continues an earlier run."""
    folder = Path(shutil.copytree(DATA / "join-leave" / "collection", tmp_path / "collection"))
    log = folder / "brokers/broker-b/broker.log"
    lines = log.read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    (log.parent / "broker.1.log.gz").write_bytes(gzip.compress(b"".join(lines[:half])))
    (log.parent / "broker.2.log.gz").write_bytes(b"no gzip")
    log.write_bytes(b"".join(lines[half:]))
    dump = next((folder / "mqadmin").glob("*-consumerProgress-s-*.txt"))
    shutil.copy(dump, dump.with_stem(f"{dump.stem} (1)"))
    (dump.parent / f"{dump.name}.part").write_text("half")
    upload(folder, place_of(f"{bucket}/c"))
    for turn, state in enumerate(((), ("--state",))):
        codes, found = [], []
        for name, place in (("here", folder), ("there", f"{bucket}/c")):
            words = [*state, *([tmp_path / f"{name}-0"] if state else [])]
            output = tmp_path / f"{name}-{turn}"
            codes.append(run(job, "--collection", place, "--output", output, *words))
            found.append(record_of(output))
        assert codes[0] == codes[1] in (0, 3)
        for field in ("outputs", "rejected", "files", "run_id", "audit"):
            assert found[0].get(field) == found[1].get(field), field
        assert found[0]["inputs"][0]["bytes"] == found[1]["inputs"][0]["bytes"]
    assert {"WRONG_FILE", "INCOMPLETE_COPY"} <= {*found[0]["rejected"]}


def test_a_collection_that_is_not_there(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place_of(f"{bucket}/bare") / "brokers/a/broker.log").write_text("")
    name = bucket.partition("://")[2]
    for place, said in (
        (f"{bucket}/none", f"--collection {bucket}/none: no such folder"),
        (f"{bucket}/bare", f"{bucket}/bare/collection.toml is missing"),
        (f"{bucket}-none/c", f"bucket {name}-none does not exist"),
    ):
        assert run("audit", "--collection", place, "--output", tmp_path / "out") == 4
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "answer", [DENIED, THROTTLED, BROKEN], ids=["denies", "throttles", "broken"]
)
@pytest.mark.parametrize("when", ["listing", "reading"])
def test_a_store_that_fails_a_collection(
    bucket: str,
    answer: tuple[int, bytes],
    when: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """No verdict, and no table: a file that the store withholds is not a damaged one."""
    monkeypatch.setattr("rebalance_core.storage.access.ATTEMPTS", 2)
    upload(DATA / "join-leave" / "collection", place_of(f"{bucket}/c"))
    with denying_store(answer) as endpoint, monkeypatch.context() as patched:
        if when == "listing":
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        else:

            def read(place: Place) -> bytes:
                assert isinstance(place.access, S3Access)
                return replace(place, access=replace(place.access, endpoint=endpoint)).head(1)

            patched.setattr("rebalance_core.storage.place.Place.read_bytes", read)
        words = ("audit", "--collection", f"{bucket}/c", "--output", tmp_path / "out")
        assert run(*words, "--run-on", "process") == 6
    assert "this is a bug" not in capsys.readouterr().err
    names = place_of(tmp_path / "out").names() if (tmp_path / "out").exists() else []
    assert names in ([], [RUN_NAME])


@pytest.mark.parametrize("when", ["continuing", "writing its state", "counting lines"])
def test_a_store_that_fails_a_state(
    bucket: str,
    when: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """No log counts as new, and no state is kept, because the store throttled."""
    monkeypatch.setattr("rebalance_core.storage.access.ATTEMPTS", 2)
    upload(DATA / "join-leave" / "collection", place_of(f"{bucket}/c"))
    words: tuple[object, ...] = ("ingest", "--collection", f"{bucket}/c", "--run-on", "process")
    if when == "continuing":
        assert run(*words, "--output", tmp_path / "earlier") == 0
        words = (*words, "--state", tmp_path / "earlier")
    head = Place.head
    with denying_store(THROTTLED) as endpoint:

        def throttled(place: Place, size: int) -> bytes:
            assert isinstance(place.access, S3Access)
            return head(replace(place, access=replace(place.access, endpoint=endpoint)), size)

        def head_of_log(place: Place, size: int) -> bytes:
            return (throttled if size == opening_evidence.HEAD_BYTES else head)(place, size)

        def rows(*given: Any) -> pa.RecordBatch:
            monkeypatch.setattr(Place, "open", throttled)
            return opening_evidence.file_rows(*given)

        if when == "counting lines":
            monkeypatch.setattr("rebalance_core.process.ingest.file_rows", rows)
        else:
            monkeypatch.setattr(Place, "head", head_of_log)
        assert run(*words, "--output", tmp_path / "out") == 6
    assert "the store throttles" in capsys.readouterr().err
    names = place_of(tmp_path / "out").names() if (tmp_path / "out").exists() else []
    assert names in ([], [RUN_NAME])


def test_an_input_that_is_not_there(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("simulate", "--run-on", "process", "--output", tmp_path / "out", "--input")
    (place_of(f"{bucket}/in") / "other.jsonl").write_text("{}")
    for place, said in (
        (f"{bucket}/none", f"{bucket}/none does not exist"),
        (f"{bucket}/in", "cluster_events is not in"),
        (f"{bucket}-none/in", f"bucket {bucket.partition('://')[2]}-none does not exist"),
    ):
        assert run(*words, place) == 4
        assert said in capsys.readouterr().err


def test_no_broker_answers(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with closed_port() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        began = time.monotonic()
        assert run(*SIMULATE, "--output", f"{bucket}/run") == 6
        assert time.monotonic() - began < SECONDS
        assert f"{endpoint} does not answer" in capsys.readouterr().err
