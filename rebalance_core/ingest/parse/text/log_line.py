"""The head of a log line: when, and the message that follows
(rocketmq.md §10.1, Appendix C L1 to L3).
"""

from __future__ import annotations

from typing import NamedTuple

from rebalance_core.ingest.parse.text.clock import SECOND_CHARACTERS, SERVER_ZONE, Clock

LEVELS = ("TRACE ", "DEBUG ", "INFO ", "WARN ", "ERROR ")
_LEVEL = " (?:TRACE|DEBUG|INFO|WARN|ERROR) "
SERVER_HEAD = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d" + _LEVEL
"""RE2 and Python: what every line of name servers, brokers and proxies begins with."""
CLIENT_HEAD = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3}" + _LEVEL
"""The same of clients."""

LOCAL_MARK = ","
"""Stands before the milliseconds of a line with the host's own time."""

STACK_LINE = (
    r"^(?:\s|Caused by: |Suppressed: |\.\.\. \d|(?:[a-z][\w$]*\.)+[A-Z][\w.$]*|See http|For more "
    r"|.*TID: \d+ STATE: |.*\.[\w$<>]+\((?:Native Method|Unknown Source|\w+\.java))"
)
"""What follows a line about an exception: frames, causes, the exception's own line; and the frames
of a thread dump (UtilAll.jstack), each after the name of its thread."""


class LogLine(NamedTuple):
    """One line with a head: its time, its message and the process that 5.1+ clients name."""

    at_ms: int
    message: str
    pid: str | None = None


class ServerClock(Clock):
    """The clock of name servers and brokers."""

    def __init__(self) -> None:
        super().__init__(SERVER_ZONE)


class ClientClock:
    """Both clocks of a client log: GMT+8 for 5.1+ lines, the host's zone for older ones.

    Attributes:
        failed_pull: the last line on a failed pull; the lines of its exception have no time.
    """

    def __init__(self, local: Clock) -> None:
        self.local = local
        self.fixed = Clock(SERVER_ZONE)
        self.failed_pull: LogLine | None = None


def server_line(text: str, clock: Clock) -> LogLine | None:
    """A line of namesrv.log, broker.log, lock.log or filter.log; resolution one second."""
    if text[SECOND_CHARACTERS : SECOND_CHARACTERS + 1] != " ":
        return None
    at_ms = clock.second_ms(text[:SECOND_CHARACTERS])
    if at_ms is None or not text.startswith(LEVELS, SECOND_CHARACTERS + 1):
        return None
    _, dash, message = text.partition(" - ")
    return LogLine(at_ms, message) if dash else None


def client_line(text: str, clock: ClientClock) -> LogLine | None:
    """A line of rocketmq_client.log of any version; the mark before the milliseconds tells which.

    4.9 and 5.0: ``HH:mm:ss,SSS LEVEL Logger - msg``; 5.1+: ``HH:mm:ss.SSS LEVEL [pid] [thread]
    [logger#method:line] - msg``.
    """
    mark, millis = text[19:20], text[20:23]
    if (
        mark not in (LOCAL_MARK, ".")
        or not (millis.isascii() and millis.isdecimal())
        or not text.startswith(LEVELS, 24)
    ):
        return None
    known = clock.local if mark == LOCAL_MARK else clock.fixed
    second = known.second_ms(text[:SECOND_CHARACTERS])
    head, dash, message = text.partition(" - ")
    if second is None or not dash:
        return None
    pid = None
    if mark == ".":
        start = head.find("[", 24)
        end = head.find("]", start)
        pid = head[start + 1 : end] if 0 <= start < end else None
    return LogLine(second + int(millis), message.rstrip("\r"), pid)
