"""EXPIRED_WHILE_ALIVE: a broker gave a member up that lived on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, lasting, listed, plural
from rebalance_core.audit.dumps import number
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LOST, EXPIRED
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

RARE_BEATS = (
    "Set heartbeatBrokerInterval of the client below 120 s (channelExpiredTimeout of the broker); "
    "the default is 30 s."
)
_OF_ONE_PROCESS = re.compile(r"@\d+#-?\d+(?:@|$)")
"""The instance name that clients make: process id and nanoseconds (ClientConfig)."""
OFTEN = 2
"""Once may be a pause of the process or of the network; again is not chance."""


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding for each client id that expired and was back under the same id."""
    intervals = _intervals(case)
    for client_id, pauses in sorted(pauses_of(case).items()):
        longest = max(back - lost for lost, back, _ in pauses)
        brokers = sorted({broker for _, _, broker in pauses if broker})
        where = f" by {listed(brokers, 3)}" if brokers else ""
        beat_ms = intervals.get(client_id, 0)
        rare = beat_ms > CHANNEL_EXPIRY_MS
        why = (
            f"It sends heartbeats each {lasting(beat_ms)} (heartbeatBrokerInterval)."
            if rare
            else "It was paused or cut off, or its timers were blocked."
        )
        yield Finding(
            f"{client_id} was given up {plural(len(pauses), 'time')}{where} although it lived: no "
            f"heartbeat came for {lasting(CHANNEL_EXPIRY_MS)}, and it was back up to "
            f"{lasting(longest)} later ({listed([utc(lost) for lost, _, _ in pauses], 3)}). {why}",
            {"times": str(len(pauses))} | ({"interval_ms": str(beat_ms)} if rare else {}),
            severity=WARNING if rare or len(pauses) >= OFTEN else INFO,
            remedy=RARE_BEATS if rare else None,
            broker_name=brokers[0] if len(brokers) == 1 else None,
            client_id=client_id,
            first_ms=pauses[0][0],
            last_ms=pauses[-1][1],
        )


def _intervals(case: GroupCase) -> dict[str, int]:
    """The heartbeatBrokerInterval of each client that states one of its own, ms."""
    stated = {
        str(row["client_id"]): int(row["heartbeat_broker_interval_ms"])
        for row in case.ordered_events
        if row.get("heartbeat_broker_interval_ms")
    }
    return stated | {
        str(fact["client_id"]): number(fact, "interval_ms")
        for fact in case.facts("HEARTBEAT_INTERVAL")
    }


def pauses_of(case: GroupCase) -> dict[str, list[tuple[int, int, str | None]]]:
    """Client id -> (given up, back, by the broker that alone did) in order, epoch ms.

    An id that is not unique to a process, as with a fixed instance name, says nothing: a new
    process has it too.
    """
    given_up: dict[tuple[str, str | None], Row] = {}
    pauses: dict[str, list[tuple[int, int, str | None]]] = {}
    for row in case.ordered_events:
        client_id = row["client_id"]
        if client_id is None or not _OF_ONE_PROCESS.search(client_id):
            continue
        where = (client_id, row["broker_name"])
        if row["event_type"] == CONSUMER_LOST and row["detail"] == EXPIRED:
            given_up[where] = row
        elif row["event_type"] == CONSUMER_JOIN and where in given_up:
            lost_ms = given_up.pop(where)["event_ms"]
            pauses.setdefault(client_id, []).append((lost_ms, row["event_ms"], where[1]))
    return pauses


RULE = Rule(
    "EXPIRED_WHILE_ALIVE",
    WARNING,
    "A broker heard nothing of a member for two minutes and gave it up, and the same process came "
    "back. Meanwhile others read its queues while it may have gone on reading them, too. INFO if "
    "it happened once.",
    "CONSUMER_LOST (EXPIRED) and CONSUMER_JOIN of cluster_events, facts HEARTBEAT_INTERVAL",
    "Look for long pauses of the process (GC, a frozen container), for losses between it and the "
    "broker, and at STARVED_TIMERS: one thread sends all heartbeats.",
    find,
)
