"""RocketMQ's stores as tables of checked entries, from fastjson text, which is JSON except for map
keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.java_numbers import count_of, long_of

# RocketMQ's stores are fastjson text, which is JSON except for the keys of its maps.
#
# ``com.alibaba.fastjson.JSON.toJSONString`` writes a ``Map<Integer, …>`` as ``{0:6,1:3}`` and a
# ``Map<MessageQueue, …>`` as ``{{"brokerName":"b","queueId":0,"topic":"t"}:12}``. Both can be read
# here, as can the quoted numbers that later versions write. Reading takes one pass with an explicit
# stack: linear in the text, with nesting limited to `MAX_DEPTH`.
MAX_DEPTH = 64
"""Maximum nesting depth; the stores are nested five levels deep."""

ObjectKey = tuple[tuple[str, Any], ...]
"""A key that is an object: its fields, sorted by name."""

# Python turns bytes that are not UTF-8 into lone surrogates.
_PLAIN = r'[^"\\\x00-\x1f\ud800-\udfff]'
# Every alternative is determined by its first character, and none can match in two ways. No group
# is possessive: Python up to 3.11.4 does not backtrack into such a group correctly.
_TOKEN = re.compile(
    r"[ \t\r\n]*+(?:"
    rf'"(?P<string>{_PLAIN}*+(?:\\.{_PLAIN}*+)*)"'
    r"|(?P<mark>[{}\[\]:,])"
    r"|(?P<number>-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
    r"|(?P<word>true|false|null)"
    r"|(?P<end>\Z))"
)
_UNFINISHED = re.compile(
    rf'[ \t\r\n]*+(?:"{_PLAIN}*+(?:\\.{_PLAIN}*+)*+\\?|t|tr|tru|f|fa|fal|fals|n|nu|nul|-)?'
)
"""The rest of a document that ends inside or between strings, words or numbers."""
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
# The escapes of IOUtils.replaceChars in fastjson 1.2, and JSON's escaped slash.
_ESCAPED = dict(zip("btnvfr\"'\\/", "\b\t\n\v\f\r\"'\\/", strict=True)) | {
    str(code): chr(code) for code in range(8)
}
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST_NUMBER = 40


def read_relaxed_json(text: str) -> Any:
    """Return the value in the text; the keys of objects are str or `ObjectKey`.

    An unquoted number as a key is read as text. Of equal keys the last one counts, as in fastjson.

    Raises:
        Unreadable: with code UNPARSABLE_DOCUMENT and the line and column of the mistake.
    """
    return _Reader(text).document()


class _Reader:
    """Reads the text in one pass; ``stack`` holds the open containers, outermost first."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 1 if text.startswith("\ufeff") else 0
        self._kind = ""
        self._value: Any = None

    def document(self) -> Any:
        """Return the value of the whole text."""
        self._advance()
        stack: list[_Open] = []
        while True:
            value = self._scalar_or_open(stack)
            while stack and value is not _OPENED:
                value = self._put(stack, value)
            if not stack:
                break
        if self._kind != "end":
            raise self._mistake("more text after the end of the document")
        return value

    def _scalar_or_open(self, stack: list[_Open]) -> Any:
        """Read a scalar, or open a non-empty object or list."""
        kind, value = self._kind, self._value
        if kind == "mark" and value in "{[":
            if len(stack) == MAX_DEPTH:
                raise self._mistake(f"nested deeper than {MAX_DEPTH}")
            self._advance()
            opened = _Open(value == "{")
            if self._kind == "mark" and self._value == opened.closing:
                self._advance()
                return opened.result
            stack.append(opened)
            return _OPENED
        if kind in ("string", "number", "word"):
            self._advance()
            return value
        raise self._mistake("the text ends too early" if kind == "end" else "a value was expected")

    def _put(self, stack: list[_Open], value: Any) -> Any:
        """Add the value to the innermost open container; return the container's value if that
        closes it.
        """
        opened = stack[-1]
        if opened.is_object and not opened.has_key:
            opened.key = self._key(value)
            opened.has_key = True
            if not (self._kind == "mark" and self._value == ":"):
                raise self._mistake("':' was expected after a key")
            self._advance()
            return _OPENED
        opened.add(value)
        if self._kind == "mark" and self._value == ",":
            self._advance()
            return _OPENED
        if self._kind == "mark" and self._value == opened.closing:
            self._advance()
            stack.pop()
            return opened.result
        raise self._mistake(f"',' or {opened.closing!r} was expected")

    def _key(self, value: Any) -> str | ObjectKey:
        if isinstance(value, str):
            return value
        if type(value) is int:
            return str(value)
        if isinstance(value, dict):
            fields = tuple(sorted(value.items())) if all(map(_is_name, value)) else None
            if fields and not any(isinstance(field, dict | list) for _, field in fields):
                return fields
        raise self._mistake(f"{fact.shown(value)} cannot be a key")

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            raise self._mistake("a string without end, a broken character, or not JSON")
        self._kind = match.lastgroup or ""
        self._value = match[self._kind]
        if self._kind == "number":
            self._value = self._number(self._value)
        elif self._kind == "word":
            self._value = _WORDS[self._value]
        elif self._kind == "string" and "\\" in self._value:
            text = _ESCAPE.sub(self._unescaped, self._value)
            # Characters beyond 16 bits are escaped as the surrogate pairs that Java uses.
            self._value = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        self._position = match.end()

    def _number(self, text: str) -> int | float:
        if len(text) > _LONGEST_NUMBER:
            raise self._mistake(f"a number of {len(text):,} characters")
        if text.lstrip("-").isdigit():
            return int(text)
        number = float(text)
        if abs(number) == float("inf"):
            raise self._mistake(f"the number {text} is out of range")
        return number

    def _unescaped(self, match: re.Match[str]) -> str:
        code = match[1]
        if len(code) > 1:
            return chr(int(code[1:], 16))
        if code not in _ESCAPED:
            raise self._mistake(f"{fact.shown(match[0])} is not an escape")
        return _ESCAPED[code]

    def _mistake(self, what: str) -> Unreadable:
        rest = self._text[self._position :]
        if self._text.strip() and _UNFINISHED.fullmatch(rest):
            return Unreadable(fact.UNPARSABLE_DOCUMENT, f"{fact.CUT_OFF}before its JSON does")
        line = self._text.count("\n", 0, self._position) + 1
        column = self._position - (self._text.rfind("\n", 0, self._position) + 1) + 1
        return Unreadable(fact.UNPARSABLE_DOCUMENT, f"line {line}, column {column}: {what}")


class _Open:
    """An object or list whose end has not been read yet."""

    __slots__ = ("closing", "has_key", "is_object", "key", "result")

    def __init__(self, is_object: bool) -> None:
        self.is_object = is_object
        self.closing = "}" if is_object else "]"
        self.result: Any = {} if is_object else []
        self.key: str | ObjectKey = ""
        self.has_key = False

    def add(self, value: Any) -> None:
        """Store a value under the key read before it, or at the end of the list."""
        if self.is_object:
            self.result[self.key] = value
            self.has_key = False
        else:
            self.result.append(value)


_OPENED = object()
"""Signals that a value is not complete yet, so that reading continues."""


def _is_name(key: object) -> bool:
    return isinstance(key, str)


DATA_VERSION_KIND = "data_version"

# A name with one of these was copied badly or read in the wrong charset.
_BROKEN = re.compile("[\x00-\x1f\x7f\ufffd\ud800-\udfff]")

Results = Iterator[Fact | Unread]
Value = TypeVar("Value")


def read_document(
    text: str, source: str, parse: Callable[[Mapping[str, object], str], Results]
) -> list[Fact | Unread]:
    """Apply ``parse`` to the document; yield an `Unread` if the text is not a document.

    Args:
        text: the text of the file.
        source: its name.
        parse: a function that turns the document's object and the source into facts; it may raise
            `Unreadable`.
    """
    results: list[Fact | Unread] = []
    try:
        document = read_relaxed_json(text)
        if not isinstance(document, dict):
            raise Unreadable(
                fact.UNPARSABLE_DOCUMENT, f"it holds {fact.shown(document)}, not an object"
            )
        # not a list, so that facts before a refusal are kept
        for result in parse(document, source):
            results.append(result)
    except Unreadable as refusal:
        results.append(fact.unread(source, text, refusal))
    return results


def table_of(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return the table with that name, an object.

    Raises:
        Unreadable: WRONG_FILE if there is no such table, BAD_ENTRY if it is not an object.
    """
    if name not in document:
        held = ", ".join(str(key) for key in list(document)[:8])
        raise Unreadable(
            fact.WRONG_FILE, f"there is no {name}; the document holds {held or 'nothing'}"
        )
    return object_of(document[name], name)


def object_of(value: Any, what: str) -> Mapping[Any, Any]:
    """Return the value, which must be an object.

    Raises:
        Unreadable: it is not an object.
    """
    if not isinstance(value, dict):
        raise Unreadable(fact.BAD_ENTRY, f"{what} is {fact.shown(value)}, not an object")
    return value


def entries(table: Mapping[Any, Any], source: str, parse: Callable[[Any, Any], Results]) -> Results:
    """Apply ``parse`` to each key and value of the table; yield an `Unread` for each it refuses."""
    for key, value in table.items():
        try:
            yield from list(parse(key, value))
        except Unreadable as refusal:
            yield fact.unread(source, raw_entry(key, value), refusal)


def raw_entry(key: Any, value: Any) -> str:
    """Return the entry as JSON text, for an `Unread`."""
    name = dict(key) if isinstance(key, tuple) else key
    text = {"key": name, "value": _first_of(value)}
    return json.dumps(text, ensure_ascii=False, default=str)[: fact.RAW_LIMIT]


def _first_of(value: Any) -> Any:
    """Return the part of a large value that fits in its truncated raw text."""
    if isinstance(value, dict):
        return {str(key): value[key] for key in list(value)[: fact.RAW_LIMIT]}
    return value


class Entry:
    """An entry of a table; every lookup checks the value and raises `Unreadable` with the field's
    name.
    """

    def __init__(self, value: Any, what: str) -> None:
        self._fields = object_of(value, what)
        self._what = what

    def count(self, name: str, default: int | None = None) -> int:
        """Return a non-negative number that fits in a Java int, or the default if the field is
        missing.
        """
        if default is not None and name not in self._fields:
            return default
        return count_of(self._fields.get(name), f"{name} of {self._what}")

    def optional_count(self, name: str) -> int | None:
        """Return the result of `count`, or None if the version that wrote the file lacks the
        field.
        """
        return self.count(name) if self._fields.get(name) is not None else None

    def optional_long(self, name: str) -> int | None:
        """Return a 64-bit number, or None if the field is missing."""
        value = self._fields.get(name)
        return None if value is None else long_of(value, f"{name} of {self._what}")

    def flag(self, name: str) -> bool | None:
        """Return a boolean, or None if the field is missing."""
        return self._of_type(bool, "a boolean", name)

    def text(self, name: str) -> str | None:
        """Return a string, or None if the field is missing."""
        return self._of_type(str, "a text", name)

    def mapping(self, name: str) -> Mapping[Any, Any]:
        """Return an object, empty if the field is missing."""
        value = self._fields.get(name)
        return {} if value is None else object_of(value, f"{name} of {self._what}")

    def items(self, name: str) -> list[Any]:
        """Return a list, empty if the field is missing."""
        return self._of_type(list, "a list", name) or []

    def _of_type(self, kind: type[Value], what: str, name: str) -> Value | None:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, kind):
            raise Unreadable(
                fact.BAD_ENTRY, f"{name} of {self._what} is {fact.shown(value)}, not {what}"
            )
        return value


def name_of(value: Any, what: str) -> str:
    """Return the name of a topic, group or broker: not empty, without control characters.

    Raises:
        Unreadable: it is not such a name.
    """
    if not isinstance(value, str) or not value or _BROKEN.search(value):
        raise Unreadable(fact.BAD_ENTRY, f"{what} is {fact.shown(value)}, not a name")
    return value


def data_version(document: Mapping[str, object], source: str) -> Results:
    """Read the store's ``dataVersion``, if it has one (``DataVersion``).

    Facts:
        data_version: how often a store has changed (counter, state_version) and when it last did
            (timestamp_ms)
    """

    def version(_: str, value: Any) -> Iterator[Fact]:
        entry = Entry(value, "dataVersion")
        values = {
            "counter": entry.optional_long("counter"),
            "state_version": entry.optional_long("stateVersion"),
            "timestamp_ms": entry.optional_long("timestamp"),
        }
        yield Fact(DATA_VERSION_KIND, None, values, source)

    stated = document.get("dataVersion")
    return entries({} if stated is None else {"dataVersion": stated}, source, version)
