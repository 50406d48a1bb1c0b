"""Which share numbers fit the rows of those who ask a broker and pop."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from rebalance_core.explain.shared.settlement import POP, SharedSettlement
from rebalance_core.explain.shared.share_numbers import EVERYTHING, ShareNumbers
from rebalance_core.explain.shares import Shares
from rebalance_core.explain.view import Row, covers
from rebalance_core.strategies.pop import WHOLE_BROKER


def share_fits(settled: SharedSettlement) -> Iterator[SharedSettlement]:
    """The settlement with each share number that fits the rows; numbers alike, and those of one
    unbroken run, as one.

    Args:
        settled: with no share number, of a group that is not ordered.
    """
    popping = _popping(settled)
    if popping and (everything := with_share(settled, EVERYTHING)).agrees:
        yield everything
    highest = min(_steps(settled, popping), default=0)
    if highest < 1 or not with_share(settled, highest).agrees:
        return
    # A lower number lets everybody pop less, so those that fit are a run up to the highest.
    if highest == 1 or not with_share(settled, highest - 1).agrees:
        yield with_share(settled, highest)
        return
    fits = bisect_left(range(1, highest), True, key=lambda n: with_share(settled, n).agrees)
    yield with_share(settled, 1 + fits, highest)


def likeliest_shares(settled: SharedSettlement) -> Iterator[SharedSettlement]:
    """The settlement with share numbers that some rows point to, for rows that contradict."""
    if popping := _popping(settled):
        yield with_share(settled, EVERYTHING)
        steps = Counter(number for number in _steps(settled, popping) if number > 0)
        yield from (with_share(settled, number) for number, _ in steps.most_common(1))


def with_share(
    settled: SharedSettlement, number: int, up_to: int | None = None
) -> SharedSettlement:
    """The settlement with this share number, or with one up to another."""
    members = len(settled.view.client_ids)
    return replace(settled, share=ShareNumbers(number, members, len(settled.queues), up_to))


def _popping(settled: SharedSettlement) -> list[Row]:
    """Members that pop if the request mode is POP."""
    everything = with_share(settled, EVERYTHING)
    return [member for member in settled.view.members if everything.outcome(member) == POP]


def _steps(settled: SharedSettlement, popping: list[Row]) -> list[int]:
    """How many shares after its own each of them may have popped, by its rows.

    Below 1: not even the next one. Nothing where members cannot pop some of the queues only.
    """
    ids = settled.view.client_ids
    if len(ids) <= 2:
        return []
    if len(ids) > len(settled.queues):
        return [1 for _ in popping]  # all other numbers give the same
    rows, shares = settled.view.reach.get(settled.topic, {}), Shares(settled.queues, ids)
    found = []
    for member in popping:
        reached = rows.get(member["client_id"], frozenset())
        alone = len(settled.view.processes_of[member["client_id"]]) == 1
        if alone and any(queue.queue_id == WHOLE_BROKER for queue in reached):
            return [-1]  # it pops everything
        own, steps = ids.index(member["client_id"]), -1
        while steps < len(ids) - 2:
            share = shares.share({**member, "client_id": ids[(own + steps + 1) % len(ids)]})
            if isinstance(share, str) or not all(covers(reached, queue) for queue in share):
                break
            steps += 1
        found.append(steps)
    return found
