"""The record of a run as every reader reads it."""

import json
import os
from pathlib import Path

import pytest

from rebalance_core.contracts import CONTRACT_VERSION
from rebalance_core.contracts.run_record import StoredRun
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.place import place_of
from rebalance_core.storage.run_folder import DamagedRecord, find_run, read_run, refuse_changed

STRETCH = {"verdict": "OK", "start_ms": 1, "end_ms": 2, "groups": {}, "findings": {}}
WHOLE: dict[str, object] = {
    "job": "audit",
    "status": "OK",
    "library_version": "0.1.0",
    "contract_version": CONTRACT_VERSION,
    "run_id": "0a" * 16,
    "exit_code": 3,
    "started_at": "2026-11-28T07:09:31.614+00:00",
    "clusters": ["c"],
    "period_from_ms": 1,
    "period_to_ms": None,
    "config": {"limits": {"max_queue_nums": 4}, "sinks": {}},
    "inputs": [{"table": "state", "path": "runs/\udcff", "rows": None}],
    "outputs": {"findings": {"rows": 1, "digest": "d"}},
    "files": [{"name": "brokers/\udcff.log", "kind": "broker_log", "understood": 3}],
    "audit": STRETCH | {"clusters": {"c": STRETCH | {"findings": {"IDLE_MEMBER": {"INFO": 1}}}}},
    "error": None,
}


def found(folder: Path, text: str) -> StoredRun | None:
    (folder / "_run.json").write_text(text)
    return find_run(place_of(folder))


def test_a_record_as_runs_write_it(tmp_path: Path) -> None:
    needed = ("job", "status", "library_version", "contract_version")
    least = {name: WHOLE[name] for name in needed}
    assert found(tmp_path, json.dumps(WHOLE)) == WHOLE
    assert found(tmp_path, json.dumps(least)) == least


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("job", None),
        ("job", ["audit"]),
        ("status", "ok"),
        ("status", {}),
        ("library_version", "\ud800"),
        ("contract_version", True),
        ("contract_version", "3"),
        ("contract_version", 10**30),
        ("run_id", "x' OR (SELECT 1) = '1"),
        ("run_id", ""),
        ("run_id", 5),
        ("run_id", "AB"),
        ("exit_code", float("nan")),
        ("started_at", "yesterday"),
        ("started_at", 0),
        ("clusters", "c"),
        ("clusters", [None]),
        ("period_to_ms", 1.5),
        ("config", None),
        ("config", {"limits": 5}),
        ("config", {"limits": {"max_queue_nums": "many"}}),
        ("inputs", {}),
        ("inputs", ["state"]),
        ("inputs", [{"table": "state"}]),
        ("inputs", [{"table": "state", "path": None}]),
        ("outputs", None),
        ("outputs", ["findings"]),
        ("outputs", "findings"),
        ("outputs", {"..": {"rows": 0, "digest": "d"}}),
        ("outputs", {"": {"rows": 0, "digest": "d"}}),
        ("outputs", {"a/b": {"rows": 0, "digest": "d"}}),
        ("outputs", {"a\\b": {"rows": 0, "digest": "d"}}),
        ("outputs", {"\0": {"rows": 0, "digest": "d"}}),
        ("outputs", {"/etc": {"rows": 0, "digest": "d"}}),
        ("outputs.findings", {}),
        ("outputs.findings.rows", -1),
        ("outputs.findings.rows", 2**63),
        ("outputs.findings.rows", "1"),
        ("outputs.findings.digest", None),
        ("files", {}),
        ("files", [{"name": "a", "kind": "b"}]),
        ("files", [{"name": "a", "kind": "b", "understood": 0, "status": 1}]),
        ("audit", []),
        ("audit.start_ms", 3),
        ("audit.end_ms", 10**18),
        ("audit.groups", {"EQUAL": "many"}),
        ("audit.clusters", [1]),
        ("audit.clusters.c", None),
        ("audit.clusters.c.start_ms", 3),
        ("audit.clusters.c.verdict", 1),
        ("audit.clusters.c.findings", {"IDLE_MEMBER": 1}),
        ("error", 5),
    ],
)
def test_a_field_of_another_kind_is_named(tmp_path: Path, path: str, value: object) -> None:
    record = json.loads(json.dumps(WHOLE))
    inner, (*above, last) = record, path.split(".")
    for name in above:
        inner = inner[name]
    inner[last] = value
    with pytest.raises(
        DamagedRecord, match=rf"_run\.json is damaged: .*{above[0] if above else last}"
    ):
        found(tmp_path, json.dumps(record))


def test_an_audit_names_its_clusters(tmp_path: Path) -> None:
    with pytest.raises(DamagedRecord, match=r"audit\.clusters is missing"):
        found(tmp_path, json.dumps(WHOLE | {"audit": STRETCH}))


@pytest.mark.parametrize("name", ["verdict", "start_ms", "end_ms", "groups", "findings"])
def test_what_an_audit_lacks_is_named(tmp_path: Path, name: str) -> None:
    lacking = {key: value for key, value in STRETCH.items() if key != name}
    with pytest.raises(DamagedRecord, match=f"audit.clusters.c.{name} is missing"):
        found(tmp_path, json.dumps(WHOLE | {"audit": STRETCH | {"clusters": {"c": lacking}}}))


NO_JSON = ("", "{", "[" * 20_000, '{"a": ' * 20_000, '{"job": ' + "9" * 5_000 + "}")


@pytest.mark.parametrize(
    "text", [*NO_JSON, "null", "[]", "3", '"x"', "{}"], ids=lambda text: text[:9]
)
def test_what_is_none_of_ours_is_no_record(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) is None
    with pytest.raises(InputRefused, match=r"holds no _run\.json of rebalance-core"):
        read_run(place_of(tmp_path))


def test_octets_that_are_no_text_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "_run.json").write_bytes(b"\xff\xfe{")
    assert find_run(place_of(tmp_path)) is None
    (tmp_path / "_run.json").unlink()
    os.mkfifo(tmp_path / "_run.json")
    with pytest.raises(InputRefused, match="not a regular file"):
        refuse_changed(place_of(tmp_path), [])
    (tmp_path / "_run.json").unlink()
    (tmp_path / "_run.json").mkdir()
    with pytest.raises(InputRefused, match="Is a directory"):
        read_run(place_of(tmp_path))
