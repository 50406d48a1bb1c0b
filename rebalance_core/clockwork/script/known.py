"""What somebody knows of a group's time beside its log; no input table has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stop:
    """A stretch in which a process stood still: stopped, or in a long garbage collection.

    Attributes:
        life: number of its life in the script.
        since_us: microseconds since the epoch.
        until_us: when it went on.
    """

    life: int
    since_us: int
    until_us: int


@dataclass(frozen=True, slots=True)
class Known:
    """Knowledge of whoever watched a cluster: a recorder, who did all of it himself.

    A broker's start in the log is then when name servers heard of it, to the millisecond, and no
    process was put out of step but by its stops.

    Attributes:
        stops: all that there were. They hold up passes, and count for nothing where a group is not
            followed, from four minutes after a change to the next one.
    """

    stops: tuple[Stop, ...] = ()

    def due_us(self, life: int, at_us: int) -> int:
        """When a process does what is due at a time."""
        held_up = (s.until_us for s in self.stops if s.life == life and s.since_us <= at_us)
        return max((until_us for until_us in held_up if until_us > at_us), default=at_us)
