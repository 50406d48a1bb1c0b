"""`audit` as cron runs it: exit codes, what is written, the second run, redaction."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.engine import ledger_pass
from rebalance_core.engine.ledger_pass import Prepared, prepare_tables
from rebalance_core.process import simulate
from tests.recordings.tables import DATA

COLLECTION = DATA / "pathologies" / "collection"


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main("audit", [str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_what_could_not_be_read_is_reported_beside_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = tmp_path / "collection"
    shutil.copytree(DATA / "nightly" / "collection", collection)
    log = collection / "brokers" / "broker-a" / "broker.log.gz"
    log.write_bytes(log.read_bytes()[:3_000])
    given = collection / "consumer_groups.jsonl"
    given.write_text("\ufeff" + given.read_text("utf-8") + "x\n", "utf-8")
    out = tmp_path / "out"
    _, told, _ = run(capsys, "--collection", collection, "--output", out)
    said = "BROKEN_GZIP 1, UNPARSABLE_LINE 1; files and lines are in the table rejected"
    assert f"not read  {said}\n" in told
    assert f"Not read: {said}." in (out / "report.html").read_text("utf-8")


def test_a_first_run_and_the_next_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, known = tmp_path / "first", tmp_path / "second", tmp_path / "known.toml"
    code, out, err = run(
        capsys,
        "--collection",
        COLLECTION,
        "--output",
        first,
        "--write-accepted",
        known,
        "--set",
        "audit.findings_per_rule=1",
    )
    assert code == 3, err
    assert out.startswith("FAILED: ")
    assert "ERROR    MIXED_STRATEGIES\n           p-mixed: Members use" in out
    assert "-> Set the same AllocateMessageQueueStrategy" in out
    record = json.loads((first / "_run.json").read_text())
    assert (record["status"], record["exit_code"], record["run_on"]) == ("OK", 3, "process")
    assert " s in process)\n" in out
    assert "not read" not in out
    assert set(record["outputs"]) == set(AUDITED_TABLES)
    assert record["audit"]["groups"] == {"EQUAL": 6}  # RocketMQ's own do not count
    assert record["audit"]["causes"]["ERROR"] < sum(
        by.get("ERROR", 0) for by in record["audit"]["findings"].values()
    )
    page = (first / "report.html").read_text()
    assert "p-topics" in page
    assert '<tr id="group-p-topics">' in page
    assert (
        'rebalance_audit_verdict{cluster="DefaultCluster",verdict="FAILED"} 1'
        in (first / "metrics.prom").read_text()
    )

    code, out, err = run(
        capsys,
        "--input",
        first / "ingested",
        "--output",
        second,
        "--accepted",
        known,
        "--previous",
        first,
        "--redact-clients",
        "--json",
    )
    assert code == 0, err
    facts = json.loads(out)
    assert (facts["verdict"], facts["exit_code"]) == ("OK", 0)
    assert facts["findings"]["MIXED_STRATEGIES"] == {"accepted": 1}
    assert not (second / "private").exists()
    assert not (second / "ingested").exists()
    told = out + "".join(
        (second / name).read_text() for name in ("report.html", "_run.json", "metrics.prom")
    )
    members = pq.read_table(first / "memberships")["client_id"].unique().to_pylist()
    for client_id in members:
        assert client_id not in told
        assert client_id.partition("@")[0] not in told
    assert "client-" in told
    assert re.search(
        "The audit cannot tell which findings of [A-Z_, ]*ORPHAN_QUEUES", told
    )  # only one was kept


def test_what_cannot_be_accepted_is_not_written_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection, known = tmp_path / "collection", tmp_path / "known.toml"
    shutil.copytree(COLLECTION, collection)
    settings = collection / "collection.toml"
    expected = '"broker-a", "broker-b"'
    assert expected in settings.read_text("utf-8")
    more = settings.read_text("utf-8").replace(expected, f'{expected}, "gone"')
    settings.write_text(more, "utf-8")
    words = ("--collection", collection, "--group", "p-mixed")
    code, out, err = run(capsys, *words, "--output", tmp_path / "first", "--write-accepted", known)
    assert (code, "COLLECTION_INCOMPLETE" in out) == (3, True)
    assert "COLLECTION_INCOMPLETE" not in known.read_text("utf-8")
    assert "except COLLECTION_INCOMPLETE, which cannot be accepted" in err
    code, out, _ = run(capsys, *words, "--output", tmp_path / "second", "--accepted", known)
    assert (code, out.startswith("INCOMPLETE")) == (3, True)


def test_what_is_wrong_is_reported_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[accepted]]\nrule_id = "IDLE_MEMBR"\nreason = "r"\nexpires = 2030-01-01\n')
    output = tmp_path / "out"
    code, _, err = run(capsys, "--output", output, "--fail-on", "FATAL")
    assert code == 2
    assert "--collection DIR or --input DIR" in err
    assert "--fail-on FATAL: expected one of" in err
    code, _, err = run(capsys, "--collection", COLLECTION, "--output", output, "--accepted", known)
    assert code == 2
    assert "known.toml:1: rule_id = 'IDLE_MEMBR' is no rule; did you mean IDLE_MEMBER?" in err
    code, _, err = run(
        capsys, "--collection", COLLECTION, "--output", output, "--write-accepted", known
    )
    assert code == 5
    assert not output.exists()


def test_a_dry_run_states_what_would_be_read_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--collection", COLLECTION, "--output", tmp_path / "out", "--dry-run")
    code, out, _ = run(capsys, *words)
    assert code == 3
    assert "report.html" in out
    assert "fail on   ERROR" in out
    assert "A run would end with exit code 3: FAILED, " in out
    assert not (tmp_path / "out").exists()


def test_a_dry_run_ends_as_the_run_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(DATA / "join-leave" / "tables", tmp_path / "in")
    words = ("--input", tmp_path / "in", "--output", tmp_path / "out", "--json")
    prepared: list[object] = []

    def counted(*arguments: Any) -> Prepared:
        prepared.append(arguments)
        return prepare_tables(*arguments)

    for module in (ledger_pass, simulate):
        monkeypatch.setattr(module, "prepare_tables", counted)
    dry, out, _ = run(capsys, *words, "--dry-run")
    foretold = json.loads(out)
    assert len(prepared) == 1  # simulated once
    code, out, _ = run(capsys, *words)
    facts = json.loads(out)
    assert (dry, foretold["verdict"]["verdict"]) == (code, facts["verdict"])
    events = tmp_path / "in" / "cluster_events.jsonl"
    events.write_text("{not json\n" * 100 + events.read_text())
    for more in ((), ("--redact-clients",)):
        code, out, _ = run(capsys, *words, "--overwrite", "--dry-run", *more)
        assert (code, "100 of 1" in json.loads(out)["refused"]) == (4, True)
        code, _, err = run(capsys, *words, "--overwrite", *more)
        assert (code, "UNPARSABLE 100" in err) == (4, not more)


def test_a_previous_run_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(
        capsys, "--collection", COLLECTION, "--output", tmp_path / "out", "--previous", tmp_path
    )
    assert code == 4, err
    assert not (tmp_path / "out" / "_run.json").exists()


def test_a_group_that_had_not_settled_is_compared_with_its_simulated_futures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection, ingested = DATA / "silent-loss" / "collection", tmp_path / "ingested"
    assert main("ingest", ["--collection", str(collection), "--output", str(ingested)]) == 0
    simulated = tmp_path / "simulated"
    words = ["--input", str(ingested), "--output", str(simulated), "--seeds", "5"]
    assert main("propagate", words) == 0
    code, _, err = run(
        capsys,
        "--input",
        ingested,
        "--output",
        tmp_path / "out",
        "--propagation",
        simulated,
        "--fail-on",
        "ERROR",
    )
    assert code == 0, err
    findings = pq.read_table(tmp_path / "out" / "findings").to_pylist()
    (unstable,) = (row for row in findings if row["rule_id"] == "GROUP_UNSTABLE")
    # the thawed broker lists each member many times, which no future of the change has
    assert "later than all of its simulated futures" in unstable["summary"]
    assert float(dict(unstable["evidence"])["differed_after_s"]) > 40
    assert unstable["severity"] == "INFO"

    code, _, err = run(
        capsys, "--input", ingested, "--output", tmp_path / "out", "--propagation", ingested
    )
    assert code == 2
    assert f"--propagation {ingested}: there is no folder propagation in it" in err


def test_findings_of_several_clusters_name_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two clusters with groups of the same names: one healthy, one without one queue's reader."""
    tables = tmp_path / "tables"
    for cluster, recording in (("east", "nightly"), ("west", "join-leave")):
        one = tmp_path / cluster
        assert (
            main(
                "ingest",
                ["--collection", str(DATA / recording / "collection"), "--output", str(one)],
            )
            == 0
        )
        for table in one.iterdir():
            if table.is_dir():
                rows = pq.read_table(table)
                if "cluster" in rows.column_names:
                    at = rows.column_names.index("cluster")
                    rows = rows.set_column(at, "cluster", pa.array([cluster] * len(rows)))
                    (tables / table.name).mkdir(parents=True, exist_ok=True)
                    pq.write_table(rows, tables / table.name / f"{cluster}.parquet")
    capsys.readouterr()
    out = tmp_path / "out"
    code, told, err = run(capsys, "--input", tables, "--output", out)
    assert code == 3, err
    assert (
        "cluster   east: FAILED; 8 EQUAL, 3 OFFLINE; "
        "11 ERROR (4 causes), 7 WARNING (4 causes), 8 INFO (7 causes)\n"
    ) in told
    assert "cluster   west: OK; " in told
    assert "           east crm: Members of the group subscribe to different topics" in told
    assert "with it: ORPHAN_QUEUES clicks, orders; REBALANCE_STORM\n" in told
    metrics = (out / "metrics.prom").read_text().splitlines()
    for cluster, word in (("east", "FAILED"), ("west", "OK")):
        assert f'rebalance_audit_verdict{{cluster="{cluster}",verdict="{word}"}} 1' in metrics
    assert not [line for line in metrics if "east, west" in line]
    page = (out / "report.html").read_text("utf-8")
    assert "<small>cluster</small> <bdi>east</bdi>" in page
    record = json.loads((out / "_run.json").read_text())["audit"]
    assert set(record["clusters"]) == {"east", "west"}


def test_a_part_of_an_audit_is_that_part_of_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows outside the group and the time are left out of the output, not of the history."""
    nightly = DATA / "nightly" / "collection"
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert run(capsys, "--collection", nightly, "--output", whole)[0] == 3
    until = 1795232820000
    asked = ("--group", "c*", "--to", str(until))
    ingested = whole / "ingested"
    code, told, err = run(capsys, "--input", ingested, "--output", part, *asked)
    assert code == 3, err

    def rows(folder: Path, table: str) -> list[dict[str, Any]]:
        found = pq.read_table(folder / table).to_pylist()
        wanted = ("consumer_group" not in found[0]) if found else False
        return [r for r in found if wanted or (r["consumer_group"] or "").startswith("c")]

    assert pq.read_table(part / "group_verdicts").to_pylist() == rows(whole, "group_verdicts")
    for table in ("epochs", "ownership", "memberships"):
        expected = [row for row in rows(whole, table) if row["from_ms"] < until]
        assert pq.read_table(part / table).to_pylist() == expected, table
    found = [r for r in rows(whole, "findings") if r["first_ms"] is None or r["first_ms"] < until]
    assert {r["rule_id"] for r in rows(part, "findings")} == {r["rule_id"] for r in found}
    assert "groups    2 EQUAL\n" in told
    record = json.loads((part / "_run.json").read_text())["audit"]
    assert record["only"] == {"--group": "c*", "--to": until}
    assert (
        f"This is a partial audit (--group c* --to {until})" in (part / "report.html").read_text()
    )

    out = tmp_path / "out"
    code, _, err = run(capsys, "--input", ingested, "--output", out, "--previous", part)
    assert (code, "is a partial audit (--group c* --to" in err) == (4, True)
    code, _, err = run(capsys, "--input", ingested, "--output", out, "--group", "nottify")
    assert (code, err.splitlines()[-1]) == (
        4,
        "rebalance: --group nottify matches no group; the input has 19 groups; "
        "did you mean notify?",
    )
    for more in (("--group", "crm", "--previous", whole), ("--from", "2", "--to", "2")):
        assert run(capsys, "--input", ingested, "--output", out, *more)[0] == 2
