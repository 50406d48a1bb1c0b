"""NOTICES_OFF: a group whose members are not told when one comes or leaves."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed
from rebalance_core.audit.dumps import configurations, is_system_group
from rebalance_core.audit.orphans import is_broadcasting
from rebalance_core.model.times import SECOND_MS
from rebalance_core.model.verdicts import INFO
from rebalance_core.protocol.members import OWN_PASS_MS

_SWITCH = "notify_consumer_ids_changed_enable"


def find(case: GroupCase) -> Iterator[Finding]:
    """At most one finding, of the brokers whose newest store has the switch off."""
    if is_system_group(case.consumer_group) or is_broadcasting(case):
        return
    brokers = sorted(
        broker
        for broker, config in configurations(case).items()
        if config["details"].get(_SWITCH) == "false"
    )
    if brokers:
        yield Finding(
            f"notifyConsumerIdsChangedEnable=false at {listed(brokers, 5)}: members are not told "
            "when another one joins or leaves, and see it in a pass of their own. Its changes take "
            f"up to {OWN_PASS_MS // SECOND_MS} s; windows and `propagate` do not know yet "
            "(`--lost-notices 1` shows it).",
            {"brokers": listed(brokers)},
            broker_name=brokers[0] if len(brokers) == 1 else None,
        )


RULE = Rule(
    "NOTICES_OFF",
    INFO,
    "The group's notifyConsumerIdsChangedEnable is false: brokers tell nobody of a member that "
    "joins or unregisters, so that for up to 23 s two members may read a queue, or nobody does.",
    "facts GROUP_CONFIG",
    "Nothing if it was meant; else mqadmin updateSubGroup -a true.",
    find,
)
