"""Share numbers of POP that give one and the same result (rocketmq.md §14)."""

from __future__ import annotations

from dataclasses import dataclass

EVERYTHING = 0
"""A share number under which every client pops every broker whole; so do all below."""


@dataclass(frozen=True, slots=True)
class ShareNumbers:
    """The share numbers that nobody can tell apart by what C members of Q queues pop.

    Attributes:
        any_of: one of them.
        members: C, entries of cidAll.
        queues: Q, entries of mqAll.
        up_to: the highest of them, where the rows fit several that give different results, as
            clients have what they differ in by other processes, too.
    """

    any_of: int
    members: int
    queues: int
    up_to: int | None = None

    @property
    def is_everything(self) -> bool:
        """Every client pops every broker whole."""
        return self.any_of <= 0 or self.any_of >= self.members - 1

    @property
    def is_one_queue(self) -> bool:
        """More members than queues: each pops one."""
        return not self.is_everything and self.members > self.queues

    @property
    def exact(self) -> int | None:
        """The share number, if no other gives the same."""
        if self.is_everything or (self.is_one_queue and self.members > 3):
            return None
        return self.any_of if self.up_to in (None, self.any_of) else None

    def __str__(self) -> str:
        """In words.

        >>> str(ShareNumbers(-1, 6, 8)), str(ShareNumbers(1, 6, 3)), str(ShareNumbers(2, 6, 8))
        ('0 or less, or 5 or more', '1 to 4', '2')
        >>> str(ShareNumbers(1, 6, 8, 2))
        '1 to 2'
        """
        if self.is_everything:
            least = self.members - 1
            return "any number" if least <= 1 else f"0 or less, or {least} or more"
        if self.is_one_queue:
            return "1" if self.members == 3 else f"1 to {self.members - 2}"
        return str(self.any_of) if self.exact is not None else f"{self.any_of} to {self.up_to}"
