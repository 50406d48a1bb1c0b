"""A `WhatIf` as text: figures before and after, then what changes, queue by queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.movement import Movement
from rebalance_core.planning.strategies.spi import PlanningStrategy

if TYPE_CHECKING:
    from rebalance_core.planning.what_if.what_if import Allocation, WhatIf

MOST_ROWS = 20
"""Of consumers and of queues; what is left out is counted."""

NOBODY, GONE, NEW = "(nobody)", "(gone)", "(new)"
NO_MEANING = "n/a"


def what_if_table(result: WhatIf) -> str:
    """The table; ASCII but for the names, columns aligned."""
    parts = [
        _aligned([(f"what if: {result.change}", "before", "after"), *_figures(result)]),
        _by_topic(result),
        _caveats(result),
        _consumers(result),
        _queues(result),
    ]
    return "\n\n".join(part for part in parts if part)


def label(strategy: PlanningStrategy) -> str:
    """The strategy's text, marked if RocketMQ has no such strategy."""
    return str(strategy) if strategy.of_rocketmq else f"{strategy} (not RocketMQ's)"


def _figures(result: WhatIf) -> Iterable[tuple[str, str, str]]:
    before, after, step = result.before, result.after, result.movement
    yield "strategy", label(before.strategy), label(after.strategy)
    yield "consumer processes", str(len(before.client_ids)), str(len(after.client_ids))
    was, now = before.figures.group, after.figures.group
    for name, old, new in (
        ("readable queues", was.queues, now.queues),
        ("most queues of one consumer", was.max_queues, now.max_queues),
        ("fewest queues of one consumer", was.min_queues, now.min_queues),
        ("peak / average", was.peak_ratio, now.peak_ratio),
        ("idle consumers", was.idle_members, now.idle_members),
        ("queues of nobody", len(before.orphaned), len(after.orphaned)),
        ("queues of several processes", len(before.shared), len(after.shared)),
    ):
        yield name, _number(old), _number(new)
    if before.frozen_topics or after.frozen_topics:
        yield "frozen topics", _names(before.frozen_topics), _names(after.frozen_topics)
    yield "queues moved", "", str(step.moved)
    yield "  that a living holder gave up", "", str(step.voluntary_moves)
    yield "  fewest for a balanced result", "", _meaningful(step, step.minimum_moves)
    yield "  moved / fewest", "", _meaningful(step, step.amplification)
    yield "queues kept", "", "-" if step.stickiness is None else f"{step.stickiness:.0%}"


def _by_topic(result: WhatIf) -> str:
    topics = result.after.figures.topics
    if len(topics) < 2:
        return ""
    head = ("topic", "queues", "moved", "fewest", "moved / fewest", "most", "idle")
    rows = [
        (
            name, str(row.queues), str(row.moved), _meaningful(row, row.minimum_moves),
            _meaningful(row, row.amplification), str(row.max_queues), str(row.idle_members),
        )
        for name, row in topics.items()
    ]  # fmt: skip
    return _aligned([head, *rows])


def _caveats(result: WhatIf) -> str:
    figures = result.after.figures
    reasons = dict.fromkeys(row.caveat for row in (figures.group, *figures.topics.values()))
    lines = [f"moved / fewest means nothing here: {reason}" for reason in reasons if reason]
    if figures.group.caveat is None and (figures.group.amplification or 1) < 1:
        lines.append("moved / fewest below 1: the result is less even than a balanced one")
    return "\n".join(lines[:MOST_ROWS])


def _consumers(result: WhatIf) -> str:
    before, after = result.before.loads, result.after.loads
    rows = [
        (client_id, _load(result.before, client_id), _load(result.after, client_id))
        for client_id in sort_client_ids(before.keys() | after.keys())
    ]
    changed = [row for row in rows if row[1] != row[2]] if len(rows) > MOST_ROWS else rows
    return _cut("consumer", changed, "consumers whose number changes")


def _load(allocation: Allocation, client_id: str) -> str:
    load = allocation.loads.get(client_id)
    twins = allocation.client_ids.count(client_id)
    if load is None:
        return "-"
    return ("idle" if load == 0 else str(load)) + (f" ({twins} processes)" if twins > 1 else "")


def _queues(result: WhatIf) -> str:
    before, after = result.before.owners, result.after.owners
    rows = [
        (_short(q), _owners(before.get(q), NEW), _owners(after.get(q), GONE)) for q in result.moved
    ]
    return _cut("queue", rows, "queues that change hands") if rows else "no queue changes hands"


def _cut(kind: str, rows: Sequence[tuple[str, str, str]], what: str) -> str:
    table = _aligned([(kind, "before", "after"), *rows[:MOST_ROWS]])
    left_out = len(rows) - MOST_ROWS
    return f"{table}\n… and {left_out} more {what}" if left_out > 0 else table


def _short(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def _owners(owners: Sequence[str] | None, absent: str) -> str:
    return absent if owners is None else " ".join(owners) or NOBODY


def _names(names: Iterable[str]) -> str:
    return " ".join(sorted(names)) or "-"


def _meaningful(row: Movement, figure: float | None) -> str:
    """A figure of movement against the minimum; `_caveats` says why there is none."""
    return _number(figure) if row.caveat is None else NO_MEANING


def _number(figure: float | None) -> str:
    if figure is None:
        return "-"
    return str(figure) if isinstance(figure, int) else f"{figure:.2f}"


def _aligned(rows: Iterable[Sequence[str]]) -> str:
    """Rows of texts, columns two spaces apart."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
