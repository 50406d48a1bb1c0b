"""From the message of a log line to a fact, by the words that the message begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.log_line import LogLine
from rebalance_core.ingest.refusal import UNPARSABLE_LINE, Unreadable, unread

Fields = dict[str, Any] | None
Reader = Callable[[str], Fields]
Template = tuple[str, str, Reader]
"""Kind of the fact, words the message begins with, reader of the message's fields."""

NOT_OURS: tuple[()] = ()
NOTHING: dict[str, Any] = {"": None}
"""The fields of a message that is none of this template, though it begins like one: it makes no
fact unless a later template reads it."""


def read_message(
    templates: Iterable[Template], line: LogLine, text: str, source: str
) -> tuple[Fact | Unread, ...]:
    """The fact of the first template whose words begin the message; nothing if none does.

    A message that begins like one of ours and whose fields are not there is `Unread`.
    """
    message = line.message
    for kind, words, reader in templates:
        if message.startswith(words):
            fields = reader(message)
            if fields is NOTHING:
                continue
            if fields is None:
                return (not_read(text, source, words),)
            return (Fact(kind, line.at_ms, fields, source),)
    return NOT_OURS


def headless(words: Iterable[str], text: str, source: str) -> tuple[Unread, ...]:
    """A line without a readable time that holds words of ours is `Unread`; any other is nothing."""
    present = next((known for known in words if known in text), None)
    return (
        () if present is None else (not_read(text, source, present, "no time and level before it"),)
    )


def not_read(
    text: str, source: str, words: str, why: str = "its fields are not all there"
) -> Unread:
    """The refusal of one line."""
    return unread(source, text, Unreadable(UNPARSABLE_LINE, f"begins like {words!r}, but {why}"))


def with_fields(fields: Fields, **more: Any) -> Fields:
    """The fields and more, None if there are none."""
    return None if fields is None else fields | more


def named(names: Iterable[str], pieces: list[str] | None) -> Fields:
    """Fields of these names, None if the pieces are missing or one is empty."""
    if pieces is None or not all(pieces):
        return None
    return dict(zip(names, pieces, strict=True))
