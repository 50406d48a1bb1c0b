import json
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.checks.digest import TableWritten
from rebalance_core.cli.run.input_files import check_readable, fingerprint, tables_in
from rebalance_core.cli.run.output_folder import spark_location, typed_place
from rebalance_core.cli.run.run_record import RunRecord, find_run, read_run, write_run
from rebalance_core.cli.run.secrets import redact_arguments, redact_values
from rebalance_core.contracts import CONTRACT_VERSION
from rebalance_core.contracts.paths import is_local
from rebalance_core.model.errors import InputRefused


def record(**changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "status": "OK",
        "exit_code": 0,
        "job": "simulate",
        "arguments": [],
        "config": {},
        "started_at": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "outputs": {"epochs": TableWritten(3, "ab")},
    }
    return RunRecord(**values | changes)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    folder = typed_place(str(tmp_path))
    write_run(folder, record())
    found = read_run(folder)
    assert found["outputs"] == {"epochs": {"rows": 3, "digest": "ab"}}
    assert found["contract_version"] == CONTRACT_VERSION
    assert [path.name for path in tmp_path.iterdir()] == ["_run.json"]


def test_a_second_record_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    folder = typed_place(str(tmp_path))
    write_run(folder, record())
    with pytest.raises(FileExistsError):
        write_run(folder, record(job="audit"))
    assert read_run(folder)["job"] == "simulate"
    assert [path.name for path in tmp_path.iterdir()] == ["_run.json"]


@pytest.mark.parametrize(("change", "readable"), [(-1, False), (0, True), (1, False)])
def test_a_contract_of_another_number_is_refused(
    tmp_path: Path, change: int, readable: bool
) -> None:
    folder = typed_place(str(tmp_path))
    write_run(folder, record(contract_version=CONTRACT_VERSION + change))
    if readable:
        assert read_run(folder)["job"] == "simulate"
        return
    with pytest.raises(InputRefused, match="contract version"):
        read_run(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"status": "OK"}'])
def test_what_is_not_ours_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "_run.json").write_text(text)
    assert find_run(typed_place(str(tmp_path))) is None
    with pytest.raises(InputRefused, match="no result"):
        read_run(typed_place(str(tmp_path)))


def test_a_failed_run_is_no_result(tmp_path: Path) -> None:
    write_run(typed_place(str(tmp_path)), record(status="FAILED", error="disk full"))
    with pytest.raises(InputRefused, match="disk full"):
        read_run(typed_place(str(tmp_path)))


def test_secrets_are_not_written_down() -> None:
    words = ["simulate", "--set", "spark.token=abc", "--password", "abc", "s3a://k:abc@b/x?sig=abc"]
    values = {"a": {"secret_key": "abc", "redact_salt": "abc", "n": 1}, "token": None}
    written = json.dumps([redact_arguments(words), redact_values(values)])
    assert "abc" not in written
    assert redact_values(values)["a"]["n"] == 1
    assert redact_arguments(["--group", "order-*", "--from=5"]) == [
        "--group",
        "order-*",
        "--from=5",
    ]


def test_inputs_are_found_by_name_and_fingerprinted_by_content(tmp_path: Path) -> None:
    (tmp_path / "cluster_events.jsonl").write_text("{}\n")
    parts = tmp_path / "queue_offsets.parquet"
    parts.mkdir()
    (parts / "part-0").write_bytes(b"1234")
    (tmp_path / "notes.txt").write_text("hello")
    found = tables_in(tmp_path)
    assert list(found) == ["cluster_events", "queue_offsets"]
    file = fingerprint("cluster_events", str(found["cluster_events"]))
    assert (file.bytes, len(file.sha256 or ""), file.file_list_sha256) == (3, 64, None)
    folder = fingerprint("queue_offsets", str(parts))
    assert (folder.bytes, folder.sha256, len(folder.file_list_sha256 or "")) == (4, None, 64)


def test_missing_inputs_are_named(tmp_path: Path) -> None:
    (tmp_path / "cluster_event.jsonl").touch()
    with pytest.raises(InputRefused, match=r"contains no cluster_events; it has cluster_event\.js"):
        tables_in(tmp_path)
    with pytest.raises(InputRefused, match=r"did you mean cluster_event\.jsonl"):
        check_readable("--events", str(tmp_path / "cluster_events.jsonl"))
    (tmp_path / "cluster_events.json").touch()
    (tmp_path / "cluster_events.csv").touch()
    with pytest.raises(InputRefused, match="twice"):
        tables_in(tmp_path)


def test_local_and_remote_places() -> None:
    assert [is_local(p) for p in ("out", "/a b", "file:/a", "s3a://b/c", "hdfs:/x")] == (
        [True, True, True, False, False]
    )
    assert spark_location("/a b/100%") == spark_location("file:///a b/100%") == "file:///a b/100%"
    assert spark_location("s3a://b/c") == "s3a://b/c"
