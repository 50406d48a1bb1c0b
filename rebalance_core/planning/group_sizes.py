"""The number of members and queues that a group needs, even while any one member or broker is
missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

from rebalance_core.contracts.planning import COMMITS, GIVEN, SIZE_BOUNDS, SizeBound
from rebalance_core.planning.sizing import MS_PER_SECOND, Backlog, backlog
from rebalance_core.protocol.shares import busiest_rate

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import SizesRow

THREADS_BOUND, QUEUES_BOUND, ORDERED_BOUND, SPARE_BOUND, UNKNOWN_BOUND = SIZE_BOUNDS
CONCURRENT_THREADS = 20
"""DefaultMQPushConsumer.consumeThreadMin: the number of messages that a member processes at
once.
"""
MOST_DOUBLINGS = 12
"""The limit on the number of queues: a plan with 4,096 times as many is not useful."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The requirements for group sizes.

    Attributes:
        service_ms: the time that a member's thread takes per message; None to measure it from
            commits.
        threads: the number of messages that a member processes concurrently.
        growth: expected messages / messages today.
        outage_ms: how long the queues of a lost member wait for their next owner.
        catch_up_ms: the time within which the group has read the waiting messages, down to
            `target_lag`.
        target_lag: the number of the group's messages that may wait.
    """

    service_ms: float | None = None
    threads: int = CONCURRENT_THREADS
    growth: float = 1.0
    outage_ms: int = 33_000
    catch_up_ms: int = 300_000
    target_lag: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a group.

    Attributes:
        cluster: the group's cluster.
        consumer_group: its name.
        ordered: whether its listener is orderly, with one thread per queue.
        members: the current number of members.
        queues: topic -> broker -> readable queues.
        rates: topic -> messages per second; None: unknown.
        unread: the number of messages that wait; None: unknown.
        capacity: messages per second that a member was observed to read while it fell behind; None:
            it kept up, so its limit is unknown.
    """

    cluster: str
    consumer_group: str
    ordered: bool
    members: int
    queues: Mapping[str, Mapping[str, int]]
    rates: Mapping[str, float | None]
    unread: int | None = None
    capacity: float | None = None


def size_of(load: Load, demand: Demand) -> SizesRow:
    """Return the row of ``sizes`` for a group.

    The members divide each topic evenly, as AVG does. The busiest must carry its queues while a
    member is missing, and while a broker is missing and the others get its messages. Each must also
    read the waiting messages, in addition to those that arrive during the outage, within the time
    to catch up. Queues are doubled until this is possible without any idle member other than the
    spare.

    Args:
        load: the group's load.
        demand: the requirements.
    """
    in_total = {topic: sum(brokers.values()) for topic, brokers in load.queues.items()}
    row: SizesRow = {
        "cluster": load.cluster,
        "consumer_group": load.consumer_group,
        "ordered": load.ordered,
        "members_now": load.members,
        "queues_now": sum(in_total.values()),
        "rate": None,
        "unread": load.unread,
        "capacity": None,
        "measured": None,
        "members": None,
        "queues": None,
        "catch_up_s": None,
        "bound": UNKNOWN_BOUND,
        "reason": "",
    }
    known = [rate for rate in load.rates.values() if rate is not None]
    if not in_total or not all(in_total.values()):
        return {**row, "reason": "it reads no queue"}
    if len(known) < len(in_total):
        reason = "the rate of a queue is unknown: two observations of its end are needed"
        return {**row, "reason": reason}
    row["rate"] = sum(known)
    row["capacity"], row["measured"] = _capacity(load, demand)
    if row["capacity"] is None:
        reason = "the group kept up, so its limit is unknown: state the service time"
        return {**row, "reason": reason}
    member = row["capacity"]
    thread = member / demand.threads
    come = {topic: (load.rates[topic] or 0.0) * demand.growth for topic in in_total}
    outage = sum(come.values()) * demand.outage_ms / MS_PER_SECOND
    behind = max(0.0, (load.unread or 0) + outage - demand.target_lag)
    more = behind / demand.catch_up_ms * MS_PER_SECOND
    total = sum(come.values())
    needed = {
        topic: rate + more * (rate / total if total else 1 / len(come))
        for topic, rate in come.items()
    }
    bound = THREADS_BOUND
    for doublings in range(MOST_DOUBLINGS + 1):
        queues = {
            topic: {broker: number << doublings for broker, number in brokers.items()}
            for topic, brokers in load.queues.items()
        }
        if load.ordered and not _queues_are_read(queues, needed, thread):
            bound = ORDERED_BOUND
            continue
        members = _fewest_members(queues, needed, member)
        if members is not None:
            break
        bound = QUEUES_BOUND if bound == THREADS_BOUND else bound
    else:
        return {**row, "reason": "no number of queues is enough because a message takes too long"}
    if members == SPARE + 1 and bound == THREADS_BOUND:
        bound = SPARE_BOUND
    after = sum(sum(brokers.values()) for brokers in queues.values())
    caught = catch_up(load, demand, members, member)
    return {
        **row,
        "members": members,
        "queues": after,
        "bound": bound,
        "catch_up_s": None if caught.catch_up_seconds == inf else caught.catch_up_seconds,
        "reason": _reason(bound, row["queues_now"], after, members, member),
    }


SPARE = 1
"""The number of members that may be missing."""


def catch_up(load: Load, demand: Demand, members: int, capacity: float) -> Backlog:
    """Return the number of messages that wait after an outage of one member's queues, and for how
    long they wait.

    Args:
        load: the group's load.
        demand: the requirements.
        members: the group's members.
        capacity: the capacity of a member, in messages per second.
    """
    rate = sum(rate or 0.0 for rate in load.rates.values()) * demand.growth
    return backlog(rate / members, demand.outage_ms, capacity)


def _capacity(load: Load, demand: Demand) -> tuple[float | None, Literal["GIVEN", "COMMITS", None]]:
    if demand.service_ms is not None:
        return demand.threads * MS_PER_SECOND / demand.service_ms, GIVEN
    return (None, None) if load.capacity is None else (load.capacity, COMMITS)


Queues = Mapping[str, Mapping[str, int]]


def _states(queues: Queues) -> Iterator[tuple[dict[str, int], bool]]:
    """Yield queues by topic: with all brokers, and without each broker that does not have all of
    them.
    """
    yield {topic: sum(brokers.values()) for topic, brokers in queues.items()}, False
    for lost in sorted({broker for brokers in queues.values() for broker in brokers}):
        left = {
            topic: sum(number for broker, number in brokers.items() if broker != lost)
            for topic, brokers in queues.items()
        }
        if all(left.values()):
            yield left, True


def _queues_are_read(queues: Queues, needed: Mapping[str, float], thread: float) -> bool:
    """Return whether one thread can read a queue, whichever broker is missing."""
    return all(
        needed[topic] / number <= thread
        for state, _ in _states(queues)
        for topic, number in state.items()
    )


def _fewest_members(queues: Queues, needed: Mapping[str, float], member: float) -> int | None:
    """Return the smallest number of members with which the busiest member carries its load,
    whichever member or broker is missing.

    Return None if a member has too much load even with one queue each and a spare member.
    """
    largest = max(sum(brokers.values()) for brokers in queues.values())
    for members in range(SPARE + 1, largest + SPARE + 1):
        if all(
            busiest_rate(state, needed, members - (0 if broker_lost else SPARE)) <= member
            for state, broker_lost in _states(queues)
        ):
            return members
    return None


def _reason(bound: SizeBound, now: int, after: int, members: int, capacity: float) -> str:
    each = f"{members} members with {capacity:,.10g} messages per second each"
    return {
        THREADS_BOUND: f"{each} carry the load with one member or broker missing",
        SPARE_BOUND: "one member carries the load; the other is the spare",
        QUEUES_BOUND: (
            f"{now} queues cannot be divided finely enough: one member would have too much load"
        ),
        ORDERED_BOUND: f"one thread reads each queue: {now} queues are too few, {after} are enough",
    }[bound]
