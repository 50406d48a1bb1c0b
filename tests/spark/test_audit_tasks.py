"""What tasks of an audit do with the rows of their groups; no JVM takes part."""

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.redact import pseudonym
from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.packed_rows import pack
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES, REJECTED
from rebalance_core.engine.options import SimulationOptions, engine_options
from rebalance_core.engine.routing import UNDIVIDED, Interests, interests_of_named, routing_of
from rebalance_core.process.audit import AuditRouting, AuditTask
from rebalance_core.process.audit_pass import AuditPass, PartialAudit, audit_clusters
from rebalance_core.process.cluster_tables import ClusterTables, cluster_tables_of
from rebalance_core.process.observed_tables import READ_TABLES, observed
from rebalance_core.process.simulate import simulate
from rebalance_core.spark.routed_rows import routed_tables
from tests.recordings.fleets import ingested_fleet, table_of
from tests.unit.process.whole_audits import audit_tables

pytestmark = pytest.mark.unit

LOST_ROUTE = {
    "cluster": "pop", "kind": "MISSING_ROUTE", "topic": "%RETRY%orders-pop+orders", "times": 1,
    "first_ms": 1, "last_ms": 2, "details": {"log": "x"}, "source": "s",
}  # fmt: skip
BAD = {"table_name": "t", "source": "clients/shop-pod/rocketmq_client.log:3", "raw": "10.0.0.1@7",
       "issues": [{"code": "UNPARSABLE", "message": "of 10.0.0.1@7"}]}  # fmt: skip


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    """The used rows of a fleet, with a fact that names no group."""
    fleet = ingested_fleet()
    inputs = input_tables_of({name: fleet[name] for name in INPUT_TABLES})
    seen = observed({name: fleet[name] for name in READ_TABLES}).tables
    facts = [seen["observed_facts"], table_of("observed_facts", [LOST_ROUTE])]
    return {**check_tables(inputs).tables, **seen, "observed_facts": pa.concat_tables(facts)}


def halves(tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """Some rows of a table for each task."""
    for name, rows in tables.items():
        half = len(rows) // 2
        yield from ((name, part) for part in (rows.slice(0, half), rows.slice(half)))


def interests(tables: Mapping[str, pa.Table]) -> Interests:
    found = [interests_of_named(name, rows) for name, rows in halves(tables)]
    return Interests.merged(part for part in found if part is not None)


def clusters(tables: Mapping[str, pa.Table]) -> ClusterTables:
    found = [cluster_tables_of(name, rows) for name, rows in halves(tables)]
    return ClusterTables.merged(part for part in found if part is not None)


def routed(tables: Mapping[str, pa.Table], routing: AuditRouting) -> Iterator[pa.RecordBatch]:
    """The rows of all buckets in one task, as `spark.routed_rows` has them."""
    names = ("bucket", "name", "chunk")
    for name, rows in tables.items():
        for bucket, part in routing.split(name, rows):
            yield pa.RecordBatch.from_pydict(
                dict(zip(names, ([bucket], [name], [pack(part)]), strict=True))
            )
    rejected = [[1], [REJECTED.name], [pack(table_of(REJECTED.name, [BAD]))]]
    yield pa.RecordBatch.from_pydict(dict(zip(names, rejected, strict=True)))


@pytest.mark.parametrize("buckets", [1, 7, 100])
@pytest.mark.parametrize("salt", [None, "s"])
def test_all_tasks_find_together_what_a_process_finds(
    tables: dict[str, pa.Table], buckets: int, salt: str | None
) -> None:
    routing = AuditRouting(routing_of(interests(tables), buckets, giant_cells=UNDIVIDED))
    judges = audit_clusters(clusters(tables), redact_salt=salt)
    judging = AuditPass(judges.groups, engine_options(tables, SimulationOptions()))
    note = PartialAudit()
    written = [*AuditTask(judging, salt)(routed_tables(routed(tables, routing)), note)]
    part: PartialAudit = pickle.loads(pickle.dumps(note))
    result = judges.result(part.group_findings.rows())

    ledger = simulate({name: ingested_fleet()[name] for name in INPUT_TABLES}).tables()
    expected = audit_tables({**tables, **ledger}, redact_salt=salt)
    assert by_text(result.findings) == by_text(expected.findings)
    assert by_text(result.verdicts) == by_text(expected.verdicts)
    assert part.facts.rejected.times("UNPARSABLE") == 1
    assert part.facts.totals(3)["groups"] > 10
    members = [row for name, b in written if name == "memberships" for row in b.to_pylist()]
    clients = {row["client_id"] for row in ledger["memberships"].to_pylist()}
    shown = clients if salt is None else {pseudonym(client, salt) for client in clients}
    assert {row["client_id"] for row in members} == shown
    assert len(members) == len(ledger["memberships"])
    told = str([row for name, b in written if name == REJECTED.name for row in b.to_pylist()])
    assert ("10.0.0.1@7" in told, "shop-pod" in told) == (salt is None, salt is None)


def test_facts_that_name_no_group_go_everywhere(tables: dict[str, pa.Table]) -> None:
    routing = AuditRouting(routing_of(interests(tables), 5, giant_cells=UNDIVIDED))
    facts = table_of("observed_facts", [LOST_ROUTE, LOST_ROUTE | {"kind": "COLLECTED"}])
    found = {
        bucket: rows["kind"].to_pylist() for bucket, rows in routing.split("observed_facts", facts)
    }
    assert found == {bucket: ["MISSING_ROUTE"] for bucket in range(5)}
    assert list(routing.split("queue_offsets", tables["queue_offsets"].slice(0, 0))) == []


def by_text(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
