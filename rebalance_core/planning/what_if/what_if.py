"""What-if analysis: owners before and after a change, moves, and the balance of the result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.group_settings import CLIENT_REBALANCE, CLUSTERING
from rebalance_core.model.languages import JAVA
from rebalance_core.model.queue import MessageQueue, queue_sort_key
from rebalance_core.planning.client_ids import (
    DEFAULT_TEMPLATE,
    drawn_client_ids,
    new_client_ids,
    template_of,
)
from rebalance_core.planning.known_strategies import as_planning_strategy
from rebalance_core.planning.movement import Movement, previous_owner
from rebalance_core.planning.strategies import PlanningStrategy
from rebalance_core.planning.what_if.allocation import (
    POP_INVISIBLE_S,
    Allocation,
    allocation_of,
    changed_owners,
)
from rebalance_core.planning.what_if.change import (
    Change,
    read_change,
)
from rebalance_core.planning.what_if.planned_group import (
    Members,
    PlannedGroup,
    Process,
    Queues,
    RequestModes,
    Strategy,
    check_topics,
    read_group,
    read_request_modes,
    refuse,
    sort_processes,
)
from rebalance_core.planning.what_if.what_if_table import what_if_table
from rebalance_core.replay.changes import queues_taken
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.member import Member
from rebalance_core.replay.settle import Settled, settle
from rebalance_core.replay.topic_shares import strategy_key
from rebalance_core.strategies import AllocationStrategy, parse_strategy
from rebalance_core.strategies.texts import own_strategy

_Queues = dict[str, tuple[MessageQueue, ...]]


def apply_change(
    group: PlannedGroup, change: Change, joining: Sequence[str] | None = None
) -> PlannedGroup:
    """Return the group after the whole change at once; ``joining`` replaces invented ids.

    Consumers leave, topics are created (all members read a new topic), brokers are lost, and
    consumers join and read all of the group's topics. New ids also differ from those of members
    that leave.

    Raises:
        UsageError: Client ids, brokers or numbers do not fit the group; the message lists all.
    """
    mistakes: list[str] = []
    queues = _queues(group, change, mistakes)
    new_topics = queues.keys() - group.queues.keys()
    staying = _without(group, change, mistakes)
    modes = read_request_modes("request_modes", change.request_modes, mistakes)
    check_topics(modes, queues, mistakes)
    refuse(mistakes)
    topics = group.topics | new_topics
    processes: list[Process] = [(client_id, read | new_topics) for client_id, read in staying]
    if joining is None:
        template = change.client_id_template
        if template == DEFAULT_TEMPLATE:
            template = template_of(change.language)
        joining = new_client_ids(change.add_consumers, set(group.client_ids), template)
    processes += [(client_id, topics) for client_id in joining]
    if processes:
        topics = frozenset[str]().union(*(read for _, read in processes))
    return replace(
        group,
        processes=sort_processes(processes),
        queues=queues,
        strategy=as_planning_strategy(change.strategy or group.strategy),
        topics=topics,
        request_modes={**group.request_modes, **modes},
        rebalance_mode=change.rebalance_mode or group.rebalance_mode,
        languages={**group.languages, **dict.fromkeys(joining, change.language or JAVA)},
    )


def _queues(group: PlannedGroup, change: Change, mistakes: list[str]) -> _Queues:
    """Return the queues after scaling, additions and losses; a topic without queues keeps its
    entry.
    """
    queues: _Queues = dict(group.queues)
    for topic, numbers in change.queues.items():
        untouched = [q for q in queues.get(topic, ()) if q.broker_name not in numbers]
        scaled = [MessageQueue(topic, b, i) for b, n in numbers.items() for i in range(n)]
        queues[topic] = tuple(sorted(untouched + scaled, key=queue_sort_key))
    brokers = sorted({queue.broker_name for of_topic in queues.values() for queue in of_topic})
    for broker in change.lose_broker:
        if broker not in brokers:
            mistakes.append(
                f"lose_broker: {broker!r} has no queue of the group; brokers: "
                f"{', '.join(brokers) or 'none'}{did_you_mean(broker, brokers)}"
            )
    return {
        topic: tuple(queue for queue in of_topic if queue.broker_name not in change.lose_broker)
        for topic, of_topic in queues.items()
    }


def _without(group: PlannedGroup, change: Change, mistakes: list[str]) -> list[Process]:
    """Return the processes that stay."""
    leaving, processes = change.remove_consumers, list(group.processes)
    if isinstance(leaving, int):
        if leaving > len(processes):
            mistakes.append(f"remove_consumers = {leaving}: the group has only {len(processes)}")
        return processes[: max(0, len(processes) - leaving)]
    for client_id in leaving:
        place = next((i for i, (present, _) in enumerate(processes) if present == client_id), None)
        if place is None:
            present = group.client_ids
            mistakes.append(
                f"remove_consumers: {client_id!r} is not, or no longer, a member; members: "
                f"{', '.join(present) or 'none'}{did_you_mean(client_id, present)}"
            )
        else:
            del processes[place]
    return processes


SEEDS = 20
"""The number of id sets, in addition to its own, over which a what-if gives a range."""
MOST_CELLS_DRAWN = 100_000
"""A group with more queues x processes gets no range: each set of ids requires a pass of all
members.
"""


@dataclass(frozen=True, repr=False)
class WhatIf:
    """A group before and after a change; ``str()`` returns a readable table.

    Attributes:
        change: The change that was requested.
        before: The current state.
        after: The state once every member has seen the change.
        with_ids: Returns the number of queues that move if the joining consumers have these ids, or
            None if unknown.
    """

    change: Change
    before: Allocation
    after: Allocation
    with_ids: Callable[[Sequence[str]], int] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def moves_range(self) -> tuple[int, int] | None:
        """The minimum and maximum number of moves over `SEEDS` sets of ids for the joining
        consumers.

        The ids of processes that do not run yet are invented, and their position among the others
        determines what a strategy moves. None: no process joins, the ids are the caller's own, or
        there are over `MOST_CELLS_DRAWN` queues x processes.
        """
        template = self.change.client_id_template
        named = {template, template_of(self.change.language)} != {DEFAULT_TEMPLATE}
        if self.with_ids is None or not self.change.add_consumers or named:
            return None
        if self.after.figures.group.queues * len(self.after.client_ids) > MOST_CELLS_DRAWN:
            return None
        present, count = self.before.client_ids, self.change.add_consumers
        drawn = [drawn_client_ids(count, present, seed) for seed in range(SEEDS)]
        moves = [self.moves, *map(self.with_ids, drawn)]
        return min(moves), max(moves)

    @property
    def movement(self) -> Movement:
        """The step's movement over all topics; ``after.figures.topics`` has it by topic.

        Check its ``caveat`` before using ``minimum_moves`` or ``amplification``.
        """
        return self.after.figures.group

    @property
    def moves(self) -> int:
        """The number of queues that get another owner, including new queues."""
        return self.movement.moved

    @property
    def minimum(self) -> int | None:
        """The minimum number that any balanced result must move."""
        return self.movement.minimum_moves

    @property
    def amplification(self) -> float | None:
        """Moves / minimum; None if the minimum is 0 or does not exist."""
        return self.movement.amplification

    @property
    def moved(self) -> dict[MessageQueue, tuple[tuple[str, ...], tuple[str, ...]]]:
        """Queues whose owners differ -> owners before and after, including removed queues."""
        return changed_owners(self.before, self.after)

    def __str__(self) -> str:
        """Return the table of `what_if_table`."""
        return what_if_table(
            str(self.change),
            self.before,
            self.after,
            lost_brokers=self.change.lose_broker,
            moves_range=self.moves_range,
        )

    def __repr__(self) -> str:
        """Return a summary on one line."""
        spread = self.moves_range
        moves = "{} to {}".format(*spread) if spread and len(set(spread)) > 1 else self.moves
        return f"<WhatIf {self.change}: {moves} queues move, peak {self.after.peak}>"

    def to_pandas(self) -> Any:
        """Return a pandas frame: each queue with its owners before and after, and whether they
        differ.
        """
        import pyarrow as pa  # most callers print the result

        owners = (self.before.owners, self.after.owners)
        rows = [
            {
                **queue._asdict(),
                "before": list(owners[0].get(queue, ())),
                "after": list(owners[1].get(queue, ())),
                "moved": queue in self.moved,
            }
            for queue in sorted({*owners[0], *owners[1]})
        ]
        return pa.Table.from_pylist(rows).to_pandas()

    def _repr_html_(self) -> str:
        """Return the table, for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"


def what_if(
    members: Members,
    queues: Queues,
    strategy: Strategy,
    change: Change | Mapping[str, object],
    *,
    message_model: str = CLUSTERING,
    request_modes: RequestModes | None = None,
    rebalance_mode: str = CLIENT_REBALANCE,
    invisible_time_s: float = POP_INVISIBLE_S,
    ordered: bool = False,
    languages: Mapping[str, str] | None = None,
) -> WhatIf:
    """Compute the effect of a change on a group, using the replay's own pass, without a JVM or
    Spark.

    Both states are settled: every member sees the same, current view. Retry topics are left out.
    Hypothetical strategies get the same lists as RocketMQ's own, so a member that does not
    subscribe to a topic also counts under them, and its share has no owner.

    Args:
        members: Client ids (a repeated id means two processes; all subscribe to every topic), or
            client id -> the topics that it subscribes to. Topics without subscribers do not belong
            to the group.
        queues: Readable queues, or topic -> broker name -> number of queues.
        strategy: A text (`planning_strategy`) or an object.
        change: A `Change`, or a mapping with its attributes as keys.
        message_model: CLUSTERING or BROADCASTING.
        request_modes: Topic -> ``PULL`` or ``POP(share_queue_num=N)``, the mode in which brokers
            serve it to members that query them; retry topics are always pulled.
        rebalance_mode: The mode of all members: CLIENT (they allocate), BROKER (they query a
            broker: ``clientRebalance=false``, only valid with AVG and AVG_BY_CIRCLE), or PROXY
            (gRPC).
        invisible_time_s: Seconds for which a popped message is invisible to other clients.
        ordered: Whether the listener is orderly, or FIFO behind a proxy. Orderly members never
            query a broker, so POP has no effect on them; behind a proxy, every client reaches every
            queue.
        languages: The clients' languages by id, e.g. GO: each allocates by the rules of its own
            language. Missing ids count as Java.

    Raises:
        UsageError: The input is invalid; the message has one line per mistake.

    >>> result = what_if(["10.0.0.1@1#1", "10.0.0.2@1#1"], {"orders": {"broker-a": 8}}, "AVG",
    ...                  {"add_consumers": 1})
    >>> result.moves, result.minimum, result.amplification, result.after.peak
    (3, 2, 1.5, 3)
    >>> result = what_if(["a", "b", "c", "d"], {"orders": {"broker-a": 8}}, "AVG",
    ...                  {"request_modes": {"orders": "POP(share_queue_num=1)"},
    ...                   "rebalance_mode": "BROKER"})
    >>> result.after.pop["orders"].min_clients_per_queue, str(result.after.redelivery)
    (2, '0 to 64 s')
    >>> result = what_if(["10.0.0.1@1#1", "10.0.0.2@1#1"], {"orders": {"broker-a": 8}},
    ...                  "CONSISTENT_HASH", {"add_consumers": 1, "language": "GO"})
    >>> len(result.after.orphaned), len(result.after.shared)
    (1, 2)
    """
    mistakes: list[str] = []
    group = read_group(
        members,
        queues,
        strategy,
        message_model,
        mistakes,
        request_modes,
        rebalance_mode,
        ordered,
        languages,
    )
    if not invisible_time_s > 0:
        mistakes.append(f"invisible_time_s = {invisible_time_s!r}: expected more than 0 seconds")
    try:
        change = read_change(change)
    except UsageError as error:
        mistakes.append(str(error))
    refuse(mistakes)
    assert group is not None
    assert isinstance(change, Change)
    before = _settled(group, Settled({}, frozenset()), initial=True)
    held = Settled(
        before.holdings, before.frozen_topics, before.taken, before.unsure, before.doubtful
    )

    def moved(joining: Sequence[str]) -> int:
        epoch = _settled(apply_change(group, change, joining), held, initial=False)
        topics = epoch.readable.keys()
        return sum(queue.topic in topics for queue in queues_taken(epoch))

    changed = apply_change(group, change)
    return WhatIf(
        change,
        allocation_of(group, before, invisible_time_s),
        allocation_of(changed, _settled(changed, held, initial=False), invisible_time_s),
        moved,
    )


def _settled(group: PlannedGroup, before: Settled, *, initial: bool) -> Epoch:
    """Return the group's epoch once every member has run a pass."""
    view = group.view()
    previous = previous_owner(before.holdings, set(group.client_ids))
    allocation = group.strategy.as_allocation(previous)
    strategies = {
        strategy_key(member): _of_client(group.strategy, allocation, member)
        for member in view.members.values()
    }
    settled = settle(view, before.holdings, strategies, before.taken, before.doubtful)
    return Epoch(
        number=0 if initial else 1,
        from_ms=0,
        latest_ms=0,
        retry_latest_ms=0,
        seen_late=False,
        causes=(),
        initial=initial,
        lost=frozenset(),
        view=view,
        frozen_topics=settled.frozen_topics,
        before=before.holdings,
        holdings=settled.holdings,
        taken=settled.taken,
        unsure=settled.unsure,
        unsure_before=before.unsure,
        doubtful=settled.doubtful,
        doubtful_before=before.doubtful,
    )


def _of_client(
    strategy: PlanningStrategy, allocation: AllocationStrategy, member: Member
) -> AllocationStrategy:
    """Return the group's strategy in the member's client's form; hypothetical strategies have only
    one form.
    """
    text = str(strategy)
    divides_by = own_strategy(member.profile, text) if strategy.of_rocketmq else text
    return allocation if divides_by == text else parse_strategy(divides_by)
