"""All ways to choose one number of each of several with a given sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate


def ways(choices: Sequence[Sequence[int]], low: int, high: int) -> Iterator[tuple[int, ...]]:
    """One number of each, with a sum between low and high; the first choices first.

    Cost: no more than the numbers tried per way, as what cannot reach the sum is left out early.

    >>> list(ways([(2, 0, 1), (1, 0)], 2, 2))
    [(2, 0), (1, 1)]
    """
    if not all(choices):
        return
    fewest = list(accumulate((min(of_one) for of_one in reversed(choices)), initial=0))[::-1]
    most = list(accumulate((max(of_one) for of_one in reversed(choices)), initial=0))[::-1]

    def rest(place: int, chosen: tuple[int, ...], total: int) -> Iterator[tuple[int, ...]]:
        if total + fewest[place] > high or total + most[place] < low:
            return
        if place == len(choices):
            yield chosen
            return
        for number in choices[place]:
            yield from rest(place + 1, (*chosen, number), total + number)

    yield from rest(0, (), 0)
