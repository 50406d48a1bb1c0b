"""Whether brokers notify members of changes: never, or far more often than the group changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.logged_causes import SEEN_BEFORE_LOGGED_MS
from rebalance_core.audit.rules.comings_and_goings import RARE_BEATS, pauses_of
from rebalance_core.audit.stretches import spans_where
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.audit.subscriptions import (
    differ,
    is_broadcasting,
    stated_subscriptions,
    unsubscribed,
)
from rebalance_core.audit.topic_settings import configurations
from rebalance_core.audit.unknowns import CLIENT_CLOCK_UNKNOWN
from rebalance_core.model import events
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, OFF, Event
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, HEARTBEAT_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING
from rebalance_core.protocol.settling_windows import ROUTE_MS, window_ms

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import Fact, TopicDroppedFact

# NOTICES_OFF and RARE_HEARTBEATS: how members hear of each other, set otherwise than usual.

_SWITCH = "notify_consumer_ids_changed_enable"


def find_notices_off(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, of the brokers that do not notify the group's members."""
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
        f"another member joins or leaves, so each notices in its own pass, up to {passes_s} s "
        f"later: until then queues may have two owners, or none.{lost}",
        {"brokers": listed(brokers)},
        broker_name=brokers[0] if len(brokers) == 1 else None,
    )


NOTICES_OFF = Rule(
    "NOTICES_OFF",
    INFO,
    "notifyConsumerIdsChangedEnable is false for the group or a broker. Brokers do not announce "
    "joins and leaves, so for up to 23 s a queue may have two readers, or none.",
    "GROUP_CONFIG, consumer_groups, NOTICES",
    "Nothing if it is intended; otherwise run mqadmin updateSubGroup -a true, or "
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
                f"expires it {lasting(CHANNEL_EXPIRY_MS)} after its last heartbeat, though it "
                "lives, and its queues have two owners until it is listed again.",
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


# REBALANCE_STORM: brokers make members rebalance far more often than the group changes.

# How often brokers asked members to rebalance, and how often the group's events explain it.

SECONDS_OF_ONE = 2
"""What one operation at a broker makes members log: late in a second, the next one shows it too."""

OPERATIONS = (
    events.CONSUMER_JOIN, events.CONSUMER_LEAVE, events.CONSUMER_LOST,
    events.SUBSCRIBE, events.UNSUBSCRIBE,
)  # fmt: skip
"""What a broker answers with CHANGE, once for each (rocketmq.md §6.2)."""

NEW_BROKER = (events.BROKER_UP, events.TOPIC_CONFIG)
"""What may bring the first heartbeat of each member to a broker, which answers with CHANGE."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """An episode of CHANGE from one broker process, no more than 5 minutes between two.

    Attributes:
        server: name of the broker, or the address if no file shows the name.
        first_ms: epoch ms; last_ms: the same of the last.
        seconds: in how many seconds the broker notified members, or had reason to.
        explained: in how many it may have done so for the group's events.
    """

    server: str
    first_ms: int
    last_ms: int
    seconds: int
    explained: int

    @property
    def unexplained(self) -> int:
        """Seconds that no event explains; a lower bound."""
        return max(0, self.seconds - self.explained)


def notifications(group: GroupSnapshot) -> list[Notifications]:
    """Return the episodes in the logs of clients (NOTIFIED) and brokers (TOPIC_DROPPED).

    A heartbeat that takes a topic out of the group's table is answered with CHANGE as well, so
    that a storm shows without any client's log.
    """
    return [*_notified(group), *_dropped(group)]


def _notified(group: GroupSnapshot) -> Iterator[Notifications]:
    for fact in group.facts["NOTIFIED"]:
        address = fact["details"].get("address", "")
        yield _episode(group, fact["broker_name"] or address, [fact], SECONDS_OF_ONE)


def _dropped(group: GroupSnapshot) -> Iterator[Notifications]:
    by_broker: dict[str, list[TopicDroppedFact]] = {}
    for fact in group.facts["TOPIC_DROPPED"]:
        by_broker.setdefault(fact["broker_name"] or "", []).append(fact)
    for broker, facts in sorted(by_broker.items()):
        together = [facts[0]]
        for fact in facts[1:]:
            if fact["first_ms"] > max(earlier["last_ms"] for earlier in together):
                yield _episode(group, broker, together)
                together = []
            together.append(fact)
        yield _episode(group, broker, together)


def _episode(
    group: GroupSnapshot, server: str, facts: Sequence[Fact], seconds_of_one: int = 1
) -> Notifications:
    first_ms = min(fact["first_ms"] for fact in facts)
    last_ms = max(fact["last_ms"] for fact in facts)
    seconds = max(fact["times"] for fact in facts)  # one heartbeat may take several topics out
    explained = seconds_of_one * _explained(group, first_ms, last_ms)
    return Notifications(server, first_ms, last_ms, seconds, explained)


def _explained(group: GroupSnapshot, first_ms: int, last_ms: int) -> int:
    """Return how many operations at one broker the events of this time can explain."""
    operations = sum(
        row["event_type"] in OPERATIONS
        and first_ms - SEEN_BEFORE_LOGGED_MS <= row["event_ms"] <= last_ms + SEEN_BEFORE_LOGGED_MS
        for row in group.tables["cluster_events"]
    )
    first_heartbeats = sum(
        epoch["members"]
        for epoch in group.epochs
        if set(NEW_BROKER) & set(epoch["causes"])
        and first_ms - ROUTE_MS - HEARTBEAT_MS <= epoch["from_ms"] <= last_ms
    )
    masters_back = sum(
        outage.up_ms is not None and first_ms - ROUTE_MS - HEARTBEAT_MS <= outage.up_ms <= last_ms
        for outages in group.run.masters.values()
        for outage in outages
    )
    most = max((epoch["members"] for epoch in group.epochs), default=0)
    return operations + first_heartbeats + masters_back * most


FEW = 4
"""So many seconds with CHANGE beyond those explained may be a late or a repeated one."""
STEADY_MS = 2 * HEARTBEAT_MS
"""Heartbeats that contradict each other make a storm: it comes at least so often, or is over."""


def find_rebalance_storm(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for the group over all its brokers (rocketmq.md §6.2)."""
    storms = [storm for storm in notifications(group) if _is_storm(storm)]
    if not storms:
        return
    worst = max(storms, key=lambda storm: (storm.unexplained, storm.server))
    brokers = sorted({storm.server for storm in storms})
    first_ms = min(storm.first_ms for storm in storms)
    last_ms = max(storm.last_ms for storm in storms)
    over = last_ms + STEADY_MS < group.run.end_ms
    # a wrong clock shows one notice twice, and apart from the event that explains it
    unsure = group.run.coverage.client_clock_unknown and not any(map(_is_storm, _dropped(group)))
    causes = list(_causes(group, first_ms, last_ms))
    until = f" until {utc(last_ms)}" if over else ""
    because = listed(causes, 3) if causes else "no event and no subscription explains it"
    yield Finding(
        f"Brokers asked members to rebalance again and again since {utc(first_ms)}{until}, by "
        f"{listed(brokers, 3)}: {worst.server} in {worst.seconds} seconds of "
        f"{lasting(worst.last_ms - worst.first_ms)}, of which the group's events explain "
        f"{worst.explained} at most; {because}.",
        {
            "brokers": listed(brokers),
            "seconds_with_change": str(worst.seconds),
            "explained_at_most": str(worst.explained),
            "causes": listed(causes),
        },
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=first_ms,
        last_ms=last_ms if over else None,
        ended_by="no such notice was logged in the minute after it" if over else "",
        unknown=CLIENT_CLOCK_UNKNOWN if unsure else None,
    )


def _is_storm(sent: Notifications) -> bool:
    """Return True if unexplained notices came often, all the time."""
    return sent.unexplained > FEW and sent.unexplained * STEADY_MS >= sent.last_ms - sent.first_ms


def _causes(group: GroupSnapshot, first_ms: int, last_ms: int) -> Iterator[str]:
    """Say why heartbeats contradict each other, where the ledger or a log shows it."""
    spans = spans_where(stated_subscriptions(group), differ)
    if any(s.first_ms <= last_ms and (s.last_ms is None or s.last_ms >= first_ms) for s in spans):
        yield "members subscribe to different topics"
    gone = [member for member in unsubscribed(group) if member.since_ms <= last_ms]
    if gone:
        left = sorted({f"{member.client_id} unsubscribed {member.topic}" for member in gone})
        yield f"{listed(left, 3)}, which others subscribe"
    dropped = [
        fact
        for fact in group.facts["TOPIC_DROPPED"]
        if fact["first_ms"] <= last_ms and fact["last_ms"] >= first_ms
    ]
    if dropped:
        topics = sorted({fact["topic"] for fact in dropped})
        times = sum(fact["times"] for fact in dropped)
        often = plural(times, "time")
        yield f"heartbeats took {listed(topics, 3)} out of the group's table {often}"


REBALANCE_STORM = Rule(
    "REBALANCE_STORM",
    WARNING,
    "Brokers ask members to rebalance far more often than members come or go. Each time all "
    "members request the member list, topic by topic. Members that subscribe to different topics "
    "cause this with every heartbeat.",
    "NOTIFIED and TOPIC_DROPPED against cluster_events, memberships",
    "Subscribe all members to the same topics. If the subscriptions agree, check the connections "
    "between the members and the named broker: each new channel causes a CHANGE.",
    find_rebalance_storm,
    by_absence=True,
    files=("client_log", "broker_log"),
    reads=(CAUSES,),
)


# SUBSCRIPTION_NOT_LATEST: pulls refused until a heartbeat brings the newer subscription.

RETRY_MS = 3_000
"""A refused pull is repeated after it (PULL_TIME_DELAY_MILLS_WHEN_EXCEPTION)."""
UNNOTICED_MS = 5_000
"""Less does not stand out from what a change costs anyway."""


def find_subscription_not_latest(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for a group whose pulls brokers refused for a while."""
    facts = [fact for fact in group.facts["SUBSCRIPTION_NOT_LATEST"] if _lasted(fact)]
    if not facts:
        return
    longest = max(facts, key=lambda fact: (_span(fact), fact["broker_name"]))
    brokers = sorted({fact["broker_name"] for fact in facts})
    span = _span(longest)
    more = (
        ""
        if span <= HEARTBEAT_MS + RETRY_MS
        else f"; a heartbeat should have ended it in {HEARTBEAT_MS // SECOND_MS} s: queues kept "
        "changing, or heartbeats are lost"
    )
    yield Finding(
        f"{listed(brokers, 3)} refused pulls, as the members subscribed anew and no heartbeat had "
        f"reported it: the longest time {lasting(span)} from {utc(longest['first_ms'])} at "
        f"{longest['broker_name']}; the first messages of queues that were taken over then are as "
        f"late{more}.",
        {"brokers": listed(brokers), "longest_s": str(span // SECOND_MS)},
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=min(fact["first_ms"] for fact in facts),
        last_ms=max(fact["last_ms"] for fact in facts),
    )


def _span(fact: Fact) -> int:
    return int(fact["last_ms"] - fact["first_ms"])


def _lasted(fact: Fact) -> bool:
    """Return True for a continuous stretch; single lines minutes apart are many short stretches."""
    steady = fact["times"] * 2 * RETRY_MS >= _span(fact)
    return steady and _span(fact) >= UNNOTICED_MS


SUBSCRIPTION_NOT_LATEST = Rule(
    "SUBSCRIPTION_NOT_LATEST",
    INFO,
    "A change of its queues raises the version of a member's subscription. A broker with an older "
    "version refuses its pulls until the next heartbeat (heartbeatBrokerInterval, 30 s), so the "
    "first messages after a change arrive late.",
    "SUBSCRIPTION_NOT_LATEST",
    "Nothing if it ends. If it lasts, check whether heartbeats reach the named broker; shorten "
    "heartbeatBrokerInterval if the delay matters.",
    find_subscription_not_latest,
)
