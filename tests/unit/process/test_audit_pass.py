"""Groups that are judged as their ledger is made are judged as by the whole ledger."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.checks.digest import TableDigest
from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import Checked, check_tables
from rebalance_core.contracts import INPUT_TABLES, LEDGER_TABLES
from rebalance_core.engine.ledger_pass import LedgerRows
from rebalance_core.engine.options import SimulationOptions, engine_options
from rebalance_core.process import audit_pass as module
from rebalance_core.process.audit_pass import AuditPass, GroupFindings, audit_clusters
from rebalance_core.process.audited import AuditResult
from rebalance_core.process.cluster_tables import read_cluster_tables
from rebalance_core.process.observed_tables import READ_TABLES, observed
from rebalance_core.process.simulate import simulate
from tests.recordings.fleets import ingested_fleet, table_of
from tests.unit.process.whole_audits import audit_tables

UNHEARD_OF = {"cluster": "pop", "consumer_group": "unheard-of", "source": "s"}


@pytest.fixture(scope="module")
def checked() -> Checked:
    fleet = ingested_fleet()
    return check_tables(input_tables_of({name: fleet[name] for name in INPUT_TABLES}))


@pytest.fixture(scope="module")
def tables(checked: Checked) -> dict[str, pa.Table]:
    """What an audit of the fleet reads; some groups have no consumer event, one is only told of."""
    fleet = ingested_fleet()
    seen = observed({name: fleet[name] for name in READ_TABLES}).tables
    fact = UNHEARD_OF | {"kind": "POP_FORBIDDEN", "first_ms": 1, "last_ms": 2, "times": 1}
    facts = pa.concat_tables([seen["observed_facts"], table_of("observed_facts", [fact])])
    return {**checked.tables, **seen, "observed_facts": facts}


@pytest.fixture(scope="module")
def ledger() -> dict[str, pa.Table]:
    fleet = ingested_fleet()
    return simulate({name: fleet[name] for name in INPUT_TABLES}).tables()


@pytest.fixture(scope="module")
def expected(tables: dict[str, pa.Table], ledger: dict[str, pa.Table]) -> AuditResult:
    return audit_tables({**tables, **ledger})


@pytest.mark.parametrize("rows_at_once", [1, 300, module.ROWS_AT_ONCE])
def test_all_that_is_found_and_the_ledger(
    checked: Checked,
    tables: dict[str, pa.Table],
    ledger: dict[str, pa.Table],
    expected: AuditResult,
    rows_at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", rows_at_once)
    judges = audit_clusters(read_cluster_tables(tables))
    judging = AuditPass(judges.groups, engine_options(checked.tables, SimulationOptions()))
    judged = GroupFindings()
    told: list[tuple[int, int]] = []
    made = digests(judging.rows(tables, judged, lambda *counts: told.append(counts)))
    made["rejected"].add(checked.rejected)
    assert made == digests((name, b) for name, t in ledger.items() for b in t.to_batches())
    result = judges.result(judged.rows())
    assert by_text(result.findings) == by_text(expected.findings)
    assert by_text(result.verdicts) == by_text(expected.verdicts)
    groups = len(expected.verdicts)
    assert told == sorted(told)
    assert {total for _, total in told} == {groups}
    assert "unheard-of" in {row["consumer_group"] for row in result.verdicts}


def test_what_is_found_elsewhere_is_merged(expected: AuditResult) -> None:
    parts = [GroupFindings(), GroupFindings(), GroupFindings()]
    for number, row in enumerate(expected.verdicts):
        parts[number % 2].add({"findings": [], "group_verdicts": [row]})
    of_groups = [row for row in expected.findings if row["consumer_group"]]
    parts[0].add({"findings": of_groups, "group_verdicts": []})
    for part in parts[1:]:
        parts[0].merge(part)
    rows = parts[0].rows()
    assert by_text(rows["group_verdicts"]) == by_text(expected.verdicts)
    assert all(row["consumer_group"] for row in rows["findings"])


def digests(rows: LedgerRows | Iterable[tuple[str, pa.RecordBatch]]) -> dict[str, Any]:
    found = {name: TableDigest(table) for name, table in LEDGER_TABLES.items()}
    for name, batch in rows:
        if name in found:
            plain = pa.Table.from_batches([batch]).cast(LEDGER_TABLES[name].arrow_schema())
            found[name].add(plain)
    return found


def by_text(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.parametrize("ids_hashed", [False, True])
def test_holders_of_hashed_ids_are_not_stated(
    checked: Checked, tables: dict[str, pa.Table], *, ids_hashed: bool
) -> None:
    """Who reads what does not follow from the order of hashes, how far the group has read does."""
    judges = audit_clusters(read_cluster_tables(tables))
    runs = {name: replace(run, ids_hashed=ids_hashed) for name, run in judges.groups.runs.items()}
    judging = AuditPass(
        replace(judges.groups, runs=runs), engine_options(checked.tables, SimulationOptions())
    )
    made = judging.rows(tables, GroupFindings())
    rows = [row for name, batch in made if name == "queue_progress" for row in batch.to_pylist()]
    members: dict[str, set[str]] = {}
    for row in tables["cluster_events"].to_pylist():
        if row["event_type"] == "CONSUMER_JOIN":
            members.setdefault(row["consumer_group"], set()).add(row["client_id"])
    several = [row for row in rows if len(members.get(row["consumer_group"], ())) > 1]
    assert any(row["committed"] is not None for row in several)
    assert any(row["client_id"] is not None for row in several) is not ids_hashed
