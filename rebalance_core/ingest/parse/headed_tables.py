"""Tables from mqadmin, read by their headers, as columns may be added, moved, collapsed or
separated by tabs.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

from rebalance_core.ingest.fact import UNPARSABLE_LINE, Unreadable, shown
from rebalance_core.ingest.parse.printf_rows import PrintfRow

_TITLE = re.compile(r"#([^#\s](?:[^#]*[^#\s])?)")
_LONGEST = 2_000
"""Maximum number of characters in a row matched by patterns; rows of a printed table have some
300.
"""
_MOST_UNKNOWN = 2
"""Maximum number of runs of unknown columns among the known ones; each may be of any length."""


class Column(NamedTuple):
    """The form of the values in a column.

    Attributes:
        form: a regular expression without groups that matches every value and as little else as
            possible, to show where a value ends if no padding separates it from the next.
        gap: the number of blanks between its padding and the next column.
        code: the code for refusing a row because of its value.
        what: a description of the value.
        placed: False for a column whose title upstream does not print directly above its values.
    """

    form: str
    gap: int = 2
    code: str = UNPARSABLE_LINE
    what: str = "one word"
    placed: bool = True


WORD, WORDS = r"(?!\")\S+", r"\S(?:.*?\S)?"
"""No name begins with a quotation mark; a program put it around the value."""
BROKER = r"(?!\")(?:(?!\s-?\d+\s+-?\d+(?:\s|$)).)+?"
"""A name that may contain spaces, but not its row's own numbers, which show that two rows were
joined.
"""


_PADDED = re.compile(r"\S {3,}#")
"""If a header's spaces were collapsed or became tabs, no title is padded."""


class _Layout(NamedTuple):
    """The layout that follows from a header and the forms of its columns; dumps have few distinct
    headers.

    Attributes:
        titles: the titles of the columns, in order.
        indent: the number of blanks before the first title.
        padded: whether any title is padded.
        gaps: the number of blanks after each column except the last.
        widths: the widths of the columns with a gap.
        row: the row as printf pads it.
        forms: number, title and form of each requested column.
        by_form: the row as the forms of its columns, separated by blanks; None if too many are
            unknown.
    """

    titles: tuple[str, ...]
    indent: int
    padded: bool
    gaps: list[int]
    widths: list[int]
    row: PrintfRow
    forms: list[tuple[int, str, re.Pattern[str]]]
    by_form: re.Pattern[str] | None


@lru_cache(maxsize=256)
def _layout(header: str, column_items: tuple[tuple[str, Column], ...]) -> _Layout:
    columns = dict(column_items)
    placed = [(match[1], match.start()) for match in _TITLE.finditer(header)]
    if len({title for title, _ in placed}) < len(placed):
        placed = []  # neither of two columns with the same name is known
    titles = tuple(title for title, _ in placed)
    indent = placed[0][1] if placed else 0
    starts = [start - indent for _, start in placed]
    gaps = [columns[title].gap if title in columns else 2 for title in titles[:-1]]
    widths = [
        max(0, later - earlier - gap)
        for earlier, later, gap in zip(starts, starts[1:], gaps, strict=False)
    ]
    cells = [f"%-{width}s{' ' * gap}" for width, gap in zip(widths, gaps, strict=True)]
    forms = [
        (number, title, re.compile(columns[title].form))
        for number, title in enumerate(titles)
        if title in columns
    ]
    row, padded = PrintfRow("".join([*cells, "%s"])), bool(_PADDED.search(header))
    return _Layout(
        titles=titles,
        indent=indent,
        padded=padded,
        gaps=gaps,
        widths=widths,
        row=row,
        forms=forms,
        by_form=_pattern(titles, columns),
    )


def _pattern(all_titles: tuple[str, ...], columns: Mapping[str, Column]) -> re.Pattern[str] | None:
    """Return the pattern of a row: the forms of its columns, separated by blanks."""
    runs = [
        (asked, list(titles))
        for asked, titles in groupby(all_titles, key=lambda title: title in columns)
    ]
    if sum(not asked for asked, _ in runs[:-1]) > _MOST_UNKNOWN:
        return None
    parts = []
    for asked, titles in runs:
        if asked:
            parts += [f"(?P<c{all_titles.index(t)}>{columns[t].form})" for t in titles]
        else:
            parts.append(r"(?:\S.*?)?")
    return re.compile(r"\s*" + r"\s+".join(parts) + r"\s*")


class HeadedTable:
    """The rows below a header.

    A row is read at the positions of the header's titles, where printf put its values. If the
    values there do not match, it is read by the patterns alone, in the order of the header. Columns
    that were not requested are skipped.

    Below a padded header, each value must be where printf would write it, unlike in a row that lost
    its beginning. If the padding is lost, too, the row after a refused one is also refused, because
    it may be the other half of a broken line.

    Attributes:
        titles: the titles of the columns, in their order.
        padded: whether values are aligned with their titles; if not, nothing shows that a row lost
            its beginning.
    """

    def __init__(self, header: str, columns: Mapping[str, Column]) -> None:
        layout = _layout(header, tuple(columns.items()))
        self.titles = layout.titles
        self._columns = columns
        self._indent, self.padded = layout.indent, layout.padded
        self._gaps, self._widths = layout.gaps, layout.widths
        self._row, self._forms, self._by_form = layout.row, layout.forms, layout.by_form
        self._refused = False

    def has(self, *titles: str) -> bool:
        """Return True if the header has all these columns."""
        return {*titles} <= {*self.titles}

    def width(self, title: str) -> int:
        """Return a column's width from its header's padding; 0 for the last column."""
        number = self.titles.index(title)
        return self._widths[number] if number < len(self._widths) else 0

    def read(self, text: str) -> dict[str, str]:
        """Return the values of the requested columns, by title.

        Raises:
            Unreadable: their forms or positions do not match.
        """
        row = text[self._indent :] if not text[: self._indent].strip() else text
        cells = self._row.read(row)
        wrong = next(
            (title for number, title, form in self._forms if not form.fullmatch(cells[number])), ""
        )
        placed = self.padded or self._refused
        self._refused = True
        if not wrong:
            values = {title: cells[number] for number, title, _ in self._forms}
            stands = not placed or self._stands(row, cells)
        else:
            match = None
            if self._by_form is not None and len(row) <= _LONGEST:
                match = self._by_form.fullmatch(row)
            if match is None:
                column, value = self._columns[wrong], cells[self.titles.index(wrong)]
                raise Unreadable(column.code, f"#{wrong} is {shown(value)}, not {column.what}")
            values = {title: match[f"c{number}"] for number, title, _ in self._forms}
            stands = not placed or (self.padded and self._follow(match))
        if not stands:
            raise Unreadable(UNPARSABLE_LINE, "it does not stand below the header: it may be torn")
        self._refused = False
        return values

    def refuse(self) -> None:
        """Record that the last line read is not a row, whatever its form."""
        self._refused = True

    def _stands(self, row: str, cells: list[str]) -> bool:
        """Return True if printf would write the values this way, up to the last placed column."""
        last = max((number for number, title, _ in self._forms if self._columns[title].placed))
        padded = zip(cells[:last], self._widths, self._gaps, strict=False)
        before = "".join(cell.ljust(width) + " " * gap for cell, width, gap in padded)
        return row.ljust(len(before)).startswith(before + cells[last])

    def _follow(self, match: re.Match[str]) -> bool:
        """Return True if each value begins where printf would begin it after the previous value."""
        for (number, _, _), (after, title, _) in pairwise(self._forms):
            if after > number + 1 or not self._columns[title].placed:
                continue
            end = max(match.start(f"c{number}") + self._widths[number], match.end(f"c{number}"))
            if match.start(f"c{after}") != end + self._gaps[number]:
                return False
        first = self._forms[0][0]
        return first > 0 or match.start(f"c{first}") == 0
