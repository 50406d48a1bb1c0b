"""Members that a broker expired although they were still running."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit import dumps
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.recovery import went_after
from rebalance_core.audit.subjects import EVENTS, ROUTES
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LOST, EXPIRED
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerEventsRow


RARE_BEATS = (
    "Set the client's heartbeatBrokerInterval below 120 s (the broker's channelExpiredTimeout); "
    "the default is 30 s."
)


_OF_ONE_PROCESS = re.compile(r"@\d+#-?\d+(?:@|$)")
"""The instance name that clients generate: process id and nanoseconds (ClientConfig)."""


OFTEN = 2
"""One occurrence may be a pause of the process or network; more are not chance."""


def find_expired_alive(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each client id that expired and came back."""
    intervals = _intervals(group)
    for client_id, pauses in sorted(pauses_of(group).items()):
        longest = max(pause.back_ms - pause.expired_ms for pause in pauses)
        # several brokers count once
        ends = accumulate((pause.back_ms for pause in pauses), max)
        often = 1 + sum(
            pause.expired_ms > end for pause, end in zip(pauses[1:], ends, strict=False)
        )
        times = listed([utc(pause.expired_ms) for pause in pauses], 3)
        brokers = sorted({pause.broker for pause in pauses if pause.broker})
        where = f" by {listed(brokers, 3)}" if brokers else ""
        beat_ms = intervals.get(client_id, 0)
        rare = beat_ms > CHANNEL_EXPIRY_MS
        # the interval was that of the process
        went_ms = went_after(group, client_id, pauses[-1].back_ms) if rare else None
        why = (
            f"It sends a heartbeat every {lasting(beat_ms)} (heartbeatBrokerInterval)."
            if rare
            else "The process paused, lost its connection, or had blocked timers."
        )
        yield Finding(
            f"{client_id} was expired {plural(len(pauses), 'time')}{where} although it was "
            f"alive: no heartbeat arrived for {lasting(CHANNEL_EXPIRY_MS)}, and it was back up "
            f"to {lasting(longest)} later ({times}). {why}",
            {"times": str(len(pauses))} | ({"interval_ms": str(beat_ms)} if rare else {}),
            severity=WARNING if rare or often >= OFTEN else INFO,
            remedy=RARE_BEATS if rare else None,
            broker_name=brokers[0] if len(brokers) == 1 else None,
            client_id=client_id,
            first_ms=pauses[0].expired_ms,
            last_ms=pauses[-1].back_ms if went_ms is None else went_ms,
            ended_by="" if went_ms is None else f"{client_id} went",
        )


def _intervals(group: GroupSnapshot) -> dict[str, int]:
    """Return the heartbeatBrokerInterval in ms of each client that sets it."""
    stated = {
        row["client_id"]: row["heartbeat_broker_interval_ms"]
        for row in group.consumer_events
        if row["heartbeat_broker_interval_ms"]
    }
    return stated | {
        fact["client_id"]: dumps.number(fact["details"].get("interval_ms"))
        for fact in group.facts["HEARTBEAT_INTERVAL"]
    }


class Pause(NamedTuple):
    """The time from a live member's expiry until it registered again, epoch ms.

    ``broker``: the broker that expired it, if only one did.
    """

    expired_ms: int
    back_ms: int
    broker: str | None


def pauses_of(group: GroupSnapshot) -> dict[str, list[Pause]]:
    """Return the pauses of each client id, in the order of their ends.

    An id that is not unique to a process, as with a fixed instance name, is no evidence, because a
    new process has it too.
    """
    given_up: dict[tuple[str, str | None], ConsumerEventsRow] = {}
    pauses: dict[str, list[Pause]] = {}
    for row in group.consumer_events:
        client_id = row["client_id"]
        if not _OF_ONE_PROCESS.search(client_id):
            continue
        where = (client_id, row["broker_name"])
        if row["event_type"] == CONSUMER_LOST and row["detail"] == EXPIRED:
            given_up[where] = row
        elif row["event_type"] == CONSUMER_JOIN and where in given_up:
            lost_ms = given_up.pop(where)["event_ms"]
            pauses.setdefault(client_id, []).append(Pause(lost_ms, row["event_ms"], where[1]))
    return pauses


EXPIRED_ALIVE = Rule(
    "EXPIRED_WHILE_ALIVE",
    WARNING,
    "A broker received no heartbeat from a member for two minutes and expired it, then the same "
    "process came back. Meanwhile other members read its queues. INFO if it happened once.",
    "CONSUMER_LOST, CONSUMER_JOIN, HEARTBEAT_INTERVAL",
    "Look for long pauses of the process (GC, a frozen container), packet loss between it and the "
    "broker, and STARVED_TIMERS.",
    find_expired_alive,
    reads=(EVENTS, ROUTES),
)
