"""A JSON store as its tables: which there must be, which there may be, what their entries state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.json_tables import (
    Entry,
    Results,
    data_version,
    entries,
    read_document,
    table_of,
)

Stated = Iterator[tuple[str, Mapping[str, Any]]]
"""Kind and fields of each fact that one entry states."""
EntryReader = Callable[[Any, Any], Stated]
"""From an entry's key and value; raises `Unreadable`, and then nothing of the entry is used."""


@dataclass(frozen=True)
class JsonStore:
    """A file that a broker or client writes with fastjson.

    Attributes:
        table: the table that makes the file what it is.
        read: the reader of its entries.
        others: readers of tables that only some versions write, by name.
        versioned: False for a store without a ``dataVersion``.
    """

    table: str
    read: EntryReader
    others: Mapping[str, EntryReader] = field(default_factory=dict)
    versioned: bool = True

    def parse(self, text: str, source: str) -> list[Fact | Unread]:
        """The facts of the file; an `Unread` for what is none. Never raises; linear in the text."""
        return read_document(text, source, self._facts)

    def _facts(self, document: Mapping[str, Any], source: str) -> Results:
        yield from _facts_of(table_of(document, self.table), self.read, source)
        for name, read in self.others.items():
            yield from _facts_of(Entry(document, "the document").mapping(name), read, source)
        if self.versioned:
            yield from data_version(document, source)


def _facts_of(table: Mapping[Any, Any], read: EntryReader, source: str) -> Results:
    def facts(key: Any, value: Any) -> Iterator[Fact]:
        return (Fact(kind, None, fields, source) for kind, fields in read(key, value))

    return entries(table, source, facts)
