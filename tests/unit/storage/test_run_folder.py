"""The record of a run as every reader reads it, and tables that are not as it has them."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.checks.table_reading import read_table
from rebalance_core.cli.in_python import read_tables
from rebalance_core.cli.main import main
from rebalance_core.contracts import CONTRACT_VERSION, INPUT_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.place import place_of
from rebalance_core.storage.run_folder import DamagedRecord, find_run, read_run, refuse_changed

STRETCH = {"verdict": "OK", "start_ms": 1, "end_ms": 2, "groups": {}, "findings": {}}
WHOLE = {
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
    "outputs": {"findings": {"rows": 1, "digest": "d"}},
    "files": [{"name": "brokers/\udcff.log", "kind": "broker_log", "understood": 3}],
    "audit": STRETCH | {"clusters": {"c": STRETCH | {"findings": {"IDLE_MEMBER": {"INFO": 1}}}}},
    "error": None,
}


def found(folder: Path, text: str) -> dict[str, Any] | None:
    (folder / "_run.json").write_text(text)
    return find_run(place_of(folder))


def test_a_record_as_runs_write_it(tmp_path: Path) -> None:
    assert found(tmp_path, json.dumps(WHOLE)) == WHOLE
    needed = ("job", "status", "library_version", "contract_version")
    least = {name: WHOLE[name] for name in needed}
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


# Tables that are not as the record has them.


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "tables"
    assert main("generate", ["--groups", "2", "--output", str(folder)]) == 0
    return folder


@pytest.fixture
def tables(generated: Path, tmp_path: Path) -> Path:
    return shutil.copytree(generated, tmp_path / "tables")


def part(folder: Path) -> Path:
    (file,) = (folder / "queue_offsets").glob("*.parquet")
    return file


def halve(folder: Path) -> None:
    rows = pq.read_table(part(folder))
    pq.write_table(rows.slice(0, len(rows) // 2), part(folder))


def twice(folder: Path) -> None:
    shutil.copy(part(folder), part(folder).with_name("part-00001.zstd.parquet"))


def in_a_folder_below(folder: Path) -> None:
    below = folder / "queue_offsets" / "copy"
    below.mkdir()
    shutil.copy(part(folder), below / "part-0.parquet")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "half": (halve, r"queue_offsets has [\d,]+ rows, [\d,]+ are recorded"),
    "twice": (twice, "queue_offsets has"),
    "below": (in_a_folder_below, "queue_offsets has"),
    "emptied": (lambda folder: part(folder).unlink(), "queue_offsets has 0 rows"),
    "gone": (lambda folder: shutil.rmtree(folder / "queue_offsets"), "queue_offsets is gone"),
    "no octet": (lambda folder: part(folder).write_bytes(b""), "part-00000.zstd.parquet is no"),
    "stray": (
        lambda folder: (folder / "queue_offsets" / "notes.txt").write_text("x"),
        "notes.txt is not Parquet",
    ),
    "torn": (
        lambda folder: part(folder).write_bytes(part(folder).read_bytes()[:-100]),
        "is not Parquet",
    ),
    "record torn": (
        lambda folder: os.truncate(folder / "_run.json", 100),
        "_run.json is not JSON",
    ),
    "record empty": (lambda folder: os.truncate(folder / "_run.json", 0), "_run.json is not JSON"),
    "record without a job": (
        lambda folder: (folder / "_run.json").write_text('{"status": "OK", "outputs": {}}'),
        "contract_version, job, library_version is missing",
    ),
    "writing": (
        lambda folder: (folder / "_run.json").rename(folder / "_lock.json"),
        "a run is writing here or died here",
    ),
    "failed": (
        lambda folder: rewrite(folder, status="FAILED", error="no disk"),
        "a run that failed: no disk",
    ),
    "newer": (lambda folder: rewrite(folder, contract_version=99), "upgrade rebalance-core"),
}


def rewrite(folder: Path, **changes: object) -> None:
    record = json.loads((folder / "_run.json").read_text())
    (folder / "_run.json").write_text(json.dumps(record | changes))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_changed_table_is_refused_by_every_reader(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    change, said = DAMAGES[damage]
    change(tables)
    output = str(tmp_path / "out")
    for job in ("simulate", "plan", "propagate", "audit"):
        for more in ((), ("--dry-run",)):
            assert main(job, ["--input", str(tables), "--output", output, *more]) == 4
            assert re.search(said, capsys.readouterr().err)
    for read in (read_tables, read_input_tables):
        with pytest.raises(InputRefused, match=said):
            read(str(tables))
    assert not Path(output).exists()


@pytest.mark.parametrize("damage", ["half", "emptied", "twice", "writing"])
def test_a_changed_table_is_refused_by_itself(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    change, said = DAMAGES[damage]
    change(tables)
    one = str(tables / "queue_offsets")
    with pytest.raises(InputRefused, match=said):
        read_table(INPUT_TABLES["queue_offsets"], one)
    words = ["--events", str(tables / "cluster_events"), "--queue-offsets", one]
    assert main("simulate", [*words, "--output", str(tmp_path / "out")]) == 4
    assert re.search(said, capsys.readouterr().err)


def test_what_is_as_recorded_and_what_has_no_record_is_read(tables: Path) -> None:
    (tables / "queue_offsets" / "_SUCCESS").touch()
    (tables / "queue_offsets" / ".part-0.crc").write_bytes(b"x")
    assert len(read_tables(str(tables)).queue_offsets) > 0
    halve(tables)
    (tables / "_run.json").unlink()  # a folder that was made by hand
    assert len(read_tables(str(tables)).queue_offsets) > 0
