"""The picture of who owned which queue when: rows are queues, time goes to the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rebalance_core.report.audit_report import Cause, GroupTimeline
from rebalance_core.report.page.cause_flags import Flag, flags_of, in_window
from rebalance_core.report.page.frame import (
    LABELS,
    RIGHT,
    ROW,
    WIDTH,
    draw_flags,
    draw_grid,
    draw_labels,
    places,
)
from rebalance_core.report.page.painting import Palette
from rebalance_core.report.page.patterns import marks_of
from rebalance_core.report.page.svg import XMLNS, number, tag
from rebalance_core.report.page.visible import visible
from rebalance_core.report.timeline.axis import Axis
from rebalance_core.report.timeline.folding import Row, rows_of
from rebalance_core.report.timeline.owner_segments import (
    ClientShare,
    client_shares,
    segments,
)
from rebalance_core.report.timeline.painted_cells import Cell, cells_of

STYLE = """
.timeline text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1e293b}
.timeline .q{fill:#475569}.timeline .t{font-weight:700}
.timeline .m{text-anchor:middle;font-weight:700;paint-order:stroke;stroke:#fff;stroke-width:3px}
.timeline .f{text-anchor:middle;font-weight:700;fill:#fff}
"""


@dataclass(frozen=True, slots=True)
class Legend:
    """A client of the picture: its sample, name, share of queue time, queues at both ends."""

    sample: Markup
    client: ClientShare


@dataclass(frozen=True, slots=True)
class Picture:
    """A timeline as the page shows it.

    Attributes:
        svg: the drawing.
        clients: the legend: those that the drawing shows, in the order of their marks.
        clients_unseen: how many held queues in rows that are not drawn only.
        signs: samples with words: no owner, shared, too fast to draw; those that occur.
        causes: what the numbered flags mean, in order.
        queues: how many queues the group has.
        folded: True if a row may stand for several queues.
        rows_left_out: rows not drawn; queues_left_out: queues in them.
        troubled_left_out: rows not drawn that had no owner, or several, at some time.
    """

    cluster: str
    consumer_group: str
    svg: Markup
    clients: tuple[Legend, ...]
    clients_unseen: int
    signs: tuple[tuple[Markup, str], ...]
    causes: tuple[Cause, ...]
    queues: int
    folded: bool
    rows_left_out: int
    queues_left_out: int
    troubled_left_out: int


def draw_timeline(
    timeline: GroupTimeline,
    from_ms: int,
    to_ms: int,
    prefix: str,
    named: frozenset[tuple[str, str, int]] = frozenset(),
) -> Picture:
    """Draw a group's ownership over the audit run.

    Args:
        timeline: the group.
        from_ms: start of the window, epoch ms.
        to_ms: its end; an empty window is drawn as one second.
        prefix: begins the ids in the drawing; another for each drawing of a page.
        named: queues (topic, broker name, queue id) that a finding names: drawn first of all.
    """
    axis = Axis(from_ms, max(to_ms, from_ms + 1000), LABELS, WIDTH - LABELS - RIGHT)
    known = {
        stretches: segments(stretches, axis.from_ms, axis.to_ms)
        for stretches in {queue.stretches for queue in timeline.queues}
    }
    histories = [known[queue.stretches] for queue in timeline.queues]
    rows = rows_of(zip(timeline.queues, histories, strict=True), named)
    shares = client_shares(histories)
    cells = cells_of(rows.shown, axis)
    drawn = client_shares(row.history for row in rows.shown for _ in row.queue_ids)
    palette = Palette(marks_of([share.client_id for share in drawn]), prefix)
    causes = in_window(timeline.causes, axis)
    seen = palette.clients_in(cells)
    whole = {share.client_id: share for share in shares}
    return Picture(
        timeline.cluster,
        timeline.consumer_group,
        _drawing(timeline.consumer_group, rows.shown, cells, palette, axis, flags_of(causes, axis)),
        tuple(
            Legend(palette.sample(client), whole[client])
            for client in palette.marks
            if client in seen
        ),
        len(shares) - len(seen),
        palette.signs(cells),
        tuple(causes),
        len(timeline.queues),
        rows.folded,
        len(rows.left_out),
        sum(len(row.queue_ids) for row in rows.left_out),
        sum(row.troubled for row in rows.left_out),
    )


def _drawing(
    group: str,
    rows: Sequence[Row],
    cells: Sequence[Sequence[Cell]],
    palette: Palette,
    axis: Axis,
    flags: Iterable[Flag],
) -> Markup:
    tops, topics, bottom = places(rows)
    height = bottom + 22
    placed = [(top, cell) for top, row in zip(tops, cells, strict=True) for cell in row]
    return tag(
        "svg",
        tag("style", Markup(STYLE)),
        tag("defs", palette.definitions(cells)),
        draw_grid(axis, bottom),
        draw_labels(rows, tops, topics),
        palette.painted(placed, ROW - 3),
        draw_flags(flags, bottom),
        xmlns=XMLNS,
        viewBox=f"0 0 {WIDTH} {number(height)}",
        width=WIDTH,
        height=height,
        class_="timeline",
        role="img",
        aria_label=f"Who owned the queues of {visible(group)}",
    )
