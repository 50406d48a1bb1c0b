"""Draws the effect of changes, with a column per state and a row per consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, cast

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from rebalance_core.model.queue import sort_client_ids
from rebalance_core.report.plots import letters, shading, style
from rebalance_core.report.plots.moves import BELOW_ONE
from rebalance_core.report.plots.plan_table import draw_summary
from rebalance_core.report.plots.plot_rows import PlotRows
from rebalance_core.report.plots.style import head


# The parts of each state in a drawing of changes: a head, the load of each consumer, the figures.
# The drawing accepts any object with these attributes, so this package does not depend on
# `planning`.
class PlannedState(Protocol):
    """What the drawing reads from a state; `planning.Allocation` provides it."""

    @property
    def strategy(self) -> Any:
        """The strategy of all members; its ``of_rocketmq`` is True for RocketMQ's own."""

    @property
    def loads(self) -> Mapping[str, int]:
        """The number of queues by client id."""

    @property
    def orphaned(self) -> Sequence[Any]:
        """Readable queues without an owner."""


class PlannedChange(Protocol):
    """What the drawing reads from a change; `planning.WhatIf` provides it."""

    @property
    def change(self) -> Any:
        """The requested change, whose text is the head of a column."""

    @property
    def before(self) -> PlannedState:
        """The current state."""

    @property
    def after(self) -> PlannedState:
        """The state once every member has seen the change."""

    @property
    def movement(self) -> Any:
        """``moved``, ``minimum_moves``, and ``caveat``: why the minimum is meaningless, or None."""


@dataclass(frozen=True, slots=True)
class PictureColumn:
    """A state: its head, the load of each consumer, and the figures at the foot."""

    head: str
    loads: Mapping[str, int]
    orphaned: int
    moved: str = ""
    fewest: str = ""
    caveat: str | None = None
    below: bool = False  # moves less than any balanced result would


def columns_of(steps: Sequence[PlannedChange]) -> list[PictureColumn]:
    """Return each change after its starting state, which appears once for a run of changes."""
    starts = [(strategy_text(step.before), dict(step.before.loads)) for step in steps]
    several = any(start != starts[0] for start in starts)
    columns = []
    for number, step in enumerate(steps):
        if number == 0 or starts[number] != starts[number - 1]:
            name = f"before: {starts[number][0]}" if several else "today"
            columns.append(_today(step.before, name))
        columns.append(_after(step))
    return columns


def _today(state: PlannedState, head: str) -> PictureColumn:
    return PictureColumn(head, state.loads, len(state.orphaned))


def _after(step: PlannedChange) -> PictureColumn:
    moves, caveat = step.movement, step.movement.caveat
    fewest = moves.minimum_moves
    what, _, strategy = str(step.change).partition(", strategy ")
    return PictureColumn(
        head=f"{strategy}: {what}" if strategy else what,
        loads=step.after.loads,
        orphaned=len(step.after.orphaned),
        moved=f"{moves.moved:,}",
        fewest="n/a" if caveat or fewest is None else f"{fewest:,}",
        caveat=caveat,
        below=not caveat and fewest is not None and moves.moved < fewest,
    )


def strategy_text(state: PlannedState) -> str:
    """Return the strategy, marked if it is not RocketMQ's."""
    of_rocketmq = getattr(state.strategy, "of_rocketmq", True)
    return str(state.strategy) if of_rocketmq else f"{state.strategy} (not RocketMQ's)"


def figures_of(columns: Sequence[PictureColumn]) -> dict[str, list[str]]:
    """Return the lines at the foot: for each label, one string per column."""

    def of_loads(figure: Callable[[list[int]], int]) -> list[str]:
        return [f"{figure(list(column.loads.values()) or [0]):,}" for column in columns]

    lines = {
        "consumers": [f"{len(column.loads):,}" for column in columns],
        "most queues of one": of_loads(max),
        "fewest": of_loads(min),
        "idle consumers": [f"{list(c.loads.values()).count(0):,}" for c in columns],
        "queues without an owner": [f"{column.orphaned:,}" for column in columns],
        "queues moved": [column.moved for column in columns],
        "proven fewest": [column.fewest for column in columns],
    }
    if not any(column.orphaned for column in columns):
        del lines["queues without an owner"]
    return lines


MOST_ROWS = 26


@dataclass(frozen=True, slots=True)
class PictureRow:
    """Consumers with equal loads in every column (None if absent), or the omitted ones."""

    label: str
    loads: tuple[tuple[int | None, ...], ...]
    """The distinct loads in each column, ascending."""
    idle: tuple[int, ...]
    """The number of idle consumers in each column."""
    many: bool = False


def rows_of(consumers: Sequence[str], columns: Sequence[PictureColumn]) -> list[PictureRow]:
    """Return at most `MOST_ROWS` rows; consecutive equal loads share a row, and idle ones take
    precedence.

    Args:
        consumers: Client ids of all columns, in drawing order.
        columns: The states.
    """
    loads = {c: tuple(column.loads.get(c) for column in columns) for c in consumers}
    if len(consumers) <= MOST_ROWS:
        return [_row([client], loads) for client in consumers]
    runs = [list(run) for _, run in groupby(consumers, key=loads.__getitem__)]
    if len(runs) <= MOST_ROWS:
        return [_row(run, loads) for run in runs]
    idle_first = sorted(
        range(len(runs)), key=lambda run_number: (0 not in loads[runs[run_number][0]], run_number)
    )
    shown = set(idle_first[: MOST_ROWS - 1])
    rest = [
        client for run_number, run in enumerate(runs) if run_number not in shown for client in run
    ]
    rows = [_row(run, loads) for run_number, run in enumerate(runs) if run_number in shown]
    return [*rows, _row(rest, loads, f"… and {len(rest):,} more")]


def _row(
    clients: Sequence[str], loads: Mapping[str, tuple[int | None, ...]], label: str = ""
) -> PictureRow:
    per_column = list(zip(*(loads[client] for client in clients), strict=True))
    if not label:
        more = f" and {len(clients) - 1:,} more" if len(clients) > 1 else ""
        label = letters.short(clients[0], 30) + more
    return PictureRow(
        label,
        tuple(
            tuple(sorted(set(column), key=lambda n: -1 if n is None else n))
            for column in per_column
        ),
        tuple(column.count(0) for column in per_column),
        len(clients) > 1,
    )


IDLE = "idle"


def draw_cells(
    axes: Axes, rows: Sequence[PictureRow], columns: Sequence[PictureColumn], first: float
) -> None:
    """Draw a line of cells for each row, the first at ``first``, with labels to the left."""
    most = max([load for column in columns for load in column.loads.values()], default=0)
    held, shades, idle = [], [], []
    labels = []
    for number, row in enumerate(rows):
        top = first + number
        labels.append((top + 0.5, row.label))
        for column, loads in enumerate(row.loads):
            present = [load for load in loads if load is not None]
            corners = [
                (column + x, top + y)
                for x, y in ((0.04, 0.05), (0.96, 0.05), (0.96, 0.95), (0.04, 0.95))
            ]
            if not present:
                axes.text(column + 0.5, top + 0.5, "·", ha="center", va="center", color=style.QUIET)
                continue
            if present == [0]:
                idle.append(corners)
            else:
                held.append(corners)
                shades.append(shading.shade(present[-1], most))
            _number(axes, (column + 0.5, top + 0.52), present, row, row.idle[column], most)
    axes.add_collection(PolyCollection(held, facecolors=shades, edgecolors="none"))
    style.hatched(axes, idle, style.IDLE_HATCH)
    axes.set_yticks(
        [place for place, _ in labels],
        [label for _, label in labels],
        family=style.MONO,
        color=style.INK,
    )
    axes.tick_params(axis="y", length=0)


def _number(
    axes: Axes,
    place: tuple[float, float],
    loads: Sequence[int],
    row: PictureRow,
    idle: int,
    most: int,
) -> None:
    if loads == [0]:
        text = f"{IDLE} ×{idle:,}" if row.many else IDLE
    elif len(loads) == 1:
        text = f"{loads[0]:,} each" if row.many else f"{loads[0]:,}"
    else:
        text = f"{loads[0]:,}–{loads[-1]:,}" + (f", {idle:,} {IDLE}" if idle else "")
    box = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.2} if loads == [0] else None
    axes.text(
        *place,
        text,
        ha="center",
        va="center",
        size=style.SMALL,
        color=shading.text_on(loads[-1], most),
        weight="bold" if idle else "normal",
        bbox=box,
    )


def draw_figures(axes: Axes, figures: Mapping[str, Sequence[str]], top: float) -> None:
    """Draw a line per figure below a rule at ``top``; figures map a label to strings by column."""
    line = top + 0.25
    axes.plot(axes.get_xlim(), (line, line), color=style.QUIET, linewidth=0.8)
    for number, (label, texts) in enumerate(figures.items()):
        middle = line + number + 0.55
        axes.text(
            -0.035,
            middle,
            label,
            ha="right",
            va="center",
            size=style.SMALL,
            color=style.QUIET,
            family=style.MONO,
            clip_on=False,
        )
        for column, text in enumerate(texts):
            strong = label == "idle consumers" and text not in ("", "0")
            axes.text(
                column + 0.5,
                middle,
                text,
                ha="center",
                va="center",
                size=style.SMALL,
                weight="bold" if strong else "normal",
            )


# The effect of changes on each consumer, as a table: today, and after each change.
# `columns_of` returns the columns and `rows_of` the rows, `draw_cells` and `draw_figures` draw
# them, and the page around them is here.
TITLE = "What if"
MOST_COLUMNS = 9
COLUMN, ROW, LINE, ACROSS, MOST_LINES = 1.24, 0.25, 0.13, 17, 8
"""Inches per column, row and line of the head; letters per such line, and the number of lines."""
NO_MEANING = "n/a: moved / fewest is not meaningful: {}."


@style.styled
def draw_what_if(what_if: PlannedChange | Iterable[PlannedChange] | PlotRows) -> Figure:
    """Draw what changes would do, either to a group consumer by consumer, or as a row per plan.

    A result of `planning.what_if` has a row per consumer and a column per state; each cell shows
    the number of queues. Idle cells are hatched and labelled; a dot marks an absent consumer.
    Changes that start from the same state share its column. The foot shows the most and fewest
    queues, idle consumers, queues without an owner, queues moved, and the proven minimum where it
    is meaningful. With more than 26 consumers, neighbours with equal numbers share a row; if there
    are still too many, those that are idle in some state come first and the rest share one row.

    Args:
        what_if: One or several results of `planning.what_if`, at most 8 from the same state, or at
            most 40 rows of `plan_summary`, each drawn as a row with before and after side by side.

    Raises:
        UsageError: Columns of `plan_summary` are missing.
    """
    if not hasattr(what_if, "after"):
        what_if = what_if if isinstance(what_if, pd.DataFrame) else list(cast("Any", what_if))
        if len(what_if) and not hasattr(what_if[0] if isinstance(what_if, list) else 0, "after"):
            return draw_summary(cast("PlotRows", what_if))
    steps = (
        [cast("PlannedChange", what_if)]
        if hasattr(what_if, "after")
        else list(cast("Any", what_if))
    )
    if not steps:
        return style.nothing_to_draw(TITLE, "No change was requested.")
    columns = columns_of(steps)
    more = len(columns) - MOST_COLUMNS
    columns = columns[:MOST_COLUMNS]
    consumers = sort_client_ids({client for column in columns for client in column.loads})
    rows = rows_of(consumers, columns)
    figures = figures_of(columns)
    feet = _feet(columns, rows, more)
    left = 0.45 + style.LETTER * max(
        len(label) for label in [r.label for r in rows] + list(figures)
    )
    width = max(left + COLUMN * len(columns) + 0.3, 6.4)
    heads = [wrapped(column.head) for column in columns]
    top = (0.24 + LINE * max(words.count("\n") + 1 for words in heads)) / ROW
    high = ROW * (top + len(rows) + len(figures)) + 0.12
    figure = style.page(TITLE, _subtitle(steps, consumers), high - 0.2, feet, width)
    axes = style.panel(figure, left, style.TOP - 0.2, COLUMN * len(columns), high)
    style.bare(axes)
    axes.set_xlim(0, len(columns))
    axes.set_ylim(high / ROW, 0)
    for column, words in enumerate(heads):
        head(axes, column + 0.5, top - 0.12 / ROW, words, LINE / ROW)
    draw_cells(axes, rows, columns, top)
    draw_figures(axes, figures, top + len(rows))
    return figure


def wrapped(text: str) -> str:
    """Wrap text into a few lines of a column's width, between words if possible."""
    lines = [""]
    for word in text.replace("(", " (").split():
        word = letters.short(word, ACROSS + 2)
        if lines[-1] and len(lines[-1]) + 1 + len(word) > ACROSS:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    more = len(lines) > MOST_LINES
    return "\n".join([*lines[: MOST_LINES - 1], lines[MOST_LINES - 1] + " …"] if more else lines)


def _subtitle(steps: Sequence[PlannedChange], consumers: Sequence[str]) -> str:
    names = dict.fromkeys(strategy_text(step.before) for step in steps)
    shown = ", ".join(letters.short(name, 44) for name in list(names)[:2])
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"Queues of each consumer under {shown}{more}"


def _feet(columns: Sequence[PictureColumn], rows: Sequence[PictureRow], more: int) -> list[str]:
    feet = [
        "Consumers as RocketMQ sorts them (Java's order of strings); hatched: idle; dot: not a "
        "member."
    ]
    if any(row.many for row in rows):
        feet.append("Neighbours with equal numbers share a row.")
    if more > 0:
        feet.append(f"… and {more} more columns, not drawn.")
    if any(column.below for column in columns):
        feet.append(BELOW_ONE)
    reasons = dict.fromkeys(column.caveat for column in columns if column.caveat)
    feet += [letters.short(NO_MEANING.format(reason), 110) for reason in list(reasons)[:2]]
    return feet
