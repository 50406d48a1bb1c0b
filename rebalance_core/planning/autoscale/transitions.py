"""Plays a group's steps from one number of members to another, with simulated clients.

At rest, only the number of members matters, so a step is played once for all times, policies and
futures: members are renumbered, and the phases of their timers are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.times import MINUTE_MS, SECOND_MS
from rebalance_core.planning.client_ids import (
    DEFAULT_TEMPLATE,
    TEMPLATES,
    address_of,
    host_of,
)
from rebalance_core.planning.rollout.futures import DeployedGroup
from rebalance_core.planning.scenario.edit import LOSS_DETAILS
from rebalance_core.planning.scenario.pods import Start, Stop
from rebalance_core.replay.history import GroupHistory
from rebalance_core.synthetic.draws import Draws
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.handovers import first_pulls_ms
from rebalance_core.timing.holdings import MeasuredHoldings, holdings_of
from rebalance_core.timing.measured import broadcasts
from rebalance_core.timing.messages import ONE_MORE, ONE_MORE_ORDERLY
from rebalance_core.timing.options import SECOND_US, ClockOptions
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds

NO_MEMBER = -1
_CHANNEL = "pod-"
"""The prefix of a pod's channel id, followed by its number."""
REST_MS = 10 * MINUTE_MS
"""How long before the first step the members of a group at rest joined."""
VARIANTS = 2
"""The number of simulated plays that a future has for the same steps, used in turn."""
KEPT_BYTES = 150_000_000
"""Maximum memory for played steps; beyond it they are discarded."""
_LEAVES_APART_MS = 1
"""The time between the signals to pods that stop at the same decision."""

Change = tuple[int, int]
"""Seconds after the first step, and the change in the number of replicas."""


@dataclass(frozen=True, eq=False)
class Transition:
    """The effect of steps on the queues in S plays, from the first step on.

    Attributes:
        members: the number of members at rest at the end.
        length_s: the time until all plays are at rest.
        over_s: (S,) the time until each play is at rest and no member takes or gives up a queue.
        owner: (S, seconds, queues) the number of the member that reads; `NO_MEMBER` if none does.
        held: in the same shape, the share of the second for which a member reads.
        both: in the same shape, the share for which a member reads on after another has taken the
            queue and the offset at which it begins.
        taken: in the same shape, how often a member takes the queue from another.
        one_more: in the same shape, the takes at which the giver has not committed its last
            message.
        lost: in the same shape, the takes at which it has not committed what it read since its last
            pull.
        eventful: (S, seconds) whether a queue is taken, or two members read it.
        pods: (seconds,) the number of members that have joined and not left.
    """

    members: int
    length_s: int
    over_s: Ints
    owner: NDArray[np.int16]
    held: NDArray[np.float16]
    both: NDArray[np.float16]
    taken: NDArray[np.int8]
    one_more: NDArray[np.float16]
    lost: NDArray[np.int8]
    eventful: Bools
    pods: Ints

    @property
    def bytes(self) -> int:
        """The size of the arrays."""
        arrays = (self.owner, self.held, self.both, self.taken, self.one_more, self.lost)
        return sum(each.nbytes for each in arrays)


@dataclass(eq=False)
class Transitions:
    """All steps of a group; each is played once.

    Attributes:
        group: the group at rest.
        start: how its pods start.
        draw: the number of the draw of addresses and starts.
        seeds: the seeds of the plays.
        clock: the assumptions about timers.
        stop: how its pods stop.
    """

    group: DeployedGroup
    start: Start
    draw: int
    seeds: Ints
    clock: ClockOptions
    stop: Stop = Stop()  # noqa: RUF009  # a value
    played: int = 0
    _made: dict[tuple[int, tuple[Change, ...]], Transition] = field(default_factory=dict)
    _resting: dict[int, NDArray[np.int16]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        history = self.group.history
        joins = [e for e in history.events if e.event_type == events.CONSUMER_JOIN]
        self._pod = joins[-1]
        self._hosts = sorted({host_of(e.client_id or "") for e in joins})
        self._others = tuple(
            e for e in history.events if e.event_type not in events.CONSUMER_EVENTS
        )
        self._begin_ms = max(e.event_ms for e in history.events) + REST_MS
        self.queues = self._timeline(self._history(1, ())).queues

    def resting(self, members: int) -> NDArray[np.int16]:
        """Return (queues,) the owners of a group of this many members at rest."""
        if members not in self._resting:
            timeline = self._timeline(self._history(members, ()))
            place = {queue: number for number, queue in enumerate(self.queues)}
            owner = np.full(len(self.queues), NO_MEMBER, np.int16)
            for member, held in enumerate(timeline.initial):
                owner[[place[timeline.queues[queue]] for queue in held]] = member
            self._resting[members] = owner
        return self._resting[members]

    def made(self, members: int, changes: tuple[Change, ...]) -> Transition:
        """Return the effect of changes on a group with this many members at rest.

        Cost: about 10 ms the first time, whatever the number of seeds.
        """
        key = members, changes
        if key not in self._made:
            if sum(each.bytes for each in self._made.values()) > KEPT_BYTES:
                self._made.clear()
            self._made[key] = self._play(members, changes)
            self.played += 1
        return self._made[key]

    def _play(self, members: int, changes: tuple[Change, ...]) -> Transition:
        steps = self._steps(members, changes)
        timeline = self._timeline(self._history(members, steps))
        log = play_seeds(timeline, self.seeds, self.clock)
        held = holdings_of(timeline, log, len(self.seeds))
        leaves = {each.index: each.at_ms for each in steps if not each.joins}
        last_s = max([int(log.at_us.max(initial=0)) // SECOND_US - self._begin_ms // SECOND_MS, 0])
        length_s = max([last_s, *(each.at_ms // SECOND_MS for each in steps)]) + 2
        pods = np.full(length_s, members, np.int64)
        for each in steps:
            pods[each.at_ms // SECOND_MS :] += 1 if each.joins else -1
        last_us = np.zeros(len(self.seeds), np.int64)
        np.maximum.at(last_us, log.seed, log.at_us)
        steps_s = max((each.at_ms // SECOND_MS for each in steps), default=0)
        over_s = np.maximum(last_us // SECOND_US - self._begin_ms // SECOND_MS, steps_s) + 2
        read = _Read.of(self, timeline, held, leaves)
        return self._seconds(read, self._places(timeline), over_s, pods)

    def _places(self, timeline: GroupTimeline) -> Ints:
        place = {queue: number for number, queue in enumerate(self.queues)}
        return np.array([place[queue] for queue in timeline.queues], np.int64)

    def _seconds(self, read: _Read, of_queue: Ints, over_s: Ints, pods: Ints) -> Transition:
        """Return the shares of each second in which members read."""
        length_s = len(pods)
        shape = len(self.seeds), length_s, len(self.queues)
        size = shape[0] * shape[1] * shape[2]

        def spread(begin_s: NDArray[np.float64]) -> tuple[Ints, Ints, NDArray[np.float64]]:
            """Split spans into seconds; return the row, the cell and the share of each second."""
            begin, end = (np.clip(each, 0, length_s) for each in (begin_s, read.end_s))
            rows = np.flatnonzero(end > begin)
            first = np.floor(begin[rows]).astype(np.int64)
            counts = np.ceil(end[rows]).astype(np.int64) - first
            of_row = np.repeat(rows, counts)
            offset = np.arange(len(of_row)) - np.repeat(np.cumsum(counts) - counts, counts)
            second = np.repeat(first, counts) + offset
            share = np.minimum(end[of_row], second + 1) - np.maximum(begin[of_row], second)
            queue = of_queue[read.queue[of_row]]
            return of_row, (read.seed[of_row] * length_s + second) * shape[2] + queue, share

        of_row, cell, share = spread(read.begin_s)
        total = np.bincount(cell, share, size)
        # of several owners in a second, the one that began last counts, as rows are in that order
        owner = np.full(size, NO_MEMBER, np.int16)
        owner[cell] = read.member[of_row]
        _, cell, share = spread(read.taken_s)
        both = np.maximum(np.bincount(cell, share, size) - 1.0, 0.0).astype(np.float16)
        both = both.reshape(shape)
        moved = np.zeros(shape, np.int8)
        one_more = np.zeros(shape, np.float32)
        taken_s = np.clip(np.floor(read.taken_s).astype(np.int64), 0, length_s - 1)
        taken = np.flatnonzero(read.taken)
        places = read.seed[taken], taken_s[taken], of_queue[read.queue[taken]]
        np.add.at(moved, places, 1)
        np.add.at(one_more, places, read.one_more[taken])
        lost = np.zeros(shape, np.int8)
        np.add.at(lost, places, read.lost[taken])
        return Transition(
            members=int(pods[-1]),
            length_s=length_s,
            over_s=over_s,
            owner=owner.reshape(shape),
            held=np.minimum(total, 1.0).astype(np.float16).reshape(shape),
            both=both,
            taken=moved,
            one_more=one_more.astype(np.float16),
            lost=lost,
            eventful=((both > 0) | (moved > 0)).any(axis=2),
            pods=pods,
        )

    def _steps(self, members: int, changes: Sequence[Change]) -> list[_Step]:
        """Return the joins and leaves that changes cause; they first stop pods that have not
        joined, then the youngest.
        """
        pods = [(-1, number) for number in range(members)]
        """(join in ms, number) of the existing pods, in order of creation."""
        steps = list[_Step]()
        created = members
        for at_s, change in changes:
            at_ms = at_s * SECOND_MS
            for _ in range(change):
                draws = Draws(self.draw, "pod", created)
                join_ms = at_ms + self.start.drawn_ms(draws)
                pods.append((join_ms, created))
                steps.append(_Step(join_ms, created, True))
                created += 1
            waiting = [pod for pod in pods if pod[0] >= at_ms]
            for number in range(-change):
                victim = waiting.pop() if waiting else pods[-1]
                pods.remove(victim)
                if victim[0] >= at_ms:  # the pod never joins
                    steps = [each for each in steps if each.index != victim[1]]
                else:
                    end_ms = at_ms + number * _LEAVES_APART_MS + self.stop.end_ms
                    steps.append(_Step(end_ms, victim[1], False))
        return sorted(steps, key=lambda each: (each.at_ms, each.index))

    def _history(self, members: int, steps: Sequence[_Step]) -> GroupHistory:
        """Return the history of this many members at rest, followed by steps."""
        rest_ms = self._begin_ms - REST_MS
        rows = list(self._others)
        sequence = max((e.sequence for e in rows), default=0) + 1
        for number in range(members):
            rows.append(self._joins(number, rest_ms, sequence + number))
        for place, step in enumerate(steps):
            at_ms, order = self._begin_ms + step.at_ms, sequence + members + place
            if step.joins:
                rows.append(replace(self._joins(step.index, at_ms, order), detail=None))
            else:
                rows.append(
                    Event(
                        at_ms,
                        order,
                        events.CONSUMER_LOST if self.stop.killed else events.CONSUMER_LEAVE,
                        client_id=self._client(step.index),
                        channel_id=f"{_CHANNEL}{step.index}",
                        detail=LOSS_DETAILS["crash"] if self.stop.killed else None,
                    )
                )
        return replace(self.group.history, events=tuple(rows), sharing_groups=())

    def _joins(self, number: int, at_ms: int, sequence: int) -> Event:
        return replace(
            self._pod,
            event_ms=at_ms,
            sequence=sequence,
            client_id=self._client(number),
            channel_id=f"{_CHANNEL}{number}",
            detail=events.OBSERVED,
        )

    def _client(self, number: int) -> str:
        """Return the id of a pod, with a random address in the members' networks."""
        draws = Draws(self.draw, "address", number)
        address = address_of(draws.pick(self._hosts))
        first, second = (10, 0) if address is None else tuple(address.packed[:2])
        host = f"{first}.{second}.{draws.between(1, 254)}.{draws.between(1, 254)}"
        template = TEMPLATES.get(self._pod.language or "", DEFAULT_TEMPLATE)
        # the process id in a container is always 1; ids differ in nanoTime
        return template.format(ip=host, pid=1, nanos=number * 1_000_003 + 1)

    def _timeline(self, history: GroupHistory) -> GroupTimeline:
        return build_timeline(history, self.clock)

    def trouble(self) -> str | None:
        """Return why the group cannot be simulated, or None if it can."""
        timeline = self._timeline(self._history(1, ()))
        if broadcasts(timeline):
            return "it broadcasts: every member reads every queue"
        if timeline.popped:
            return f"its members share the queues of {timeline.popped[0]} (POP)"
        return None if timeline.queues else "it has no queue to read"


@dataclass(frozen=True, slots=True)
class _Step:
    """The join or leave of a pod.

    Attributes:
        at_ms: the time after the first change, in ms.
        index: the number of the pod.
        joins: whether it joins rather than leaves.
    """

    at_ms: int
    index: int
    joins: bool


@dataclass(frozen=True, eq=False)
class _Read:
    """Spans in which members read, in order of their start; times are in seconds.

    Attributes:
        seed: the index of the play.
        queue: the queue's number in the timeline.
        member: the member's number.
        taken_s: when it takes the queue and requests the offset.
        begin_s: its first pull.
        end_s: when the queue is revoked, or ``shutdown()`` is called.
        taken: whether it took the queue from another member.
        one_more: the share of takes at which the message before the last commit is read again.
        lost: whether the other did not persist its offset first, because it was killed or still had
            the queue.
    """

    seed: Ints
    queue: Ints
    member: Ints
    taken_s: NDArray[np.float64]
    begin_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    taken: NDArray[np.bool_]
    one_more: NDArray[np.float64]
    lost: Bools

    @classmethod
    def of(
        cls,
        steps: Transitions,
        timeline: GroupTimeline,
        held: MeasuredHoldings,
        leaves: dict[int, int],
    ) -> _Read:
        """Return the spans of holdings.

        Args:
            steps: the transitions to which they belong.
            timeline: the played timeline.
            held: its holdings, by queue, seed and start.
            leaves: when pods are stopped, in ms after the first step.
        """
        channels = [each.channel_id or "" for each in timeline.lifetimes]
        pods = np.array([int(name.removeprefix(_CHANNEL)) for name in channels], np.int64)
        member = pods[held.lifetime]
        begin_us = steps._begin_ms * SECOND_MS
        always = held.start_us < begin_us - SECOND_US
        # members from before the first step are already reading
        start = np.where(always, -1e9, (held.start_us - begin_us) / SECOND_US)
        drop = (held.drop_us - begin_us) / SECOND_US
        stops = np.full(int(member.max(initial=0)) + 1, np.inf)
        for pod, at_ms in leaves.items():
            if pod < len(stops):
                stops[pod] = at_ms / SECOND_MS
        end = np.minimum(drop, stops[member])
        waits_s = first_pulls_ms(timeline)[held.lifetime] / SECOND_MS
        begin = np.where(always, start, start + waits_s)
        same = np.zeros(len(member), np.bool_)
        same[1:] = (held.queue[1:] == held.queue[:-1]) & (held.seed[1:] == held.seed[:-1])
        before_end = np.concatenate([[0.0], end[:-1]])
        gap_ms = (start - before_end) * SECOND_MS
        ordered = timeline.settings.ordered
        share = np.full(len(member), ONE_MORE_ORDERLY if ordered else 0.0)
        if not ordered:
            for longest_ms, of_handovers in reversed(ONE_MORE):
                share[gap_ms < longest_ms] = of_handovers
        left = np.zeros(len(member), np.bool_)
        left[1:] = (drop >= stops[member] - 1 / SECOND_MS)[:-1]
        asked_first = ~left & (gap_ms < ONE_MORE[0][0]) & (not ordered)
        lost = same & ~always & (asked_first | (left & steps.stop.killed))
        share = np.where(left | lost, 0.0, share)
        order = np.argsort(begin, kind="stable")
        return cls(
            held.seed[order],
            held.queue[order],
            member[order],
            start[order],
            begin[order],
            end[order],
            (same & ~always)[order],
            np.where(same & ~always, share, 0.0)[order],
            lost[order],
        )
