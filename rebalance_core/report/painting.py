"""Draws the cells of a timeline, one path per client, and small bars for running text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from rebalance_core.report import client_marks, svg
from rebalance_core.report.audit_report import GroupBalance, GroupCounts
from rebalance_core.report.client_marks import Mark
from rebalance_core.report.segments import NOBODY, is_shared
from rebalance_core.report.timeline_cells import Cell, text_of_cell

Placed = tuple[float, Cell]  # the top of the row, and the cell
LETTER_PX = 7
THIN_PX = 4


@dataclass(frozen=True, slots=True)
class Palette:
    """The marks of a drawing's clients and the ids of its patterns."""

    marks: Mapping[str, Mark]
    prefix: str

    def definitions(self) -> Markup:
        """Return the patterns of the marks."""
        patterns = [client_marks.definition(mark, self.prefix) for mark in self.marks.values()]
        return svg.joined(
            [
                *patterns,
                client_marks.nobody_definition(self.prefix),
                client_marks.many_definition(self.prefix),
            ]
        )

    def sample(self, client_id: str) -> Markup:
        """Return the client's sample in the legend."""
        mark, prefix = self.marks[client_id], f"{self.prefix}l"
        if mark.style is None:
            return Markup('<b class="number">{}</b>').format(mark.label)
        return client_marks.swatch(
            client_marks.paint(mark, prefix),
            client_marks.definition(mark, prefix),
            label=mark.label,
        )

    def signs(self, cells: Iterable[Sequence[Cell]]) -> tuple[tuple[Markup, str], ...]:
        """Return samples and labels for states other than clients."""
        drawn = [cell for row in cells for cell in row]
        name = f"{self.prefix}l"
        signs = (
            (
                any(cell.state == NOBODY and not cell.changes for cell in drawn),
                client_marks.swatch(
                    f"url(#{name}none)", client_marks.nobody_definition(name), client_marks.ALARM
                ),
                "no owner: no client reads the queue",
            ),
            (
                any(is_shared(cell.state) for cell in drawn),
                client_marks.swatch("#ffffff", Markup(""), client_marks.ALARM, "A+B"),
                "shared: more than one process owns the queue",
            ),
            (
                any(cell.changes for cell in drawn),
                client_marks.swatch(
                    f"url(#{name}many)", client_marks.many_definition(name), client_marks.INK
                ),
                "owners change too fast to draw",
            ),
        )
        return tuple((sample, words) for occurs, sample, words in signs if occurs)

    def painted(self, placed: Sequence[Placed], height: float) -> Markup:
        """Draw all cells, plain ones first, so that unowned, shared and crowded cells lie on
        top.
        """
        return svg.joined(
            [
                *self._plain(placed, height),
                self._crowds(placed, height),
                self._nobody(placed, height),
                self._outlines(placed, height),
                svg.tag("g", *self._words(placed, height), class_="m"),
            ]
        )

    def _plain(self, placed: Iterable[Placed], height: float) -> Iterable[Markup]:
        """Yield a path per paint, with thin cells last and without the gap that would hide them."""
        boxes: dict[tuple[bool, str], list[str]] = {}
        for top, cell in placed:
            if cell.changes or not cell.state:
                continue
            clients = self._clients(cell)[:2]
            share = height / len(clients)
            for line, client in enumerate(clients):
                fill = client_marks.paint(self.marks[client], self.prefix)
                drawn = svg.box(cell.left, top + line * share, cell.width, share)
                boxes.setdefault((cell.width < THIN_PX, fill), []).append(drawn)
        for thin, fill in sorted(boxes):
            gap = None if thin else "#fff"
            yield svg.tag("path", d="".join(boxes[thin, fill]), fill=fill, stroke=gap)

    def _crowds(self, placed: Iterable[Placed], height: float) -> Markup:
        shapes = [svg.box(c.left, top, c.width, height) for top, c in placed if c.changes]
        return _path(shapes, f"url(#{self.prefix}many)", client_marks.INK, "0.8")

    def _nobody(self, placed: Iterable[Placed], height: float) -> Markup:
        shapes = [
            svg.box(c.left + 0.5, top + 0.5, max(c.width - 1, 1), height - 1)
            for top, c in placed
            if c.state == NOBODY and not c.changes
        ]
        return _path(shapes, f"url(#{self.prefix}none)", client_marks.ALARM, "1")

    def _outlines(self, placed: Iterable[Placed], height: float) -> Markup:
        shapes = [
            svg.box(c.left + 0.5, top, max(c.width - 1, 1), height)
            for top, c in placed
            if is_shared(c.state)
        ]
        return _path(shapes, "none", client_marks.ALARM, "1.8")

    def _words(self, placed: Iterable[Placed], height: float) -> Iterable[Markup]:
        for top, cell in placed:
            holders = dict(cell.state or ())
            held = [
                (self.marks[client_id].label, holders[client_id])
                for client_id in self._clients(cell)
            ]
            word = text_of_cell(cell, held)
            if cell.width >= LETTER_PX * len(word) + 4:
                yield svg.tag("text", word, x=cell.left + cell.width / 2, y=top + height - 3)

    def _clients(self, cell: Cell) -> list[str]:
        """Return the cell's clients, largest share first."""
        held = {client for client, _ in cell.state or ()}
        return [client for client in self.marks if client in held] if len(held) > 1 else list(held)


def _path(boxes: Sequence[str], fill: str, stroke: str, width: str) -> Markup:
    if not boxes:
        return Markup("")
    return svg.tag("path", d="".join(boxes), fill=fill, stroke=stroke, stroke_width=width)


HEIGHT = 26
LOAD_WIDTH, MOVES_WIDTH, GROUPS_WIDTH = 220, 120, 420
WIDEST_BAR = 14
LOAD_INK, MOVES_INK = "#64748b", "#64748b"
MOST_TITLES = 40


@dataclass(frozen=True, slots=True)
class BalanceLine:
    """A group's row in the table of balance and movement."""

    balance: GroupBalance
    load: Markup
    moves: Markup
    moved: int
    words: str


def balance_line(balance: GroupBalance) -> BalanceLine:
    """Return the row with its bars."""
    return BalanceLine(
        balance,
        load_bars(balance),
        bars(pooled(balance.moved, MOVES_WIDTH // 2), MOVES_WIDTH, MOVES_INK),
        sum(balance.moved),
        load_words(balance),
    )


def load_bars(balance: GroupBalance) -> Markup:
    """Draw a bar per member (a dot if idle), largest first, and a line at the even share."""
    order = sorted(
        zip(balance.queues, balance.client_ids, strict=True), key=lambda p: (-p[0], p[1])
    )
    counts = pooled([count for count, _ in order], LOAD_WIDTH // 2, whole=False)
    titles = [f"{client}: {count}" for count, client in order] if len(order) <= MOST_TITLES else []
    even = sum(balance.queues) / len(balance.queues) if balance.queues else 0
    return bars(counts, LOAD_WIDTH, LOAD_INK, even, titles)


def load_words(balance: GroupBalance) -> str:
    """Return the same in words, naming the members with the most and the fewest queues."""
    if not balance.client_ids:
        return "no member"
    pairs = list(zip(balance.queues, balance.client_ids, strict=True))
    most = min(pairs, key=lambda pair: (-pair[0], pair[1]))
    least = min(pairs)
    if most[0] == least[0]:
        return f"each {most[0]:,}"
    return f"most {most[0]:,} ({most[1]}), least {least[0]:,} ({least[1]})"


def bars(
    counts: Sequence[float], width: int, colour: str, even: float = 0, titles: Sequence[str] = ()
) -> Markup:
    """Draw upright bars, at most `width` wide; if `even` is given, add its line and a dot for each
    0.
    """
    if not counts:
        return Markup("")
    step = min(width / len(counts), WIDEST_BAR)
    gap = 2 if step >= 6 else 0.5 if step >= 3 else 0
    top = max(max(counts), 1)
    room, base = HEIGHT - 7, HEIGHT - 5
    drawn, zeros = [], []
    for index, count in enumerate(counts):
        title = svg.tag("title", titles[index]) if titles else Markup("")
        tall = max(count / top * room, 1.0)
        x = index * step
        if count:
            area = {"x": x, "y": base - tall, "width": step - gap, "height": tall}
            drawn.append(svg.tag("rect", title, **area) if titles else svg.tag("rect", **area))
        elif even:
            zeros.append(f"M{svg.number(x + (step - gap) / 2)} {HEIGHT - 2}h0")
    right = svg.number(step * len(counts))
    lines = [svg.tag("path", d=f"M0 {base}.5H{right}", stroke=client_marks.LINE, fill="none")]
    if even:
        y = svg.number(base - even / top * room)
        dashes = svg.tag(
            "path",
            d=f"M0 {y}H{right}",
            stroke=client_marks.INK,
            stroke_dasharray="3 2",
            fill="none",
        )
        lines.append(dashes)
    if zeros:
        dot = {"stroke": client_marks.ALARM, "stroke_width": "3", "stroke_linecap": "round"}
        lines.append(svg.tag("path", d="".join(zeros), fill="none", **dot))
    inner = svg.tag("g", *drawn, fill=colour)
    return svg.tag("svg", inner, *lines, width=width, height=HEIGHT, role="img", aria_label="bars")


def pooled(counts: Sequence[int], most: int, whole: bool = True) -> list[float]:
    """Return at most `most` numbers by adding (`whole`) or averaging neighbours."""
    if len(counts) <= most:
        return [float(count) for count in counts]
    cuts = [part * len(counts) // most for part in range(most + 1)]
    parts = [counts[start:end] for start, end in pairwise(cuts)]
    return [sum(part) / (1 if whole else len(part)) for part in parts]


def group_bar(groups: GroupCounts) -> Markup:
    """Draw how the compared groups split, in one bar."""
    kinds = (
        (groups.equal, "#cbd5e1"),
        (groups.shared, "#93c5fd"),
        (groups.differing, client_marks.ALARM),
        (groups.unstable, "#94a3b8"),
        (groups.unknown, "#f1f5f9"),
    )
    whole = sum(count for count, _ in kinds)
    if not whole:
        return Markup("")
    left, parts = 0.0, []
    for count, colour in kinds:
        if count:
            width = max(count / whole * GROUPS_WIDTH, 3.0)
            area = {"x": left, "y": 0.5, "width": width, "height": 11}
            parts.append(svg.tag("rect", **area, fill=colour, stroke="#475569"))
            left += width
    view = f"-0.5 0 {svg.number(left + 1)} 12"
    drawn = svg.joined(parts)
    return svg.tag(
        "svg", drawn, viewBox=view, preserveAspectRatio="none", class_="split", height=12
    )
