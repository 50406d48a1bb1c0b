"""MEMBER_FLAPS: a member comes and goes again and again, and everybody rebalances each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.audit.case import (
    PERSISTENT_MS,
    Finding,
    GroupCase,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.model.times import HOUR_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

FLAPS = 5
"""So many short stays in a row are no deployment that was repeated."""


@dataclass(frozen=True, slots=True)
class Stay:
    """One process of a client id, from its join until it left or was lost."""

    client_id: str
    from_ms: int
    to_ms: int


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding for each host with many short stays, one soon after the other.

    A short stay ended before the group had surely settled after its begin.
    """
    for host, stays in sorted(_short_stays(case).items()):
        run: list[Stay] = []
        for stay in stays:
            if run and stay.from_ms - run[-1].to_ms > HOUR_MS:
                yield from _finding(case, host, run)
                run = []
            run.append(stay)
        yield from _finding(case, host, run)


def _short_stays(case: GroupCase) -> dict[str, list[Stay]]:
    """Host (what a client id has before @) -> its short stays in order.

    Lives of one client id that overlap are one: connections that no line of its join ties together.
    """
    lives: dict[tuple[str, str], list[int | None]] = {}
    for row in sorted(case.rows("memberships"), key=lambda one: one["from_ms"]):
        life = lives.setdefault((row["client_id"], row["channel_id"] or ""), [row["from_ms"], None])
        life[1] = row["to_ms"]
    merged: dict[str, list[list[int | None]]] = {}
    for (client_id, _), (from_ms, to_ms) in lives.items():
        of_id = merged.setdefault(client_id, [])
        before = of_id[-1][1] if of_id else 0
        if of_id and (before is None or (from_ms or 0) < before):
            of_id[-1][1] = None if before is None or to_ms is None else max(before, to_ms)
        else:
            of_id.append([from_ms, to_ms])
    stays: dict[str, list[Stay]] = {}
    for client_id, spans in merged.items():
        for from_ms, to_ms in spans:
            if from_ms is not None and to_ms is not None and to_ms - from_ms <= PERSISTENT_MS:
                host = client_id.partition("@")[0]
                stays.setdefault(host, []).append(Stay(client_id, from_ms, to_ms))
    return {host: sorted(own, key=lambda stay: stay.from_ms) for host, own in stays.items()}


def _finding(case: GroupCase, host: str, stays: list[Stay]) -> Iterator[Finding]:
    if len(stays) < FLAPS:
        return
    first_ms, last_ms = stays[0].from_ms, stays[-1].to_ms
    over = case.run.end_ms - last_ms > HOUR_MS
    ids = sorted({stay.client_id for stay in stays})
    what = (
        f"{ids[0]} connected anew and was gone again {plural(len(stays), 'time')}"
        if len(ids) == 1
        else f"{plural(len(ids), 'process')} of {host} joined and went {plural(len(stays), 'time')}"
    )
    longest = max(stay.to_ms - stay.from_ms for stay in stays)
    yield Finding(
        f"{what} from {utc(first_ms)} to {utc(last_ms)}, each for {lasting(longest)} at most: "
        "all members divide the queues anew each time.",
        {"host": host, "stays": str(len(stays)), "client_ids": listed(ids)},
        severity=INFO if over else WARNING,
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=first_ms,
        last_ms=last_ms,
    )


RULE = Rule(
    "MEMBER_FLAPS",
    WARNING,
    "Processes of one host join and go again within minutes, time after time: a container in a "
    "crash loop, or a connection that keeps breaking. Each coming and each going moves queues of "
    "the whole group, and what was not committed yet is read again.",
    "memberships",
    "Look into the log of the host named for why the process ends (or its connection breaks); keep "
    "it stopped until that is mended.",
    find,
)
