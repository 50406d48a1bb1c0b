"""Lines of broker.log and rocketmq_client.log on POP and QueryAssignment (rocketmq.md §14)."""

from __future__ import annotations

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.java_text import MS_MAX, between, whole
from rebalance_core.ingest.parse.text.log_lines import (
    NOT_OURS,
    NOTHING,
    ClientClock,
    Fields,
    Template,
    named,
)

QUERY = "QueryLoad: no assignment for group["
_UNSUPPORTED = "QueryLoad: unsupported strategy ["
_TIMED_OUT = "the pop message time out so abort consume. popTime="
_NO_ROUTE = "get Topic ["
_NO_ROUTE_END = "] RouteInfoFromNameServer is not exist value"
FORBIDDEN = " pop message is forbidden because timerWheelEnable is false"
"""PopMessageProcessor's answer; the client prints it in the exception below a failed pop."""


def _no_assignment(message: str) -> Fields:
    for reason, marks in (
        ("NO_MEMBERS", ("] topic[", "], get consumer id list failed")),
        ("NO_TOPIC", ("], the topic[", "] does not exist.")),
    ):
        fields = named(("group", "topic"), between(message, QUERY, *marks))
        if fields is not None:
            return fields | {"reason": reason}
    return NOTHING


def _unsupported(message: str) -> Fields:
    pieces = between(message, _UNSUPPORTED, "], ", "")
    return named(("strategy", "client_addr"), [one.strip() for one in pieces] if pieces else None)


def _timed_out(message: str) -> Fields:
    pieces = between(
        message, _TIMED_OUT, " invisibleTime=", ", group=", " MessageQueue [topic=",
        ", brokerName=", ""
    )  # fmt: skip
    fields = named(("group", "topic"), pieces[2:4] if pieces else None)
    invisible_ms = whole(pieces[1], MS_MAX) if pieces else None
    if fields is None or invisible_ms is None:
        return None
    return fields | {"invisible_ms": invisible_ms}


def _no_route(message: str) -> Fields:
    if not message.endswith(_NO_ROUTE_END):
        return NOTHING
    return named(("topic",), [message[len(_NO_ROUTE) : -len(_NO_ROUTE_END)]])


def pop_forbidden(text: str, source: str, clock: ClientClock) -> tuple[Fact | Unread, ...]:
    """``…CODE: 1  DESC: the broker[…] pop message is forbidden … BROKER: {address}``.

    The line has the time of the failed pop before it; where that is not known, as at the beginning
    of a split, it states nothing.
    """
    failed, clock.failed_pull = clock.failed_pull, None
    if failed is None:
        return NOT_OURS
    values = {"address": text.partition(FORBIDDEN)[2].partition("BROKER: ")[2].strip()}
    if failed.pid is not None:
        values["pid"] = failed.pid
    return (Fact("pop_forbidden", failed.at_ms, values, source),)


BROKER_TEMPLATES: tuple[Template, ...] = (
    ("no_assignment", QUERY, _no_assignment),
    ("strategy_unsupported", _UNSUPPORTED, _unsupported),
)
CLIENT_TEMPLATES: tuple[Template, ...] = (
    ("pop_timed_out", _TIMED_OUT, _timed_out),
    ("missing_route", _NO_ROUTE, _no_route),
)
CLIENT_WORDS = (*(words for _, words, _ in CLIENT_TEMPLATES), FORBIDDEN)
