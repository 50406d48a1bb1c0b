"""Logs of Go and C++ clients, whose facts are put in the words of the Java client's log.

The Go client (rocketmq-client-go 2.x, rlog) logs a message and fields, as JSON, logrus text or
zap's columns; the C++ client (1.x and 2.x, Logging.cpp) logs its host's time, a level and a
message. A few of their lines state the same facts as a Java client's lines, and each of these
becomes that line. All others keep their message.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from rebalance_core.ingest.parse.failed_requests import translated
from rebalance_core.model.failed_requests import COMMIT, MEMBER_LIST, PULL

GO = re.compile(
    r'\{(?=.*"msg" ?: ?")(?=.*"level" ?: ?"(?:debug|info|warn|warning|error|fatal|panic)")'
    r'|time="[^"]+" level=[a-z]+ msg='
    r"|\d{4}-\d\d-\d\dT\S+\t[A-Z]+\t(?:\S+\t)?[^\t]+\t\{"
)
"""The beginning of a Go client's line: JSON, logrus text, or zap's columns with fields as JSON."""
CPP = re.compile(
    r"\[(?P<year>\d{4})-(?P<month>[A-Z][a-z]{2})-(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)"
    r"\.(?P<fraction>\d+)\]\((?:trace|debug|info|warning|error|fatal)\):"
)
"""The beginning of a C++ client's line (Boost.Log)."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FIELD = re.compile(r'([\w.]+)=("(?:[^"\\]|\\.)*"|\S*)')
_QUEUE = re.compile(r"MessageQueue \[topic=[^\]]+\]")
_EMPTY_LIST = re.compile(
    r"\[ERROR\] Get empty consumer IDs\. Consumer Group: (?P<group>\S+), Topic: (?P<topic>\S+)"
)
_ALLOCATION = re.compile(
    r"Allocation result for \[Consumer Group: (?P<group>\S+), Topic: \S+, "
    r"Current Consumer ID: (?P<client>[^\]]+)\]"
)
_CPP_COMMIT = re.compile(
    r"oneway updateConsumeOffsetToBroker of mq:(?P<queue>MessageQueue \[[^\]]+\]), "
    r"its offset is:(?P<offset>-?\d+)"
)
_CPP_STARTS = re.compile(
    r"DefaultMQPushConsumerImpl:(?P<group>\S+) start$"
    r"|Start to pull MessageQueue \[[^\]]+\], offset:-?\d+, GroupName (?P<puller>\S+)$"
)
_CPP_PLACE = re.compile(r"\[~?\w+:\d+\]$")
"""The function and line that end a line of a C++ client."""
LANGUAGE = "language of a client: "
"""Precedes the language, client id and group found in a line of the client's own log; clients do
not print these words.
"""
NO_BROKER = "no broker found for mq "
"""Go clients: the routes have no address for the queue's broker, so the client does not pull it."""

NO_OFFSET = "no committed offset, Group: "
"""Go clients: the broker answered QUERY_NOT_FOUND, so the group has no commit there."""
_FAILED = {
    "get consumer list of group from broker error": MEMBER_LIST,
    "pull message from broker error": PULL,
    "update offset to broker error": COMMIT,
}
"""Go clients: a server refused or did not answer a request; underlayError gives the reason."""
_OF_PASSES = {
    "remove unnecessary mq because unsubscribed": (
        "truncateMessageQueueNotMyTopic remove unnecessary mq, {}"
    ),
    "do defaultConsumer, add a new mq failed, because lock failed": (
        "add a new mq failed, {}, because lock failed"
    ),
    "do defaultConsumer, add a new mq failed": "add new mq failed, {}",
}
"""Go clients: a pass gives up or does not take over a queue, in the Java client's words."""
_FETCH_FAILED = "fetch offset of mq from broker error"
_NOT_FOUND = "broker response code: 22,"


class Translated(NamedTuple):
    """A line in the words of the Java client.

    Attributes:
        time: RFC 3339 or epoch time from Go, local ``yyyy-MM-dd HH:mm:ss.ffffff`` from C++; empty
            if there is none.
        message: the Java client's equivalent line.
    """

    time: str
    message: str


class Translator:
    """Reads the lines of one client's log in order.

    A commit does not name the client nor, in C++, the group, and neither does a failed pull in Go;
    they are taken from earlier lines if these name only one. The first line that names a client
    with a group states its language.

    Args:
        group: the group, if no earlier line names one; empty if it is unknown.
    """

    def __init__(self, group: str = "") -> None:
        self._group = group
        self._clients: set[str] = set()
        self._groups: set[str] = set()
        self._named_groups: set[tuple[str, str]] = set()

    def line(self, text: str) -> Translated | None:
        """Read the line; return None if it belongs to neither client."""
        if GO.match(text):
            fields = _fields(text)
            time = str(fields.get("ts") or fields.get("time") or "")
            return Translated(time, self._of_go(fields)) if "msg" in fields else None
        match = CPP.match(text)
        if match is None or match["month"] not in _MONTHS:
            return None
        month = _MONTHS.index(match["month"]) + 1
        time = f"{match['year']}-{month:02d}-{match['day']} {match['clock']}.{match['fraction']}"
        return Translated(time, self._of_cpp(_CPP_PLACE.sub("", text[match.end() :])))

    def _of_go(self, fields: Mapping[str, object]) -> str:
        said, group = str(fields["msg"]), str(fields.get("consumerGroup") or "")
        topic, queue = str(fields.get("topic") or ""), _queue_of(fields)
        client = str(fields.get("clientID") or "")
        self._clients |= {client} - {""}
        self._groups |= {group} - {""}
        if said == "update offset to broker success" and queue:
            return self._commit(group, queue, fields.get("offset"))
        if said == "do balance in group failed, get consumer id list failed":
            return f"doRebalance, {group} {topic}, get consumer id list failed"
        if said in _FAILED and (group := group or self._only_group()):
            asked = str(fields.get("broker") or fields.get("brokerAddr") or "")
            why = str(fields.get("underlayError") or "")
            return translated(_FAILED[said], group, asked, why)
        if said == "[BUG] ConsumerId not in cidAll":
            listed = ", ".join(_listed(fields.get("cidAll")))
            who = fields.get("consumerId") or ""
            return f"[BUG] ConsumerGroup: {group} The consumerId: {who} not in cidAll: [{listed}]"
        if said in _OF_PASSES and queue and group:
            return f"doRebalance, {group}, {_OF_PASSES[said].format(queue)}"
        if said == _FETCH_FAILED and queue and group:
            why = str(fields.get("underlayError") or "")
            return f"{NO_OFFSET}{group} {queue}" if why.startswith(_NOT_FOUND) else said
        if flow := _FLOW_CONTROL.match(said):
            match = _PULL_REQUEST.search(f"{said} {fields.get('PullRequest') or ''}")
            return _flow_control(flow[0], match, fields.get("minOffset")) if match else said
        for words, java in _STATES:
            if said.startswith(words):
                return java + said[len(words) :]
        if said == NO_BROKER.strip() and queue:
            return NO_BROKER + queue
        if client and group and (client, group) not in self._named_groups:
            return self._language("GO", client, group)
        return said

    def _of_cpp(self, said: str) -> str:
        if match := _EMPTY_LIST.match(said):
            self._groups.add(match["group"])
            return f"doRebalance, {match['group']} {match['topic']}, get consumer id list failed"
        if match := _ALLOCATION.match(said) or _CPP_STARTS.match(said):
            named = match.groupdict()
            client, group = named.get("client") or "", named["group"] or named["puller"]
            self._groups.add(group)
            self._clients |= {client} - {""}
            if client and (client, group) not in self._named_groups:
                return self._language("CPP", client, group)
        elif (match := _CPP_COMMIT.match(said)) and (group := self._only_group()):
            return self._commit(group, match["queue"], match["offset"])
        return said

    def _only_group(self) -> str:
        """Return the only group that earlier lines name; empty if they name several."""
        return next(iter(self._groups or {self._group})) if len(self._groups) < 2 else ""

    def _language(self, language: str, client: str, group: str) -> str:
        self._named_groups.add((client, group))
        return f"{LANGUAGE}{language}, clientId={client}, group={group}"

    def _commit(self, group: str, queue: str, offset: object) -> str:
        client = next(iter(self._clients)) if len(self._clients) == 1 else ""
        return (
            f"[persistAll] Group: {group} ClientId: {client} updateConsumeOffsetToBroker "
            f"{queue} {offset}"
        )


_FLOW_CONTROL = re.compile(
    r"the cached message (?:count|size) exceeds the threshold|the queue's messages,? span too long"
)
_PULL_REQUEST = re.compile(
    r"\[ConsumerGroup: (?P<group>[^,]+), Topic: (?P<topic>[^,]+), "
    r"MessageQueue: (?P<queue>brokerName=[^,]+, queueId=\d+),"
)


def _flow_control(words: str, request: re.Match[str], first: object) -> str:
    said = words if words.startswith("the cached") else "the queue's messages, span too long,"
    queue = f"MessageQueue [topic={request['topic']}, {request['queue']}]"
    return (
        f"{said} so do flow control, minOffset={first}, "
        f"pullRequest=PullRequest [consumerGroup={request['group']}, "
        f"messageQueue={queue}, nextOffset=0]"
    )


_STATES = (
    ("suspend consumer: ", "suspend this consumer, "),
    ("resume consumer: ", "resume this consumer, "),
)


def _fields(text: str) -> dict[str, object]:
    if "\t" in text and not text.startswith(("{", "time=")):
        columns, _, fields = text.partition("\t{")
        time, *_, said = columns.split("\t")
        # a logger may add columns after the fields
        return {**(json_object("{" + fields.partition("\t")[0]) or {}), "ts": time, "msg": said}
    if not text.startswith("{"):
        return {name: _unquoted(value) for name, value in _FIELD.findall(text)}
    return json_object(text) or {}


def json_object(line: str) -> dict[str, object] | None:
    """Return the line as a JSON object, or None if it is not one."""
    if not line.startswith("{"):
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value[1:-1]


def _queue_of(fields: Mapping[str, object]) -> str:
    """Read ``MessageQueue`` or ``PullRequest``; in JSON, the queue may be an object."""
    for name in ("MessageQueue", "PullRequest"):
        value = fields.get(name)
        if isinstance(value, dict) and value.keys() >= {"topic", "brokerName", "queueId"}:
            queue: dict[str, object] = value
            where = f"brokerName={queue['brokerName']}, queueId={queue['queueId']}"
            return f"MessageQueue [topic={queue['topic']}, {where}]"
        match = _QUEUE.search(str(value or ""))
        if match:
            return match[0]
    return ""


def _listed(value: object) -> list[str]:
    """Return a list from JSON or from Go's form ``[a b]``."""
    return (
        list(map(str, value)) if isinstance(value, list) else str(value or "").strip("[]").split()
    )
