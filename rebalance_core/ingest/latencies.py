"""Derives the durations of requests, the rows of ``latencies``, from log lines at the default
level.

``start()`` and ``shutdown()`` contact one broker after another (rocketmq.md §6.2), and a pass takes
one queue after another, so consecutive lines show how long each step took. The steps of a join or a
leave add up to the time that it needs to reach all brokers. No row shows these, for the reasons
given:

* notices: only one line per second is kept, which may be from the fastest client;
* member lists, locks, passes: no line is logged when the request is sent or the pass begins;
* heartbeat rounds: from 5.0 on, every twentieth request is logged, not every twentieth round;
* commits: the request is one-way, so there is no line about an answer;
* first pulls: only orderly clients log theirs, in a line without the time at which the queue was
  taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Literal

from rebalance_core.contracts.observed import (
    QUEUE_TAKEN,
    REGISTRATION,
    START_UP,
    UNREGISTRATION,
)
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.ingest.parse.wire_versions import version_of_ordinal
from rebalance_core.model.times import MINUTE_MS, SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import LatenciesBegun

LONGEST_STEP_MS = 3_000
"""ClientConfig.mqClientApiTimeout: lines farther apart are not steps of the same round."""
LONGEST_TAKE_MS = 1_000
"""From 5.2 on, a pass begins at least this long after the end of the previous one, so two queues
that a client takes within less time belong to one pass.
"""
LONGEST_START_UP_MS = 10 * MINUTE_MS
"""A registration this long after the client was created belongs to a later start of the group."""
_OWN_INSTANCE = re.compile(r"@\d+#\d+$")
"""A client id that belongs to only one consumer: ``changeInstanceNameToPID`` adds a time to the
process id (4.9 and later). Any other id may be shared, and its time may then be the start of
another group.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A log line in a round of requests: its time, broker and position."""

    at_ms: int
    broker: str
    source: str


def latency_rows(
    group: str, pieces: Iterable[Evidence], names: ProcessNames, context: ClusterContext
) -> list[LatenciesBegun]:
    """Return the latencies of a group shown by its evidence, in no particular order.

    Args:
        group: its name.
        pieces: the evidence on it, at corrected times.
        names: client ids by client log and process.
        context: the cluster's context.
    """
    names_of = {folder.place: folder.broker_name for folder in context.folders.values()}
    joins: dict[str, list[Line]] = {}
    leaves: dict[Run, list[Line]] = {}
    takes: dict[Run, list[Line]] = {}
    owners: dict[Run, str | None] = {}
    versions: dict[str, str | None] = {}
    for piece in filter(is_on_group, pieces):
        second = context.time_of(piece)
        if piece.kind == "consumer_connected":
            values = piece.values
            beat = values["beat_ms"]
            direct = not (values.get("proxy_addr") or values.get("protocol"))
            if direct and second - SECOND_MS <= beat < second + SECOND_MS:
                client_id = values["client_id"]
                joins.setdefault(client_id, []).append(Line(beat, piece.place, piece.source))
                ordinal = values["version"]
                versions[client_id] = None if ordinal is None else version_of_ordinal(ordinal)
        elif piece.kind in ("left_broker", "queue_taken") and names.is_alone(piece):
            topic = piece.values["topic"] if piece.kind == "queue_taken" else None
            run = piece.place, piece.values.get("pid"), topic
            lines = leaves if topic is None else takes
            lines.setdefault(run, []).append(Line(second, "", piece.source))
            owners[run] = names.client_of(piece)
    return [
        {
            "kind": kind,
            "consumer_group": group,
            "client_id": client_id,
            "broker_name": names_of.get(step.broker, step.broker) or None,
            "version": versions.get(client_id or ""),
            "at_ms": step.at_ms,
            "ms": float(ms),
            "source": step.source,
        }
        for kind, client_id, step, ms in chain(
            registrations(joins, context.clients_created),
            unregistrations(leaves, owners),
            queues_taken(takes, owners),
        )
    ]


Kind = Literal["START_UP", "REGISTRATION", "UNREGISTRATION", "QUEUE_TAKEN"]
Found = tuple[Kind, str | None, Line, int]
Run = tuple[str, object, str | None]
"""The place of a client's log, its process, and the topic if the lines have one."""


def rounds_of(steps: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield the lines of each round by time, each from another broker and soon after the previous
    one.
    """
    begun: list[Line] = []
    for step in sorted(steps, key=lambda step: (step.at_ms, step.broker)):
        follows = bool(begun) and step.at_ms - begun[-1].at_ms <= LONGEST_STEP_MS
        if not follows or step.broker in {line.broker for line in begun if line.broker}:
            if begun:
                yield begun
            begun = []
        begun.append(step)
    if begun:
        yield begun


def registrations(joins: dict[str, list[Line]], created: Mapping[str, int]) -> Iterator[Found]:
    """Yield the steps and the startup of each join.

    Args:
        joins: registrations by client; emptied along the way, as there may be many.
        created: when the instance of each client was made.
    """
    for client_id in list(joins):
        rounds = list(rounds_of(joins.pop(client_id)))
        yield from _start_up(client_id, rounds, created.get(client_id))
        for steps in rounds:
            for before, step in pairwise(steps):
                yield REGISTRATION, client_id, step, step.at_ms - before.at_ms


def _start_up(
    client_id: str, rounds: Iterable[list[Line]], created_ms: int | None
) -> Iterator[Found]:
    """Yield the time from the creation of a client to the last registration of its join."""
    if created_ms is None or not _OWN_INSTANCE.search(client_id):
        return
    for steps in rounds:
        if steps[0].at_ms >= created_ms:
            if steps[-1].at_ms - created_ms <= LONGEST_START_UP_MS:
                yield START_UP, client_id, steps[-1], steps[-1].at_ms - created_ms
            return


def unregistrations(
    leaves: Mapping[Run, list[Line]], owners: Mapping[Run, str | None]
) -> Iterator[Found]:
    """Yield the time from each broker's answer to a leave to the next broker's."""
    for run, lines in leaves.items():
        for steps in rounds_of(lines):
            for before, step in pairwise(steps):
                yield UNREGISTRATION, owners[run], step, step.at_ms - before.at_ms


def queues_taken(
    takes: Mapping[Run, list[Line]], owners: Mapping[Run, str | None]
) -> Iterator[Found]:
    """Yield the time from each queue that a pass takes to the next one of the topic."""
    for run, lines in takes.items():
        for before, step in pairwise(sorted(lines, key=lambda step: (step.at_ms, step.source))):
            if step.at_ms - before.at_ms < LONGEST_TAKE_MS:
                yield QUEUE_TAKEN, owners[run], step, step.at_ms - before.at_ms
