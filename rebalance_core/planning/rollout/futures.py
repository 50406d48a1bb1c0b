"""Groups at rest, and the futures of a rollout in these groups."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import isqrt
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.propagation import HANDOVERS
from rebalance_core.engine.group_history import event_of
from rebalance_core.engine.propagation import PropagationOptions, is_unknown, played
from rebalance_core.kernels.segments import Ints
from rebalance_core.model import events
from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.model.group_settings import without_suspend
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.rollout.recorded_starts import recorded_starts
from rebalance_core.planning.rollout.search import NAME, RolloutPlan, Search
from rebalance_core.planning.scenario.cluster_life import EVENT_COLUMNS
from rebalance_core.planning.scenario.deploys import starts_of
from rebalance_core.planning.scenario.group_life import ProcessKey, draws_of
from rebalance_core.planning.scenario.pods import Ready, Turn
from rebalance_core.planning.scenario.scenario import Scenario, group_edits, queues_in
from rebalance_core.planning.sweep.transitions import CLOCK, with_rates_going_on
from rebalance_core.replay.history import CommittedOffset, GroupHistory, QueueOffset
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.holder_rows import NO_HOLDERS, held_from
from rebalance_core.timing.measured import Measured
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.timeline_builder import build_timeline

if TYPE_CHECKING:
    from rebalance_core.engine.group_history import EventRow


LIFE_ENDS = (events.CONSUMER_LEAVE, events.CONSUMER_LOST)


def at_rest(history: GroupHistory, end_ms: int | None = None) -> GroupHistory:
    """Return a history that reaches the same state in a single instant, that of the last event.

    All of a group's plans begin there, so earlier events are not replayed for each plan. It keeps
    the offsets that determine a queue's mean rate, and the last commits. Groups that share its
    client instances rest with it.

    Args:
        history: the group's history.
        end_ms: the instant; None: the last event's.
    """
    state = _State()
    ordered = sorted(history.events, key=lambda event: (event.event_ms, event.sequence))
    for event in ordered:
        state.take(event)
    if end_ms is None:
        end_ms = ordered[-1].event_ms if ordered else 0
    resting = tuple(
        replace(
            event,
            event_ms=end_ms,
            sequence=number,
            source=None,
            raw=None,
            detail=OBSERVED if event.event_type in _OBSERVABLE else event.detail,
        )
        for number, event in enumerate(state.events())
    )
    return replace(
        history,
        events=resting,
        queue_offsets=_ends(history.queue_offsets),
        committed_offsets=_ends(history.committed_offsets),
        sharing_groups=tuple(
            at_rest(sharing_group, end_ms) for sharing_group in history.sharing_groups
        ),
    )


_OBSERVABLE = (events.CONSUMER_JOIN, events.BROKER_UP, events.TOPIC_CONFIG)


@dataclass
class _State:
    """The events that are still in effect."""

    members: dict[tuple[str | None, str | None], list[Event]] = field(default_factory=dict)
    modes: dict[str | None, Event] = field(default_factory=dict)
    up: dict[str | None, Event] = field(default_factory=dict)
    down: set[str | None] = field(default_factory=set)
    masters: dict[str | None, Event] = field(default_factory=dict)
    notices: dict[str | None, Event] = field(default_factory=dict)
    configs: dict[tuple[str | None, str | None], Event] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Apply the next event."""
        if event.event_type in events.CONSUMER_EVENTS:
            self._take_member(event)
        elif event.event_type == events.REQUEST_MODE:
            self.modes[event.topic] = event
        elif event.event_type in events.TOPIC_EVENTS:
            self._take_topic(event)
        elif event.event_type == events.NOTICES:
            self.notices[event.broker_name] = event
        else:
            self._take_broker(event, event.broker_name)

    def events(self) -> Iterator[Event]:
        """Yield the events: brokers first, then topics and members."""
        yield from self.up.values()
        yield from (e for name, e in self.masters.items() if name not in self.down)
        yield from (e for name, e in self.notices.items() if name not in self.down)
        yield from (e for (_, name), e in self.configs.items() if name not in self.down)
        for joins in self.members.values():
            yield from joins
        yield from self.modes.values()

    def _take_member(self, event: Event) -> None:
        key = event.client_id, event.channel_id
        if event.broker_name is not None and key in self.members:
            return  # only one broker saw it join or leave, so it is still live
        if event.event_type == events.CONSUMER_JOIN:
            self.members[key] = [event]
        elif event.event_type in LIFE_ENDS:
            self.members.pop(key, None)
        elif key in self.members:
            self.members[key].append(event)

    def _take_broker(self, event: Event, name: str | None) -> None:
        if event.event_type == events.BROKER_UP:
            self.up[name] = event
            self.down.discard(name)
            self.masters.pop(name, None)
        elif event.event_type == events.BROKER_DOWN:
            self.up.pop(name, None)
            self.down.add(name)
        elif event.event_type == events.MASTER_DOWN:
            self.masters[name] = event
        else:
            self.masters.pop(name, None)

    def _take_topic(self, event: Event) -> None:
        if event.event_type == events.TOPIC_CONFIG:
            self.configs[event.topic, event.broker_name] = event
            return
        for topic, name in list(self.configs):
            if topic == event.topic and event.broker_name in (None, name):
                del self.configs[topic, name]


_Offset = TypeVar("_Offset", QueueOffset, CommittedOffset)


def _ends(rows: tuple[_Offset, ...] | None) -> tuple[_Offset, ...] | None:
    """Return the first and the last row of each queue."""
    if rows is None:
        return None
    by_queue: dict[MessageQueue, list[_Offset]] = {}
    for row in sorted(rows, key=lambda row: row.observed_ms):
        by_queue.setdefault(row.queue, []).append(row)
    return tuple(
        row for of in by_queue.values() for row in (of if len(of) < 3 else [of[0], of[-1]])
    )


@dataclass(frozen=True, eq=False)
class DeployedGroup:
    """A group at rest that is to be deployed; small enough to be sent to every task.

    Attributes:
        history: as returned by `at_rest`.
        members: the number of members.
        queues: the number of queues of its largest topic; None without topics.
        joined: when its members joined, epoch ms.
        starts: how long pods took to join in its last deploys, in ms.
    """

    history: GroupHistory
    members: int
    queues: int | None
    joined: Mapping[ProcessKey, int] = field(default_factory=dict)
    starts: tuple[int, ...] = ()

    @property
    def name(self) -> tuple[str, str]:
        """Cluster and group."""
        return self.history.cluster, self.history.consumer_group

    @property
    def ordered(self) -> bool:
        """Whether its listener is orderly."""
        return self.history.settings.ordered

    @property
    def rate(self) -> float | None:
        """The mean messages per second of a queue; None if no queue has two observations."""
        rates = []
        for _, of_queue in groupby(
            sorted(self.history.queue_offsets or (), key=lambda row: (row.queue, row.observed_ms)),
            key=lambda row: row.queue,
        ):
            rows = list(of_queue)
            if len(rows) > 1 and rows[-1].observed_ms > rows[0].observed_ms:
                came = max(0, rows[-1].max_offset - rows[0].max_offset)
                rates.append(came * 1_000 / (rows[-1].observed_ms - rows[0].observed_ms))
        return sum(rates) / len(rates) if rates else None

    @property
    def trouble(self) -> str | None:
        """Return why its rollout cannot be simulated, or None if it can."""
        if not self.members:
            return "has no member"
        if is_unknown(self.history):
            return "has a member whose subscriptions are not given in any row"
        return "has no queue to read" if self.queues is None else None

    def trouble_in(self, search: Search) -> str | None:
        """Return why a search cannot simulate its rollout, or None if it can."""
        if self.trouble is None and any(search.suspend):
            settings = self.history.settings
            for event in self.history.events:
                mode = event.rebalance_mode or settings.rebalance_mode
                kind = without_suspend(settings.consumer_type, mode)
                if event.event_type == events.CONSUMER_JOIN and kind is not None:
                    return f"has {kind}, which have no suspend()"
        return self.trouble

    def under(self, plan: RolloutPlan, search: Search, draw: int = 0) -> tuple[GroupHistory, int]:
        """Return the history under a plan, and when the rollout begins, epoch ms.

        Args:
            plan: the plan.
            search: the request.
            draw: the number of the draw of starts, victims and ids.
        """
        history = self.history
        end_ms = max(event.event_ms for event in history.events)
        scenario = plan.scenario(search.change, search.groups)
        sharing_groups = tuple(
            _edited(sharing_group, scenario, end_ms, draw)
            for sharing_group in history.sharing_groups
        )
        under = _edited(history, scenario, end_ms, draw, self.joined)
        under = replace(under, sharing_groups=sharing_groups)
        return with_rates_going_on(under), scenario.edits[0].at.at(end_ms)

    def turns(self, plan: RolloutPlan, search: Search, draw: int) -> tuple[Turn, ...]:
        """Return when a plan replaces each member in a draw."""
        source = plan.scenario(search.change, search.groups).source(0)
        draws = draws_of(f"{draw}/{NAME}", self.name, starts_of(source))
        return search.turns(plan, self.members, draws)


def _edited(
    group: GroupHistory,
    scenario: Scenario,
    end_ms: int,
    draw: int,
    joined: Mapping[ProcessKey, int] | None = None,
) -> GroupHistory:
    """Return a group at rest after a scenario's edits; unchanged if they concern other groups."""
    of_group = [event for event in group.events if event.event_type in events.GROUP_EVENTS]
    shared = tuple(e for e in group.events if e.event_type not in events.GROUP_EVENTS)
    settings = {
        name: getattr(group.settings, name)
        for name in ("subscriptions", "strategy", "rebalance_mode", "consumer_type")
    }
    named = {"cluster": group.cluster, "consumer_group": group.consumer_group}
    rows = [{name: getattr(e, name, None) for name in EVENT_COLUMNS} | named for e in of_group]
    edited = group_edits(
        scenario,
        group.consumer_group,
        rows,
        cluster=group.cluster,
        end_ms=end_ms,
        group_row=settings,
        seed=draw,
        joined=joined,
    )
    return replace(group, events=shared + tuple(map(event_of, cast("list[EventRow]", edited.rows))))


def deployed_group(history: GroupHistory) -> DeployedGroup:
    """Return the group of a history, at rest."""
    rest = at_rest(history)
    members = {(e.client_id, e.channel_id) for e in rest.events if e.client_id is not None}
    named = set(rest.settings.subscriptions or ())
    for event in rest.events:
        named.update(event.subscriptions or ())
    rows = [
        {
            "cluster": rest.cluster,
            "event_type": e.event_type,
            "event_ms": e.event_ms,
            "sequence": e.sequence,
            "topic": e.topic,
            "broker_name": e.broker_name,
            "read_queue_nums": e.read_queue_nums,
        }
        for e in rest.events
    ]
    queues = queues_in(rows).get(rest.cluster, {})
    most = max((number for topic, number in queues.items() if topic in named), default=0)
    joined = {
        (event.client_id, event.channel_id): event.event_ms
        for event in sorted(history.events, key=lambda event: event.event_ms)
        if event.event_type == events.CONSUMER_JOIN and event.client_id is not None
    }
    present = {key: ms for key, ms in joined.items() if key in members}
    return DeployedGroup(rest, len(members), most or None, present, recorded_starts(history.events))


@dataclass(frozen=True, eq=False)
class Figures:
    """The costs of a plan's futures, in one group or in all: arrays with one value per future, by
    seed.

    Attributes:
        finish_ms: the time from the start of the rollout to the last queue released or taken.
        orphan_ms: time x readable queues without an owner.
        unread_ms: time x readable queues without an owner, or with only a suspended one.
        double_ms: time x (owners - 1).
        read_again_milli: thousandths of messages read again; None: a rate is unknown.
        late_milli: thousandths of messages that arrive in `unread_ms`, at the mean rate of the
            group's queues; None: a rate is unknown.
        moves: the number of queues passed from one client to another, over all of these futures.
    """

    finish_ms: Ints
    orphan_ms: Ints
    unread_ms: Ints
    double_ms: Ints
    read_again_milli: Ints | None
    late_milli: Ints | None
    moves: int

    @property
    def futures(self) -> int:
        """The number of futures."""
        return len(self.finish_ms)


def chained(parts: Sequence[Figures]) -> Figures:
    """Return the figures of all parts together; the seeds of the first part come first."""
    replayed, late = (_known_all(parts, name) for name in _OF_MESSAGES)
    return Figures(
        finish_ms=np.concatenate([part.finish_ms for part in parts]),
        orphan_ms=np.concatenate([part.orphan_ms for part in parts]),
        unread_ms=np.concatenate([part.unread_ms for part in parts]),
        double_ms=np.concatenate([part.double_ms for part in parts]),
        read_again_milli=None if replayed is None else np.concatenate(replayed),
        late_milli=None if late is None else np.concatenate(late),
        moves=sum(part.moves for part in parts),
    )


def together(groups: Sequence[Figures]) -> Figures:
    """Return the figures over all groups of a decision, which finishes when the last group does."""
    replayed, late = (_known_all(groups, name) for name in _OF_MESSAGES)
    return Figures(
        finish_ms=np.max([each.finish_ms for each in groups], axis=0),
        orphan_ms=np.sum([each.orphan_ms for each in groups], axis=0),
        unread_ms=np.sum([each.unread_ms for each in groups], axis=0),
        double_ms=np.sum([each.double_ms for each in groups], axis=0),
        read_again_milli=None if replayed is None else np.sum(replayed, axis=0),
        late_milli=None if late is None else np.sum(late, axis=0),
        moves=sum(each.moves for each in groups),
    )


_OF_MESSAGES = ("read_again_milli", "late_milli")


def _known_all(parts: Sequence[Figures], name: str) -> list[Ints] | None:
    """Return the total of a figure over all parts, or None if a part is unknown."""
    known = [getattr(part, name) for part in parts]
    return None if any(each is None for each in known) else known


_OF_TOTALS = {
    "orphan_queue_seconds": "orphan_ms",
    "double_queue_seconds": "double_ms",
    "read_again": "read_again_milli",
}


def figures_of(measured: Iterable[Measured], begin_ms: int, rate: float | None = None) -> Figures:
    """Return the figures of some futures of a group.

    Args:
        measured: measurements of consecutive seeds, with totals counted from ``begin_ms`` on.
        begin_ms: the start of the rollout, epoch ms.
        rate: the mean over its queues, in messages per second; None: unknown.
    """
    return chained([_figures(each, begin_ms, rate) for each in measured])


def _figures(measured: Measured, begin_ms: int, rate: float | None) -> Figures:
    # a rollout with long pauses counts as several: the group came to rest in between
    rows = measured.totals.to_pylist()
    figures: dict[str, Any] = {
        name: np.sum([_known(row[column]) for row in rows], axis=0)
        for column, name in _OF_TOTALS.items()
    }
    if any(None in row["read_again"] for row in rows):
        figures["read_again_milli"] = None
    unread_ms = figures["orphan_ms"] + np.sum([row["suspended_ms"] for row in rows], axis=0)
    figures["unread_ms"] = unread_ms
    figures["late_milli"] = None if rate is None else np.rint(unread_ms * rate).astype(np.int64)
    ends = [
        np.where(over_ms > 0, row["from_ms"] - begin_ms + over_ms, 0)
        for row in rows
        for over_ms in [np.array(row["finish_ms"], np.int64)]
    ]
    counted = measured.partial.filter(pc.greater_equal(measured.partial["change_ms"], begin_ms))
    moves = sum(map(sum, counted["gap_queues"].to_pylist()))
    return Figures(finish_ms=np.max(ends, axis=0), moves=moves, **figures)


def _known(values: Sequence[int | None]) -> Ints:
    return np.array([value or 0 for value in values], np.int64)


@dataclass(frozen=True, slots=True)
class Slice:
    """Futures of a plan in a group, all identified by number.

    Attributes:
        plan: the plan.
        group: the group.
        seeds: the futures.
        spread_ms: the spread of the starts, instead of the plan's.
        ready: when pods become Ready, instead of the plan's setting.
    """

    plan: int
    group: int
    seeds: range
    spread_ms: int | None = None
    ready: Ready | None = None


FUTURES_A_DRAW = 5
"""The number of futures for the first draw of starts; each further draw has twice as many, because
a draw costs as much as about 50 futures. 20 futures have 2 draws, 1,000 have 15.
"""


def draw_of(seed: int) -> int:
    """Return the number of the draw that a future plays.

    >>> [draw_of(seed) for seed in (0, 4, 5, 19, 20, 999)]
    [0, 0, 1, 1, 2, 14]
    """
    return isqrt(seed // FUTURES_A_DRAW)


KEPT_TIMELINES = 200
"""The number of timelines kept for later pieces, about 0.1 MB each."""


@dataclass(frozen=True, eq=False)
class Rollouts:
    """The plans and groups that pieces refer to; small enough to be sent to every task.

    Attributes:
        search: the request.
        plans: the plans, by number.
        groups: the groups, by number.
        clock: assumptions about timers.
        start_words: the basis for the pods' start times; None: stated plans.
    """

    search: Search
    plans: tuple[RolloutPlan, ...]
    groups: tuple[DeployedGroup, ...]
    clock: ClockOptions = CLOCK
    start_words: str | None = None
    _timelines: dict[tuple[Any, ...], tuple[GroupHistory, int, GroupTimeline]] = field(
        default_factory=dict, repr=False
    )

    def turns(self, plan: int, draw: int) -> tuple[tuple[Turn, ...], ...]:
        """Return when each member of each group is replaced in a draw."""
        rollout = self.plans[plan]
        return tuple(group.turns(rollout, self.search, draw) for group in self.groups)

    def draws(self, plan: int, futures: int) -> int:
        """Return the number of draws of starts in a plan's first futures."""
        return draw_of(futures - 1) + 1 if self.plans[plan].start.stated_spread_ms else 1

    def play(self, piece: Slice) -> Figures:
        """Play a piece.

        Cost: a tenth of a second per draw of starts, and linear in futures x steps.
        """
        return chained(
            [
                figures_of(measures, begin_ms, self.groups[piece.group].rate)
                for begin_ms, measures in self._measured(piece, 0)
            ]
        )

    def handovers(self, plan: int, futures: int) -> pa.Table:
        """Return the ``handovers`` rows of a plan's first futures, from the start of the plan."""
        tables = [HANDOVERS.arrow_schema().empty_table()]
        for group in range(len(self.groups)):
            for begin_ms, measures in self._measured(Slice(plan, group, range(futures)), futures):
                for each in measures:
                    rows = each.handovers
                    tables.append(rows.filter(pc.greater_equal(rows["change_ms"], begin_ms)))
        return pa.concat_tables(tables)

    def holders(self, plan: int, futures: int) -> pa.Table:
        """Return the ``holders`` rows of a plan's first futures, from the start of the plan."""
        tables = [NO_HOLDERS]
        for group in range(len(self.groups)):
            piece = Slice(plan, group, range(futures))
            for begin_ms, measures in self._measured(piece, 0, futures):
                tables += (held_from(each.holders, begin_ms) for each in measures)
        return pa.concat_tables(tables)

    def _measured(
        self, piece: Slice, handover_seeds: int, holder_seeds: int = 0
    ) -> Iterator[tuple[int, Iterator[Measured]]]:
        """Yield the start and the measures of a piece's futures, draw by draw."""
        drawn = self.plan_of(piece).start.stated_spread_ms
        for draw, seeds in groupby(piece.seeds, draw_of if drawn else lambda seed: 0):
            of_draw = list(seeds)
            history, begin_ms, timeline = self._timeline(piece, draw)
            options = PropagationOptions(
                seeds=piece.seeds.stop,
                handover_seeds=handover_seeds,
                holder_seeds=holder_seeds,
                from_ms=begin_ms,
                clock=self.clock,
            )
            numbers = range(of_draw[0], of_draw[-1] + 1)
            yield begin_ms, played(history, options, numbers, timeline)

    def plan_of(self, piece: Slice) -> RolloutPlan:
        """Return the plan that a piece plays."""
        plan = self.plans[piece.plan]
        if piece.spread_ms is not None:
            plan = replace(plan, spread_ms=piece.spread_ms)
        return plan if piece.ready is None else replace(plan, ready=piece.ready)

    def _timeline(self, piece: Slice, draw: int = 0) -> tuple[GroupHistory, int, GroupTimeline]:
        plan = self.plan_of(piece)
        key = plan, piece.group, draw
        if key not in self._timelines:
            if len(self._timelines) >= KEPT_TIMELINES:
                self._timelines.clear()
            history, begin_ms = self.groups[piece.group].under(plan, self.search, draw)
            self._timelines[key] = history, begin_ms, build_timeline(history, self.clock)
        return self._timelines[key]
