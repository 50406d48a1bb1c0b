"""Which brokers have the group's configuration at the end."""

from __future__ import annotations

from rebalance_core.audit.case import GroupCase, Row


def configurations(case: GroupCase) -> dict[str, Row]:
    """Broker -> the newest GROUP_CONFIG that still holds at the end."""
    newest: dict[str, Row] = {}
    for fact in sorted(case.facts("GROUP_CONFIG"), key=lambda one: one["last_ms"]):
        newest[fact["broker_name"]] = fact
    deleted = {fact["broker_name"]: fact["last_ms"] for fact in case.facts("GROUP_DELETED")}
    return {
        broker: fact
        for broker, fact in newest.items()
        if fact["last_ms"] >= case.run.store_ms.get(broker, 0)
        and fact["last_ms"] >= deleted.get(broker, 0)
    }


def lacks_configuration(case: GroupCase, broker_name: str) -> bool:
    """True if the broker's store was collected and does not have the group."""
    return broker_name in case.run.store_ms and broker_name not in configurations(case)
