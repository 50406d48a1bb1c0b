"""A what-if analysis as text: figures before and after, then the changes, queue by queue."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rebalance_core.model.queue import MessageQueue, sort_client_ids
from rebalance_core.planning.movement import Movement, StepMovement
from rebalance_core.planning.strategies import PlanningStrategy
from rebalance_core.planning.what_if.allocation import Allocation, PopFigures, changed_owners
from rebalance_core.protocol.mixed_group import MixedGroup

MOST_ROWS = 20
"""The maximum number of rows of consumers and of queues; further rows are counted."""

MOST_ALIKE = 2
"""The number of topics shown if topics differ only in their names; the others are counted."""

NO_OWNER, GONE, NEW, SHARED = "(no owner)", "(gone)", "(new)", "(shared)"
NO_MEANING = "n/a"


def what_if_table(
    change: str,
    before: Allocation,
    after: Allocation,
    *,
    lost_brokers: Sequence[str] = (),
    moves_range: tuple[int, int] | None = None,
) -> str:
    """Return the table: ASCII except for names, with aligned columns.

    Args:
        change: The requested change, in words.
        before: The current state.
        after: The state once every member has seen the change.
        lost_brokers: The names of brokers that the change removes.
        moves_range: The minimum and maximum number of moves over other ids for the joining
            consumers.
    """
    of_owners = [_by_topic(after.figures), _caveats(after.figures), _over_ids(moves_range)]
    parts = [
        _aligned([(f"what if: {change}", "before", "after"), *_figures(before, after)]),
        *(of_owners if not _all_shared(before, after) else ()),
        _languages(after.mixed),
        _unread(lost_brokers),
        _sharing(before, after),
        _consumers(before, after),
        _queues(before, after),
    ]
    return "\n\n".join(part for part in parts if part)


def label(strategy: PlanningStrategy) -> str:
    """Return the strategy's text, marked if RocketMQ has no such strategy."""
    return str(strategy) if strategy.of_rocketmq else f"{strategy} (not RocketMQ's)"


def _figures(before: Allocation, after: Allocation) -> Iterable[tuple[str, str, str]]:
    step = after.figures.group
    processes = str(len(before.client_ids)), str(len(after.client_ids))
    if _all_shared(before, after):
        yield "consumer processes", *processes
        yield "idle consumers", str(len(before.idle)), str(len(after.idle))
        return
    yield "strategy", label(before.strategy), label(after.strategy)
    yield "consumer processes", *processes
    was, now = before.figures.group, step
    apart = ", shared ones apart" if before.pop or after.pop else ""
    for name, old, new in (
        (f"readable queues{apart}", was.queues, now.queues),
        ("most queues of one consumer", was.max_queues, now.max_queues),
        ("fewest queues of one consumer", was.min_queues, now.min_queues),
        ("peak / average", was.peak_ratio, now.peak_ratio),
        ("idle consumers", len(before.idle), len(after.idle)),
        ("queues without an owner", len(before.orphaned), len(after.orphaned)),
        ("queues of several processes", len(before.shared), len(after.shared)),
    ):
        yield name, _number(old), _number(new)
    if before.frozen_topics or after.frozen_topics:
        yield "frozen topics", _names(before.frozen_topics), _names(after.frozen_topics)
    yield "queues moved", "", str(step.moved)
    yield "  that a live holder released", "", str(step.voluntary_moves)
    yield "  fewest for a balanced result", "", _meaningful(step, step.minimum_moves)
    yield "  moved / fewest", "", _meaningful(step, step.amplification)
    yield "queues kept", "", "-" if step.stickiness is None else f"{step.stickiness:.0%}"


def _all_shared(before: Allocation, after: Allocation) -> bool:
    """Return True if members share every queue, so that figures about owners are meaningless."""
    return bool(before.pop and after.pop) and not (before.owners or after.owners)


def _by_topic(figures: StepMovement) -> str:
    if len(figures.topics) < 2:
        return ""
    head = ("topic", "queues", "moved", "fewest", "moved / fewest", "most", "idle")
    rows = [
        (
            name,
            str(row.queues),
            str(row.moved),
            _meaningful(row, row.minimum_moves),
            _meaningful(row, row.amplification),
            str(row.max_queues),
            str(row.idle_members),
        )
        for name, row in figures.topics.items()
    ]
    lines: list[tuple[str, ...]] = [head]
    for alike, some, more in _alike((name, cells) for name, *cells in rows):
        lines += [(name, *alike) for name in some]
        if more:
            lines.append((more, *[""] * len(alike)))
    return _aligned(lines)


def _alike(topics: Iterable[tuple[str, Any]]) -> Iterator[tuple[Any, list[str], str]]:
    """Describe topics of the same kind: their figures, some names, and how many more there are."""
    kinds: dict[str, tuple[Any, list[str]]] = {}
    for name, kind in topics:
        kinds.setdefault(repr(kind), (kind, []))[1].append(name)
    for kind, names in kinds.values():
        left_out = len(names) - MOST_ALIKE
        yield kind, names[:MOST_ALIKE], f"… {left_out} more like this" if left_out > 0 else ""


def _over_ids(moves_range: tuple[int, int] | None) -> str:
    if moves_range is None:
        return ""
    low, high = moves_range
    return (
        f"queues moved over 20 other sets of ids: {_range(low, high)} (the ids of joining "
        "consumers are\ninvented, and their position among the others determines what moves)"
    )


def _unread(lost_brokers: Sequence[str]) -> str:
    if not lost_brokers:
        return ""
    until = "it is back" if len(lost_brokers) == 1 else "they are back"
    names = ", ".join(lost_brokers)
    return f"messages left in the queues of {names} stay unread until {until}"


def _caveats(figures: StepMovement) -> str:
    reasons = dict.fromkeys(row.caveat for row in (figures.group, *figures.topics.values()))
    lines = [f"moved / fewest is not meaningful here: {reason}" for reason in reasons if reason]
    if figures.group.caveat is None and (figures.group.amplification or 1) < 1:
        lines.append("moved / fewest below 1: the result is less even than a balanced one")
    return "\n".join(lines[:MOST_ROWS])


def _languages(group: MixedGroup | None) -> str:
    """Return whether clients in different languages allocate identically, and otherwise their
    strategies.
    """
    if group is None:
        return ""
    if group.unsure:
        names = ", ".join(sorted({str(member.language) for member in group.unsure}))
        return f"languages: the queues that a client of {names} takes are unknown"
    both = " and ".join(sorted({str(member.language) for member in group.members}))
    if not (group.unowned or group.several):
        return f"languages: {both} leave out no queue and read no queue twice"
    lines = [
        f"languages: {both} divide differently: {len(group.unowned)} queues left out, "
        f"{len(group.several)} read by several"
    ]
    if alike := group.alike_by():
        lines.append(f"languages: {both} divide identically with {', '.join(alike)}")
    return "\n".join(lines)


def _sharing(before: Allocation, after: Allocation) -> str:
    """Return the shared topics before and after, the cost of a death, and modes without effect."""
    rows: list[tuple[str, str, str]] = []
    popped = dict.fromkeys((*before.pop, *after.pop))
    for (was, now), some, more in _alike(
        (t, (before.pop.get(t), after.pop.get(t))) for t in popped
    ):
        for topic in some:
            for name, cell in _POP_FIGURES:
                cells = ("-" if figures is None else cell(figures) for figures in (was, now))
                rows.append((f"{topic}: {name}", next(cells), next(cells)))
        if more:
            rows.append((more, "", ""))
    if rows:
        rows.append(
            (
                "held by a dead client, redelivered after",
                str(before.redelivery or "-"),
                str(after.redelivery or "-"),
            )
        )
        rows.insert(0, ("shared queues", "before", "after"))
    lines = [_aligned(rows)] if rows else []
    for when, allocation in (("before", before), ("after", after)):
        if allocation.unused_modes:
            topics = " ".join(allocation.unused_modes)
            lines.append(f"{when}: POP has no effect because no member queries a broker: {topics}")
    return "\n".join(lines)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


_POP_FIGURES: tuple[tuple[str, Callable[[PopFigures], str]], ...] = (
    ("readable queues", lambda f: str(f.queues)),
    ("clients per queue", lambda f: _range(f.min_clients_per_queue, f.max_clients_per_queue)),
    ("queues per client", lambda f: _range(f.min_queues_per_client, f.max_queues_per_client)),
    ("queues without a client", lambda f: str(f.unreached)),
)


def _consumers(before: Allocation, after: Allocation) -> str:
    rows = [
        (client_id, _load(before, client_id), _load(after, client_id))
        for client_id in sort_client_ids(before.loads.keys() | after.loads.keys())
    ]
    changed = [row for row in rows if row[1] != row[2]] if len(rows) > MOST_ROWS else rows
    return _truncated("consumer", changed, "consumers whose number changes")


def _load(allocation: Allocation, client_id: str) -> str:
    load = allocation.loads.get(client_id)
    processes = allocation.client_ids.count(client_id)
    if load is None:
        return "-"
    several = f" ({processes} processes)" if processes > 1 else ""
    reach = allocation.reach.get(client_id)
    if reach:
        whole = f"{load} + " if load else ""
        return f"{whole}{reach} shared{several}"
    if load == 0:
        return ("not known" if client_id in allocation.unknown else "idle") + several
    return str(load) + several


def _queues(before: Allocation, after: Allocation) -> str:
    rows = [
        (
            _short(q),
            _owners(before.owners.get(q), SHARED if q.topic in before.pop else NEW),
            _owners(after.owners.get(q), SHARED if q.topic in after.pop else GONE),
        )
        for q in changed_owners(before, after)
    ]
    if not rows:
        return "" if _all_shared(before, after) else "no queue changes hands"
    return _truncated("queue", rows, "queues that change hands")


def _truncated(kind: str, rows: Sequence[tuple[str, str, str]], what: str) -> str:
    table = _aligned([(kind, "before", "after"), *rows[:MOST_ROWS]])
    left_out = len(rows) - MOST_ROWS
    return f"{table}\n… and {left_out} more {what}" if left_out > 0 else table


def _short(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def _owners(owners: Sequence[str] | None, absent: str) -> str:
    return absent if owners is None else " ".join(owners) or NO_OWNER


def _names(names: Iterable[str]) -> str:
    return " ".join(sorted(names)) or "-"


def _meaningful(row: Movement, figure: float | None) -> str:
    """Return a figure that compares movement with the minimum; `_caveats` explains a missing
    figure.
    """
    return _number(figure) if row.caveat is None else NO_MEANING


def _number(figure: float | None) -> str:
    if figure is None:
        return "-"
    return str(figure) if isinstance(figure, int) else f"{figure:.2f}"


def _aligned(rows: Iterable[Sequence[str]]) -> str:
    """Return rows of strings with columns two spaces apart."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
