"""The owners of a group's queues over time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.report import segments, timeline_cells, timeline_rows
from rebalance_core.report.audit_report import OwnerSpan, QueueHistory
from rebalance_core.report.plots import clock_axis, letters, plot_rows, style
from rebalance_core.report.timeline_cells import Cell
from rebalance_core.report.timeline_rows import TimelineRows

TINTS = ("#d5e3f5", "#f4f6f9", "#aebfd4")
HATCHES = ("", "////", "....", "----")


@dataclass(frozen=True, slots=True)
class Style:
    """The mark of a client; labels are unique, while tints and hatches repeat."""

    label: str
    tint: str
    hatch: str


def marks_of(clients: Sequence[str]) -> dict[str, Style]:
    """Return a mark for each client; neighbours differ in tint and hatch, and labels are letters,
    then numbers.

    >>> [mark.label for mark in marks_of(["x", "y"]).values()]
    ['A', 'B']
    """
    few = len(clients) <= len(ascii_uppercase)
    return {
        client: Style(
            ascii_uppercase[number] if few else str(number + 1),
            TINTS[number % len(TINTS)],
            HATCHES[number % len(HATCHES)],
        )
        for number, client in enumerate(clients)
    }


TITLE = "Who owned which queue"
COLUMNS = ("consumer_group", "topic", "broker_name", "queue_id", "client_id", "from_ms", "to_ms")
RETRY = "%RETRY%"
MOST_ROWS = 48
MOST_KEYS = 36
CROWD_HATCH = "||||||"
ROW = 0.225

Corners = list[tuple[float, float]]


@style.styled
def draw_ownership(ownership: plot_rows.PlotRows) -> Figure:
    """Draw a row per queue over time, with each owner as a letter with its tint and hatch.

    With more than 48 queues, only those that changed hands are drawn (if any did), and queues of a
    broker with the same history share a row. Rows beyond that are left out and counted.

    Args:
        ownership: Rows of `ownership` for one group. Retry topics are left out.

    Raises:
        UsageError: Columns are missing, or the rows belong to several groups.
    """
    frame = plot_rows.table(ownership, COLUMNS, {"cluster": "", "holders": 1})
    _, group = plot_rows.only(frame, ("cluster", "consumer_group"), TITLE)
    frame = frame[[not str(topic).startswith(RETRY) for topic in frame["topic"]]]
    if frame.empty:
        return style.nothing_to_draw(TITLE, "No queue.")
    ends = [_end(end) for end in frame["to_ms"]]
    histories = _histories(frame, ends)
    span = clock_axis.clock(frame["from_ms"].astype(int), ends, 1.0)
    segmented = [
        (queue, segments.segments(queue.stretches, span.from_ms, span.to_ms)) for queue in histories
    ]
    rows = _moving(timeline_rows.rows_of(segmented, most=MOST_ROWS))
    labels = [letters.short(f"{row.broker_name} {row.label}", 34) for row in rows.shown]
    left = max(0.4 + style.LETTER * max(map(len, labels)), 1.3)
    axis = clock_axis.clock(frame["from_ms"].astype(int), ends, style.WIDTH - left - 0.3)
    cells = timeline_cells.cells_of(rows.shown, axis)
    marks = marks_of(sort_client_ids({c for c in frame["client_id"] if isinstance(c, str)}))
    samples = [*_clients(marks, cells), *_signs(cells)]
    feet = _feet(rows, marks)
    columns = 1 if not samples else max(1, min(3, -(-len(samples) // 2)))
    legend = 0.2 + 0.18 * -(-len(samples) // columns)
    tops, heads, _ = timeline_cells.places(rows.shown, 0.0, 1.0, 1.0)
    high = (tops[-1] + 1) * ROW
    title, subtitle = f"{TITLE}: {letters.short(group, 44)}", _subtitle(len(histories), axis)
    figure = style.page(title, subtitle, high + 0.4 + legend, feet)
    axes = style.panel(figure, left, style.TOP - 0.1, axis.width / 100, high)
    style.bare(axes)
    clock_axis.draw_clock(axes, axis)
    axes.set_ylim(tops[-1] + 1, 0)
    axes.set_yticks([top + 0.5 for top in tops], labels, family=style.MONO, color=style.INK)
    axes.tick_params(axis="y", length=0)
    for top, topic in heads:
        axes.text(
            0,
            top + 0.78,
            letters.short(topic, 90),
            size=style.SMALL,
            weight="bold",
            color=style.QUIET,
        )
    placed = [(top, cell) for top, row in zip(tops, cells, strict=True) for cell in row]
    _paint(axes, placed, marks)
    style.key(figure, samples, 0.2, style.TOP + high + 0.35, columns)
    return figure


def _moving(rows: TimelineRows) -> TimelineRows:
    """If there are too many queues, keep only those that changed owners, if any did."""
    moving = tuple(row for row in rows.shown if len(row.history) > 1)
    if not rows.folded or not moving:
        return rows
    still = tuple(row for row in rows.shown if len(row.history) <= 1)
    return TimelineRows(moving, rows.folded, (*still, *rows.left_out))


def _end(end: Any) -> int | None:
    return None if end is None or end != end else int(end)


def _histories(frame: Any, ends: Sequence[int | None]) -> list[QueueHistory]:
    held: dict[MessageQueue, list[OwnerSpan]] = {}
    columns = (frame[name] for name in (*COLUMNS[1:6], "holders"))
    for topic, broker, queue_id, client_id, from_ms, holders, to_ms in zip(
        *columns, ends, strict=True
    ):
        owner = client_id if isinstance(client_id, str) else None
        queue = MessageQueue(str(topic), str(broker), int(queue_id))
        held.setdefault(queue, []).append(OwnerSpan(int(from_ms), to_ms, owner, int(holders)))
    return [
        QueueHistory(queue.topic, queue.broker_name, queue.queue_id, tuple(held[queue]))
        for queue in sort_queues(held)
    ]


def _paint(axes: Axes, placed: Iterable[tuple[float, Cell]], marks: Mapping[str, Style]) -> None:
    """Draw one collection per kind of paint, whatever the number of cells."""
    boxes: dict[tuple[str, str, str, float], list[Corners]] = {}
    for top, cell in placed:
        for paint, corners in _boxes(top, cell, marks):
            boxes.setdefault(paint, []).append(corners)
        _word(axes, top, cell, marks)
    for (face, edge, hatch, line), cells in sorted(boxes.items()):
        axes.add_collection(
            PolyCollection(
                cells,
                facecolors=face,
                edgecolors=edge,
                hatch=hatch or None,
                linewidths=line,
                zorder=2 if edge == style.ALARM else 1,
            )
        )


def _boxes(
    top: float, cell: Cell, marks: Mapping[str, Style]
) -> Iterable[tuple[tuple[str, str, str, float], Corners]]:
    left, right = cell.left, cell.left + cell.width
    if cell.changes:
        yield (style.PAPER, style.INK, CROWD_HATCH, 0.5), _box(left, right, top + 0.08, top + 0.92)
        return
    if not cell.state:
        yield (
            (style.PAPER, style.ALARM, style.NOBODY_HATCH, 0.8),
            _box(left, right, top + 0.08, top + 0.92),
        )
        return
    clients = [client for client, _ in cell.state][:2]
    share = 0.84 / len(clients)
    for line, client in enumerate(clients):
        low = top + 0.08 + line * share
        mark = marks[client]
        yield (mark.tint, "#8496ad", mark.hatch, 0.5), _box(left, right, low, low + share)
    if segments.is_shared(cell.state):
        yield ("none", style.ALARM, "", 1.4), _box(left, right, top + 0.08, top + 0.92)


def _box(left: float, right: float, low: float, high: float) -> Corners:
    return [(left, low), (right, low), (right, high), (left, high)]


def _word(axes: Axes, top: float, cell: Cell, marks: Mapping[str, Style]) -> None:
    held = [(marks[client].label, holders) for client, holders in cell.state or ()]
    word = timeline_cells.text_of_cell(cell, held)
    if cell.width > 100 * style.LETTER * (len(word) + 0.8):
        axes.text(
            cell.left + cell.width / 2, top + 0.53, word, ha="center", va="center",
            size=style.SMALL - 0.5, weight="bold", zorder=3,
            bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
        )  # fmt: skip


def _clients(marks: Mapping[str, Style], cells: Iterable[Sequence[Cell]]) -> list[Any]:
    drawn = timeline_cells.clients_in(cells)
    seen = [client for client in marks if client in drawn]
    samples = [
        Patch(
            facecolor=marks[client].tint,
            edgecolor="#8496ad",
            hatch=marks[client].hatch,
            linewidth=0.5,
            label=f"{marks[client].label}  {letters.short(client, 34)}",
        )
        for client in seen[:MOST_KEYS]
    ]
    if len(seen) > MOST_KEYS:
        words = f"… and {len(seen) - MOST_KEYS:,} more, in the same order"
        samples.append(Patch(facecolor="none", edgecolor="none", label=words))
    return samples


def _signs(cells: Sequence[Sequence[Cell]]) -> list[Any]:
    drawn = [cell for row in cells for cell in row]
    signs = (
        (
            any(cell.state == segments.NOBODY and not cell.changes for cell in drawn),
            Patch(
                facecolor=style.PAPER,
                edgecolor=style.ALARM,
                hatch=style.NOBODY_HATCH,
                label="no owner",
            ),
        ),
        (
            any(segments.is_shared(cell.state) for cell in drawn),
            Patch(
                facecolor=style.PAPER,
                edgecolor=style.ALARM,
                linewidth=1.4,
                label="A+B: several own it",
            ),
        ),
        (
            any(cell.changes for cell in drawn),
            Patch(
                facecolor=style.PAPER,
                edgecolor=style.INK,
                hatch=CROWD_HATCH,
                label="changes too fast to draw",
            ),
        ),
    )
    return [sample for shown, sample in signs if shown]


def _subtitle(queues: int, axis: Any) -> str:
    return f"{queues:,} queue{'s' if queues != 1 else ''}, {clock_axis.from_to(axis)}"


def _feet(rows: TimelineRows, marks: Mapping[str, Style]) -> list[str]:
    feet = []
    if rows.folded:
        feet.append("Queues of one broker with the same history share a row.")
    if rows.left_out:
        queues = sum(len(row.queue_ids) for row in rows.left_out)
        never = all(len(row.history) <= 1 for row in rows.left_out)
        what = ", which never changed hands" if never else ""
        feet.append(
            f"… and {queues:,} more queues in {len(rows.left_out):,} rows, not drawn{what}."
        )
    kind = "Letters" if all(mark.label.isalpha() for mark in marks.values()) else "Numbers"
    feet.append(
        f"{kind} in the order in which RocketMQ sorts the consumers (Java's order of strings)."
    )
    return feet
