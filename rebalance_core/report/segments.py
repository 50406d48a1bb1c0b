"""The holders of a queue, as segments that do not overlap."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from rebalance_core.report.audit_report import OwnerSpan

State = tuple[tuple[str, int], ...] | None
"""The clients that hold a queue, by name, with their numbers of holders; () without an owner, and
None if the queue does not exist.
"""


NOBODY: State = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """A period in which a queue's state does not change."""

    from_ms: int
    to_ms: int
    state: State


def is_shared(state: State) -> bool:
    """Return True if more than one process holds the queue."""
    return state is not None and sum(holders for _, holders in state) > 1


def segments(stretches: Iterable[OwnerSpan], from_ms: int, to_ms: int) -> tuple[Segment, ...]:
    """Split the window into segments without gaps or overlaps; times outside all stretches have
    state None.
    """
    inside = [
        (max(s.from_ms, from_ms), to_ms if s.to_ms is None else min(s.to_ms, to_ms), s)
        for s in stretches
    ]
    inside = [(start, end, s) for start, end, s in inside if start < end]
    borders = sorted(
        {from_ms, to_ms} | {border for start, end, _ in inside for border in (start, end)}
    )
    starts: dict[int, list[OwnerSpan]] = {}
    ends: dict[int, list[OwnerSpan]] = {}
    for start, end, stretch in inside:
        starts.setdefault(start, []).append(stretch)
        ends.setdefault(end, []).append(stretch)
    active: Counter[OwnerSpan] = Counter()
    joined: list[Segment] = []
    for start, end in pairwise(borders):
        active.subtract(ends.get(start, ()))
        active.update(starts.get(start, ()))
        state = _state(+active)
        if joined and joined[-1].state == state:
            joined[-1] = Segment(joined[-1].from_ms, end, state)
        else:
            joined.append(Segment(start, end, state))
    return tuple(joined)


def _state(active: Mapping[OwnerSpan, int]) -> State:
    if not active:
        return None
    holders: Counter[str] = Counter()
    for stretch in active:
        if stretch.client_id is not None:
            holders[stretch.client_id] = max(holders[stretch.client_id], stretch.holders, 1)
    return tuple(sorted(holders.items()))


@dataclass(frozen=True, slots=True)
class ClientShare:
    """A client's share of the group's queue time, and its queues at the start and the end."""

    client_id: str
    share: float
    queues_first: int
    queues_last: int


def client_shares(histories: Iterable[tuple[Segment, ...]]) -> list[ClientShare]:
    """Return every client that held a queue, largest share first."""
    held: Counter[str] = Counter()
    first: Counter[str] = Counter()
    last: Counter[str] = Counter()
    whole = 0
    for history in histories:
        for segment in history:
            span = segment.to_ms - segment.from_ms
            whole += span if segment.state is not None else 0
            for client, _ in segment.state or ():
                held[client] += span
        first.update(client for client, _ in history[0].state or ())
        last.update(client for client, _ in history[-1].state or ())
    order = sorted(held, key=lambda client: (-held[client], client))
    return [ClientShare(c, held[c] / whole, first[c], last[c]) for c in order]
