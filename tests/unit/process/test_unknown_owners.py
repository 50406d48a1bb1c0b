"""Rows on owners of groups that divide by what the files do not have are left out."""

from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.contracts import INGESTED_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.process.unknown_owners import UnknownOwners
from tests.unit.audit.snapshots import broker_logs
from tests.unit.process.test_undated_moves import row_of

EARLY, LATE = LogSpan(0, 300_000, from_start=True), LogSpan(200_000, 900_000, from_start=False)
TORN = [LogSpan(0, 100_000, from_start=True), LogSpan(600_000, 900_000, from_start=False)]
TWO = (("x", None), ("y", None))


def shown(
    joins: tuple[tuple[str, str | None], ...],
    *,
    hashed: bool = True,
    strategy: str = "AVG",
    mode: str | None = None,
    found: str | None = None,
) -> bool:
    """Whether a table on owners keeps a row of the group, and another table of its always does."""
    events = [
        row_of(
            "cluster_events",
            event_ms=number,
            sequence=0,
            event_type="CONSUMER_JOIN",
            client_id=client_id,
            message_model=model,
            rebalance_mode=mode,
        )
        for number, (client_id, model) in enumerate(joins)
    ]
    tables = {"cluster_events": table_of("cluster_events", events)}
    settings = row_of("consumer_groups", message_model="CLUSTERING", strategy=strategy)
    tables["consumer_groups"] = table_of("consumer_groups", [settings])
    unknown = row_of("findings", rule_id="INGEST_STRATEGY_UNKNOWN", severity="WARNING")
    unknown |= {"summary": "", "remedy": "", "evidence": {found: "MINE"}}
    tables["findings"] = table_of("findings", [unknown] if found else [])
    known = UnknownOwners({"c": AuditRun(0, 1_000, ids_hashed=hashed)}, tables)
    numbers = dict.fromkeys(("queue_id", "holders", "from_epoch", "from_ms"), 0)
    owned = row_of("ownership", topic="T", broker_name="a", client_id="x", **numbers)
    rows = batch_of_rows(SIMULATED_TABLES["ownership"], [owned])
    assert known("epochs", rows).equals(rows)
    return known("ownership", rows).num_rows == 1


def table_of(name: str, rows: list[Any]) -> pa.Table:
    return pa.Table.from_batches([batch_of_rows(INGESTED_TABLES[name], rows)])


def test_two_members_divide_by_an_order_that_hashes_do_not_keep() -> None:
    assert not shown(TWO)
    assert shown(TWO, hashed=False)


@pytest.mark.parametrize(
    "joins", [(("x", None),), (("x", None), ("x", None)), (("x", None), ("y", "BROADCASTING"))]
)
def test_one_member_that_divides_has_all_whatever_its_id(
    joins: tuple[tuple[str, str | None], ...],
) -> None:
    assert shown(joins)


@pytest.mark.parametrize(("mode", "left"), [("PROXY", True), ("CLIENT", False)])
def test_members_behind_proxies_do_not_divide_by_their_ids(mode: str, *, left: bool) -> None:
    assert shown(TWO, mode=mode) is left


def test_a_list_of_queues_asks_for_no_order() -> None:
    assert shown(TWO, strategy="CONFIG(queues=T/a/0)")


@pytest.mark.parametrize(("named", "left"), [("strategy", False), ("tried", True)])
def test_a_strategy_that_is_named_and_not_known_makes_no_owners(named: str, *, left: bool) -> None:
    assert shown(TWO, hashed=False, found=named) is left


@pytest.mark.parametrize(
    ("sources", "listed", "logs", "left"),
    [
        (("clients/x/rocketmq_client.log:1",), False, {}, False),
        (("clients/x/rocketmq_client.log:1",), True, {}, True),
        (("clients/x/rocketmq_client.log:1", "mqadmin/1-consumerStatus-g.txt"), False, {}, True),
        (
            ("clients/x/rocketmq_client.log:1",),
            False,
            {"a": [LogSpan(0, 900, from_start=True)]},
            True,
        ),
        (("brokers/a/broker.log:1",), False, {"a": [LATE]}, False),
        (("brokers/a/broker.log:1",), True, {"a": [LATE]}, True),
        (("brokers/a/broker.log:1",), False, {"a": [LATE], "b": TORN}, False),
        (("brokers/a/broker.log:1",), False, {"a": [EARLY], "b": TORN}, False),
        (("brokers/a/broker.log:1",), False, {"a": [LATE], "b": [EARLY]}, True),
        (("brokers/a/broker.log:1",), False, {"a": [LATE], "c": [EARLY]}, False),
    ],
)
def test_logs_that_may_lack_a_join_do_not_show_who_else_is_a_member(
    sources: tuple[str, ...], logs: dict[str, list[LogSpan]], *, listed: bool, left: bool
) -> None:
    """The group's topic is on brokers a and b; members do not register with c."""
    of_event = {"event_ms": 1, "sequence": 0, "event_type": "CONSUMER_JOIN", "client_id": "x"}
    of_event |= {"subscriptions": ["T"]}
    joins = [row_of("cluster_events", **of_event, source=source) for source in sources]
    of_topic = {"event_ms": 0, "sequence": 0, "event_type": "TOPIC_CONFIG", "topic": "T"}
    of_topic |= {"consumer_group": None}
    joins += [row_of("cluster_events", **of_topic, broker_name=name) for name in "ab"]
    seen = [row_of("observed_members", observed_ms=1, source="s")] if listed else []
    tables = {
        "cluster_events": table_of("cluster_events", joins),
        "observed_members": table_of("observed_members", seen),
    }
    run = AuditRun(0, 900_000, coverage=Coverage(broker_logs(**logs), known=True))
    numbers = dict.fromkeys(("queue_id", "holders", "from_epoch", "from_ms"), 0)
    owned = row_of("ownership", topic="T", broker_name="a", client_id="x", **numbers)
    rows = batch_of_rows(SIMULATED_TABLES["ownership"], [owned])
    assert UnknownOwners({"c": run}, tables)("ownership", rows).num_rows == left
    everyones = [joins[0] | {"message_model": "BROADCASTING"}]
    tables["cluster_events"] = table_of("cluster_events", everyones)
    assert UnknownOwners({"c": run}, tables)("ownership", rows).num_rows == 1
