"""``mqadmin consumerConnection``: the members of a group as known to one broker."""

import re
from typing import NamedTuple

from rebalance_core.ingest.fact import (
    UNPARSABLE_LINE,
    Fact,
    Stated,
    Unread,
    Unreadable,
    shown,
    unread,
)
from rebalance_core.ingest.fact_subjects import is_answer
from rebalance_core.ingest.parse.command_output import (
    NOT_ONLINE,
    Line,
    cut_off,
    foreign,
    is_partial,
    read_lines,
    read_output,
    stray,
    unheaded,
    whole,
)
from rebalance_core.ingest.parse.headed_tables import WORD, Column, HeadedTable

VERSION = r"V\d+_\d+_\d+\w*|(?!V)\S+"
"""MQVersion.getVersionDesc; a version truncated in the middle does not match."""


_CLIENT_ID = r"(?!\")(?:(?!\s\S+:[0-9]{1,5}(?:\s|$)).)+?"
"""It may contain spaces, but not its row's own address, which shows that two rows were joined."""


_ADDRESS = r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?![0-9.]+:[0-9]{1,5}(?:\s|$))\S+):[0-9]{1,5}"
"""Digits and dots must form a valid IPv4 address."""


_MEMBERS = {
    "ClientId": Column(_CLIENT_ID, 1, what="a client id"),
    "ClientAddr": Column(_ADDRESS, 1, what="an address with its port"),
    "Language": Column(r"[A-Za-z][A-Za-z0-9_]*", 1, what="a language"),
    "Version": Column(VERSION, 1, what="a version"),
}


_EXPRESSION = r"\*|(?!\*)(?:(?!%RETRY%|\s{2,}\*$).)*"
"""If two rows were joined, the first row's expression contains the second row's topic."""


_SUBSCRIPTIONS = {
    "Topic": Column(WORD, 1, what="a topic"),
    "SubExpression": Column(_EXPRESSION, 1, what="an expression"),
}


_GROUP_LINES = {
    "ConsumeType": ("consume_type", ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")),
    "MessageModel": ("message_model", ("CLUSTERING", "BROADCASTING")),
    "ConsumeFromWhere": (
        "consume_from_where",
        (
            "CONSUME_FROM_LAST_OFFSET",
            "CONSUME_FROM_FIRST_OFFSET",
            "CONSUME_FROM_TIMESTAMP",
            # Deprecated; the client treats them like the first one.
            "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
            "CONSUME_FROM_MIN_OFFSET",
            "CONSUME_FROM_MAX_OFFSET",
        ),
    ),
}


_OFFLINE = re.compile(r"the consumer group\[([^\[\]]+)\] not online")
"""AdminBrokerProcessor.getConsumerConnectionList, for a group without members."""
_LAST_GROUP_LINE = "ConsumeFromWhere"


def parse_consumer_connection(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of a run.

    An empty output is `no_members`, because upstream prints the refusal on standard error. So is a
    stack with code 206, whereas any other failure is an `admin_error` and shows nothing about
    members.

    Facts:
        member: a connection of the group at the queried broker: client_id, client_addr, language,
            version, and the group's settings there: subscriptions (pairs of topic and expression),
            consume_type, message_model, consume_from_where (None if the output ends before it),
            partial (present, and true, only if rows, and thus members, may be missing), unpadded
            (likewise, if no padding shows whether the id lost characters)
        group_connection: the group at the queried broker: members (connections listed),
            subscriptions, consume_type, message_model, consume_from_where
        no_members: the queried broker knows no member of the group: code (206; None if nothing was
            printed), offline_group (as named in the refusal, and only there)
    """
    output = read_output(text, source)
    table = _ConnectionTable()
    refused = read_lines(output.lines, table.read)
    others = [*map(_no_members, output.others)]
    silent = any(isinstance(piece, Stated) and piece.kind == "no_output" for piece in output.others)
    if silent and text.strip():
        # a JVM's standard error is included, but the refusal that follows it is not
        others = [cut_off(source, output.lines, _LAST_GROUP_LINE)]
    if table.lacks_end and not others:
        others.append(cut_off(source, output.lines, _LAST_GROUP_LINE))
    if not table.headed:
        return [*unheaded(refused, output.others), *others]
    refused += table.torn_members()
    return [*table.facts(source, partial=is_partial([*refused, *others])), *refused, *others]


def _no_members(other: Fact | Unread) -> Fact | Unread:
    if isinstance(other, Unread):
        return other
    if is_answer(other) and other.kind == "admin_error" and other.values["code"] != NOT_ONLINE:
        return other
    values: dict[str, object] = {"code": other.values.get("code")}
    if is_answer(other) and other.kind == "admin_error":
        offline = _OFFLINE.search(other.values["message"])
        values |= {"offline_group": offline[1]} if offline else {}
    return Fact("no_members", None, values, other.source)


UNPADDED = "unpadded"
"""The field of members in a table without padding."""


def _torn(client_id: str) -> Unreadable:
    what = f"#ClientId is {shown(client_id)}, not a whole id: the row lost its beginning"
    return Unreadable(UNPARSABLE_LINE, what)


def _begins_late(client_id: str, address: str) -> bool:
    """Return True if the id lost its beginning: it starts within an IP address."""
    own, host = client_id.partition("@")[0], address.rpartition(":")[0]
    return client_id[0] in ".@#" or (own != host and host.endswith(own))


class _Member(NamedTuple):
    """A row in the table of members."""

    client_id: str
    client_addr: str
    language: str | None
    version: str


class _ConnectionTable:
    """Reads the table of members, then the subscription table, then the lines about the group."""

    def __init__(self) -> None:
        self._members: list[tuple[_Member, Line]] = []
        self._subscriptions: list[tuple[str, str]] = []
        self._group: dict[str, str | None] = {name: None for name, _ in _GROUP_LINES.values()}
        self._of_members: HeadedTable | None = None
        self._of_subscriptions: HeadedTable | None = None
        self._torn = False
        self._ended = False

    @property
    def headed(self) -> bool:
        """True if one of the two headers was present."""
        return self._of_members is not None or self._of_subscriptions is not None

    @property
    def lacks_end(self) -> bool:
        """True if the output has a header but lacks its end."""
        return self.headed and (not self._ended or self._of_members is None)

    def facts(self, source: str, *, partial: bool) -> list[Fact]:
        """Return a fact per member and, if the output is complete, a fact about the group.

        Args:
            source: the name of the file.
            partial: whether rows may be missing.
        """
        # nothing names the topics that a torn table lacks
        subscriptions = () if self._torn else tuple(self._subscriptions)
        group: dict[str, object] = {"subscriptions": subscriptions, **self._group}
        if partial:
            group |= {"partial": True}
        unpadded = {} if self._of_members is None or self._of_members.padded else {UNPADDED: True}
        members: list[Fact] = [
            Fact("member", None, row._asdict() | group | unpadded, line.source)
            for row, line in self._members
        ]
        if partial:
            return members
        count = {"members": len(members)}
        return [*members, Fact("group_connection", None, count | group, source)]

    def torn_members(self) -> list[Unread]:
        """Remove the members whose ids lost their beginning, and return their refusals.

        Without padding, no position shows it. A client builds its id from its address and @, unless
        an application sets another name; most clients of a group do the former.
        """
        if self._of_members is None or self._of_members.padded:
            return []
        whole_ids = any("@" in row.client_id for row, _ in self._members)
        torn = [
            (row, line)
            for row, line in self._members
            if (whole_ids and "@" not in row.client_id)
            or _begins_late(row.client_id, row.client_addr)
        ]
        self._members = [pair for pair in self._members if pair not in torn]
        return [unread(line.source, line.text, _torn(row.client_id)) for row, line in torn]

    def read(self, line: Line) -> None:
        text = line.text.strip()
        if text.startswith("#"):
            self._head(line)
        elif not self.headed or self._ended:
            raise stray(line)
        elif text != "Below is subscription:" and not self._group_line(text):
            if self._of_subscriptions is None:
                self._members.append((self._member(line), line))
            else:
                self._subscriptions.append(self._subscription(line, self._of_subscriptions))

    def _head(self, line: Line) -> None:
        table = HeadedTable(line.text, _MEMBERS | _SUBSCRIPTIONS)
        if table.has(*_MEMBERS):
            self._of_members = HeadedTable(line.text, _MEMBERS)
        elif table.has(*_SUBSCRIPTIONS):
            self._of_subscriptions = HeadedTable(line.text, _SUBSCRIPTIONS)
        else:
            raise foreign(line, "consumerConnection")

    def _group_line(self, text: str) -> bool:
        label, separator, value = (part.strip() for part in text.partition(":"))
        if not separator or label not in _GROUP_LINES:
            return False
        name, valid = _GROUP_LINES[label]
        if value.upper() not in (*valid, "NULL"):
            raise Unreadable(UNPARSABLE_LINE, f"{label} is {shown(value)}, not one of {valid}")
        self._group[name] = None if value.upper() == "NULL" else value.upper()
        self._ended |= label == _LAST_GROUP_LINE
        return True

    def _member(self, line: Line) -> _Member:
        if self._of_members is None:
            raise foreign(line, "consumerConnection")
        cells = self._of_members.read(whole(line))
        language = cells["Language"].upper()
        return _Member(
            cells["ClientId"],
            cells["ClientAddr"],
            None if language == "NULL" else language,
            cells["Version"],
        )

    def _subscription(self, line: Line, table: HeadedTable) -> tuple[str, str]:
        try:
            cells = table.read(whole(line))
            if not cells["SubExpression"] and not line.text.endswith(" "):
                table.refuse()
                raise Unreadable(UNPARSABLE_LINE, "the row ends before its expression")
        except Unreadable:
            self._torn = True
            raise
        return cells["Topic"], cells["SubExpression"]
