"""Paints the cells of a timeline: one path for each client, whatever the number of its cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rebalance_core.report.page.patterns import (
    ALARM,
    INK,
    Mark,
    definition,
    many_definition,
    nobody_definition,
    paint,
    swatch,
)
from rebalance_core.report.page.svg import box, joined, tag
from rebalance_core.report.timeline.owner_segments import NOBODY, is_shared
from rebalance_core.report.timeline.painted_cells import Cell

Placed = tuple[float, Cell]  # the top of its row, and the cell
LETTER_PX = 7
THIN_PX = 4
NO_OWNER_TEXT = "no owner"


@dataclass(frozen=True, slots=True)
class Palette:
    """The marks of a picture's clients and the ids of its patterns."""

    marks: Mapping[str, Mark]
    prefix: str

    def clients_in(self, cells: Iterable[Sequence[Cell]]) -> set[str]:
        """The clients that cells are painted for."""
        drawn = (cell for row in cells for cell in row if not cell.changes)
        return {client for cell in drawn for client, _ in cell.state or ()}

    def definitions(self, cells: Sequence[Sequence[Cell]]) -> Markup:
        """The patterns that the cells need."""
        seen = self.clients_in(cells)
        marks = [mark for client, mark in self.marks.items() if client in seen]
        patterns = [definition(mark, self.prefix) for mark in marks]
        return joined([*patterns, nobody_definition(self.prefix), many_definition(self.prefix)])

    def sample(self, client_id: str) -> Markup:
        """The client's sample in the legend."""
        mark, prefix = self.marks[client_id], f"{self.prefix}l"
        if mark.style is None:
            return Markup('<b class="number">{}</b>').format(mark.label)
        return swatch(paint(mark, prefix), definition(mark, prefix), label=mark.label)

    def signs(self, cells: Iterable[Sequence[Cell]]) -> tuple[tuple[Markup, str], ...]:
        """Samples and words for what occurs beside clients."""
        drawn = [cell for row in cells for cell in row]
        name = f"{self.prefix}l"
        signs = (
            (
                any(cell.state == NOBODY and not cell.changes for cell in drawn),
                swatch(f"url(#{name}none)", nobody_definition(name), ALARM),
                "no owner: nobody reads the queue",
            ),
            (
                any(is_shared(cell.state) for cell in drawn),
                swatch("#ffffff", Markup(""), ALARM, "A+B"),
                "shared: more than one process owns the queue",
            ),
            (
                any(cell.changes for cell in drawn),
                swatch(f"url(#{name}many)", many_definition(name), INK),
                "owners change too fast to draw",
            ),
        )
        return tuple((sample, words) for occurs, sample, words in signs if occurs)

    def painted(self, placed: Sequence[Placed], height: float) -> Markup:
        """All cells; plain ones first, so that unowned, shared and crowded ones lie on top."""
        return joined(
            [
                *self._plain(placed, height),
                self._crowds(placed, height),
                self._nobody(placed, height),
                self._outlines(placed, height),
                *self._words(placed, height),
            ]
        )

    def _plain(self, placed: Iterable[Placed], height: float) -> Iterable[Markup]:
        """One path for each paint; thin cells last and without a gap, which would hide them."""
        boxes: dict[tuple[bool, str], list[str]] = {}
        for top, cell in placed:
            if cell.changes or not cell.state:
                continue
            clients = self._clients(cell)[:2]
            share = height / len(clients)
            for at, client in enumerate(clients):
                fill = paint(self.marks[client], self.prefix)
                drawn = box(cell.left, top + at * share, cell.width, share)
                boxes.setdefault((cell.width < THIN_PX, fill), []).append(drawn)
        for thin, fill in sorted(boxes):
            gap = None if thin else "#fff"
            yield tag("path", d="".join(boxes[thin, fill]), fill=fill, stroke=gap)

    def _crowds(self, placed: Iterable[Placed], height: float) -> Markup:
        shapes = [box(c.left, top, c.width, height) for top, c in placed if c.changes]
        return _path(shapes, f"url(#{self.prefix}many)", INK, "0.8")

    def _nobody(self, placed: Iterable[Placed], height: float) -> Markup:
        shapes = [
            box(c.left + 0.5, top + 0.5, max(c.width - 1, 1), height - 1)
            for top, c in placed
            if c.state == NOBODY and not c.changes
        ]
        return _path(shapes, f"url(#{self.prefix}none)", ALARM, "1")

    def _outlines(self, placed: Iterable[Placed], height: float) -> Markup:
        shapes = [
            box(c.left + 0.5, top, max(c.width - 1, 1), height)
            for top, c in placed
            if is_shared(c.state)
        ]
        return _path(shapes, "none", ALARM, "1.8")

    def _words(self, placed: Iterable[Placed], height: float) -> Iterable[Markup]:
        for top, cell in placed:
            word = self._word(cell)
            if word and cell.width >= LETTER_PX * len(word) + 4:
                yield tag(
                    "text", word, x=cell.left + cell.width / 2, y=top + height - 3, class_="m"
                )

    def _word(self, cell: Cell) -> str:
        if cell.changes:
            return f"{cell.changes:,} changes"
        if not cell.state:
            return NO_OWNER_TEXT
        clients = self._clients(cell)
        holders = dict(cell.state)
        labels = [
            self.marks[c].label + (f"×{holders[c]}" if holders[c] > 1 else "") for c in clients[:2]
        ]
        more = [f"{len(clients) - 2}"] if len(clients) > 2 else []
        return "+".join(labels) + "".join(f" and {count} more" for count in more)

    def _clients(self, cell: Cell) -> list[str]:
        """The cell's clients, those with the largest share first."""
        held = {client for client, _ in cell.state or ()}
        return [client for client in self.marks if client in held] if len(held) > 1 else list(held)


def _path(boxes: Sequence[str], fill: str, stroke: str, width: str) -> Markup:
    if not boxes:
        return Markup("")
    return tag("path", d="".join(boxes), fill=fill, stroke=stroke, stroke_width=width)
