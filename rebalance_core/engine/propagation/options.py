"""What may be chosen about simulated time."""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalance_core.checks.rules import MAX_QUEUE_NUMS
from rebalance_core.clockwork.options import ClockOptions

SEEDS = 1_000
"""With so many, p99 has ten futures beyond it."""
HANDOVER_SEEDS = 10
"""Futures to look at one by one; their rows are a hundredth of what 1,000 seeds would write."""


@dataclass(frozen=True)
class PropagationOptions:
    """What may be chosen about simulated time.

    Attributes:
        seeds: How many futures.
        first_seed: The first of them; others follow by number.
        handover_seeds: Of how many of them ``handovers`` has rows, from the first on.
        group: A glob (``*``, ``?``) of the groups wanted; None: all.
        max_queue_nums: The most queues that a topic may have on a broker.
        clock: What is assumed of timers, notices and name servers.
    """

    seeds: int = SEEDS
    first_seed: int = 0
    handover_seeds: int = HANDOVER_SEEDS
    group: str | None = None
    max_queue_nums: int = MAX_QUEUE_NUMS
    clock: ClockOptions = field(default_factory=ClockOptions)

    @property
    def handovers_before_seed(self) -> int:
        """Smaller seeds have rows in ``handovers``."""
        return self.first_seed + min(self.handover_seeds, self.seeds)

    def part(self, number: int, parts: int) -> range:
        """The seeds of one of several parts; it may be empty."""
        begin, end = (self.seeds * place // parts for place in (number, number + 1))
        return range(self.first_seed + begin, self.first_seed + end)
