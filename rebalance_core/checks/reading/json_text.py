"""JSON text as Spark's parser, Jackson, reads it into texts: the slow, exact way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from rebalance_core.checks.casts.java_text import (
    double_text,
    escaped,
    has_surrogate,
    joined_surrogates,
    without_surrogates,
)

MOST_DIGITS = 1_000  # Jackson's StreamReadConstraints.DEFAULT_MAX_NUM_LEN
MOST_DEPTH = 1_000  # DEFAULT_MAX_DEPTH
LONGEST_NAME = 50_000  # DEFAULT_MAX_NAME_LEN

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_WORD = re.compile(r"true|false|null|NaN|[+-]?Infinity|[+-]INF")
_INFINITIES = {"NaN": "NaN", "-INF": "-Infinity", "-Infinity": "-Infinity"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

Member = tuple[str, str | None, bool]
"""A member's name, its text as Spark's STRING, and whether it is an object or array."""


class NoJson(ValueError):
    """The text is not what was expected of it."""


@dataclass(slots=True)
class Reader:
    """Reads one text from front to back.

    Attributes:
        text: what is read.
        apostrophes: strings may stand in single quotes (Spark's option ``allowSingleQuotes``).
        depth: objects and arrays that are open around the text.
        controls: strings may hold control characters (``json_object_keys`` takes them).
        exact: False once an object with a name twice, half a surrogate pair or a number that is
            none was read: ``parse_json``, which makes variants, takes none of them.
    """

    text: str
    apostrophes: bool = False
    depth: int = 0
    controls: bool = False
    exact: bool = field(default=True, init=False)

    def space(self, at: int) -> int:
        """The first position from ``at`` that is no white space."""
        found = _SPACE.match(self.text, at)
        return at if found is None else found.end()

    def string(self, at: int) -> tuple[str, int]:
        """The string that begins at ``at``, and the position after it."""
        quote = self.text[at : at + 1]
        if quote != '"' and not (quote == "'" and self.apostrophes):
            raise NoJson
        found = _string_pattern(quote, self.apostrophes, self.controls).match(self.text, at)
        if found is None:
            raise NoJson
        text = _unescaped(found[1])
        self.exact = self.exact and not has_surrogate(text)
        return text, found.end()

    def name(self, at: int) -> tuple[str, int]:
        """A member's name, and the position of its value."""
        name, at = self.string(at)
        at = self.space(at)
        if self.text[at : at + 1] != ":" or len(name) > LONGEST_NAME:
            raise NoJson
        return name, self.space(at + 1)

    def scalar(self, at: int) -> tuple[str | None, bool, int]:
        """A scalar's text as Spark's STRING, whether JSON quotes it, and the position after it."""
        if self.text[at : at + 1] in ('"', "'"):
            text, at = self.string(at)
            return text, True, at
        number = _NUMBER.match(self.text, at)
        if number is not None:
            return self._number(number[0], bool(number["fraction"])), False, number.end()
        word = _WORD.match(self.text, at)
        if word is None:
            raise NoJson
        if word[0] in ("true", "false"):
            return word[0], False, word.end()
        if word[0] == "null":
            return None, False, word.end()
        self.exact = False
        return f'"{_INFINITIES.get(word[0], "Infinity")}"', False, word.end()

    def _number(self, text: str, fraction: bool) -> str:
        if len(text) > MOST_DIGITS and sum(map(str.isdigit, text)) > MOST_DIGITS:
            raise NoJson
        if not fraction:
            return "0" if text == "-0" else text
        copied = double_text(float(text))
        return f'"{copied}"' if copied.endswith("Infinity") else copied

    def value(self, at: int) -> tuple[str | None, bool, int]:
        """Any value's text as Spark's STRING, whether it is nested, and the position after it.

        A nested value is written anew without white space, as Jackson copies it.
        """
        if self.text[at : at + 1] not in ("{", "["):
            text, _, at = self.scalar(at)
            return text, False, at
        parts: list[str] = []
        at = self._copy_nested(at, parts)
        return "".join(parts), True, at

    def _copy_nested(self, at: int, parts: list[str]) -> int:
        """Copy the array or object at ``at``; in a loop: it may be deeper than Python's stack."""
        open_names: list[set[str] | None] = []  # of each open object its names, of an array None
        while True:
            opening = self.text[at : at + 1]
            if opening in ("{", "["):
                parts.append(opening)
                open_names.append(set() if opening == "{" else None)
                if self.depth + len(open_names) > MOST_DEPTH:
                    raise NoJson
                at = self.space(at + 1)
                if self.text[at : at + 1] != ("}" if opening == "{" else "]"):
                    at = self._copy_name(at, open_names[-1], parts)
                    continue
            else:
                text, quoted, at = self.scalar(at)
                parts.append("null" if text is None else escaped(text) if quoted else text)
            at = self._copy_ends(at, open_names, parts)
            if not open_names:
                return at
            at = self._copy_name(at, open_names[-1], parts)

    def _copy_name(self, at: int, names: set[str] | None, parts: list[str]) -> int:
        if names is None:
            return at
        name, at = self.name(at)
        self.exact = self.exact and name not in names
        names.add(name)
        parts += [escaped(name), ":"]
        return at

    def _copy_ends(self, at: int, open_names: list[set[str] | None], parts: list[str]) -> int:
        """Copy what closes, up to a comma if anything is left open; the position after it."""
        while open_names:
            at = self.space(at)
            sign = self.text[at : at + 1]
            if sign == ",":
                parts.append(",")
                return self.space(at + 1)
            if sign != ("]" if open_names[-1] is None else "}"):
                raise NoJson
            parts.append(sign)
            open_names.pop()
            at += 1
        return at

    def members(self, at: int) -> tuple[list[Member], int]:
        """An object's members in order, and the position after it."""
        if self.text[at : at + 1] != "{":
            raise NoJson
        found: list[Member] = []
        names: set[str] = set()
        self.depth += 1
        at = self.space(at + 1)
        if self.text[at : at + 1] == "}":
            return found, at + 1
        while True:
            name, at = self.name(at)
            self.exact = self.exact and name not in names
            names.add(name)
            text, nested, at = self.value(at)
            found.append((name, text, nested))
            at = self.space(at)
            sign = self.text[at : at + 1]
            if sign == "}":
                return found, at + 1
            if sign != ",":
                raise NoJson
            at = self.space(at + 1)


def object_of_line(line: str) -> tuple[list[Member], bool] | None:
    """The members of a line that is one JSON object, None of any other; and `Reader.exact`.

    Read as Spark reads ``[line]``: what follows a closing bracket of the line's own is not seen.
    """
    reader = Reader(f"{line}]", depth=1)
    try:
        members, at = reader.members(reader.space(0))
    except NoJson:
        return None
    closed = reader.text[reader.space(at) :][:1] == "]"
    return (members, reader.exact) if closed else None


def array_of_text(text: str) -> list[str] | None:
    """The elements of a JSON array as texts; None if it is none or an element is null."""
    reader = Reader(f"{text}]", apostrophes=True, depth=2)
    elements: list[str] = []
    try:
        at = reader.space(0)
        if reader.text[at : at + 1] != "[":
            return None
        at = reader.space(at + 1)
        while reader.text[at : at + 1] != "]" or elements:
            element, _, at = reader.value(at)
            if element is None:
                return None
            elements.append(without_surrogates(element))
            at = reader.space(at)
            if reader.text[at : at + 1] != ",":
                break
            at = reader.space(at + 1)
    except NoJson:
        return None
    closed = reader.text[at : at + 1] == "]"
    return elements if closed and reader.text[reader.space(at + 1) :][:1] == "]" else None


def map_of_text(text: str) -> list[tuple[str, str | None]] | None:
    """The members of the JSON object that the text begins with; None if it begins with none.

    As in Spark, a name that is there twice is twice in the map.
    """
    reader = Reader(text, apostrophes=True)
    try:
        members, _ = reader.members(reader.space(0))
    except NoJson:
        return None
    return [
        (without_surrogates(name), None if value is None else without_surrogates(value))
        for name, value, _ in members
    ]


def names_of_line(line: str) -> set[str]:
    """The names of the object that the line begins with.

    As ``json_object_keys`` finds them, but in objects with NaN or an infinity, which it takes for
    no JSON, too.
    """
    reader = Reader(line, apostrophes=True, controls=True)
    try:
        members, _ = reader.members(reader.space(0))
    except NoJson:
        return set()
    return {without_surrogates(name) for name, _, _ in members}


@cache
def _string_pattern(quote: str, apostrophes: bool, controls: bool) -> re.Pattern[str]:
    plain = rf"[^{quote}\\]" if controls else rf"[^{quote}\\\x00-\x1f]"
    escapes = "\"'" if apostrophes else '"'
    return re.compile(
        rf"{quote}({plain}*(?:\\(?:[{escapes}\\/bfnrt]|u[0-9a-fA-F]{{4}}){plain}*)*){quote}"
    )


def _unescaped(body: str) -> str:
    if "\\" not in body:
        return body
    text = _ESCAPE.sub(_character, body)
    return joined_surrogates(text) if has_surrogate(text) else text


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return _ESCAPED.get(escape[2], escape[2])
