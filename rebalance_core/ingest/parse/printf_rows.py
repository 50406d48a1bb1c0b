"""Rows of a table that Java's ``printf`` wrote, read by the format string that wrote them."""

import re

_COLUMN = re.compile(r"%-?([0-9]*)s( *)")


class PrintfRow:
    """A format string, for example ``"%-64s  %-32s  %-4s %s"``.

    A value wider than its column shifts the rest of the row to the right and ends at the gap that
    follows it. Values may contain spaces, unless they overflow and contain as many as the gap has.
    Upstream's ``%-4d`` and ``%14.2f`` are written ``%-4s`` and ``%14s`` here: all values are
    strings.
    """

    def __init__(self, pattern: str) -> None:
        self._columns = [(int(width or 0), len(gap)) for width, gap in _COLUMN.findall(pattern)]

    def read(self, line: str) -> list[str]:
        """Return each column's value without its padding; empty if the line ends before it.

        Cost: linear in the length of the line.
        """
        values: list[str] = []
        position = 0
        for width, gap in self._columns[:-1]:
            edge = position + width
            if line[edge : edge + gap].strip(" "):
                end = line.find(" " * gap, edge)
                edge = len(line) if end < 0 else end
            values.append(line[position:edge].strip(" "))
            position = edge + gap
        values.append(line[position:].strip(" "))
        return values
