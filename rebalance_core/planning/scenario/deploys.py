"""Deploys: all members of a group are replaced, a few at a time, as hosts or pods are restarted."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rebalance_core.model.queue import java_string_key
from rebalance_core.model.times import read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.scenario.edit import LOSS_DETAILS, GroupEdit
from rebalance_core.planning.scenario.group_life import EditedMember, GroupLife, MemberData
from rebalance_core.planning.scenario.member_edits import DOWN_MS, EVERY_MS
from rebalance_core.planning.table_keys import MOST_CONSUMERS

Amount = int | str
"""A number, or a share of the members as text: ``25%``."""
NOTHING: tuple[Amount, ...] = (0, "0%")
_PERCENT = re.compile(r"(\d{1,3})%")


def amount(value: Any) -> Amount:
    """Return a number of members, or a percentage as text."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_CONSUMERS:
        return value
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent is None or int(percent[1]) > 100:
        raise ValueError(f'expected a whole number from 0 to {MOST_CONSUMERS:,} or "0%" to "100%"')
    return f"{int(percent[1])}%"


def at_once(surge: Amount, unavailable: Amount, members: int) -> tuple[int, int]:
    """Return how many of `members` members may be surplus, and how many may be missing.

    Percentages of surge are rounded up, those of unavailable down, and if both are 0, one member
    may be missing (``ResolveFenceposts`` of Kubernetes).

    >>> at_once("25%", "25%", 10), at_once(0, "5%", 10)
    ((3, 2), (0, 1))
    """

    def resolved(value: Amount, rounded: Callable[[float], int]) -> int:
        if isinstance(value, int):
            return value
        return rounded(int(value.removesuffix("%")) * members / 100)

    more, fewer = resolved(surge, math.ceil), resolved(unavailable, math.floor)
    return more, min(fewer, members) if more or fewer else 1


@dataclass(frozen=True, slots=True)
class Turn:
    """Times at which a member is replaced, in ms after the begin of the deploy.

    Attributes:
        begin_ms: its successor is started, and unless the successor joins first, the member stops.
        join_ms: the successor joins.
        stays_ms: how long the member stays beside a successor that joins first; None: not at all.
    """

    begin_ms: int
    join_ms: int
    stays_ms: int | None = None

    @property
    def stop_ms(self) -> int:
        """When the member stops."""
        return self.begin_ms if self.stays_ms is None else self.join_ms + self.stays_ms


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of a deploy, step by step, if all processes take equally long.

    A step stops ``unavailable`` members and starts as many processes and ``surge`` more. They join
    after ``down_ms`` and are ready ``ready_ms`` later; then ``surge`` more members stop. The next
    step begins ``pause_ms`` after that. Without a pause a Deployment whose pods start equally fast
    behaves like this: whenever surge + unavailable are ready, it removes and creates that number.
    """

    surge: int
    unavailable: int
    down_ms: int
    ready_ms: int = 0
    pause_ms: int = 0

    def turns(self, members: int) -> tuple[Turn, ...]:
        """Return the turn of each member, in order."""
        size, ready_ms = self.surge + self.unavailable, self.down_ms + self.ready_ms
        turns = []
        for place in range(members):
            step, within = divmod(place, size)
            begin_ms = step * (ready_ms + self.pause_ms)
            stays_ms = None if within < self.unavailable else self.ready_ms
            turns.append(Turn(begin_ms, begin_ms + self.down_ms, stays_ms))
        return tuple(turns)


RANDOM, FIRST_FIRST, LAST_FIRST = ORDERS = ("random", "first_first", "last_first")
KEPT, NEW = ADDRESSES = ("kept", "new")
MEETING_STOPS_MS = 2_000
"""Members of an orderly group that stop within this time of each other may lock queues that the
others release, and no process frees these for a minute (docs/fidelity.md, P4 and P2 of the
recorded rollouts).
"""


@dataclass(frozen=True, kw_only=True)
class Deploy(GroupEdit):
    """Replacement of every member: ``percent`` of them at intervals of ``every``, or by a `Pace`.

    Deploys of pods have ``surge`` or ``unavailable``; an omitted key counts as 0. ``down`` is the
    time from the end of a process, or the begin of a process that joins first, to the join of the
    new process.

    ``order``: by the seed, or by client id as RocketMQ sorts them, which is the order of their
    shares under AVG, ascending or descending.

    Client ids change as the clients make them, to another pid and nanotime. The address is
    ``kept``, as that of a host, or ``new``, as that of a pod, which is the default with a pace.
    Members with an instance name rejoin under the same id on another channel where the address is
    kept.
    """

    percent: float = table_keys.key(table_keys.number(0, 100), 10.0)
    every: int = table_keys.key(read_duration, EVERY_MS)
    down: int = table_keys.key(read_duration, DOWN_MS)
    surge: Amount | None = table_keys.key(amount)  # noqa: RUF009  # a field, made once
    unavailable: Amount | None = table_keys.key(amount)  # noqa: RUF009  # a field, made once
    ready_after: int = table_keys.key(read_duration, 0)
    pause: int = table_keys.key(read_duration, 0)
    order: str = table_keys.key(table_keys.one_of(*ORDERS), RANDOM)
    graceful: bool = table_keys.key(table_keys.yes_or_no, True)
    address: str | None = table_keys.key(table_keys.one_of(*ADDRESSES))

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield mistakes in the choice between percent and a pace."""
        present = [name for name in ("surge", "unavailable") if name in values]
        if not present:
            of_pace = [name for name in ("ready_after", "pause") if name in values]
            yield from ((name, "needs surge or unavailable") for name in of_pace)
            return
        for name in ("percent", "every"):
            if name in values:
                yield name, f"excludes {present[0]}: every step replaces surge + unavailable"
        if all(values.get(name, 0) in NOTHING for name in ("surge", "unavailable")):
            other = "unavailable" if present[0] == "surge" else "surge"
            yield (
                present[0],
                f"of 0 needs {other} of more than 0; otherwise no member would ever be replaced",
            )

    @property
    def has_pace(self) -> bool:
        """Whether surge and unavailable set the pace."""
        return self.surge is not None or self.unavailable is not None

    @property
    def asks_queues(self) -> bool:
        """Whether it needs queue numbers, for the processes of a surge."""
        return self.surge not in (None, *NOTHING)

    @property
    def detail(self) -> str | None:
        """How members are lost; None: they leave."""
        return None if self.graceful else LOSS_DETAILS["crash"]

    def change(self, settings: MemberData) -> MemberData:
        """Return the settings of a successor."""
        return settings

    def turns(self, members: int) -> tuple[Turn, ...]:
        """Return when each of `members` members is replaced, in order."""
        if self.has_pace:
            surge, unavailable = at_once(self.surge or 0, self.unavailable or 0, members)
            pace = Pace(surge, unavailable, self.down, self.ready_after, self.pause)
            return pace.turns(members)
        size = math.ceil(members * self.percent / 100)
        begins = [place // size * self.every for place in range(members)]
        return tuple(Turn(begin_ms, begin_ms + self.down) for begin_ms in begins)

    def deploy(self, life: GroupLife, source: str) -> None:
        """Replace the members in order."""
        members = self._ordered(life, source)
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member at that time")
        turns = self.turns(len(members))
        new_address = self.address == NEW or (self.has_pace and self.address is None)
        for member, turn in zip(members, turns, strict=True):
            life.after(
                turn.begin_ms, life.replace, member, source, turn.join_ms - turn.begin_ms,
                turn.stays_ms, self.detail, self.change, new_address,
            )  # fmt: skip
        ordered = life.ordered and self.detail is None
        for warning in warnings_of(turns, life.queues, ordered=ordered):
            life.log.warn(f"{source}: {life.consumer_group}: {warning}")

    def _ordered(self, life: GroupLife, source: str) -> list[EditedMember]:
        if self.order == RANDOM:
            return life.draws(f"{source}/order").shuffled(life.members())
        by_id = sorted(life.members(), key=lambda member: java_string_key(member.key[0]))
        return by_id if self.order == FIRST_FIRST else by_id[::-1]


def warnings_of(turns: tuple[Turn, ...], queues: int | None, *, ordered: bool) -> Iterator[str]:
    """Yield warnings of a deploy's hidden costs and of benefits that it lacks.

    Args:
        turns: of its members.
        queues: the number of queues of the largest topic; None: unknown.
        ordered: its members are orderly, and stop gracefully.
    """
    if (
        queues is not None
        and queues <= len(turns)
        and any(turn.stays_ms is not None for turn in turns)
    ):
        yield (
            f"the surge pods get no queue: there are {queues} queues for {len(turns)} "
            "members and the surge; their joins and leaves only move queues"
        )
    stops = sorted(turn.stop_ms for turn in turns)
    between = [later - earlier for earlier, later in pairwise(stops)]
    if ordered and between and min(between) < MEETING_STOPS_MS:
        yield (
            f"orderly members stop within {MEETING_STOPS_MS // 1000} s of each other: "
            "queues that a stopping member locks may have no owner for a minute"
        )


@dataclass(frozen=True, kw_only=True)
class RollingRestart(Deploy):
    """A restart of the same program, or with ``version`` with a client library of that version."""

    KIND = "rolling_restart"

    how: str | None = table_keys.key(table_keys.one_of(*LOSS_DETAILS))
    version: str | None = table_keys.key(table_keys.version)

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield mistakes, also if two keys state how members stop."""
        yield from super().contradictions(values)
        if "how" in values and "graceful" in values:
            yield "graceful", "excludes how: use only one of them"

    @property
    def detail(self) -> str | None:
        """As ``how`` or ``graceful`` states."""
        return super().detail if self.how is None else LOSS_DETAILS[self.how]

    def change(self, settings: MemberData) -> MemberData:
        """Return the same settings with the version."""
        return settings if self.version is None else settings | {"version": self.version}

    def on_group(self, life: GroupLife, source: str) -> None:
        """Restart the members; later joins have the version."""
        if self.version is not None:
            life.join_rules.append(self.change)
        self.deploy(life, source)


AT_ONCE, ROLLING = "at_once", "rolling"


@dataclass(frozen=True, kw_only=True)
class SwitchStrategy(Deploy):
    """A switch of the strategy: ``at_once`` under the same members, or ``rolling`` as a deploy.

    Until a deploy has replaced the last member, members allocate by different strategies. Later
    joins have the new strategy. With ``surge`` or ``unavailable`` it is rolling.
    """

    KIND = "switch_strategy"

    strategy: str = table_keys.needed(table_keys.strategy)
    how: str | None = table_keys.key(table_keys.one_of(AT_ONCE, ROLLING))

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield mistakes, also if a switch at once has a pace."""
        yield from super().contradictions(values)
        if values.get("how") == AT_ONCE:
            for name in ("surge", "unavailable"):
                if name in values:
                    yield name, f'needs how = "{ROLLING}"'

    def on_group(self, life: GroupLife, source: str) -> None:
        """Switch current members and later joins."""
        life.join_rules.append(self.change)
        if self.how == ROLLING or self.has_pace:
            self.deploy(life, source)
            return
        members = life.draws(f"{source}/order").shuffled(life.members())
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member at that time")
        for member in members:
            life.rejoin(member, self.change, source)

    def change(self, settings: MemberData) -> MemberData:
        """Return the same settings with the strategy."""
        return settings | {"strategy": self.strategy}
