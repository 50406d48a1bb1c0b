"""NOTICES_OFF and RARE_HEARTBEATS: how members hear of each other, set otherwise than usual."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, lasting, listed
from rebalance_core.audit.dumps import configurations, is_system_group
from rebalance_core.audit.orphans import is_broadcasting
from rebalance_core.audit.rules.expired_alive import RARE_BEATS, pauses_of
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, OFF, Event
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, SECOND_MS
from rebalance_core.model.verdicts import INFO, WARNING
from rebalance_core.protocol.members import window_ms

_SWITCH = "notify_consumer_ids_changed_enable"


def find(case: GroupCase) -> Iterator[Finding]:
    """At most one finding, of the brokers that do not tell the group's members."""
    if is_system_group(case.consumer_group) or is_broadcasting(case):
        return
    of_group = {
        broker
        for broker, config in configurations(case).items()
        if config["details"].get(_SWITCH) == "false"
    }
    of_all = {broker for broker, modes in case.notices.items() if modes[-1] == OFF}
    brokers = sorted(of_group | of_all)
    if not brokers and case.settings.get("notified") is not False:
        return
    where = f" at {listed(brokers, 5)}" if brokers else ""
    whose = " for the whole broker" if of_all and not of_group else ""
    passes_s = window_ms(Event(0, 0, CONSUMER_LEAVE), case.slowest, OFF) // SECOND_MS
    lost = "" if of_all else " A member whose connection closes is told of all the same."
    yield Finding(
        f"notifyConsumerIdsChangedEnable=false{where}{whose}: members are not told when another "
        "one joins or leaves, and see it in a pass of their own, up to "
        f"{passes_s} s later: until then queues may have two owners, or none.{lost}",
        {"brokers": listed(brokers)},
        broker_name=brokers[0] if len(brokers) == 1 else None,
    )


RULE = Rule(
    "NOTICES_OFF",
    INFO,
    "notifyConsumerIdsChangedEnable is false, of the group or of a broker: nobody is told of a "
    "member that joins or unregisters, so that for up to 23 s two members may read a queue, or "
    "nobody does.",
    "facts GROUP_CONFIG, consumer_groups, NOTICES of cluster_events",
    "Nothing if it was meant; else mqadmin updateSubGroup -a true, or updateBrokerConfig.",
    find,
)


def find_rare(case: GroupCase) -> Iterator[Finding]:
    """One finding for each client whose heartbeats are too rare for brokers to keep it.

    Of one that was given up, EXPIRED_WHILE_ALIVE says so.
    """
    usual = case.settings.get("heartbeat_broker_interval_ms")
    beats: dict[str, int] = {}
    given_up = pauses_of(case)
    for row in case.ordered_events:
        if row["event_type"] == CONSUMER_JOIN:
            beats[row["client_id"]] = row.get("heartbeat_broker_interval_ms") or usual or 0
    for client_id, beat_ms in sorted(beats.items()):
        if beat_ms > CHANNEL_EXPIRY_MS and client_id not in given_up:
            yield Finding(
                f"heartbeatBrokerInterval of {client_id} is {lasting(beat_ms)}: each broker gives "
                f"it up {lasting(CHANNEL_EXPIRY_MS)} after its last heartbeat, though it lives, "
                "and its queues have two owners until it is listed again.",
                {"interval_ms": str(beat_ms)},
                client_id=client_id,
            )


RARE = Rule(
    "RARE_HEARTBEATS",
    WARNING,
    "A client's heartbeatBrokerInterval is longer than brokers wait for a heartbeat "
    "(channelExpiredTimeout, 120 s): each of them gives the living member up, again and again.",
    "heartbeat_broker_interval_ms of cluster_events and consumer_groups",
    RARE_BEATS,
    find_rare,
)
