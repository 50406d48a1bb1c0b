"""Tables inside a fastjson document: a map of names to entries, and entries of checked fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.java_numbers import count_of, long_of
from rebalance_core.ingest.parse.text.relaxed_json import read_relaxed_json
from rebalance_core.ingest.refusal import (
    BAD_ENTRY,
    RAW_LIMIT,
    UNPARSABLE_DOCUMENT,
    WRONG_FILE,
    Unreadable,
    shown,
    unread,
)

DATA_VERSION_KIND = "data_version"
DATA_VERSION = "how often a store changed (counter, state_version) and when last (timestamp_ms)"

# A name with one of these came through a broken copy or a wrong charset.
_BROKEN = re.compile("[\x00-\x1f\x7f\ufffd\ud800-\udfff]")

Results = Iterator[Fact | Unread]


def read_document(
    text: str, source: str, parse: Callable[[Mapping[str, Any], str], Results]
) -> list[Fact | Unread]:
    """What ``parse`` makes of the document; one `Unread` when the text is not one.

    Args:
        text: the file.
        source: its name.
        parse: from the object of the document and the source to facts; may raise `Unreadable`.
    """
    results: list[Fact | Unread] = []
    try:
        document = read_relaxed_json(text)
        if not isinstance(document, dict):
            raise Unreadable(UNPARSABLE_DOCUMENT, f"it holds {shown(document)}, not an object")
        # Not a list of them: what comes before a refusal is kept.
        for result in parse(document, source):
            results.append(result)
    except Unreadable as refusal:
        results.append(unread(source, text, refusal))
    return results


def table_of(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The table of that name; an object.

    Raises:
        Unreadable: WRONG_FILE without such a table, BAD_ENTRY if it is no object.
    """
    if name not in document:
        held = ", ".join(str(key) for key in list(document)[:8])
        raise Unreadable(WRONG_FILE, f"there is no {name}; the document holds {held or 'nothing'}")
    return object_of(document[name], name)


def object_of(value: Any, what: str) -> Mapping[Any, Any]:
    """The value, which is an object.

    Raises:
        Unreadable: it is none.
    """
    if not isinstance(value, dict):
        raise Unreadable(BAD_ENTRY, f"{what} is {shown(value)}, not an object")
    return value


def entries(
    table: Mapping[Any, Any], source: str, parse: Callable[[Any, Any], Iterator[Fact]]
) -> Results:
    """What ``parse`` makes of each key and value of the table; an `Unread` for one it refuses."""
    for key, value in table.items():
        try:
            yield from list(parse(key, value))
        except Unreadable as refusal:
            yield unread(source, raw_entry(key, value), refusal)


def raw_entry(key: Any, value: Any) -> str:
    """The entry as text again, for an `Unread`."""
    name = dict(key) if isinstance(key, tuple) else key
    text = {"key": name, "value": _first_of(value)}
    return json.dumps(text, ensure_ascii=False, default=str)[:RAW_LIMIT]


def _first_of(value: Any) -> Any:
    """So much of a large value that the raw text of it is truncated anyway."""
    if isinstance(value, dict):
        return {str(key): value[key] for key in list(value)[:RAW_LIMIT]}
    return value


class Entry:
    """One entry of a table; every look-up checks and raises `Unreadable` with the field's name."""

    def __init__(self, value: Any, what: str) -> None:
        self._fields = object_of(value, what)
        self._what = what

    def count(self, name: str, default: int | None = None) -> int:
        """A number from 0 that fits a Java int; the default when the field is missing."""
        if default is not None and name not in self._fields:
            return default
        return count_of(self._fields.get(name), f"{name} of {self._what}")

    def optional_count(self, name: str) -> int | None:
        """As `count`, None when the version that wrote the file has no such field."""
        return self.count(name) if self._fields.get(name) is not None else None

    def optional_long(self, name: str) -> int | None:
        """A 64-bit number, None when the field is missing."""
        value = self._fields.get(name)
        return None if value is None else long_of(value, f"{name} of {self._what}")

    def flag(self, name: str) -> bool | None:
        """A boolean, None when the field is missing."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, bool):
            raise Unreadable(BAD_ENTRY, f"{name} of {self._what} is {shown(value)}, not a boolean")
        return value

    def text(self, name: str) -> str | None:
        """A text, None when the field is missing."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, str):
            raise Unreadable(BAD_ENTRY, f"{name} of {self._what} is {shown(value)}, not a text")
        return value

    def mapping(self, name: str) -> Mapping[Any, Any]:
        """An object, empty when the field is missing."""
        value = self._fields.get(name)
        return {} if value is None else object_of(value, f"{name} of {self._what}")

    def items(self, name: str) -> list[Any]:
        """A list, empty when the field is missing."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, list):
            raise Unreadable(BAD_ENTRY, f"{name} of {self._what} is {shown(value)}, not a list")
        return value or []


def name_of(value: Any, what: str) -> str:
    """A name of a topic, group or broker: a text, not empty, without control characters.

    Raises:
        Unreadable: it is none.
    """
    if not isinstance(value, str) or not value or _BROKEN.search(value):
        raise Unreadable(BAD_ENTRY, f"{what} is {shown(value)}, not a name")
    return value


def data_version(document: Mapping[str, Any], source: str) -> Results:
    """The fact of the store's ``dataVersion``, where it has one (`DataVersion`)."""
    if document.get("dataVersion") is None:
        return
    try:
        entry = Entry(document["dataVersion"], "dataVersion")
        values = {
            "counter": entry.optional_long("counter"),
            "state_version": entry.optional_long("stateVersion"),
            "timestamp_ms": entry.optional_long("timestamp"),
        }
    except Unreadable as refusal:
        yield unread(source, raw_entry("dataVersion", document["dataVersion"]), refusal)
        return
    yield Fact(DATA_VERSION_KIND, None, values, source)
