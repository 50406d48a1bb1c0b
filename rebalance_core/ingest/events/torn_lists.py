"""Member lists whose rows lost characters where no padding reveals it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.parse.command_output import PARTIAL
from rebalance_core.ingest.parse.torn_rows import whole_of

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import MemberPiece


def without_torn_rows(pieces: Iterable[Evidence]) -> list[Evidence]:
    """Return the evidence on a group without the remains of torn rows in lists, which may then lack
    members.

    Printed columns show where a row lost characters. If blanks were squeezed or became tabs, a row
    counts as torn if no other file has its id, address or topic, and inserting a piece gives a name
    that other files have and this list lacks.
    """
    pieces = list(pieces)
    on_group = filter(is_on_group, pieces)
    unpadded = [p for p in on_group if p.kind == "member" and p.values.get("unpadded")]
    if not unpadded:
        return pieces
    names = _Names()
    for piece in pieces:
        names.take(piece)
    torn = {p.source for p in unpadded if names.is_torn(p)}
    topics = {file_of(p.source) for p in unpadded if names.has_torn_topic(p)}
    files = {*map(file_of, torn), *topics}
    kept = (p for p in pieces if p.source not in torn and not _counts(p, files))
    return [_left(p, topics) if file_of(p.source) in files else p for p in kept]


@dataclass(slots=True)
class _Names:
    """The files that show each id, topic and address, and what the lists contain."""

    ids: dict[str, set[str]] = field(default_factory=dict)
    topics: dict[str, set[str]] = field(default_factory=dict)
    addresses: dict[tuple[str, str], dict[str, set[str]]] = field(default_factory=dict)
    listed: dict[str, set[str]] = field(default_factory=dict)
    subscribed: dict[str, set[str]] = field(default_factory=dict)

    def take(self, piece: Evidence) -> None:
        file, client_id = file_of(piece.source), _text(piece, "client_id")
        address = _text(piece, "client_addr") or _text(piece, "channel")
        for name in filter(None, (client_id, _text(piece, "client_file"))):
            self.ids.setdefault(name, set()).add(file)
        for topic in _topics(piece):
            self.topics.setdefault(topic, set()).add(file)
        if client_id and address:
            of_client = self.addresses.setdefault((piece.place, client_id), {})
            of_client.setdefault(address, set()).add(file)
        if piece.kind == "member":
            self.listed.setdefault(file, set()).add(client_id)
            self.subscribed.setdefault(file, set()).update(_topics(piece))

    def is_torn(self, piece: MemberPiece) -> bool:
        """Return True for a row whose id or address lost characters."""
        v, file = piece.values, file_of(piece.source)
        addresses = self.addresses[piece.place, v["client_id"]]
        others = {address for address, files in addresses.items() if files != {file}}
        if v["client_addr"] not in others and whole_of(v["client_addr"], others):
            return True
        return self._is_torn(v["client_id"], file, self.ids, self.listed[file])

    def has_torn_topic(self, piece: MemberPiece) -> bool:
        """Return True for a row of a list whose subscription table has a torn topic."""
        file = file_of(piece.source)
        listed = self.subscribed[file]
        return any(self._is_torn(topic, file, self.topics, listed) for topic in listed)

    @staticmethod
    def _is_torn(name: str, file: str, named: dict[str, set[str]], listed: set[str]) -> bool:
        return named[name] == {file} and bool(whole_of(name, named.keys() - listed))


def _text(piece: Evidence, field: str) -> str:
    """Return the text of a field, or an empty string if the evidence has none."""
    value = piece.values.get(field)
    return value if isinstance(value, str) else ""


def _topics(piece: Evidence) -> Iterator[str]:
    topic, subscriptions = _text(piece, "topic"), piece.values.get("subscriptions")
    if topic:
        yield topic
    if isinstance(subscriptions, list | tuple):
        for subscription in subscriptions:
            yield subscription if isinstance(subscription, str) else subscription[0]


def _counts(piece: Evidence, files: set[str]) -> bool:
    """Return True for the lines about the whole group in one of these files."""
    return piece.kind == "group_connection" and file_of(piece.source) in files


def _left(piece: Evidence, topics: set[str]) -> Evidence:
    """Return a piece of a torn list, marked as partial and without a torn subscription table."""
    if piece.kind not in ("member", "dump"):
        return piece
    own: dict[str, object] = {PARTIAL: True}
    if piece.kind == "member" and file_of(piece.source) in topics:
        own["subscriptions"] = ()
    return replace(piece, values={**piece.values, **own})
