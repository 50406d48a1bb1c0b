"""One line of CSV as Spark's parser, univocity, reads it: the slow, exact way."""

import re

# A cell that opens with a quote: what it holds, and the quote that closes it with what follows up
# to the next comma. Quotes inside are doubled.
_QUOTED = re.compile(
    r'"(?P<inside>(?:[^"]|"")*)(?:(?P<closing>"[\x00-\x20]*)(?P<rest>[^,]*))?', re.DOTALL
)


def cells_of_line(line: str) -> list[str]:
    """The cells as texts, empty where there is nothing.

    What stands after a closing quote belongs to the cell, which then keeps its quotes; spaces
    alone do not. A quote that nothing closes ends with the line.

    >>> cells_of_line('a,"b, ""c"" d",,"e"f')
    ['a', 'b, "c" d', '', '"e"f']
    """
    cells = []
    at = 0
    while True:
        if line.startswith('"', at):
            cell, at = _quoted(line, at)
        else:
            end = line.find(",", at)
            end = len(line) if end < 0 else end
            cell, at = line[at:end], end
        cells.append(cell)
        if at >= len(line):
            return cells
        at += 1


def _quoted(line: str, at: int) -> tuple[str, int]:
    found = _QUOTED.match(line, at)
    assert found is not None  # the line has a quote here
    closing, rest, end = found["closing"], found["rest"], found.end()
    inside = found["inside"]
    if closing == '"' and not rest and end < len(line) and '""' not in inside:
        return inside, end
    # the plain case is over: univocity goes on character by character, and passes over NUL
    inside = inside.replace('""', '"').replace("\0", "")
    if not rest:
        return inside if line[at:] != '"' else '"', end
    # what it does at the end of the line if spaces stood behind the closing quote
    again = len(closing) > 1 and end == len(line) and rest[1:2] == '"' != rest[0]
    return '"' + inside + closing + rest + ('"' if again else ""), end
