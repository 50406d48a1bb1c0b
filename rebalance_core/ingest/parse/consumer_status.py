"""``mqadmin consumerStatus``: the members of a group, and each member's own description."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, tzinfo

from rebalance_core.ingest.fact import (
    UNPARSABLE_LINE,
    Fact,
    Stated,
    Unread,
    Unreadable,
)
from rebalance_core.ingest.fact_subjects import answers
from rebalance_core.ingest.parse.column_names import filled
from rebalance_core.ingest.parse.command_output import (
    Line,
    foreign,
    read_lines,
    read_output,
    stray,
    unheaded,
    whole,
)
from rebalance_core.ingest.parse.consumer_running_info import JSTACK, PROPERTIES, parse_running_info
from rebalance_core.ingest.parse.java_numbers import count_of, long_of

_COMMAND_LINE = re.compile(r"\bmqadmin\S*+ consumerStatus(?: [^\n]*?)? -(?:i|-clientId)[ =](\S++)")


_ASKED = re.compile(r" ([0-9]{13})/")


_UNHEADED = re.compile(r"[0-9]{3}  \S.* [0-9]{13}/\S")
"""A row in 3.x, "%03d  %-40s %-20s %s%n", where the list has no header."""


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
    """Read the list of a group or, using `parse_running_info`, the file of one client.

    Facts:
        listed_client: a connection whose client answered, true at the time of the query (at_ms):
            client_id, version; an id shared by two processes is listed twice but answers once
        same_subscription: whether all clients subscribe to the same topics (upstream checks push
            groups that have run for 2 min and otherwise answers yes): same
        stuck_queue: a queue that mqadmin warns about: client_id, topic, broker_name, queue_id,
            trouble (lock: not locked for count ms; unlock: tried count times; consume: nothing
            consumed for count ms), count

    Args:
        text: standard output, or the file of a client.
        source: the name of the file.
        time_zone: the time zone of the machine that ran mqadmin; the times of queues are in its
            local time.
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
    """Return the fact with its queues marked as incomplete, because it was copied from a
    terminal.
    """
    if not isinstance(piece, Stated) or piece.kind != "client":
        return piece
    return replace(piece, values={**piece.values, "queues_told": False})


def client_of_output(text: str, results: Iterable[Fact | Unread]) -> str | None:
    """Return the id of the client whose running info the text contains, or None if nothing shows
    it.

    5.x prints the parts of the id (``ClientConfig.buildMQClientId``); the command line, which
    precedes text copied from a terminal, names it after ``-i``.

    Args:
        text: the output of ``consumerStatus -i``.
        results: the result of `parse_consumer_status`.
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
    """The list of clients, then mqadmin's conclusions.

    A list without a comparison of subscriptions may be complete: ``analyzeSubscription`` throws if
    the first client leaves properties out, and mqadmin then prints a stack on standard error at
    most.
    """

    def __init__(self) -> None:
        self.headed = False

    def read(self, line: Line) -> Fact | None:
        text = line.text.strip()
        if text.startswith("#Index") and "#ConsumerRunningInfoFile" in text:
            whole(line)
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
    # "%-10d %-40s %-20s %s": the last column is <asked at>/<client id>, the only place where the id
    # has no padding.
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
