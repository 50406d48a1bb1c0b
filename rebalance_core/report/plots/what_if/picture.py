"""What changes would do to each consumer, as a table: today, and after each change.

`states` gives the columns, `consumer_rows` the rows, `drawing` draws both; the page around them is
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import pandas as pd
from matplotlib.figure import Figure

from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.report.plots.labels import short
from rebalance_core.report.plots.plan_table import draw_summary
from rebalance_core.report.plots.steps import BELOW_ONE
from rebalance_core.report.plots.style import (
    LETTER,
    TOP,
    bare,
    head,
    note,
    note_height,
    nothing_to_draw,
    page,
    panel,
    styled,
)
from rebalance_core.report.plots.tabular import Rows
from rebalance_core.report.plots.what_if.consumer_rows import Row, rows_of
from rebalance_core.report.plots.what_if.drawing import draw_cells, draw_figures
from rebalance_core.report.plots.what_if.states import (
    Column,
    PlannedChange,
    columns_of,
    figures_of,
    strategy_text,
)

TITLE = "What if"
MOST_COLUMNS = 9
COLUMN, ROW, LINE, ACROSS, MOST_LINES = 1.24, 0.25, 0.13, 17, 8
"""Inches of a column, a row, a line of the head; letters in such a line, and how many lines."""
NO_MEANING = "n/a: moved / fewest means nothing there: {}."


@styled
def draw_what_if(what_if: PlannedChange | Iterable[PlannedChange] | Rows) -> Figure:
    """What changes would do: of one group consumer by consumer, or a row for each plan.

    Of what `planning.what_if` returned: a row for each consumer, a column for each state, in each
    cell the number of its queues. Idle cells are hatched and say so; a dot is a consumer that is
    not there. Changes that start from the same state share the column of today. Below: most and
    fewest, idle consumers, queues without an owner, queues moved, and the proven minimum where it
    means something. With more than 26 consumers, neighbours with equal numbers share a row; if that
    is still too many, those that are idle somewhere are drawn first and the rest is one row.

    Args:
        what_if: What `planning.what_if` returned, or several of them, at most 8 of one state; or
            rows of `plan_summary`: a row for each, before and after side by side, at most 40.

    Raises:
        UsageError: Columns of `plan_summary` are missing.
    """
    if not hasattr(what_if, "after"):
        what_if = what_if if isinstance(what_if, pd.DataFrame) else list(cast("Any", what_if))
        if len(what_if) and not hasattr(what_if[0] if isinstance(what_if, list) else 0, "after"):
            return draw_summary(cast("Rows", what_if))
    steps = (
        [cast("PlannedChange", what_if)]
        if hasattr(what_if, "after")
        else list(cast("Any", what_if))
    )
    if not steps:
        return nothing_to_draw(TITLE, "No change was asked.")
    columns = columns_of(steps)
    more = len(columns) - MOST_COLUMNS
    columns = columns[:MOST_COLUMNS]
    consumers = sort_client_ids({client for column in columns for client in column.loads})
    rows = rows_of(consumers, columns)
    figures = figures_of(columns)
    feet = _feet(columns, rows, more)
    left = 0.45 + LETTER * max(len(label) for label in [r.label for r in rows] + list(figures))
    width = max(left + COLUMN * len(columns) + 0.3, 6.4)
    heads = [wrapped(column.head) for column in columns]
    top = (0.24 + LINE * max(words.count("\n") + 1 for words in heads)) / ROW
    high = ROW * (top + len(rows) + len(figures)) + 0.12
    figure = page(TITLE, _subtitle(steps, consumers), TOP - 0.2 + high + note_height(feet), width)
    axes = panel(figure, left, TOP - 0.2, COLUMN * len(columns), high)
    bare(axes)
    axes.set_xlim(0, len(columns))
    axes.set_ylim(high / ROW, 0)
    for at, words in enumerate(heads):
        head(axes, at + 0.5, top - 0.12 / ROW, words, LINE / ROW)
    draw_cells(axes, rows, columns, top)
    draw_figures(axes, figures, top + len(rows))
    note(figure, feet)
    return figure


def wrapped(text: str) -> str:
    """A few lines of a column's width, broken between words where possible."""
    lines = [""]
    for word in text.replace("(", " (").split():
        word = short(word, ACROSS + 2)
        if lines[-1] and len(lines[-1]) + 1 + len(word) > ACROSS:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    more = len(lines) > MOST_LINES
    return "\n".join([*lines[: MOST_LINES - 1], lines[MOST_LINES - 1] + " …"] if more else lines)


def _subtitle(steps: Sequence[PlannedChange], consumers: Sequence[str]) -> str:
    names = dict.fromkeys(strategy_text(step.before) for step in steps)
    shown = ", ".join(short(name, 44) for name in list(names)[:2])
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"Queues of each consumer under {shown}{more}"


def _feet(columns: Sequence[Column], rows: Sequence[Row], more: int) -> list[str]:
    feet = [
        "Consumers as RocketMQ sorts them (Java's order of strings); hatched: idle; dot: not there."
    ]
    if any(row.many for row in rows):
        feet.append("Neighbours with equal numbers share a row.")
    if more > 0:
        feet.append(f"… and {more} more columns, not drawn.")
    if any(column.below for column in columns):
        feet.append(BELOW_ONE)
    reasons = dict.fromkeys(column.caveat for column in columns if column.caveat)
    feet += [short(NO_MEANING.format(reason), 110) for reason in list(reasons)[:2]]
    return feet
