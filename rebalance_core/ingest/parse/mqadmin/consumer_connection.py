"""``mqadmin consumerConnection``: the members of a group as one broker knows them.

Printed by ``ConsumerConnectionSubCommand``. What follows the members is said of the group on that
broker, not of a member: the subscription table holds what the last heartbeats said.
"""

from __future__ import annotations

import re
from typing import Any

from rebalance_core.ingest.fact import UNPARSABLE_LINE, Fact, Unread, Unreadable, shown
from rebalance_core.ingest.parse.mqadmin import command_output
from rebalance_core.ingest.parse.mqadmin.command_output import (
    NOT_ONLINE,
    Line,
    filled,
    foreign,
    read_lines,
    read_output,
    token_of,
    whole,
)
from rebalance_core.ingest.parse.text.java_text import PrintfRow

KINDS = {
    "member": (
        "a connection of the group at the broker asked: client_id, client_addr, language, version, "
        "and of the group there subscriptions (pairs of topic and expression), consume_type, "
        "message_model, consume_from_where (None: the output ends before it)"
    ),
    "group_connection": (
        "the group at the broker asked: members (connections listed), subscriptions, consume_type, "
        "message_model, consume_from_where"
    ),
    "no_members": (
        "the broker asked knows no member of the group: code (206; None: nothing was printed)"
    ),
    "admin_error": command_output.KINDS["admin_error"],
}

_SUBSCRIPTION_ROW = PrintfRow("%-20s %s")
_ADDRESS = re.compile(r"\S+:[0-9]{1,5}")
_LANGUAGE = re.compile(r"[A-Z][A-Z0-9_]*|null")
_GROUP_LINES = {
    "ConsumeType": ("consume_type", ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")),
    "MessageModel": ("message_model", ("CLUSTERING", "BROADCASTING")),
    "ConsumeFromWhere": (
        "consume_from_where",
        (
            "CONSUME_FROM_LAST_OFFSET",
            "CONSUME_FROM_FIRST_OFFSET",
            "CONSUME_FROM_TIMESTAMP",
            # Deprecated; the client takes them as the first.
            "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
            "CONSUME_FROM_MIN_OFFSET",
            "CONSUME_FROM_MAX_OFFSET",
        ),
    ),
}


def parse_consumer_connection(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from the output of one run.

    An empty output is `no_members`: upstream prints the refusal on standard error. So is a stack
    with code 206, while any other failure is an `admin_error` and says nothing of members.
    """
    output = read_output(text, source)
    table = _Table()
    refused = read_lines(output.lines, table.read)
    return [*table.facts(source), *refused, *map(_no_members, output.others)]


def _no_members(other: Fact | Unread) -> Fact | Unread:
    if isinstance(other, Unread) or (
        other.kind == "admin_error" and other.values["code"] != NOT_ONLINE
    ):
        return other
    return Fact("no_members", None, {"code": other.values.get("code")}, other.source)


class _Table:
    """Members first, then the subscription table, then the lines of the group."""

    def __init__(self) -> None:
        self._section = ""
        self._members: list[tuple[dict[str, Any], str]] = []
        self._subscriptions: list[tuple[str, str]] = []
        self._group: dict[str, str | None] = {name: None for name, _ in _GROUP_LINES.values()}

    def facts(self, source: str) -> list[Fact]:
        """One fact per member, and one of the group, once a header was there."""
        if not self._section:
            return []
        group = {"subscriptions": tuple(self._subscriptions), **self._group}
        members = [Fact("member", None, row | group, where) for row, where in self._members]
        count = {"members": len(members)}
        return [*members, Fact("group_connection", None, count | group, source)]

    def read(self, line: Line) -> None:
        text = line.text
        if text.startswith("#ClientId") and "#ClientAddr" in text:
            self._section = "members"
        elif text.startswith("#Topic") and "#SubExpression" in text:
            self._section = "subscriptions"
        elif text.startswith("#") or not self._section:
            raise foreign(line, "consumerConnection")
        elif text.rstrip() != "Below is subscription:" and not self._group_line(line):
            if self._section == "members":
                self._members.append((_member(line), line.source))
            else:
                self._subscriptions.append(_subscription(line))

    def _group_line(self, line: Line) -> bool:
        label, separator, value = line.text.partition(": ")
        if not separator or label not in _GROUP_LINES:
            return False
        name, known = _GROUP_LINES[label]
        if value.strip() not in (*known, "null"):
            raise Unreadable(UNPARSABLE_LINE, f"{label} is {shown(value)}, not one of {known}")
        self._group[name] = None if value.strip() == "null" else value.strip()
        return True


def _member(line: Line) -> dict[str, Any]:
    # "%-36s %-22s %-10s %s": only the client id may hold spaces, so read from the right.
    parts = whole(line).rsplit(None, 3)
    if len(parts) != 4 or not _ADDRESS.fullmatch(parts[1]) or not _LANGUAGE.fullmatch(parts[2]):
        raise Unreadable(UNPARSABLE_LINE, "it is not client id, address, language, version")
    return {
        "client_id": filled(parts[0].strip(), "client id"),
        "client_addr": parts[1],
        "language": None if parts[2] == "null" else parts[2],
        "version": parts[3],
    }


def _subscription(line: Line) -> tuple[str, str]:
    topic, expression = _SUBSCRIPTION_ROW.read(whole(line))
    return token_of(topic, "topic"), expression
