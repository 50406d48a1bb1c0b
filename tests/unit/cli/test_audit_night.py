"""What of an audit belongs to its night: after the previous run, after `--since`, or 24 hours."""

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from rebalance_core.model.times import DAY_MS, HOUR_MS
from tests.tree import TREE

COLLECTION = TREE / "tests/cases/data/19-dledger-leader-returns"
"""The master is gone for 5 s on the first day; its role moves 20 minutes before the end."""
GONE, FELL = "MASTER_GONE_NOT_READ", "OFFSETS_FELL_BACK"
BEFORE_ALL = "2021-07-29T00:00:00Z"


def quietly(*words: object) -> tuple[int, dict[str, Any], str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main("audit", [*map(str, words), "--json"])
    return code, json.loads(out.getvalue()) if code in (0, 3) else {}, err.getvalue()


def severities(folder: Path) -> dict[str, str]:
    rows = pq.read_table(folder / "findings").to_pylist()
    return {row["rule_id"]: row["severity"] for row in rows if row["rule_id"] in (GONE, FELL)}


def night_of(folder: Path) -> dict[str, Any]:
    audited = json.loads((folder / "_run.json").read_text("utf-8"))["audit"]
    (night,) = audited["clusters"].values()
    assert [audited[name] for name in ("night_ms", "end_ms")] == [
        night["night_ms"],
        night["end_ms"],
    ]
    return dict(night)


def later(tables: Path, target: Path, by_ms: int, cluster: str | None = None) -> Path:
    """The tables of a collection that ends later, in which nothing else happened."""

    def at_the_end(row: Any) -> Any:
        ends = row["last_ms"] + by_ms if row["kind"] == "COLLECTED" else row["last_ms"]
        return row | {"last_ms": ends}

    for folder in filter(Path.is_dir, tables.iterdir()):
        rows = pq.read_table(folder)
        if folder.name == "observed_facts":
            rows = pa.Table.from_pylist([*map(at_the_end, rows.to_pylist())], rows.schema)
        if cluster is not None and "cluster" in rows.column_names:
            names = pa.array([cluster] * len(rows), rows.schema.field("cluster").type)
            rows = rows.set_column(rows.column_names.index("cluster"), "cluster", names)
        (target / folder.name).mkdir(parents=True)
        pq.write_table(rows, target / folder.name / "part.parquet")
    return target


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first look at everything."""
    folder = tmp_path_factory.mktemp("first") / "run"
    words = ("--since", BEFORE_ALL, "--fail-on", "WARNING")
    code, facts, _ = quietly("--collection", COLLECTION, "--output", folder, *words)
    assert (code, facts["changes"]) == (3, None)
    assert severities(folder) == {GONE: "WARNING", FELL: "WARNING"}
    return folder


def test_without_a_previous_run_a_night_has_24_hours(tmp_path: Path) -> None:
    output = tmp_path / "run"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main("audit", ["--collection", str(COLLECTION), "--output", str(output)]) == 0
    night = night_of(output)
    assert night["night_ms"] == night["end_ms"] - DAY_MS > night["start_ms"]
    assert severities(output) == {GONE: "INFO", FELL: "WARNING"}
    assert (
        "The night began at 2021-07-30 01:50:00Z: findings that ended earlier are INFO."
        in said.getvalue()
    )


def test_what_ended_before_is_healed_once(first: Path, tmp_path: Path) -> None:
    """It is named in the first night after, fires no metric, and is no news from then on."""
    last = first
    for number in (1, 2):
        given = later(first / "ingested", tmp_path / f"tables-{number}", number * HOUR_MS)
        output = tmp_path / f"run-{number}"
        _, facts, _ = quietly("--input", given, "--output", output, "--previous", last)
        assert night_of(output)["night_ms"] == night_of(last)["end_ms"]
        assert severities(output) == {GONE: "INFO", FELL: "INFO"}
        changes = facts["changes"]
        healed = {row["rule"] for row in changes["healed"]}
        assert healed == ({GONE, FELL} if number == 1 else set())
        assert (changes["new"], changes["reopened"], changes["gone"]) == ([], [], [])
        metrics = (output / "metrics.prom").read_text("utf-8")
        assert f'rule_id="{FELL}",severity="INFO"' in metrics
        assert f'rule_id="{FELL}",severity="WARNING"' not in metrics
        assert ("<h3>Healed</h3>" in (output / "report.html").read_text("utf-8")) == (number == 1)
        last = output


def test_what_comes_after_it_healed_is_back_again(first: Path, tmp_path: Path) -> None:
    """The night before had seen its end; another --since makes it one of tonight's."""
    healed, again = tmp_path / "healed", tmp_path / "again"
    given = later(first / "ingested", tmp_path / "tables", HOUR_MS)
    quietly("--input", given, "--output", healed, "--previous", first)
    given = later(first / "ingested", tmp_path / "more", 2 * HOUR_MS)
    words = ("--previous", healed, "--since", BEFORE_ALL, "--fail-on-new", "WARNING")
    code, facts, _ = quietly("--input", given, "--output", again, *words)
    assert {row["rule"] for row in facts["changes"]["reopened"]} == {GONE, FELL}
    assert (code, facts["changes"]["new"]) == (3, [])


def test_a_night_audited_again_is_the_same_night(first: Path, tmp_path: Path) -> None:
    again, other = tmp_path / "again", tmp_path / "other"
    _, facts, _ = quietly("--collection", COLLECTION, "--output", again, "--previous", first)
    assert night_of(again)["night_ms"] == night_of(first)["night_ms"]
    assert severities(again) == severities(first)
    assert (facts["changes"]["healed"], facts["changes"]["gone"]) == ([], [])
    quietly("--collection", COLLECTION, "--output", other, "--since", "2021-07-31T00:00:00Z")
    ids = {json.loads((run / "_run.json").read_text())["run_id"] for run in (first, again, other)}
    assert len(ids) == 2  # other rows, another id


def test_a_kind_of_file_that_the_previous_night_had(first: Path, tmp_path: Path) -> None:
    """It is missing for one night; the next one is compared with that."""
    collection = tmp_path / "collection"
    shutil.copytree(COLLECTION, collection, ignore=shutil.ignore_patterns("*-topicStatus-*"))
    said = "The collection has no topicStatus, which the previous run read."
    words: tuple[object, ...] = ("--collection", collection, "--previous", first)
    code, facts, _ = quietly(*words, "--output", tmp_path / "run")
    assert (code, facts["verdict"]) == (3, "INCOMPLETE")
    assert [row["summary"] for row in facts["changes"]["new"]] == [said]
    assert quietly(*words, "--output", tmp_path / "dry", "--dry-run")[0] == 3
    words = ("--collection", collection, "--previous", tmp_path / "run")
    code, facts, _ = quietly(*words, "--output", tmp_path / "next")
    assert (code, facts["verdict"]) == (0, "FINDINGS")
    assert [row["summary"] for row in facts["changes"]["gone"]] == [said]
    words = ("--input", first / "ingested", "--previous", first, "--output", tmp_path / "tables")
    assert quietly(*words)[1]["verdict"] == "FINDINGS"


def changed(run: Path, target: Path, change: Callable[[Any], None]) -> Path:
    """The findings of a run with another record."""
    record = json.loads((run / "_run.json").read_text("utf-8"))
    change(record)
    target.mkdir()
    (target / "findings").symlink_to(run / "findings")
    (target / "_run.json").write_text(json.dumps(record), "utf-8")
    return target


def incomplete(record: Any) -> None:
    for night in record["audit"]["clusters"].values():
        night["verdict"] = "INCOMPLETE"


def test_what_an_incomplete_night_may_have_missed_is_judged_in_the_next(
    first: Path, tmp_path: Path
) -> None:
    previous = changed(first, tmp_path / "previous", incomplete)
    rows = pq.read_table(first / "findings")
    (previous / "findings").unlink()
    (previous / "findings").mkdir()
    ends = pa.nulls(len(rows), pa.int64())
    rows = rows.set_column(rows.column_names.index("last_ms"), "last_ms", ends)
    pq.write_table(rows, previous / "findings" / "part-0.parquet")
    given = later(first / "ingested", tmp_path / "tables", HOUR_MS)
    _, facts, _ = quietly("--input", given, "--output", tmp_path / "run", "--previous", previous)
    assert severities(tmp_path / "run") == severities(first)
    assert facts["changes"]["healed"] == []
    assert night_of(tmp_path / "run")["night_ms"] == night_of(first)["end_ms"]


def test_what_an_incomplete_night_saw_end_is_over_in_the_next(first: Path, tmp_path: Path) -> None:
    assert severities(first) == {GONE: "WARNING", FELL: "WARNING"}
    previous = changed(first, tmp_path / "previous", incomplete)
    given = later(first / "ingested", tmp_path / "tables", HOUR_MS)
    _, facts, _ = quietly("--input", given, "--output", tmp_path / "run", "--previous", previous)
    assert severities(tmp_path / "run") == {GONE: "INFO", FELL: "INFO"}
    assert {row["rule"] for row in facts["changes"]["healed"]} >= {GONE, FELL}


def from_tomorrow(record: Any) -> None:
    for night in record["audit"]["clusters"].values():
        night |= {name: night[name] + 3 * DAY_MS for name in ("night_ms", "start_ms", "end_ms")}


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        (None, 2, "--since 2021-07-31 01:51:00Z is not before the end of the collection"),
        (from_tomorrow, 4, "began at 2021-08-01 00:00:00Z, after the end of this collection"),
    ],
)
def test_nights_out_of_order_are_refused(
    first: Path, tmp_path: Path, change: Callable[[Any], None] | None, code: int, reason: str
) -> None:
    words: tuple[object, ...] = ("--since", "2021-07-31T01:51:00Z")
    if change is not None:
        words = ("--previous", changed(first, tmp_path / "previous", change))
    for more in ((), ("--dry-run",)):
        ended, _, said = quietly(
            "--collection", COLLECTION, "--output", tmp_path / "run", *words, *more
        )
        assert (ended, reason in said) == (code, True), said
    assert not (tmp_path / "run" / "findings").exists()


def test_a_run_of_another_cluster_is_no_previous_one(first: Path, tmp_path: Path) -> None:
    given = later(first / "ingested", tmp_path / "tables", HOUR_MS, cluster="another")
    code, _, said = quietly("--input", given, "--output", tmp_path / "run", "--previous", first)
    assert code == 4
    assert "but this run audits another; name the last audit of this cluster" in said
