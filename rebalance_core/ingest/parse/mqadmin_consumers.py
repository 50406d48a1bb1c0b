"""``mqadmin consumerConnection``, ``consumerProgress`` and ``consumerStatus``: members,
offsets, stacks.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.ingest.fact import (
    BAD_NUMBER,
    BAD_TIME,
    UNPARSABLE_LINE,
    Fact,
    Stated,
    Unread,
    Unreadable,
    shown,
    unread,
)
from rebalance_core.ingest.fact_subjects import answers, is_answer
from rebalance_core.ingest.parse.command_output import (
    NOT_ONLINE,
    Line,
    cut_off,
    dashed_ms,
    filled,
    foreign,
    is_partial,
    is_truncated,
    read_lines,
    read_output,
    stray,
    unheaded,
    whole,
)
from rebalance_core.ingest.parse.consumer_running_info import JSTACK, PROPERTIES, parse_running_info
from rebalance_core.ingest.parse.headed_tables import BROKER, WORD, Column, HeadedTable
from rebalance_core.ingest.parse.java_text import count_of, decimal_of, long_of
from rebalance_core.ingest.parse.torn_rows import refused_rows

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import QueueProgressValues

# ``mqadmin consumerConnection``: the members of a group as one broker knows them.
#
# Printed by ``ConsumerConnectionSubCommand``. What follows the members is stated of the group on
# that broker, not of a member: the subscription table holds what the last heartbeats sent.

VERSION = r"V\d+_\d+_\d+\w*|(?!V)\S+"
"""MQVersion.getVersionDesc; a version that was cut in its middle is none."""
_CLIENT_ID = r"(?:(?!\s\S+:[0-9]{1,5}(?:\s|$)).)+?"
"""It may hold blanks, but not the address of its own row, where two rows became one."""
_ADDRESS = r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|(?![0-9.]+:[0-9]{1,5}(?:\s|$))\S+):[0-9]{1,5}"
"""Of digits and points only an address of IPv4 is valid."""
_MEMBERS = {
    "ClientId": Column(_CLIENT_ID, 1, what="a client id"),
    "ClientAddr": Column(_ADDRESS, 1, what="an address with its port"),
    "Language": Column(r"[A-Za-z][A-Za-z0-9_]*", 1, what="a language"),
    "Version": Column(VERSION, 1, what="a version"),
}
_EXPRESSION = r"\*|(?!\*)(?:(?!%RETRY%|\s{2,}\*$).)*"
"""Of two rows that became one, the first has the second's topic in its expression."""
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
            # Deprecated; the client takes them as the first.
            "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
            "CONSUME_FROM_MIN_OFFSET",
            "CONSUME_FROM_MAX_OFFSET",
        ),
    ),
}
_LAST_GROUP_LINE = "ConsumeFromWhere"


def parse_consumer_connection(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of a run.

    An empty output is `no_members`: upstream prints the refusal on standard error. So is a stack
    with code 206, while any other failure is an `admin_error` and shows nothing of members.

    Facts:
        member: a connection of the group at the broker asked: client_id, client_addr, language,
            version, and of the group there subscriptions (pairs of topic and expression),
            consume_type, message_model, consume_from_where (None: the output ends before it),
            partial (only there, and true, where rows may be missing: others may be members, too),
            unpadded (the same, where no padding shows whether the id lost characters)
        group_connection: the group at the broker asked: members (connections listed),
            subscriptions, consume_type, message_model, consume_from_where
        no_members: the broker asked knows no member of the group: code (206; None: nothing was
            printed)
    """
    output = read_output(text, source)
    table = _ConnectionTable()
    refused = read_lines(output.lines, table.read)
    others = [*map(_no_members, output.others)]
    silent = any(isinstance(piece, Stated) and piece.kind == "no_output" for piece in output.others)
    if silent and text.strip():
        # what a JVM prints on standard error is there, and the refusal that follows it is not
        others = [cut_off(source, output.lines, f"{_LAST_GROUP_LINE}:")]
    if table.lacks_end and not others:
        others.append(cut_off(source, output.lines, f"{_LAST_GROUP_LINE}:"))
    if not table.headed:
        return [*unheaded(refused, output.others), *others]
    refused += table.torn_members()
    return [*table.facts(source, partial=is_partial([*refused, *others])), *refused, *others]


def _no_members(other: Fact | Unread) -> Fact | Unread:
    if isinstance(other, Unread):
        return other
    if is_answer(other) and other.kind == "admin_error" and other.values["code"] != NOT_ONLINE:
        return other
    return Fact("no_members", None, {"code": other.values.get("code")}, other.source)


UNPADDED = "unpadded"
"""The value of members of a table without padding."""


def _torn(client_id: str) -> Unreadable:
    what = f"#ClientId is {shown(client_id)}, not a whole id: the row lost its beginning"
    return Unreadable(UNPARSABLE_LINE, what)


def _begins_late(client_id: str, address: str) -> bool:
    """Return True if the id lost its beginning: it starts within an IP address."""
    own, host = client_id.partition("@")[0], address.rpartition(":")[0]
    return client_id[0] in ".@#" or (own != host and host.endswith(own))


class _Member(NamedTuple):
    """A row of the table of members."""

    client_id: str
    client_addr: str
    language: str | None
    version: str


class _ConnectionTable:
    """Reads the table of members, then the subscription table, then the lines on the group."""

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
        """True if one of the two headers was there."""
        return self._of_members is not None or self._of_subscriptions is not None

    @property
    def lacks_end(self) -> bool:
        """True if the output has a header but lacks its end."""
        return self.headed and (not self._ended or self._of_members is None)

    def facts(self, source: str, *, partial: bool) -> list[Fact]:
        """Return a fact per member and, if the output is complete, a fact on the group.

        Args:
            source: the name of the file.
            partial: rows may be missing.
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
        """Take out the members whose ids lost their beginning, and return their refusals.

        Where padding is lost no place shows it. A client makes its id of its address and @, unless
        an application names it otherwise; most of a group do.
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


# ``mqadmin consumerProgress``: offsets per queue of one group, or one line per group.
#
# Printed by ``ConsumerProgressSubCommand``; with ``-s true`` it shows who holds each queue.

_NUMBER = r"-?[0-9]{1,19}"
_TIME = r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:,[0-9]{3})?|N/A)?"
"""Empty where upstream could not format it; it prints N/A for 0."""


def _number(gap: int = 2) -> Column:
    return Column(_NUMBER, gap, BAD_NUMBER, "a whole number of 64 bits")


_QUEUES = {
    "Topic": Column(WORD, what="a topic"),
    "Broker Name": Column(BROKER, what="the name of a broker"),
    "QID": _number(),
    "Broker Offset": _number(),
    "Consumer Offset": _number(),
    "Diff": _number(1),
}
_SOME_QUEUES = {
    "Client IP": Column(WORD, 1, what="a client's address"),
    "Inflight": _number(1),
    "LastTime": Column(_TIME, 1, BAD_TIME, "a time as mqadmin prints it", placed=False),
}
"""Columns of some versions, or of -s true."""
_GROUPS = {
    "Group": Column(WORD, what="a group"),
    "Count": _number(),
    "Version": Column(VERSION, 1, what="a version"),
    "Type": Column(r"[A-Za-z_]*", what="a type"),
    "Model": Column(r"[A-Za-z_]*", what="a message model"),
    "TPS": _number(),
    "Diff Total": _number(),
}
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
    """Read an output, 4.9 or 5.x, with or without ``-g``, ``-s``.

    Facts:
        queue_progress: a queue of the group asked for: topic, topic_truncated, broker_name,
            broker_name_truncated (the name fills its column and may have been truncated), queue_id,
            broker_offset, consumer_offset (0 also when nothing is committed), diff, inflight (5.x),
            last_time_ms (None: N/A), with_clients (run with -s true), client_ip (the holder's
            client id up to its first @; None: no holder), partial (only there, and true, where rows
            of the topic may be missing)
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
    results = read_lines(output.lines, table.read)
    if not table.headed:
        return [*unheaded(results, output.others), *output.others]
    if not table.padded:
        names = "topic", "broker_name"
        results = refused_rows(results, "queue_progress", names, output.lines)
    results += _rows_lost(results, source)
    refused = is_partial([*results, *output.others])
    missing = table.missing_end
    if missing and not output.others:
        output.others.append(cut_off(source, output.lines, missing))
    return [*_marked(results, refused, bool(missing)), *output.others]


def _rows_lost(results: list[Fact | Unread], source: str) -> Iterator[Unread]:
    """Refuse an output whose rows do not add up to the total that mqadmin printed of them."""
    facts = list(answers(results))
    totals = [
        f.values["total"]
        for f in facts
        if f.kind == "progress_total" and f.values["name"] == "diff"
    ]
    added = sum(f.values["diff"] for f in facts if f.kind == "queue_progress")
    if totals and totals != [added] and not any(isinstance(piece, Unread) for piece in results):
        why = (
            f"rows are missing: the differences add up to {added}, and the total is {totals[0]:.0f}"
        )
        yield unread(source, "", Unreadable(UNPARSABLE_LINE, why))


def _marked(results: list[Fact | Unread], refused: bool, cut: bool) -> Iterator[Fact | Unread]:
    """Mark the rows of incomplete topics: of all if rows were refused, else of the last."""
    topics = [f.values["topic"] for f in answers(results) if f.kind == "queue_progress"]
    last = topics[-1] if topics else None
    for piece in results:
        if isinstance(piece, Stated) and piece.kind == "queue_progress":
            partial = refused or (cut and piece.values["topic"] == last)
            yield replace(piece, values={**piece.values, "partial": True}) if partial else piece
        else:
            yield piece


class _ProgressTable:
    """The rows after a header are read as that header requires."""

    def __init__(self, time_zone: tzinfo) -> None:
        self._time_zone = time_zone
        self._table: HeadedTable | None = None
        self._groups = False
        self._totals: set[str] = set()

    @property
    def headed(self) -> bool:
        """True if the output has a header."""
        return self._table is not None

    @property
    def padded(self) -> bool:
        """False if the rows of queues have no padding that would show lost characters."""
        return self._table is None or self._groups or self._table.padded

    @property
    def missing_end(self) -> str:
        """The total that is missing at the end of a single group's queues; empty: it is there."""
        if self._table is None or self._groups:
            return ""
        last = "inflight" if self._table.has("Inflight") else "diff"
        return "" if last in self._totals else f"the total of the column {last}"

    def read(self, line: Line) -> Fact | None:
        text = line.text.strip()
        if text.startswith("#"):
            self._head(line)
            return None
        for prefix, name in _TOTALS.items():
            if text.startswith(prefix):
                total = decimal_of(whole(line).strip()[len(prefix) :].strip(), prefix.strip(": "))
                self._totals.add(name)
                return Fact("progress_total", None, {"name": name, "total": total}, line.source)
        if self._table is None or self._totals:
            raise stray(line)
        cells = self._table.read(whole(line))
        kind = "group_progress" if self._groups else "queue_progress"
        try:
            values = self._group(cells) if self._groups else self._queue(cells, self._table)
        except Unreadable:
            self._table.refuse()
            raise
        return Fact(kind, None, values, line.source)

    def _head(self, line: Line) -> None:
        queues = HeadedTable(line.text, _QUEUES | _SOME_QUEUES)
        groups = HeadedTable(line.text, _GROUPS)
        of_groups = groups.has(*_GROUPS)
        if not of_groups and not queues.has(*_QUEUES):
            raise foreign(line, "consumerProgress")
        self._groups, self._table = of_groups, groups if of_groups else queues
        self._totals.clear()

    def _queue(self, cells: Mapping[str, str], table: HeadedTable) -> "QueueProgressValues":
        client = cells.get("Client IP", _NOBODY)
        values: QueueProgressValues = {
            "topic": cells["Topic"],
            "topic_truncated": is_truncated(cells["Topic"], table.width("Topic")),
            "broker_name": cells["Broker Name"],
            "broker_name_truncated": is_truncated(cells["Broker Name"], _BROKER_WIDTH),
            "queue_id": count_of(cells["QID"], "queue id"),
            "broker_offset": long_of(cells["Broker Offset"], "broker offset"),
            "consumer_offset": long_of(cells["Consumer Offset"], "consumer offset"),
            "diff": long_of(cells["Diff"], "diff"),
            "inflight": long_of(cells["Inflight"], "inflight") if "Inflight" in cells else None,
            "last_time_ms": self._last_time(cells.get("LastTime", "")),
            "with_clients": "Client IP" in cells,
            "client_ip": None if client == _NOBODY else client,
        }
        if values["broker_offset"] - values["consumer_offset"] != values["diff"]:
            raise Unreadable(BAD_NUMBER, "the difference is not broker offset - consumer offset")
        return values

    def _last_time(self, text: str) -> int | None:
        return None if text in ("", _NOBODY) else dashed_ms(text, self._time_zone)

    def _group(self, cells: Mapping[str, str]) -> dict[str, object]:
        members, version = cells["Count"], cells["Version"]
        online = count_of(members, "#Count") > 0
        if online != (version != "OFFLINE"):
            raise Unreadable(UNPARSABLE_LINE, f"{members} members and version {version}")
        return {
            "consumer_group": cells["Group"],
            "consumer_group_truncated": self._is_cut(cells["Group"]),
            "members": int(members),
            "version": version if online else None,
            "consume_type": cells["Type"].upper() or None,
            "message_model": cells["Model"].upper() or None,
            "tps": long_of(cells["TPS"], "#TPS"),
            "diff": long_of(cells["Diff Total"], "#Diff Total"),
        }

    def _is_cut(self, group: str) -> bool:
        return self._table is not None and is_truncated(group, self._table.width("Group"))


# ``mqadmin consumerStatus``: the members of a group, and each member's own description.
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
# ConsumerRunningInfo.analyzeRebalance always returns true: it shows nothing.
_REBALANCE = ("Rebalance OK", "Rebalance Failed")


def parse_consumer_status(
    text: str, source: str, *, time_zone: tzinfo = UTC
) -> list[Fact | Unread]:
    """Read the list of a group, or by `parse_running_info` the file of one client.

    Facts:
        listed_client: a connection whose client answered, true when it was asked (at_ms):
            client_id, version; an id that two processes share is listed twice and answers once
        same_subscription: whether all clients subscribe the same (upstream checks push groups that
            run for 2 min, else answers yes): same
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
    if any(line.text.strip() == PROPERTIES for line in output.lines):
        results = parse_running_info(output.lines, source, time_zone)
        if _COMMAND_LINE.search(text.partition(PROPERTIES)[0]):
            results = [_of_a_terminal(piece) for piece in results]
        return [*results, *output.others]
    table = _List()
    results = read_lines(output.lines, table.read)
    return [*(results if table.headed else unheaded(results, output.others)), *output.others]


def _of_a_terminal(piece: Fact | Unread) -> Fact | Unread:
    """Return the fact with its queues marked as incomplete, as it was copied from a terminal."""
    if not isinstance(piece, Stated) or piece.kind != "client":
        return piece
    return replace(piece, values={**piece.values, "queues_told": False})


def client_of_output(text: str, results: Iterable[Fact | Unread]) -> str | None:
    """Return the id of the one client whose running info a text holds; None: nothing shows it.

    5.x prints what the id is made of (``ClientConfig.buildMQClientId``); the command line, which
    stands above a text that was copied from a terminal, names it after ``-i``.

    Args:
        text: the output of ``consumerStatus -i``.
        results: what `parse_consumer_status` made of it.
    """
    if text.count(PROPERTIES) > 1:
        return None
    clients = (f.values for f in answers(results) if f.kind == "client")
    properties = next((client["properties"] for client in clients), dict[str, str]())
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
        self.headed = False

    def read(self, line: Line) -> Fact | None:
        text = line.text.strip()
        if text.startswith("#Index") and "#ConsumerRunningInfoFile" in text:
            self.headed = True
            return None
        if text in _VERDICTS:
            return Fact("same_subscription", None, {"same": _VERDICTS[text]}, line.source)
        if text in _REBALANCE:
            return None
        if " MessageQueue [" in text:
            return Fact("stuck_queue", None, _stuck(text), line.source)
        if not self.headed and not _UNHEADED.match(text):
            raise foreign(line, "consumerStatus") if text.startswith("#") else stray(line)
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


def _stuck(text: str) -> dict[str, object]:
    client_id, _, rest = text.partition(" MessageQueue [")
    match = _STUCK.fullmatch(f"MessageQueue [{rest}")
    if match is None:
        raise Unreadable(UNPARSABLE_LINE, "it is not a warning that mqadmin knows")
    count = match["lock_ms"] or match["times"] or match["consume_ms"]
    return {
        "client_id": filled(client_id.strip(), "client id"),
        "topic": match["topic"],
        "broker_name": match["broker"],
        "queue_id": count_of(match["queue"], "queue id"),
        "trouble": match["lock"] or match["unlock"] or match["consume"],
        "count": long_of(count, "count"),
    }
