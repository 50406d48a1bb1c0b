"""Members that come and go again and again, so that all members rebalance each time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.audit.group_snapshot import (
    PERSISTENT_MS,
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.subjects import EVENTS, ROUTES
from rebalance_core.model.times import HOUR_MS, utc
from rebalance_core.model.verdicts import WARNING

FLAPS = 5
"""This many short stays in a row are not a repeated deployment."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A process of a client id, from its join until it left or was lost."""

    client_id: str
    from_ms: int
    to_ms: int


def find_flapping_members(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each host with many short stays in quick succession.

    A short stay ended before the group had certainly settled after its start.
    """
    for host, memberships in sorted(_short_memberships(group).items()):
        run: list[Membership] = []
        for membership in memberships:
            if run and membership.from_ms - run[-1].to_ms > HOUR_MS:
                yield from _finding(group, host, run)
                run = []
            run.append(membership)
        yield from _finding(group, host, run)


def _short_memberships(group: GroupSnapshot) -> dict[str, list[Membership]]:
    """Return host (the part of a client id before @) -> its short stays in order.

    Overlapping lifetimes of one client id count as one: no log line of a join connects them.
    """
    lives: dict[tuple[str, str], list[int | None]] = {}
    for row in sorted(group.tables["memberships"], key=lambda row: row["from_ms"]):
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
    memberships: dict[str, list[Membership]] = {}
    for client_id, spans in merged.items():
        for from_ms, to_ms in spans:
            if from_ms is not None and to_ms is not None and to_ms - from_ms <= PERSISTENT_MS:
                host = client_id.partition("@")[0]
                memberships.setdefault(host, []).append(Membership(client_id, from_ms, to_ms))
    return {
        host: sorted(of_host, key=lambda membership: membership.from_ms)
        for host, of_host in memberships.items()
    }


def _finding(group: GroupSnapshot, host: str, memberships: list[Membership]) -> Iterator[Finding]:
    if len(memberships) < FLAPS:
        return
    first_ms, last_ms = memberships[0].from_ms, memberships[-1].to_ms
    over = group.run.end_ms - last_ms > HOUR_MS
    ids = sorted({membership.client_id for membership in memberships})
    times = plural(len(memberships), "time")
    what = (
        f"{ids[0]} reconnected and left again {times}"
        if len(ids) == 1
        else f"{plural(len(ids), 'process')} of {host} joined and left {times}"
    )
    longest = max(membership.to_ms - membership.from_ms for membership in memberships)
    yield Finding(
        f"{what} from {utc(first_ms)} to {utc(last_ms)}, each for at most {lasting(longest)}: "
        "each change makes all members rebalance.",
        {"host": host, "stays": str(len(memberships)), "client_ids": listed(ids)},
        client_id=ids[0] if len(ids) == 1 else None,
        first_ms=first_ms,
        last_ms=last_ms,
        ended_by="no process joined and left as briefly in the following hour" if over else "",
    )


FLAPPING_MEMBERS = Rule(
    "MEMBER_FLAPS",
    WARNING,
    "Processes on one host join and leave repeatedly within minutes: a crash loop, or a "
    "connection that keeps breaking. Each change moves queues of the whole group, and consumers "
    "read uncommitted messages again.",
    "memberships",
    "Check the named host's log for why the process ends or its connection breaks. Keep it "
    "stopped until that is fixed.",
    find_flapping_members,
    reads=(EVENTS, ROUTES),
)
