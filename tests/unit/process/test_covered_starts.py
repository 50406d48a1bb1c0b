"""Starts of queues that the collected files do not bear out have no bounds."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.broker_states import unlogged_stops
from rebalance_core.audit.coverage import ALWAYS, Coverage, LogSpan, Process, coverage_of
from rebalance_core.audit.group_snapshot import AuditRun, facts_by_kind
from rebalance_core.audit.unknowns import stop_unlogged
from rebalance_core.contracts import INGESTED_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.model.timeline import EVER_MS, Timeline
from rebalance_core.process.covered_starts import CoveredStarts
from tests.unit.audit.group_rows import fact
from tests.unit.audit.snapshots import broker_logs, name_server_logs

WHOLE = Coverage(broker_logs(a=[LogSpan(0, 900_000, from_start=True)]), known=True)


def start(latest_ms: int, **fields: Any) -> Any:
    row = dict.fromkeys(SIMULATED_TABLES["pull_starts"].column_names)
    row |= {"cluster": "c", "consumer_group": "g", "topic": "T", "broker_name": "a", "queue_id": 0}
    row |= {"epoch": 2, "change_ms": 500_000, "earliest_ms": 500_000, "latest_ms": latest_ms}
    row |= {"client_id": "x", "start_offset": 7, "start_offset_low": 5, "start_offset_high": 9}
    return row | {"rule": "STORED", "status": "OK"} | fields


def covered(
    coverage: Coverage, *rows: dict[str, Any], slaves: tuple[str, ...] = (), **tables: Any
) -> list[tuple[Any, ...]]:
    """Status, reason and bounds of each row."""
    run = AuditRun(0, 900_000, coverage=coverage, slaves=frozenset(slaves))
    given = {
        name: pa.Table.from_batches([batch_of_rows(INGESTED_TABLES[name], rows)])
        for name, rows in tables.items()
    }
    batch = batch_of_rows(SIMULATED_TABLES["pull_starts"], rows)
    shown = ("status", "reason", "start_offset", "start_offset_low", "start_offset_high")
    made = CoveredStarts({"c": run}, given)(batch).to_pylist()
    return [tuple(row[name] for name in shown) for row in made]


OK = ("OK", None, 7, 5, 9)


def test_a_log_of_all_that_came_before_leaves_them() -> None:
    assert covered(WHOLE, start(520_000), start(610_000)) == [OK, OK]


def test_without_coverage_all_counts_as_covered() -> None:
    assert covered(Coverage(), start(520_000)) == [OK]


@pytest.mark.parametrize(
    ("stretches", "reason"),
    [
        ((), "NOT_COVERED"),
        ((LogSpan(300_000, 900_000, from_start=False),), "LOG_BEGINS"),
        ((LogSpan(0, 510_000, from_start=True), LogSpan(600_000, 900_000, False)), "NOT_COVERED"),
        ((LogSpan(0, 450_000, from_start=True),), "LOG_ENDED"),
    ],
)
def test_what_no_log_shows_may_have_changed_the_answer(
    stretches: tuple[LogSpan, ...], reason: str
) -> None:
    (row,) = covered(Coverage(broker_logs(a=stretches), known=True), start(520_000))
    assert row == ("UNKNOWN", reason, 7, None, None)


def test_what_comes_later_changes_nothing_before() -> None:
    holes = (LogSpan(0, 510_000, from_start=True), LogSpan(600_000, 900_000, from_start=False))
    early, late = covered(
        Coverage(broker_logs(a=holes), known=True), start(505_000), start(610_000)
    )
    assert early == OK
    assert late == ("UNKNOWN", "NOT_COVERED", 7, None, None)


def test_a_broker_that_has_a_slave_needs_the_name_servers() -> None:
    late = Coverage(
        WHOLE.brokers, known=True, name_servers=name_server_logs(LogSpan(300_000, 900_000, False))
    )
    assert covered(late, start(520_000)) == [OK]
    (row,) = covered(late, start(520_000), slaves=("a",))
    assert row[:2] == ("UNKNOWN", "LOG_BEGINS")


@pytest.mark.parametrize("rule_id", ["INGEST_JOIN_NOT_LOGGED", "INGEST_STRATEGY_UNKNOWN"])
def test_members_that_came_without_a_line_or_divide_otherwise_may_have_read(rule_id: str) -> None:
    found: dict[str, Any] = {"cluster": "c", "consumer_group": "g"}
    found |= {"rule_id": rule_id}
    found |= {"severity": "WARNING", "summary": "", "evidence": {}, "remedy": ""}
    rows = [start(520_000), start(520_000, consumer_group="other")]
    unknown, sure = covered(WHOLE, *rows, findings=[found])
    assert (unknown[:2], sure) == (("UNKNOWN", "NOT_COVERED"), OK)


@pytest.mark.parametrize(("client_id", "status"), [("x", "UNKNOWN"), (None, "OK")])
def test_what_a_client_of_an_unknown_clock_committed_has_no_time(
    client_id: str | None, status: str
) -> None:
    commit = {"cluster": "c", "consumer_group": "g", "observed_ms": 1, "committed_offset": 3}
    commit |= {"topic": "T", "broker_name": "a", "queue_id": 0, "client_id": client_id}
    coverage = Coverage(WHOLE.brokers, known=True, client_clock_unknown=True)
    (row,) = covered(coverage, start(520_000), committed_offsets=[commit])
    assert row[0] == status


@pytest.mark.parametrize(
    ("kind", "error_ms", "status"),
    [("BROKER_DOWN", 20_000, "UNKNOWN"), ("BROKER_DOWN", 700, "OK"), ("BROKER_UP", 20_000, "OK")],
)
def test_when_brokers_went_is_not_known_by_a_clock_that_is_off(
    kind: str, error_ms: int, status: str
) -> None:
    event = {"cluster": "c", "event_ms": 1, "sequence": 0, "event_type": kind, "broker_name": "a"}
    coverage = replace(WHOLE, clocks={"namesrv/namesrv": Timeline.always(error_ms)})
    (row,) = covered(coverage, start(520_000), cluster_events=[event])
    assert row[0] == status


def test_a_start_that_failed_stays_failed() -> None:
    row = start(520_000, status="FAILED", start_offset_low=None, start_offset_high=None)
    coverage = Coverage(broker_logs(a=()), known=True)
    assert covered(coverage, row)[0][:2] == ("FAILED", None)


def gaps(stops: dict[str, Timeline[Process]]) -> dict[str, list[tuple[int, int]]]:
    """By broker from when to when it is unknown whether it ran, both included."""
    return {
        broker: [(gap.from_ms, gap.to_ms - 1) for gap, _ in timeline.gaps()]
        for broker, timeline in stops.items()
    }


def test_what_changes_on_one_broker_moves_the_queues_of_others() -> None:
    late = Coverage(
        {**WHOLE.brokers, **broker_logs(b=[LogSpan(300_000, 900_000, False)])}, known=True
    )
    rows = covered(late, start(520_000), start(520_000, broker_name="b"))
    assert [row[:2] for row in rows] == [("UNKNOWN", "LOG_BEGINS")] * 2


def test_a_broker_that_started_again_was_down_for_a_time_that_no_line_shows() -> None:
    starts = [fact("BROKER_STARTED", ms, broker_name="a") for ms in (1_000, 300_000, 700_000)]
    row: Any = {"broker_name": "a", "sequence": 0, "source": "namesrv/namesrv.log:7"}
    down: Any = row | {"event_type": "BROKER_DOWN", "event_ms": 200_000}
    up: Any = row | {"event_type": "BROKER_UP", "event_ms": 299_000}
    assert unlogged_stops([down, up], facts_by_kind(starts[:2]), {}) == {}
    assert gaps(unlogged_stops([down, up], facts_by_kind(starts), {})) == {
        "a": [(300_000, 700_000)]
    }
    seen: Any = up | {"source": "mqadmin/299000-clusterList.txt:2"}
    assert gaps(unlogged_stops([down, seen], facts_by_kind([]), {})) == {"a": [(200_000, 299_000)]}
    anew = fact("BROKER_REGISTERED", 800_000, broker_name="b")
    anew["details"]["untold_ms"] = "100000"
    assert gaps(unlogged_stops([], facts_by_kind([anew]), {})) == {
        "b": [(100_000, anew["first_ms"])]
    }
    returned = unlogged_stops([down], facts_by_kind([]), {"a": 200_000})
    assert gaps(returned) == {"a": [(200_000, EVER_MS - 1)]}
    again = unlogged_stops([down], facts_by_kind(starts[1:2]), {"a": 200_000})
    assert gaps(again) == {"a": [(200_000, starts[1]["first_ms"])]}
    run = AuditRun(
        0,
        900_000,
        coverage=WHOLE,
        stops={"a": ALWAYS.put(510_000, 700_001, stop_unlogged("a", 700_000))},
    )
    rows = [start(505_000), start(520_000, consumer_group="other")]
    batch = batch_of_rows(SIMULATED_TABLES["pull_starts"], rows)
    made = CoveredStarts({"c": run}, {})(batch).to_pylist()
    assert [row["status"] for row in made] == ["OK", "UNKNOWN"]


def store(host: str, at_ms: int, kind: str = "consumer_offset_json", **fields: Any) -> Any:
    row = {"host": host, "role": "BROKER", "kind": kind, "from_ms": at_ms, "to_ms": at_ms}
    return row | {"complete": True, "note": None, "clock_offset_ms": None} | fields


def test_a_copy_of_the_offsets_that_is_lost_may_have_had_a_commit() -> None:
    cut = store("b", 201_000, complete=False)
    rows = [store("a", 200_000), cut, store("a", 600_000), store("b", 601_000)]
    coverage = coverage_of(rows, {"a": ["a"], "b": ["b"], "c": ["c"]})
    assert coverage.offsets_lost == {"b": ((200_000, 601_000), (201_000, 601_000))}
    coverage = replace(WHOLE, offsets_lost={"a": ((200_000, 510_000),)})
    uncommitted = start(520_000, stored_offset=None, rule="MAX_OFFSET")
    stored = start(520_000, stored_offset=7)
    later = uncommitted | {"earliest_ms": 515_000}
    made = covered(coverage, uncommitted, stored, later)
    assert [row[:2] for row in made] == [("UNKNOWN", "NOT_COVERED"), OK[:2], OK[:2]]
