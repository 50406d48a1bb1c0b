"""What stands around the cells of a timeline: grid, hours, names of topics and queues, flags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from rebalance_core.report.page.cause_flags import Flag
from rebalance_core.report.page.patterns import INK, QUIET
from rebalance_core.report.page.svg import joined, number, tag
from rebalance_core.report.page.visible import columns, shortened, visible
from rebalance_core.report.timeline.axis import Axis
from rebalance_core.report.timeline.folding import Row

WIDTH, LABELS, RIGHT = 980, 264, 14
HEAD = 44
ROW, TOPIC_ROW = 17, 21
LABEL_COLUMNS, TOPIC_COLUMNS = 34, 120

AFTER_NAME = Markup("&#8206; ")  # a left-to-right mark: the ids stay behind an Arabic name


def places(rows: Sequence[Row]) -> tuple[list[float], list[tuple[float, str]], float]:
    """The top of each row, the base line and name of each topic, the bottom of all."""
    tops: list[float] = []
    topics: list[tuple[float, str]] = []
    y, topic = float(HEAD), None
    for row in rows:
        if row.topic != topic:
            topic = row.topic
            topics.append((y + TOPIC_ROW - 6, topic))
            y += TOPIC_ROW
        tops.append(y)
        y += ROW
    return tops, topics, y


def draw_grid(axis: Axis, bottom: float) -> Markup:
    """A line for each tick, its time above and below."""
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
    rows: Sequence[Row], tops: Sequence[float], topics: Sequence[tuple[float, str]]
) -> Markup:
    """Names, clipped where an unusual font makes them too wide."""
    names = [
        tag(
            "svg",
            *(_label(row, top) for row, top in zip(rows, tops, strict=True)),
            width=LABELS - 6,
            height=(tops[-1] if tops else HEAD) + ROW,
        )
    ]
    headings = [
        tag("text", tag("title", topic), shortened(topic, TOPIC_COLUMNS), x=0, y=y, class_="t")
        for y, topic in topics
    ]
    return joined(headings + names)


def _label(row: Row, top: float) -> Markup:
    broker = shortened(row.broker_name, max(LABEL_COLUMNS - columns(row.label) - 1, 5))
    whole = visible(row.broker_name)
    words = tag(
        "text",
        tag("title", f"{whole} {row.label}") if broker != whole else "",
        broker,
        Markup(" ") if broker.isascii() else AFTER_NAME,
        row.label,
        x=11,
        y=top + 11,
        class_=None if row.named else "q",
    )
    if not row.named:
        return words
    return tag("path", d=f"M1 {number(top + 3)}l6 4l-6 4z", fill=INK) + words


def draw_flags(flags: Iterable[Flag], bottom: float) -> Markup:
    """The numbers of the causes, each with a line through the rows."""
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
