"""Windows of changes that dumps alone show begin at the look before."""

from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.contracts import INGESTED_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.process.undated_moves import UndatedMoves
from tests.unit.audit.cases import broker_logs

BEGIN_MS, DUMPED_MS = 100_000, 900_000
NO_LOG = Coverage({}, known=True)


def row_of(table: str, **fields: Any) -> Any:
    columns = (INGESTED_TABLES | SIMULATED_TABLES)[table].column_names
    return dict.fromkeys(columns) | {"cluster": "c", "consumer_group": "g"} | fields


def event(at_ms: int, source: str, kind: str = "CONSUMER_LOST", detail: str | None = None) -> Any:
    return row_of(
        "cluster_events",
        event_ms=at_ms,
        sequence=0,
        event_type=kind,
        client_id="x",
        source=source,
        detail=detail,
    )


def looks(*times_ms: int) -> list[Any]:
    return [row_of("observed_members", observed_ms=ms, source="s") for ms in times_ms]


def begun(
    events: list[Any],
    members: list[Any],
    coverage: Coverage = NO_LOG,
    group: str = "g",
) -> int:
    """When the window of a move of the dump's time begins."""
    tables = {
        name: pa.Table.from_batches([batch_of_rows(INGESTED_TABLES[name], rows)])
        for name, rows in (("cluster_events", events), ("observed_members", members))
    }
    move = row_of(
        "diffs",
        consumer_group=group,
        epoch=1,
        change_ms=DUMPED_MS,
        earliest_ms=DUMPED_MS,
        latest_ms=DUMPED_MS + 20_000,
        topic="T",
        broker_name="a",
        queue_id=0,
        action="ADD",
        client_id="y",
        kind="FORCED",
        cause="CONSUMER_LOST",
    )
    runs = {"c": AuditRun(BEGIN_MS, 1_000_000, coverage=coverage)}
    rows = UndatedMoves(runs, tables)(batch_of_rows(SIMULATED_TABLES["diffs"], [move]))
    (made,) = rows.to_pylist()
    assert {**made, "earliest_ms": DUMPED_MS} == move
    return int(made["earliest_ms"])


SHOWN = event(DUMPED_MS, "mqadmin/900000-consumerConnection-g-a.txt:2")


def test_it_came_since_the_lists_of_the_round_before() -> None:
    assert begun([SHOWN], looks(300_000, 500_000, 899_000, DUMPED_MS)) == 500_000


def test_or_since_the_logs_ended() -> None:
    ended = Coverage(broker_logs(a=[LogSpan(0, 700_000, from_start=True)]), known=True)
    assert begun([SHOWN], looks(500_000, DUMPED_MS), ended) == 700_000


def test_or_since_the_collection_begins() -> None:
    assert begun([SHOWN], looks(899_000, DUMPED_MS)) == BEGIN_MS


def test_by_as_much_earlier_as_clocks_may_be_off() -> None:
    off = Coverage({}, known=True, clock_error_ms=1_500)
    assert begun([SHOWN], looks(500_000, DUMPED_MS), off) == 498_500


@pytest.mark.parametrize(
    "row",
    [
        event(DUMPED_MS, "brokers/a/broker.log:7"),
        event(DUMPED_MS, "mqadmin/1-consumerConnection-g.txt:2", detail="OBSERVED"),
        event(DUMPED_MS - 60_000, "mqadmin/900000-consumerStatus-g/x.txt:3", "CONSUMER_JOIN"),
    ],
)
def test_what_a_line_or_the_client_dates_keeps_its_window(row: Any) -> None:
    assert begun([row], looks(500_000, DUMPED_MS)) == DUMPED_MS


def test_other_groups_keep_theirs() -> None:
    assert begun([SHOWN], looks(500_000, DUMPED_MS), group="other") == DUMPED_MS


def test_tables_without_coverage_stay_as_they_are() -> None:
    assert begun([SHOWN], looks(500_000, DUMPED_MS), Coverage()) == DUMPED_MS
