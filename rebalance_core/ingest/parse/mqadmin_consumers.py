"""``mqadmin consumerConnection``, ``consumerProgress`` and ``consumerStatus``: members,
offsets, stacks.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from rebalance_core.ingest.fact import BAD_NUMBER, UNPARSABLE_LINE, Fact, Unread, Unreadable, shown
from rebalance_core.ingest.parse.command_output import (
    NOT_ONLINE,
    Line,
    cut_off,
    dashed_ms,
    filled,
    foreign,
    is_truncated,
    read_lines,
    read_output,
    token_of,
    whole,
)
from rebalance_core.ingest.parse.consumer_running_info import JSTACK, PROPERTIES, parse_running_info
from rebalance_core.ingest.parse.java_text import PrintfRow, count_of, decimal_of, long_of

# ``mqadmin consumerConnection``: the members of a group as one broker knows them.
#
# Printed by ``ConsumerConnectionSubCommand``. What follows the members is said of the group on
# that broker, not of a member: the subscription table holds what the last heartbeats said.

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
_LAST_GROUP_LINE = "ConsumeFromWhere"


def parse_consumer_connection(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run.

    An empty output is `no_members`: upstream prints the refusal on standard error. So is a stack
    with code 206, while any other failure is an `admin_error` and says nothing of members.

    Facts:
        member: a connection of the group at the broker asked: client_id, client_addr, language,
            version, and of the group there subscriptions (pairs of topic and expression),
            consume_type, message_model, consume_from_where (None: the output ends before it),
            partial (only there, and true, where the output is cut off: others may be members, too)
        group_connection: the group at the broker asked: members (connections listed),
            subscriptions, consume_type, message_model, consume_from_where
        no_members: the broker asked knows no member of the group: code (206; None: nothing was
            printed)
    """
    output = read_output(text, source)
    table = _ConnectionTable()
    refused = read_lines(output.lines, table.read)
    others = [*map(_no_members, output.others)]
    silent = any(isinstance(one, Fact) and one.kind == "no_output" for one in output.others)
    if silent and text.strip():
        # what a JVM says on standard error is there, and the refusal that follows it is not
        others = [cut_off(source, output.lines, f"{_LAST_GROUP_LINE}:")]
    if table.lacks_end and not others:
        others.append(cut_off(source, output.lines, f"{_LAST_GROUP_LINE}:"))
    return [*table.facts(source), *refused, *others]


def _no_members(other: Fact | Unread) -> Fact | Unread:
    if isinstance(other, Unread) or (
        other.kind == "admin_error" and other.values["code"] != NOT_ONLINE
    ):
        return other
    return Fact("no_members", None, {"code": other.values.get("code")}, other.source)


class _ConnectionTable:
    """Members first, then the subscription table, then the lines of the group."""

    def __init__(self) -> None:
        self._section = ""
        self._members: list[tuple[dict[str, Any], str]] = []
        self._subscriptions: list[tuple[str, str]] = []
        self._group: dict[str, str | None] = {name: None for name, _ in _GROUP_LINES.values()}
        self._ended = False

    @property
    def lacks_end(self) -> bool:
        """True if a header was there, and not the last line of a whole output."""
        return bool(self._section) and not self._ended

    def facts(self, source: str) -> list[Fact]:
        """One fact per member, and one of the group, once a header was there."""
        if not self._section:
            return []
        group: dict[str, Any] = {"subscriptions": tuple(self._subscriptions), **self._group}
        if self.lacks_end:
            group |= {"partial": True}
        members = [Fact("member", None, row | group, where) for row, where in self._members]
        if self.lacks_end:
            return members
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
        self._ended |= label == _LAST_GROUP_LINE
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


# ``mqadmin consumerProgress``: offsets per queue of one group, or one line per group.
#
# Printed by ``ConsumerProgressSubCommand``; with ``-s true`` it shows who holds each queue.

# After the topic: 64 wide since 4.9.3, 32 before; the header is padded like the rows.
_QUEUE = "  %-32s  %-4s  %-20s  %-20s  "
_QUEUE_ROWS = {
    # (with clients, with in-flight): the end of the format string of the rows
    (False, False): "%-20s  %s",
    (True, False): "%-20s %-20s  %s",
    (False, True): "%-20s %-20s %s",
    (True, True): "%-20s %-20s %-20s %s",
}
_GROUP = "  %-6s  %-24s %-5s  %-14s  %-7s  %s"
_BROKER_WIDTH = 32
_TOTALS = {
    "Consume TPS: ": "consume_tps",
    "Diff Total: ": "diff",
    "Consume Diff Total: ": "diff",
    "Consume Inflight Total: ": "inflight",
}
_NOBODY = "N/A"


def parse_consumer_progress(
    text: str, source: str, *, time_zone: tzinfo = UTC
) -> list[Fact | Unread]:
    """Read one output, 4.9 or 5.x, with or without ``-g``, ``-s``.

    Facts:
        queue_progress: a queue of the group asked for: topic, topic_truncated, broker_name,
            broker_name_truncated (the name fills its column and may have been truncated), queue_id,
            broker_offset, consumer_offset (0 also when nothing is committed), diff, inflight (5.x),
            last_time_ms (None: N/A), with_clients (run with -s true), client_ip (the holder's
            client id up to its first @; None: no holder)
        progress_total: an end line of one group: name (consume_tps, diff, inflight), total
        group_progress: a group, when none was asked for: consumer_group, consumer_group_truncated,
            members (entries at one broker; 0 is offline), version (lowest of the members),
            consume_type (PUSH, PULL), message_model, tps, diff

    Args:
        text: the output.
        source: the name of its file.
        time_zone: of the machine that ran mqadmin; the last column is in its local time.
    """
    output = read_output(text, source)
    table = _ProgressTable(time_zone)
    results = [*read_lines(output.lines, table.read), *output.others]
    missing = table.missing_end
    if missing and not output.others:
        results.append(cut_off(source, output.lines, missing))
    return results


class _ProgressTable:
    """The rows after a header are read as that header says."""

    def __init__(self, time_zone: tzinfo) -> None:
        self._time_zone = time_zone
        self._row: PrintfRow | None = None
        self._shape = (False, False)
        self._groups = False
        self._width = 0
        self._totals: set[str] = set()

    @property
    def missing_end(self) -> str:
        """The closing line of one group's queues that is not there; empty: none is missing."""
        if self._row is None or self._groups:
            return ""
        last = "inflight" if self._shape[1] else "diff"
        return "" if last in self._totals else f"the total of the column {last}"

    def read(self, line: Line) -> Fact | None:
        text = line.text
        if text.startswith("#Topic") and "#Consumer Offset" in text:
            self._shape = ("#Client IP" in text, "#Inflight" in text)
            self._head(text, "#Broker Name", _QUEUE + _QUEUE_ROWS[self._shape])
            return None
        if text.startswith("#Group") and "#Count" in text:
            self._head(text, "#Count", _GROUP)
            return None
        for prefix, name in _TOTALS.items():
            if text.startswith(prefix):
                total = decimal_of(whole(line)[len(prefix) :].strip(), prefix.strip(": "))
                self._totals.add(name)
                return Fact("progress_total", None, {"name": name, "total": total}, line.source)
        if text.startswith("#") or self._row is None:
            raise foreign(line, "consumerProgress")
        columns = self._row.read(whole(line))
        kind = "group_progress" if self._groups else "queue_progress"
        values = self._group(columns) if self._groups else self._queue(columns)
        return Fact(kind, None, values, line.source)

    def _head(self, text: str, second: str, rest: str) -> None:
        self._width = max(0, text.find(second) - len("  "))
        self._row = PrintfRow(f"%-{self._width}s{rest}")
        self._groups = second == "#Count"

    def _queue(self, columns: list[str]) -> dict[str, Any]:
        with_clients, with_inflight = self._shape
        topic, broker_name, queue_id, broker_offset, consumer_offset, *rest = columns
        client = filled(rest.pop(0), "client") if with_clients else _NOBODY
        last_time = rest.pop()
        values: dict[str, Any] = {
            "topic": token_of(topic, "topic"),
            "topic_truncated": is_truncated(topic, self._width),
            "broker_name": filled(broker_name, "broker name"),
            "broker_name_truncated": is_truncated(broker_name, _BROKER_WIDTH),
            "queue_id": count_of(queue_id, "queue id"),
            "broker_offset": long_of(broker_offset, "broker offset"),
            "consumer_offset": long_of(consumer_offset, "consumer offset"),
            "diff": long_of(rest[0], "diff"),
            "inflight": long_of(rest[1], "inflight") if with_inflight else None,
            "last_time_ms": self._last_time(last_time),
            "with_clients": with_clients,
            "client_ip": None if client == _NOBODY else client,
        }
        if values["broker_offset"] - values["consumer_offset"] != values["diff"]:
            raise Unreadable(BAD_NUMBER, "the difference is not broker offset - consumer offset")
        return values

    def _last_time(self, text: str) -> int | None:
        # Empty where upstream could not format it; it says N/A for 0.
        return None if text in ("", _NOBODY) else dashed_ms(text, self._time_zone)

    def _group(self, columns: list[str]) -> dict[str, Any]:
        group, members, version, consume_type, model, tps, diff = columns
        online = count_of(members, "#Count") > 0
        if online != (version != "OFFLINE"):
            raise Unreadable(UNPARSABLE_LINE, f"{members} members and version {version}")
        return {
            "consumer_group": token_of(group, "group"),
            "consumer_group_truncated": is_truncated(group, self._width),
            "members": int(members),
            "version": token_of(version, "version") if online else None,
            "consume_type": consume_type or None,
            "message_model": model or None,
            "tps": long_of(tps, "#TPS"),
            "diff": long_of(diff, "#Diff Total"),
        }


# ``mqadmin consumerStatus``: the members of a group, and what each says of itself.
#
# Printed by ``ConsumerStatusSubCommand``: a list on standard output, and a file for each client;
# with ``-i`` the text of that file is the output.

_COMMAND_LINE = re.compile(r"\bmqadmin\S*+ consumerStatus(?: [^\n]*?)? -(?:i|-clientId)[ =](\S++)")
_ASKED = re.compile(r" ([0-9]{13})/")
_UNHEADED = re.compile(r"[0-9]{3}  \S.* [0-9]{13}/\S")
"""A row of 3.x, "%03d  %-40s %-20s %s%n": the list has no header there."""
_STUCK = re.compile(
    r"MessageQueue \[topic=(?P<topic>[^,\]]+), brokerName=(?P<broker>[^,\]]+), "
    r"queueId=(?P<queue>-?[0-9]+)\] (?:"
    r"can't (?P<lock>lock) for a while, (?P<lock_ms>[0-9]+)ms"
    r"|(?P<unlock>unlock) (?P<times>[0-9]+) times, still failed"
    r"|can't (?P<consume>consume) for a while, maybe blocked, (?P<consume_ms>[0-9]+)ms)"
)
_VERDICTS = {
    "Same subscription in the same group of consumer": True,
    "WARN: Different subscription in the same group of consumer!!!": False,
}
# ConsumerRunningInfo.analyzeRebalance always returns true: it says nothing.
_REBALANCE = ("Rebalance OK", "Rebalance Failed")


def parse_consumer_status(
    text: str, source: str, *, time_zone: tzinfo = UTC
) -> list[Fact | Unread]:
    """Read the list of a group, or by `parse_running_info` the file of one client.

    Facts:
        listed_client: a connection whose client answered, true when it was asked (at_ms):
            client_id, version; an id that two processes share is listed twice and answers once
        same_subscription: whether all clients subscribe the same (upstream checks push groups that
            run for 2 min, else says yes): same
        stuck_queue: a queue that mqadmin warns of: client_id, topic, broker_name, queue_id, trouble
            (lock: not locked for count ms; unlock: tried count times; consume: nothing for count
            ms), count

    Args:
        text: standard output, or the file of a client.
        source: the name of the file.
        time_zone: of the machine that ran mqadmin; the times of queues are in its local time.
    """
    body = text.partition(JSTACK)[0] if PROPERTIES in text else text
    output = read_output(body, source)
    if any(line.text.rstrip() == PROPERTIES for line in output.lines):
        results = parse_running_info(output.lines, source, time_zone)
        if _COMMAND_LINE.search(text.partition(PROPERTIES)[0]):
            results = [_of_a_terminal(piece) for piece in results]
        return [*results, *output.others]
    return [*read_lines(output.lines, _List().read), *output.others]


def _of_a_terminal(piece: Fact | Unread) -> Fact | Unread:
    """The answer as copied from a terminal: what it does not show may have been left out of it."""
    if not isinstance(piece, Fact) or piece.kind != "client":
        return piece
    return replace(piece, values={**piece.values, "queues_told": False})


def client_of_output(text: str, results: Iterable[Fact | Unread]) -> str | None:
    """The id of the one client whose running info a text holds; None: nothing tells it.

    5.x prints what the id is made of (``ClientConfig.buildMQClientId``); the command line, which
    stands above a text that was copied from a terminal, names it after ``-i``.

    Args:
        text: the output of ``consumerStatus -i``.
        results: what `parse_consumer_status` made of it.
    """
    if text.count(PROPERTIES) > 1:
        return None
    facts = (piece for piece in results if isinstance(piece, Fact) and piece.kind == "client")
    properties: dict[str, str] = next((fact.values["properties"] for fact in facts), {})
    if properties.get("clientIP") and properties.get("instanceName"):
        stream = "STREAM" if properties.get("enableStreamRequestType") == "true" else ""
        unit = properties.get("unitName", "").removesuffix("null")
        return "@".join(
            filter(None, (properties["clientIP"], properties["instanceName"], unit, stream))
        )
    asked = set(_COMMAND_LINE.findall(text.partition(PROPERTIES)[0]))
    return asked.pop() if len(asked) == 1 else None


class _List:
    """The list of clients, then what mqadmin makes of them."""

    def __init__(self) -> None:
        self._headed = False

    def read(self, line: Line) -> Fact | None:
        text = line.text.rstrip()
        if text.startswith("#Index") and "#ConsumerRunningInfoFile" in text:
            self._headed = True
            return None
        if text in _VERDICTS:
            return Fact("same_subscription", None, {"same": _VERDICTS[text]}, line.source)
        if text in _REBALANCE:
            return None
        if " MessageQueue [" in text:
            return Fact("stuck_queue", None, _stuck(text), line.source)
        if not self._headed and not _UNHEADED.match(text):
            raise foreign(line, "consumerStatus")
        return _listed(line)


def _listed(line: Line) -> Fact:
    # "%-10d %-40s %-20s %s": the last column is <asked at>/<client id>, the one place where the
    # id stands without padding.
    text = whole(line)
    asked = _ASKED.search(text)
    client_id = text[asked.end() :] if asked else ""
    left = text[: asked.start()].rsplit(None, 1) if asked else []
    index, _, listed = left[0].partition(" ") if len(left) == 2 else ("", "", "")
    if asked is None or not client_id or listed.strip() != client_id:
        raise Unreadable(UNPARSABLE_LINE, "it is not index, client id, version, <ms>/<client id>")
    count_of(index.lstrip("0") or index[-1:], "#Index")
    values = {"client_id": client_id, "version": left[1]}
    return Fact("listed_client", long_of(asked[1], "time"), values, line.source)


def _stuck(text: str) -> dict[str, Any]:
    client_id, _, rest = text.partition(" MessageQueue [")
    match = _STUCK.fullmatch(f"MessageQueue [{rest}")
    if match is None:
        raise Unreadable(UNPARSABLE_LINE, "it is no warning that mqadmin knows")
    count = match["lock_ms"] or match["times"] or match["consume_ms"]
    return {
        "client_id": filled(client_id.strip(), "client id"),
        "topic": match["topic"],
        "broker_name": match["broker"],
        "queue_id": count_of(match["queue"], "queue id"),
        "trouble": match["lock"] or match["unlock"] or match["consume"],
        "count": long_of(count, "count"),
    }
