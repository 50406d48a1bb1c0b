"""Deploys: all members of a group are replaced, a few at a time, as when hosts or pods are
restarted.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rebalance_core.model.queue import java_string_key
from rebalance_core.model.times import MINUTE_MS, SECOND_MS, read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.scenario.edit import LOSS_DETAILS, GroupEdit
from rebalance_core.planning.scenario.group_life import EditedMember, GroupLife, MemberData
from rebalance_core.planning.scenario.member_edits import DOWN_MS, EVERY_MS
from rebalance_core.planning.scenario.pods import (
    GRACE_MS,
    NOTHING,
    Amount,
    Pace,
    Ready,
    Start,
    Stop,
    Turn,
    amount,
    at_once,
    read_ready,
    read_start,
)
from rebalance_core.synthetic.draws import Draws

RANDOM, FIRST_FIRST, LAST_FIRST, REPLICA_SET, ORDINAL = ORDERS = (
    "random",
    "first_first",
    "last_first",
    "replica_set",
    "ordinal",
)
DEPLOYMENT, STATEFUL_SET = WORKLOADS = ("deployment", "stateful_set")
KEPT, NEW = ADDRESSES = ("kept", "new")
MEETING_STOPS_MS = 2_000
"""Members of an orderly group that stop within this time of each other may lock queues that the
others release, and these remain locked for a minute (docs/fidelity.md, P4 and P2 of the recorded
rollouts).
"""
PROGRESS_MS = 10 * MINUTE_MS
"""Kubernetes' default ``progressDeadlineSeconds``."""
_OF_PODS = (
    "start",
    "ready",
    "min_ready",
    "pause",
    "pre_stop",
    "grace",
    "progress_deadline",
    "workload",
)
_OF_PACE = ("surge", "unavailable")
_NUMBER_AT_END = re.compile(r"-(\d{1,9})(?=@|$)")


@dataclass(frozen=True, kw_only=True)
class Deploy(GroupEdit):
    """Replacement of every member: ``percent`` of them at intervals of ``every``, or at a `Pace`.

    Deploys of pods have ``surge`` or ``unavailable``, of which an omitted key counts as 0, or the
    ``workload`` of a StatefulSet, which replaces one pod at a time unless ``unavailable`` is given.
    ``down`` is the time from the end of a process, or the creation of a pod, to the join; ``start``
    draws that time for each pod.

    ``order``: random by seed; by client id as RocketMQ sorts them (the order of their shares under
    AVG), ascending or descending; as a ReplicaSet chooses pods; or from the highest ordinal of a
    StatefulSet down. The default is the workload's.

    A pod that Kubernetes stops reads on for ``pre_stop`` and then leaves; if that is at least as
    long as ``grace``, it is killed after ``grace``. With ``suspend``, the consumer is suspended for
    that time before it stops: on hosts by whoever stops it, in pods by the hook after ``pre_stop``.
    Meanwhile it pulls nothing new, its handlers finish and it commits. Only push consumers that are
    not behind a proxy have ``suspend()``.

    Client ids get another pid and nanotime, as clients make them. The address is ``kept``, as for a
    host, or ``new``, as for a pod, which is the default with a pace. Members with an instance name
    rejoin under the same id on another channel if the address is kept.
    """

    percent: float = table_keys.key(table_keys.number(0, 100), 10.0)
    every: int = table_keys.key(read_duration, EVERY_MS)
    down: int = table_keys.key(read_duration, DOWN_MS)
    start: Start | None = table_keys.key(read_start)  # noqa: RUF009  # a field, made once
    workload: str = table_keys.key(table_keys.one_of(*WORKLOADS), DEPLOYMENT)
    surge: Amount | None = table_keys.key(amount)  # noqa: RUF009  # a field, made once
    unavailable: Amount | None = table_keys.key(amount)  # noqa: RUF009  # a field, made once
    ready: Ready = table_keys.key(read_ready, 0)  # noqa: RUF009  # a field, made once
    min_ready: int = table_keys.key(read_duration, 0)
    pause: int = table_keys.key(read_duration, 0)
    pre_stop: int = table_keys.key(read_duration, 0)
    suspend: int = table_keys.key(read_duration, 0)
    grace: int = table_keys.key(read_duration, GRACE_MS)
    progress_deadline: int = table_keys.key(read_duration, PROGRESS_MS)
    order: str | None = table_keys.key(table_keys.one_of(*ORDERS))
    graceful: bool = table_keys.key(table_keys.yes_or_no, True)
    address: str | None = table_keys.key(table_keys.one_of(*ADDRESSES))

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield mistakes in the choice between a percentage and a pace."""
        present = [name for name in _OF_PACE if name in values]
        if "start" in values and "down" in values:
            yield "down", "excludes start: its median is that time"
        if values.get("workload") == STATEFUL_SET:
            if values.get("surge", 0) not in NOTHING:
                yield "surge", f"excludes workload = {STATEFUL_SET!r}, which stops a pod first"
            present.append("workload")
        if not present:
            yield from ((name, "needs surge or unavailable") for name in _OF_PODS if name in values)
            return
        for name in ("percent", "every"):
            if name in values:
                yield name, f"excludes {present[0]}: every step replaces surge + unavailable"
        if "workload" not in present and all(values.get(key, 0) in NOTHING for key in _OF_PACE):
            other = "unavailable" if present[0] == "surge" else "surge"
            yield (
                present[0],
                f"of 0 needs {other} of more than 0; otherwise no member would ever be replaced",
            )

    @property
    def has_pace(self) -> bool:
        """Return True if the controller of a workload sets the pace."""
        stated = self.surge is not None or self.unavailable is not None
        return stated or self.workload == STATEFUL_SET

    @property
    def asks_queues(self) -> bool:
        """Return True if the edit needs queue numbers for the processes in a surge."""
        return self.surge not in (None, *NOTHING)

    @property
    def detail(self) -> str | None:
        """Return how members are lost, or None if they leave."""
        return LOSS_DETAILS["crash"] if self.stop.killed else None

    @property
    def stop(self) -> Stop:
        """How a pod ends."""
        grace_ms = self.grace if self.has_pace else self.suspend + 1
        return Stop(self.pre_stop, grace_ms, self.graceful, self.suspend)

    def change(self, settings: MemberData) -> MemberData:
        """Return the settings of a successor."""
        return settings

    def turns(self, members: int, draws: Draws | None = None) -> tuple[Turn, ...]:
        """Return when each of `members` members is replaced, in order.

        Args:
            members: their number.
            draws: the random draws for the starts; None if all pods start equally fast.
        """
        if self.has_pace:
            surge, unavailable = at_once(self.surge or 0, self.unavailable or 0, members)
            start = self.start or Start(self.down, 0)
            pace = Pace(
                surge=surge,
                unavailable=unavailable,
                down_ms=start.median_ms,
                ready=self.ready,
                pause_ms=self.pause,
                spread_ms=start.stated_spread_ms,
                min_ready_ms=self.min_ready,
                end_ms=self.stop.end_ms,
                in_place=self.workload == STATEFUL_SET,
            )
            return pace.turns(members, draws)
        size = math.ceil(members * self.percent / 100)
        begins = [place // size * self.every + self.suspend for place in range(members)]
        return tuple(Turn(begin_ms, begin_ms + self.down) for begin_ms in begins)

    def deploy(self, life: GroupLife, source: str) -> None:
        """Replace the members in order."""
        members = self._ordered(life, source)
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member at that time")
        turns = self.turns(len(members), life.draws(starts_of(source)))
        new_address = self.address == NEW or (self.has_pace and self.address is None)
        suspended = self._suspended(life, members, source) if self.stop.suspended_ms else []
        for member, turn in zip(members, turns, strict=True):
            begin_ms = turn.begin_ms if turn.joins_first else turn.stop_ms
            if member in suspended:
                life.after(turn.stop_ms - self.stop.suspended_ms, life.suspend, member, source)
            life.after(
                begin_ms,
                life.replace,
                member,
                source,
                turn.join_ms - begin_ms,
                turn.stays_ms if turn.joins_first else None,
                self.detail,
                self.change,
                new_address,
            )
        ordered = life.ordered and self.detail is None
        for warning in warnings_of(turns, life.queues, ordered=ordered):
            life.log.warn(f"{source}: {life.consumer_group}: {warning}")
        for warning in self._warnings(turns):
            life.log.warn(f"{source}: {life.consumer_group}: {warning}")

    @staticmethod
    def _suspended(
        life: GroupLife, members: Sequence[EditedMember], source: str
    ) -> list[EditedMember]:
        """Return the members that have ``suspend()``; warn about those that do not."""
        without = {member: life.without_suspend(member) for member in members}
        suspended = [member for member in members if without[member] is None]
        none = "so none is suspended" if not suspended else "so these are not suspended"
        for kind in sorted({kind for kind in without.values() if kind is not None}):
            life.log.warn(f"{source}: {life.consumer_group}: {kind} have no suspend(), {none}")
        return suspended

    def _warnings(self, turns: tuple[Turn, ...]) -> Iterator[str]:
        """Yield warnings about settings that the file leaves open, and problems that Kubernetes
        will report.
        """
        if self.start is not None and self.start.spread_ms is None:
            spread_s = self.start.stated_spread_ms / SECOND_MS
            yield f"start states no spread; {spread_s:.1f} s is assumed"
        if not self.has_pace:
            return
        joins = sorted({0, *(turn.join_ms for turn in turns)})
        longest_ms = max((later - earlier for earlier, later in pairwise(joins)), default=0)
        if longest_ms > self.progress_deadline:
            yield (
                f"no pod joins for {longest_ms // SECOND_MS} s, so Kubernetes reports "
                f"ProgressDeadlineExceeded after {self.progress_deadline // SECOND_MS} s; "
                "the rollout goes on"
            )
        if self.stop.killed_in_hook:
            yield self.stop.killed_in_hook

    def _ordered(self, life: GroupLife, source: str) -> list[EditedMember]:
        order = self.order or (
            RANDOM
            if not self.has_pace
            else ORDINAL
            if self.workload == STATEFUL_SET
            else REPLICA_SET
        )
        shuffled = life.draws(f"{source}/order").shuffled(life.members())
        if order == RANDOM:
            return shuffled
        if order == REPLICA_SET:
            # younger pods first, by powers of two of their age, and among equals by UID
            return sorted(shuffled, key=lambda member: life.age_ms(member).bit_length())
        if order == ORDINAL:
            return _from_the_last_ordinal(life)
        by_id = sorted(life.members(), key=lambda member: java_string_key(member.key[0]))
        return by_id if order == FIRST_FIRST else by_id[::-1]


def starts_of(source: str) -> str:
    """Return the purpose of the draws for an edit's starts."""
    return f"{source}/starts"


def _from_the_last_ordinal(life: GroupLife) -> list[EditedMember]:
    """Return the members from the highest ordinal down.

    The ordinal is the number at the end of a host or instance name, ``orders-3``. If a name has
    none, the members are assumed to have joined in the order of their ordinals.
    """
    members = life.members()
    named = [_NUMBER_AT_END.findall(member.key[0]) for member in members]
    if all(named):
        pairs = zip(members, named, strict=True)
        return [m for m, _ in sorted(pairs, key=lambda pair: -int(pair[1][-1]))]
    return sorted(members, key=life.age_ms)


def warnings_of(turns: tuple[Turn, ...], queues: int | None, *, ordered: bool) -> Iterator[str]:
    """Yield warnings about a deploy's hidden costs and about missing benefits.

    Args:
        turns: the turns of its members.
        queues: the number of queues of the largest topic; None: unknown.
        ordered: whether its members are orderly and stop gracefully.
    """
    if queues is not None and queues <= len(turns) and any(turn.joins_first for turn in turns):
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
    """A restart of the same program, or, with ``version``, with that version of the client
    library.
    """

    KIND = "rolling_restart"

    how: str | None = table_keys.key(table_keys.one_of(*LOSS_DETAILS))
    version: str | None = table_keys.key(table_keys.version)

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield mistakes, including two keys that both state how members stop."""
        yield from super().contradictions(values)
        if "how" in values and "graceful" in values:
            yield "graceful", "excludes how: use only one of them"

    @property
    def detail(self) -> str | None:
        """Return how members are lost, as stated by ``how`` or ``graceful``."""
        return super().detail if self.how is None else LOSS_DETAILS[self.how]

    def change(self, settings: MemberData) -> MemberData:
        """Return the same settings with the version."""
        return settings if self.version is None else settings | {"version": self.version}

    def on_group(self, life: GroupLife, source: str) -> None:
        """Restart the members; those that join later have the version."""
        if self.version is not None:
            life.join_rules.append(self.change)
        self.deploy(life, source)


AT_ONCE, ROLLING = "at_once", "rolling"


@dataclass(frozen=True, kw_only=True)
class SwitchStrategy(Deploy):
    """A switch of the strategy: ``at_once`` for the same members, or ``rolling`` as a deploy.

    Until a deploy has replaced the last member, members allocate by different strategies. Members
    that join later have the new strategy. With ``surge`` or ``unavailable``, the switch is rolling.
    """

    KIND = "switch_strategy"

    strategy: str = table_keys.needed(table_keys.strategy)
    how: str | None = table_keys.key(table_keys.one_of(AT_ONCE, ROLLING))

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield mistakes, including a pace given for an immediate switch."""
        yield from super().contradictions(values)
        if values.get("how") == AT_ONCE:
            for name in ("surge", "unavailable"):
                if name in values:
                    yield name, f'needs how = "{ROLLING}"'
        paced = any(name in values for name in ("surge", "unavailable", "workload"))
        if "suspend" in values and values.get("how") != ROLLING and not paced:
            yield "suspend", f'needs how = "{ROLLING}", or surge or unavailable'

    def on_group(self, life: GroupLife, source: str) -> None:
        """Switch current members and those that join later."""
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
