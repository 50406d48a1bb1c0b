"""Rules about brokers whose notices to members an operator changed from the default."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
)
from rebalance_core.audit.rules.expired_members import RARE_BEATS, pauses_of
from rebalance_core.audit.subscriptions import (
    is_broadcasting,
)
from rebalance_core.audit.topic_settings import configurations
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, OFF, Event
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, SECOND_MS
from rebalance_core.model.verdicts import INFO, WARNING
from rebalance_core.protocol.settling_windows import window_ms

_SWITCH = "notify_consumer_ids_changed_enable"


def find_notices_off(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, about the brokers that do not notify the group's members."""
    if is_system_group(group.consumer_group) or is_broadcasting(group):
        return
    of_group = {
        broker
        for broker, config in configurations(group).items()
        if config["details"].get(_SWITCH) == "false"
    }
    of_all = {broker for broker, modes in group.notices.items() if modes[-1] == OFF}
    brokers = sorted(of_group | of_all)
    if not brokers and group.settings.get("notified") is not False:
        return
    where = f" at {listed(brokers, 5)}" if brokers else ""
    scope = " for the whole broker" if of_all and not of_group else ""
    passes_s = window_ms(Event(0, 0, CONSUMER_LEAVE), group.slowest, OFF) // SECOND_MS
    lost = "" if of_all else " Brokers still announce a member whose connection closes."
    yield Finding(
        f"notifyConsumerIdsChangedEnable=false{where}{scope}: brokers do not notify members when "
        "another member joins or leaves, so each member notices in its own pass, up to "
        f"{passes_s} s later. Until then queues may have two owners or none.{lost}",
        {"brokers": listed(brokers)},
        broker_name=brokers[0] if len(brokers) == 1 else None,
    )


NOTICES_OFF = Rule(
    "NOTICES_OFF",
    INFO,
    "notifyConsumerIdsChangedEnable is false for the group or a broker. Brokers do not announce "
    "joins and leaves, so a queue may have two readers or none for up to 23 s.",
    "GROUP_CONFIG, consumer_groups, NOTICES",
    "Nothing if this is intended; otherwise run mqadmin updateSubGroup -a true, or "
    "updateBrokerConfig.",
    find_notices_off,
)


def find_rare(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each client whose heartbeats are too rare for brokers to keep it.

    EXPIRED_WHILE_ALIVE covers clients that did expire.
    """
    usual = group.settings.get("heartbeat_broker_interval_ms")
    beats: dict[str, int] = {}
    given_up = pauses_of(group)
    for row in group.consumer_events:
        if row["event_type"] == CONSUMER_JOIN:
            beats[row["client_id"]] = row.get("heartbeat_broker_interval_ms") or usual or 0
    there = {row["client_id"] for row in group.members}
    went = {row["client_id"]: row["to_ms"] for row in group.tables["memberships"]}
    for client_id, beat_ms in sorted(beats.items()):
        if beat_ms > CHANNEL_EXPIRY_MS and client_id not in given_up:
            yield Finding(
                f"heartbeatBrokerInterval of {client_id} is {lasting(beat_ms)}: each broker "
                f"expires it {lasting(CHANNEL_EXPIRY_MS)} after its last heartbeat although it is "
                "alive, and its queues have two owners until it is listed again.",
                {"interval_ms": str(beat_ms)},
                client_id=client_id,
                last_ms=None if client_id in there else went.get(client_id),
            )


RARE = Rule(
    "RARE_HEARTBEATS",
    WARNING,
    "A client's heartbeatBrokerInterval is longer than the 120 s that brokers wait "
    "(channelExpiredTimeout), so they expire the live member again and again.",
    "heartbeat_broker_interval_ms and consumer_groups",
    RARE_BEATS,
    find_rare,
    state=True,
)
