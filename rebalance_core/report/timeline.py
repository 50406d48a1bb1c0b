"""Who held each queue when, as rows ready to draw: segments, folded where queues share their
history.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from markupsafe import Markup

from rebalance_core.model.times import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, utc, utc_time
from rebalance_core.report.audit_report import OwnerSpan, QueueHistory
from rebalance_core.strategies.pop import WHOLE_BROKER

# Who held a queue, as segments that do not overlap.

State = tuple[tuple[str, int], ...] | None
"""Clients with their holders, by name; () = no owner; None = the queue was not there."""

NOBODY: State = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """A time in which nothing changes for the queue."""

    from_ms: int
    to_ms: int
    state: State


def is_shared(state: State) -> bool:
    """Return True if more than one process holds the queue."""
    return state is not None and sum(holders for _, holders in state) > 1


def segments(stretches: Iterable[OwnerSpan], from_ms: int, to_ms: int) -> tuple[Segment, ...]:
    """Return the window without gap or overlap; times outside all stretches have state None."""
    inside = [
        (max(s.from_ms, from_ms), to_ms if s.to_ms is None else min(s.to_ms, to_ms), s)
        for s in stretches
    ]
    inside = [(start, end, s) for start, end, s in inside if start < end]
    borders = sorted(
        {from_ms, to_ms} | {border for start, end, _ in inside for border in (start, end)}
    )
    starts: dict[int, list[OwnerSpan]] = {}
    ends: dict[int, list[OwnerSpan]] = {}
    for start, end, stretch in inside:
        starts.setdefault(start, []).append(stretch)
        ends.setdefault(end, []).append(stretch)
    active: Counter[OwnerSpan] = Counter()
    joined: list[Segment] = []
    for start, end in pairwise(borders):
        active.subtract(ends.get(start, ()))
        active.update(starts.get(start, ()))
        state = _state(+active)
        if joined and joined[-1].state == state:
            joined[-1] = Segment(joined[-1].from_ms, end, state)
        else:
            joined.append(Segment(start, end, state))
    return tuple(joined)


def _state(active: Mapping[OwnerSpan, int]) -> State:
    if not active:
        return None
    holders: Counter[str] = Counter()
    for stretch in active:
        if stretch.client_id is not None:
            holders[stretch.client_id] = max(holders[stretch.client_id], stretch.holders, 1)
    return tuple(sorted(holders.items()))


@dataclass(frozen=True, slots=True)
class ClientShare:
    """How much of the group's queue time a client had, and its queues at both ends."""

    client_id: str
    share: float
    queues_first: int
    queues_last: int


def client_shares(histories: Iterable[tuple[Segment, ...]]) -> list[ClientShare]:
    """Return every client that held a queue, the largest share first."""
    held: Counter[str] = Counter()
    first: Counter[str] = Counter()
    last: Counter[str] = Counter()
    whole = 0
    for history in histories:
        for segment in history:
            span = segment.to_ms - segment.from_ms
            whole += span if segment.state is not None else 0
            for client, _ in segment.state or ():
                held[client] += span
        first.update(client for client, _ in history[0].state or ())
        last.update(client for client, _ in history[-1].state or ())
    order = sorted(held, key=lambda client: (-held[client], client))
    return [ClientShare(c, held[c] / whole, first[c], last[c]) for c in order]


# Rows of a timeline: one per queue, or folded where queues share their history.

MOST_ROWS = 60
RANGES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """Queues of one topic on one broker that have the same history."""

    topic: str
    broker_name: str
    queue_ids: tuple[int, ...]
    history: tuple[Segment, ...]
    named: bool = False  # a finding names one of the queues

    @property
    def troubled(self) -> bool:
        """True if at some time no process, or more than one, held the queue."""
        return any(s.state == NOBODY or is_shared(s.state) for s in self.history)

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """Rank what is worth drawing first: named, then troubled, then with any change."""
        return not self.named, not self.troubled, len(self.history) <= 1

    @property
    def label(self) -> str:
        """The queue ids: ``7``, or ``0-63 (64 queues)``."""
        ids = ranges(self.queue_ids)
        count = len(self.queue_ids)
        return ids if count == 1 else f"{ids} ({count:,} queues)"


@dataclass(frozen=True, slots=True)
class TimelineRows:
    """The rows that are drawn, and how many are not.

    Attributes:
        shown: in the order of the queues.
        folded: True if a row may stand for several queues.
        left_out: the rows not drawn.
    """

    shown: tuple[TimelineRow, ...]
    folded: bool
    left_out: tuple[TimelineRow, ...]


def rows_of(
    histories: Iterable[tuple[QueueHistory, tuple[Segment, ...]]],
    named: frozenset[tuple[str, str, int]] = frozenset(),
    most: int = MOST_ROWS,
) -> TimelineRows:
    """Return at most `most` rows, in order.

    Too many rows: neighbouring queues with the same history become one row; if that is not
    enough, all queues of a topic and broker with the same history; then rows are left out: first
    those without any change, last those that a finding names.
    """
    rows = [
        TimelineRow(q.topic, q.broker_name, (q.queue_id,), history, _key(q) in named)
        for q, history in histories
    ]
    folded = len(rows) > most
    if folded:
        rows = fold_neighbours(rows)
    if len(rows) > most:
        rows = fold_equal(rows)
    order = sorted(range(len(rows)), key=lambda place: (rows[place].rank, place))
    keep = set(order[:most])
    return TimelineRows(
        tuple(row for place, row in enumerate(rows) if place in keep),
        folded,
        tuple(row for place, row in enumerate(rows) if place not in keep),
    )


def fold_neighbours(rows: Sequence[TimelineRow]) -> list[TimelineRow]:
    """Make runs of rows of one topic and broker with the same history one row."""
    return [_folded(list(run)) for _, run in groupby(rows, key=_same)]


def fold_equal(rows: Sequence[TimelineRow]) -> list[TimelineRow]:
    """Make all rows of one topic and broker with the same history one, where the first was."""
    together: dict[Hashable, list[TimelineRow]] = {}
    for row in rows:
        together.setdefault(_same(row), []).append(row)
    return [_folded(group) for group in together.values()]


def ranges(queue_ids: Iterable[int]) -> str:
    """Return queue ids in short form; -1 is any queue of the broker.

    >>> ranges([0, 1, 2, 3, 7]), ranges(range(0, 5000, 3)), ranges([-1, 0])
    ('0-3, 7', '0, 3, 6 … 4998', 'any, 0')
    """
    ids = set(queue_ids)
    runs: list[list[int]] = []
    for queue_id in sorted(ids - {WHOLE_BROKER}):
        if runs and runs[-1][1] == queue_id - 1:
            runs[-1][1] = queue_id
        else:
            runs.append([queue_id, queue_id])
    texts = ["any"] if WHOLE_BROKER in ids else []
    texts += [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    if len(texts) <= RANGES_SHOWN + 1:
        return ", ".join(texts)
    return ", ".join(texts[:RANGES_SHOWN]) + " … " + texts[-1]


def _key(queue: QueueHistory) -> tuple[str, str, int]:
    return queue.topic, queue.broker_name, queue.queue_id


def _same(row: TimelineRow) -> tuple[str, str, tuple[Segment, ...]]:
    return row.topic, row.broker_name, row.history


def _folded(rows: Sequence[TimelineRow]) -> TimelineRow:
    return TimelineRow(
        rows[0].topic,
        rows[0].broker_name,
        tuple(queue_id for row in rows for queue_id in row.queue_ids),
        rows[0].history,
        any(row.named for row in rows),
    )


# A time axis: where the ticks are and what they say.

TICKS = 8
STEPS_MS = (
    *(SECOND_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(MINUTE_MS * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * n for n in (1, 2, 3, 6, 12)),
    *(DAY_MS * n for n in (1, 2, 7, 14, 28, 91, 182, 365)),
)


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps times of a window onto pixels."""

    from_ms: int
    to_ms: int
    left: float
    width: float

    def at(self, time_ms: int) -> float:
        """Return the pixel of a time inside the window."""
        return self.left + self.width * (time_ms - self.from_ms) / (self.to_ms - self.from_ms)

    def ticks(self) -> list[tuple[int, str]]:
        """Round times with their text; the day is named where it changes."""
        span = self.to_ms - self.from_ms
        step = next((s for s in STEPS_MS if span <= s * TICKS), -(-span // TICKS))
        first = -(-self.from_ms // step) * step
        ticks, day = [], ""
        for time_ms in range(first, self.to_ms + 1, step):
            today = utc(time_ms, "%m-%d")
            ticks.append((time_ms, _text(time_ms, step, today if today != day else "")))
            day = today
        return ticks


def _text(time_ms: int, step: int, day: str) -> str:
    if step >= DAY_MS:
        return utc(time_ms, "%Y-%m-%d")
    clock = utc(time_ms, "%H:%M" if step >= MINUTE_MS else "%H:%M:%S")
    return f"{day} {clock}" if day else clock


# What is painted of a row: segments in pixels, short segments kept visible, crowds of them as one.

THINNEST_PX = 2.0
CROWD_PX = (3, 6, 12, 24, 48)
"""Segments narrower than this that follow each other are one cell; the first that fits is used."""

MOST_CELLS = 1500
"""In one picture: what keeps twenty pictures well below 2 MB."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A painted piece of a row; `changes` > 0: so many changes that are too close to draw."""

    left: float
    width: float
    state: State
    changes: int = 0


def clients_in(cells: Iterable[Sequence[Cell]]) -> set[str]:
    """Return the clients that cells are painted for."""
    drawn = (cell for row in cells for cell in row if not cell.changes)
    return {client for cell in drawn for client, _ in cell.state or ()}


def text_of_cell(cell: Cell, held: Sequence[tuple[str, int]]) -> str:
    """Say who has a queue: ``held`` are the marks of its clients and their numbers of holders."""
    if cell.changes:
        return f"{cell.changes:,} changes"
    if not held:
        return "no owner"
    labels = [mark + (f"×{holders}" if holders > 1 else "") for mark, holders in held]
    return "+".join(labels[:2]) + (f" and {len(labels) - 2} more" if labels[2:] else "")


def places(
    rows: Sequence[TimelineRow], begin: float, high: float, head: float
) -> tuple[list[float], list[tuple[float, str]], float]:
    """Lay out rows below each other, under a head for each topic.

    Args:
        rows: in their order.
        begin: the top of the first head.
        high: the height of a row.
        head: the height of a head.

    Returns:
        The top of each row; the top and topic of each head; the bottom of all.
    """
    tops: list[float] = []
    heads: list[tuple[float, str]] = []
    top, topic = begin, None
    for row in rows:
        if row.topic != topic:
            heads.append((top, row.topic))
            top, topic = top + head, row.topic
        tops.append(top)
        top += high
    return tops, heads, top


def cells_of(rows: Sequence[TimelineRow], axis: Axis) -> list[list[Cell]]:
    """Return the cells of each row."""
    for crowd in CROWD_PX:
        drawn = [row_cells(row.history, axis, crowd) for row in rows]
        if sum(map(len, drawn)) <= MOST_CELLS:
            break
    return drawn


def row_cells(history: Iterable[Segment], axis: Axis, crowd_px: float) -> list[Cell]:
    """Return the cells of one row, without times at which the queue did not exist."""
    cells: list[Cell] = []
    crowd: list[Segment] = []
    for segment in history:
        if axis.at(segment.to_ms) - axis.at(segment.from_ms) < crowd_px:
            crowd.append(segment)
            continue
        cells += _crowded(crowd, axis)
        crowd = []
        cells += _cell(segment, axis)
    return cells + _crowded(crowd, axis)


def _crowded(crowd: Sequence[Segment], axis: Axis) -> list[Cell]:
    if len(crowd) <= 1:
        return [cell for segment in crowd for cell in _cell(segment, axis)]
    worst = max(crowd, key=lambda segment: (is_shared(segment.state), segment.state == NOBODY))
    whole = Segment(crowd[0].from_ms, crowd[-1].to_ms, worst.state)
    return [Cell(c.left, c.width, c.state, len(crowd) - 1) for c in _cell(whole, axis, True)]


def _cell(segment: Segment, axis: Axis, crowd: bool = False) -> list[Cell]:
    if segment.state is None and not crowd:
        return []
    left, right = axis.at(segment.from_ms), axis.at(segment.to_ms)
    width = max(right - left, THINNEST_PX)
    return [Cell(min(left, axis.left + axis.width - width), width, segment.state)]


# Times and durations as the page shows them.


def time_tag(time_ms: int | None) -> Markup:
    """Return a ``<time>`` element: seconds to read, milliseconds for a program; "–" for None."""
    if time_ms is None:
        return Markup("–")
    if utc_time(time_ms) is None:
        return Markup("<span>{} ms</span>").format(time_ms)
    exact = utc(time_ms, "%Y-%m-%dT%H:%M:%S") + f".{time_ms % SECOND_MS:03d}Z"
    return Markup('<time datetime="{}">{}</time>').format(exact, utc(time_ms))


def duration(span_ms: int) -> str:
    """Return a duration in its two largest units.

    >>> duration(29_400_000), duration(90_000), duration(450)
    ('8 h 10 min', '1 min 30 s', '450 ms')
    """
    units = (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", SECOND_MS))
    parts = []
    for name, size in units:
        if span_ms >= size:
            parts.append(f"{span_ms // size:,} {name}")
        elif parts:
            parts.append("")
        span_ms %= size
    return " ".join(part for part in parts[:2] if part) or f"{span_ms} ms"
