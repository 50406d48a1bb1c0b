"""Failed client requests, with the server's message: the exceptions that follow the request's line
in a client's log.
"""

import re

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse import log_lines
from rebalance_core.ingest.parse.java_numbers import INT_MAX
from rebalance_core.ingest.parse.java_text import between, whole
from rebalance_core.ingest.parse.log_lines import ClientClock, LineFields
from rebalance_core.model.failed_requests import MEMBER_LIST, PULL

LIST_FAILED = "getConsumerIdListByGroup exception, "
"""MQClientInstance.findConsumerIdList: the text before the queried address and the group."""
HEARTBEATS = "send heart beat to broker[", "sendHeartbeatToAllBrokerV2 send heart beat to broker["
"""MQClientInstance: the text before the broker's name, id and address; a success ends with the word
"success".
"""
FAILED = "request of a client failed: "
"""The mark in a Go client's line that `go_and_cpp_logs.Translator` writes; clients do not print
these words.
"""
REFUSED, UNANSWERED = "MQBrokerException: CODE: ", "Exception: "
EXCEPTIONS = (
    "org.apache.rocketmq.client.exception." + REFUSED,
    "org.apache.rocketmq.remoting.exception.Remoting",
)
"""The beginning of an exception's line: a server refused or did not answer."""
REASON_CHARACTERS = 200
_GROUP = re.compile(
    r"^subscription group no permission, (?P<disabled>\S+)$"
    r"|^subscription group \[(?P<missing>[^]]+)\] does not exist"
    r"|^the consumer group\[(?P<named>[^]]+)\] "
)
"""Answers from PullMessageProcessor and PopMessageProcessor that name the group."""
_ANSWER = re.compile(r"CODE: (\d+) +DESC: (.*)")
"""A copy from a web page may have lost one of the two blanks."""
_HELP = re.compile(r",? ?See https?://\S.*$|, period in queue.*$")
"""The page that brokers refer to, and the length of a request queue, which varies."""
_CONNECT = re.compile(r"^connect to <?([^<>\s]+:\d+)>? failed")
"""RemotingConnectException: the address that the client tried to reach."""
_OF_GO = re.compile(r"^(?:unknown Response Code|broker response code): (\d+), remarks?: ?")
"""A Go client's words for a refusal, before the server's message."""
_LOCAL_PORT = re.compile(r"(?<=\d):\d+(?=->)")


def may_have_a_reason(message: str) -> bool:
    """Return whether an exception below the line states why a request failed."""
    return message.startswith((*HEARTBEATS, LIST_FAILED)) and not message.endswith("success")


def reason_of(words: str) -> str:
    """Return the server's or network's reason on one line, worded the same whenever it is the
    same.
    """
    return _LOCAL_PORT.sub("", _HELP.sub("", " ".join(words.split())))[:REASON_CHARACTERS]


def exception_below(text: str, source: str, clock: ClientClock) -> tuple[Fact | Unread, ...]:
    """Read ``…MQBrokerException: CODE: {} DESC: {} BROKER: {}`` or ``…Remoting…Exception: {}``.

    The time is that of the request's line. The group is named there (in 5.x, and for member lists)
    or in the server's message, or it is the only one that the log can be about; otherwise a refused
    pull has only the broker's address, which 4.9 does not print.
    """
    failed, clock.failed = clock.failed, None
    if failed is None:
        return log_lines.NOT_OURS
    _, _, said = text.rstrip().partition(UNANSWERED)
    answer = _ANSWER.match(said)
    code, words = answer.groups() if answer else ("", said)
    refused = answer is not None and whole(code, INT_MAX) is not None
    words, _, address = (words if refused else said).partition(" BROKER: ")
    reason = reason_of(f"CODE {code}: {words}" if refused else words)
    if failed.message.startswith(HEARTBEATS):
        asked = failed.message.partition("[")[2].partition("]")[0].rpartition(" ")[2]
        values = {"address": asked, "reason": reason}
        return (Fact("heartbeat_refused", failed.at_ms, values, source),) if asked else ()
    request, group = PULL, failed.message.partition(", group=")[2].partition(",")[0]
    if failed.message.startswith(LIST_FAILED):
        asked, _, group = failed.message.removeprefix(LIST_FAILED).partition(" ")
        request, address = MEMBER_LIST, asked
    named = _GROUP.match(words)
    group = group or (named[named.lastgroup or 0] if named else "") or clock.group
    connect = None if refused or address else _CONNECT.match(words)
    address = connect[1] if connect else address
    if group:
        values = {"group": group, "request": request, "reason": reason, "address": address}
        values |= {} if failed.pid is None else {"pid": failed.pid}
        return (Fact("request_failed", failed.at_ms, values, source),)
    if refused and address:
        values = {"address": address, "reason": reason}
        return (Fact("pull_refused", failed.at_ms, values, source),)
    return log_lines.NOT_OURS


def translated(request: str, group: str, address: str, reason: str) -> str:
    """Return a Go client's line in the form that `request_failed` reads."""
    reason = reason_of(_OF_GO.sub(r"CODE \1: ", reason))
    return f"{FAILED}{request}, group={group}, address={address}, reason={reason}"


def request_failed(message: str) -> LineFields:
    """Read a Go client's line, as `translated` writes it; an address may be empty."""
    marks = (FAILED, ", group=", ", address=", ", reason=", "")
    pieces = between(message, *marks)
    if pieces is None or not pieces[1]:
        return None
    return dict(zip(("request", "group", "address", "reason"), pieces, strict=True))
