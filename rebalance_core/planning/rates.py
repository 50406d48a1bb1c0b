"""Load, backlog and catch-up when it is known how many messages come into each queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from rebalance_core.model.errors import UsageError
from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.strategies.planning_strategy import Owners

MS_PER_SECOND = 1000


@dataclass(frozen=True, slots=True)
class ConsumerRate:
    """Load of one member.

    Attributes:
        queues: Queues that it holds.
        messages_per_second: Sum over those whose rate is known.
        without_rate: Queues whose rate is not known; above 0 the sum is too low.
    """

    queues: int
    messages_per_second: float
    without_rate: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits in a queue after a window without an owner.

    Attributes:
        messages: How many waited at the end of the window.
        catch_up_seconds: From then on until none waits; inf if the consumer is never fast enough.
    """

    messages: float
    catch_up_seconds: float


def rates_at(
    rows: Iterable[Mapping[str, Any]], at_ms: int, *, cluster: str | None = None
) -> dict[MessageQueue, float]:
    """Messages per second of each queue at one instant.

    Args:
        rows: Rows of ``queue_rates`` (`contracts.planning`), in any order.
        at_ms: The instant, epoch ms UTC; a row counts from from_ms on, before to_ms.
        cluster: Only rows of this cluster; None: there is but one.

    Raises:
        UsageError: Rates that are negative or not finite, rows that overlap at the instant, or rows
            of several clusters and none was named; every mistake is named.
    """
    rates: dict[MessageQueue, float] = {}
    mistakes: list[str] = []
    clusters: set[str] = set()
    for row in rows:
        if cluster is not None and row["cluster"] != cluster:
            continue
        clusters.add(row["cluster"])
        to_ms = row.get("to_ms")
        if not row["from_ms"] <= at_ms < (inf if to_ms is None else to_ms):
            continue
        queue = MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        rate = row["messages_per_second"]
        if not (isfinite(rate) and rate >= 0):
            mistakes.append(f"{queue}: {rate!r} messages per second; expected 0 or more")
        if queue in rates:
            mistakes.append(f"{queue}: two rates at {at_ms}; the stretches of a queue may not meet")
        rates[queue] = rate
    if len(clusters) > 1:
        mistakes = [f"rates of several clusters ({', '.join(sorted(clusters))}); name one"]
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return rates


def load_per_consumer(
    owners: Owners, members: Iterable[str], rates: Mapping[MessageQueue, float]
) -> dict[str, ConsumerRate]:
    """The load of every member, in Java's order; an even number of queues is no even load.

    Args:
        owners: Queue -> client ids, e.g. ``what_if(…).after.owners``. Each owner of a queue reads
            all of it.
        members: Client ids.
        rates: Messages per second.

    >>> a, b, c = (MessageQueue("T", "broker-a", i) for i in range(3))
    >>> load_per_consumer({a: ("x",), b: ("x",), c: ("y",)}, "xyz", {a: 10.0, c: 70.0})["x"]
    ConsumerRate(queues=2, messages_per_second=10.0, without_rate=1)
    """
    held: dict[str, list[MessageQueue]] = {c: [] for c in sort_client_ids(set(members))}
    for queue, clients in owners.items():
        for client_id in clients:
            held.setdefault(client_id, []).append(queue)
    return {
        client_id: ConsumerRate(
            len(queues),
            float(sum(rates.get(queue, 0.0) for queue in queues)),
            sum(queue not in rates for queue in queues),
        )
        for client_id, queues in held.items()
    }


def backlog(messages_per_second: float, window_ms: int, capacity: float) -> Backlog:
    """Lag that builds up while a queue has no owner, and how long catching up takes.

    backlog = rate x window; catch-up = backlog / (capacity - rate). Rate and capacity are taken as
    constant, and the new owner as starting where the last one committed.

    Args:
        messages_per_second: What comes in, 0 or more.
        window_ms: How long the queue is not read: at most what `protocol.windows` has for the
            event, e.g. 3,000 for a graceful leave, 33,000 for a consumer found dead by the scan; at
            least as long as the owner is really gone.
        capacity: Messages per second that the new owner can read from this queue.

    Returns:
        Catch-up is inf if the capacity is not above the rate, 0 if nothing waits.

    Raises:
        UsageError: A negative or not finite argument.

    >>> backlog(200, 33_000, 500)
    Backlog(messages=6600.0, catch_up_seconds=22.0)
    >>> backlog(200, 33_000, 200).catch_up_seconds
    inf
    """
    named = {
        "messages_per_second": messages_per_second, "window_ms": window_ms, "capacity": capacity
    }  # fmt: skip
    wrong = [f"{name} = {n!r}: expected 0 or more" for name, n in named.items() if not 0 <= n < inf]
    if wrong:
        raise UsageError("\n".join(wrong))
    waiting = messages_per_second * window_ms / MS_PER_SECOND
    if waiting == 0:
        return Backlog(0.0, 0.0)
    spare = capacity - messages_per_second
    return Backlog(waiting, waiting / spare if spare > 0 else inf)
