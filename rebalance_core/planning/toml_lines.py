"""Line numbers of keys in a TOML text, because tomllib reads values without positions."""

import re
from dataclasses import dataclass, field

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')\s*(?:\.[^=]*)?=")
_STRINGS = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]')


@dataclass(slots=True)
class TomlLines:
    """The lines of keys in the top-level table and in each table of the arrays of tables.

    Understands the syntax of scenario files: plain and quoted keys, headers, and multi-line values.
    """

    text: str
    _keys: dict[tuple[str, int, str], int] = field(default_factory=dict)
    _tables: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        table, index = "", 0
        counts: dict[str, int] = {}
        depth, quotes = 0, ""
        for line_number, line in enumerate(self.text.splitlines(), 1):
            if not depth and not quotes:
                header, key = _HEADER.fullmatch(line), _KEY.match(line)
                if header:
                    table = header[2].strip("\"'")
                    index = counts.get(table, 0)
                    counts[table] = index + 1
                    self._tables[table, index] = line_number
                    continue
                if key:
                    name = key[1].strip("\"'")
                    self._keys.setdefault((table, index, name), line_number)
                    line = line[key.end() :]
            depth, quotes = _open_at_end(line, depth, quotes)

    def of_table(self, table: str, index: int = 0) -> int:
        """Return the line of a table's header, or 1 if it has none."""
        return self._tables.get((table, index), 1)

    def of_key(self, key: str, table: str = "", index: int = 0) -> int:
        """Return the line of a key, or that of its table if the key is missing."""
        match = self._keys.get((table, index, key))
        return match if match is not None else self.of_table(table or key, index)


def _open_at_end(line: str, depth: int, quotes: str) -> tuple[int, str]:
    """Return how many brackets and which multi-line quotes are open after the line."""
    place = 0
    if quotes:
        end = line.find(quotes)
        if end < 0:
            return depth, quotes
        place = end + len(quotes)
    for match in _STRINGS.finditer(line, place):
        if match.start() < place:
            continue
        token = match[0]
        if token in ('"""', "'''"):
            end = line.find(token, match.end())
            if end < 0:
                return depth, token
            place = end + len(token)
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
    return depth, ""
