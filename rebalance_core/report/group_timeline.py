"""The drawing of owners over time, with a row per queue and time running to the right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rebalance_core.report.audit_report import Cause, GroupTimeline
from rebalance_core.report.client_marks import INK, QUIET, marks_of
from rebalance_core.report.painting import Palette
from rebalance_core.report.segments import ClientShare, client_shares, segments
from rebalance_core.report.svg import XMLNS, joined, number, tag
from rebalance_core.report.time_axis import Axis
from rebalance_core.report.timeline_cells import MOST_CELLS, cells_of, clients_in, places
from rebalance_core.report.timeline_rows import TimelineRow, rows_of
from rebalance_core.report.visible import columns, shortened, visible

NEAR_PX = 30


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag at pixel `x` for the causes numbered `first` to `last`."""

    x: float
    first: int
    last: int

    @property
    def label(self) -> str:
        """``4``, or ``4-6``."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def in_window(causes: Iterable[Cause], axis: Axis) -> list[Cause]:
    """Return the causes inside the axis, in order of time."""
    inside = [cause for cause in causes if axis.from_ms <= cause.time_ms <= axis.to_ms]
    return sorted(inside, key=lambda cause: (cause.time_ms, cause.text))


def flags_of(causes: Iterable[Cause], axis: Axis) -> list[Flag]:
    """Return a flag for each run of causes that lie within a flag's width of its first."""
    flags: list[Flag] = []
    for place, cause in enumerate(causes, start=1):
        x = axis.at(cause.time_ms)
        if flags and x - flags[-1].x < NEAR_PX:
            flags[-1] = Flag(flags[-1].x, flags[-1].first, place)
        else:
            flags.append(Flag(x, place, place))
    return flags


RIGHT = 14
HEAD = 44
ROW, TOPIC_ROW = 17, 21


@dataclass(frozen=True, slots=True)
class Layout:
    """The width of a drawing, and the part taken by the names of queues.

    Attributes:
        name: its class in the page, which shows one layout at a time.
        width: total pixels; labels: pixels to the left of the cells.
        label_columns: characters of a queue's name; topic_columns: those of a topic's name.
        ticks: the maximum number of times on the axis; cells: the maximum number of cells.
    """

    name: str
    width: int
    labels: int
    label_columns: int
    topic_columns: int
    ticks: int
    cells: int

    def axis(self, from_ms: int, to_ms: int) -> Axis:
        """Return the time axis; an empty window is drawn as one second."""
        width = self.width - self.labels - RIGHT
        return Axis(from_ms, max(to_ms, from_ms + 1000), self.labels, width, self.ticks)


WIDE = Layout("wide", 980, 264, 34, 120, 8, MOST_CELLS)
NARROW = Layout("narrow", 460, 122, 15, 64, 3, MOST_CELLS // 3)
"""For phone screens, on which the text of the wide layout would be too small."""

AFTER_NAME = Markup("&#8206; ")  # a left-to-right mark keeps the ids behind an Arabic name


def draw_grid(axis: Axis, bottom: float) -> Markup:
    """Draw a line for each tick, with its time above and below."""
    ticks = [(axis.at(time_ms), text) for time_ms, text in axis.ticks()]
    lines = "".join(f"M{number(x)} {HEAD - 6}V{number(bottom + 4)}" for x, _ in ticks)
    end = axis.left + axis.width
    words = [
        tag("text", text, x=x, y=y, class_="q", text_anchor=_anchor(x, text, end))
        for y in ((HEAD - 11), bottom + 17)
        for x, text in ticks
    ]
    return joined(
        [
            tag("path", d=lines, stroke="#cbd5e1", fill="none"),
            tag("text", "UTC", x=11, y=HEAD - 11, class_="q"),
            *words,
        ]
    )


def _anchor(x: float, text: str, end: float) -> str:
    return "end" if x + 3.4 * len(text) > end + RIGHT else "middle"


def draw_labels(
    rows: Sequence[TimelineRow],
    tops: Sequence[float],
    topics: Sequence[tuple[float, str]],
    layout: Layout = WIDE,
) -> Markup:
    """Draw names, clipped if an unusual font makes them too wide."""
    placed = list(zip(rows, tops, strict=True))
    labels = [_label(row, top, layout.label_columns) for row, top in placed]
    named = [top for row, top in placed if row.named]
    marks = "".join(f"M1 {number(top + 3)}l6 4l-6 4z" for top in named)
    names = [
        tag(
            "svg",
            tag("path", d=marks, fill=INK) if marks else "",
            *(label for label, row in zip(labels, rows, strict=True) if row.named),
            tag(
                "g",
                *(label for label, row in zip(labels, rows, strict=True) if not row.named),
                class_="q",
            ),
            width=layout.labels - 6,
            height=(tops[-1] if tops else HEAD) + ROW,
        )
    ]
    headings = [
        tag(
            "text",
            tag("title", topic),
            shortened(topic, layout.topic_columns),
            x=0,
            y=y,
            class_="t",
        )
        for y, topic in ((top + TOPIC_ROW - 6, topic) for top, topic in topics)
    ]
    return joined(headings + names)


def _label(row: TimelineRow, top: float, most: int) -> Markup:
    broker = shortened(row.broker_name, max(most - columns(row.label) - 1, 5))
    whole = visible(row.broker_name)
    return tag(
        "text",
        tag("title", f"{whole} {row.label}") if broker != whole else "",
        broker,
        Markup(" ") if broker.isascii() else AFTER_NAME,
        row.label,
        x=11,
        y=top + 11,
    )


def draw_flags(flags: Iterable[Flag], bottom: float) -> Markup:
    """Draw the numbers of the causes, each with a line through the rows."""
    parts = []
    for flag in flags:
        width = 7 * len(flag.label) + 7
        title = tag("title", f"cause {flag.label}, listed below")
        line = f"M{number(flag.x)} 16V{number(bottom)}"
        parts += [
            tag("path", d=line, stroke=INK, stroke_dasharray="2 3", opacity="0.55", fill="none"),
            tag("rect", title, x=flag.x - width / 2, y=1, width=width, height=15, rx=3, fill=QUIET),
            tag("text", flag.label, x=flag.x, y=12, class_="f"),
        ]
    return joined(parts)


STYLE = """
.timeline text{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1e293b}
.timeline .q{fill:#475569}.timeline .t{font-weight:700}
.timeline .m text,.timeline .f{text-anchor:middle;font-weight:700}
.timeline .m{paint-order:stroke;stroke:#fff;stroke-width:3px}.timeline .f{fill:#fff}
"""


@dataclass(frozen=True, slots=True)
class Legend:
    """A client in the legend: its sample, name, share of queue time, and queues at the start and
    the end.
    """

    sample: Markup
    client: ClientShare


@dataclass(frozen=True, slots=True)
class TimelineSvg:
    """A timeline as the page shows it.

    Attributes:
        svg: the drawing; narrow: the same for a narrow window, reusing the patterns of the first.
        clients: the legend of the clients in the drawing, in the order of their marks.
        clients_unseen: the number of clients that held queues only in rows not drawn.
        signs: samples with labels for the special states that occur: no owner, shared, too fast to
            draw.
        causes: what the numbered flags mean, in order.
        queues: the group's number of queues.
        folded: whether a row may stand for several queues.
        rows_left_out: the number of rows not drawn; queues_left_out: the number of queues in them.
        troubled_left_out: the number of these rows that had no owner, or several, at some time.
    """

    cluster: str
    consumer_group: str
    svg: Markup
    narrow: Markup
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
) -> TimelineSvg:
    """Draw a group's ownership over the audit run.

    Args:
        timeline: the group.
        from_ms: start of the window, epoch ms.
        to_ms: its end; an empty window is drawn as one second.
        prefix: prefix of the ids in the drawing, unique within the page.
        named: queues (topic, broker name, queue id) that a finding names, which take precedence.
    """
    axis = WIDE.axis(from_ms, to_ms)
    by_stretches = {
        stretches: segments(stretches, axis.from_ms, axis.to_ms)
        for stretches in {queue.stretches for queue in timeline.queues}
    }
    histories = [by_stretches[queue.stretches] for queue in timeline.queues]
    rows = rows_of(zip(timeline.queues, histories, strict=True), named)
    shares = client_shares(histories)
    cells = cells_of(rows.shown, axis)
    drawn = client_shares(row.history for row in rows.shown for _ in row.queue_ids)
    palette = Palette(marks_of([share.client_id for share in drawn]), prefix)
    causes = in_window(timeline.causes, axis)
    seen = clients_in(cells)
    whole = {share.client_id: share for share in shares}
    return TimelineSvg(
        cluster=timeline.cluster,
        consumer_group=timeline.consumer_group,
        svg=_drawing(timeline.consumer_group, rows.shown, palette, axis, causes, WIDE),
        narrow=_drawing(
            timeline.consumer_group,
            rows.shown,
            palette,
            NARROW.axis(from_ms, to_ms),
            causes,
            NARROW,
        ),
        clients=tuple(
            Legend(palette.sample(client), whole[client])
            for client in palette.marks
            if client in seen
        ),
        clients_unseen=len(shares) - len(seen),
        signs=palette.signs(cells),
        causes=tuple(causes),
        queues=len(timeline.queues),
        folded=rows.folded,
        rows_left_out=len(rows.left_out),
        queues_left_out=sum(len(row.queue_ids) for row in rows.left_out),
        troubled_left_out=sum(row.troubled for row in rows.left_out),
    )


def _drawing(
    group: str,
    rows: Sequence[TimelineRow],
    palette: Palette,
    axis: Axis,
    causes: Iterable[Cause],
    layout: Layout,
) -> Markup:
    cells = cells_of(rows, axis, layout.cells)
    # the narrow drawing uses the style and the patterns of the wide one beside it
    shared = [tag("style", Markup(STYLE)), tag("defs", palette.definitions())]
    tops, topics, bottom = places(rows, float(HEAD), ROW, TOPIC_ROW)
    height = bottom + 22
    placed = [(top, cell) for top, row in zip(tops, cells, strict=True) for cell in row]
    return tag(
        "svg",
        *(shared if layout == WIDE else ()),
        draw_grid(axis, bottom),
        draw_labels(rows, tops, topics, layout),
        palette.painted(placed, ROW - 3),
        draw_flags(flags_of(causes, axis), bottom),
        xmlns=XMLNS,
        viewBox=f"0 0 {layout.width} {number(height)}",
        width=layout.width,
        height=height,
        class_=f"timeline {layout.name}",
        role="img",
        aria_label=f"Owners of the queues of {visible(group)}",
    )
