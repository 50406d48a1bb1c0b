"""Lines of logs: their clock, their head, and the template with which the message begins."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cached_property
from typing import NamedTuple

from rebalance_core.ingest.fact import UNPARSABLE_LINE, Fact, Unread, Unreadable, unread
from rebalance_core.ingest.parse.java_text import between

SERVER_ZONE = timezone(timedelta(hours=8))
SECOND_CHARACTERS = 19  # yyyy-MM-dd HH:mm:ss
MINUTE_CHARACTERS = 17  # yyyy-MM-dd HH:mm:
_SECONDS = {f"{second:02d}": 1000 * second for second in range(60)}
FIRST_YEAR, LAST_YEAR = 1990, 2200


class Clock:
    """Reads times written in a time zone.

    Times in the hour that repeats when summer time ends belong to its first pass unless the file
    has already reached a later time, so the lines of a file must be given in order.
    """

    def __init__(self, zone: tzinfo = SERVER_ZONE) -> None:
        self.zone = zone
        self._text = ""
        self._ms: int | None = None
        self._last = 0
        self._minute, self._minute_ms = "", 0

    def second_ms(self, text: str) -> int | None:
        """Return the epoch ms of ``yyyy-MM-dd HH:mm:ss``, or None if the text is not such a
        time.
        """
        if text != self._text:
            self._text, self._ms = text, self._read(text)
        return self._ms

    def _read(self, text: str) -> int | None:
        second = text[MINUTE_CHARACTERS:]
        if text[:MINUTE_CHARACTERS] == self._minute and second in _SECONDS:
            at_ms = self._minute_ms + _SECONDS[second]
            if at_ms >= self._last:  # in the same pass of a repeated hour
                self._last = at_ms
                return at_ms
        if len(text) != SECOND_CHARACTERS or text[4] + text[10] + text[13] + text[16] != "- ::":
            return None
        try:
            local = datetime.fromisoformat(text)
        except ValueError:
            return None
        if not FIRST_YEAR <= local.year < LAST_YEAR:
            return None
        at_ms = _ms(local.replace(tzinfo=self.zone))
        if at_ms < self._last:
            again = _ms(local.replace(tzinfo=self.zone, fold=1))
            at_ms = again if again >= self._last else at_ms
        self._last = at_ms
        self._minute, self._minute_ms = text[:MINUTE_CHARACTERS], at_ms - 1000 * local.second
        return at_ms


def _ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


LEVELS = ("TRACE ", "DEBUG ", "INFO ", "WARN ", "ERROR ")
_LEVEL = " (?:TRACE|DEBUG|INFO|WARN|ERROR) "
SERVER_HEAD = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d" + _LEVEL
"""The beginning of every line of name servers, brokers and proxies; for RE2 and Python."""
CLIENT_HEAD = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3}" + _LEVEL
"""The beginning of every line of clients; for RE2 and Python."""

SERVER_LEVEL, CLIENT_LEVEL = len("yyyy-MM-dd HH:mm:ss "), len("yyyy-MM-dd HH:mm:ss,SSS ")
"""The columns at which levels begin."""
ALARMS, ALARM_CHARACTERS = ("WARN ", "ERROR"), len("ERROR")
"""The beginnings of the levels without routine messages."""

LOCAL_MARK = ","
"""The character before the milliseconds in lines that use the host's own time zone."""

_SPACE = "[\\s\x0b\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
r"""White space in Python and Java; also for RE2, whose ``\s`` is ASCII."""
STACK_LINE = (
    rf"^(?:{_SPACE}|Caused by: |Suppressed: |\.\.\. \d|(?:[a-z][\w$]*\.)+[A-Z][\w.$]*|See http|"
    r"For more |.*TID: \d+ STATE: |.*\.[\w$<>]+\((?:Native Method|Unknown Source|\w+\.java))"
)
"""What follows a line about an exception: frames, causes and the exception's own line; also the
frames of a thread dump (UtilAll.jstack), each after its thread's name.
"""


class LogLine(NamedTuple):
    """A line with a head: its time, its message and the process, which 5.1+ clients name."""

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
        failed: the last line about a failed request; the lines of its exception have no time.
        group: the group of failed requests whose lines name none; empty if it is unknown.
    """

    def __init__(self, local: Clock, group: str = "") -> None:
        self.local = local
        self.group = group
        self.fixed = Clock(SERVER_ZONE)
        self.failed: LogLine | None = None


def server_line(text: str, clock: Clock) -> LogLine | None:
    """Read a line of namesrv.log, broker.log, lock.log or filter.log; resolution one second."""
    if text[SECOND_CHARACTERS : SECOND_CHARACTERS + 1] != " ":
        return None
    at_ms = clock.second_ms(text[:SECOND_CHARACTERS])
    if at_ms is None or not text.startswith(LEVELS, SERVER_LEVEL):
        return None
    _, dash, message = text.partition(" - ")
    return LogLine(at_ms, message) if dash else None


def client_line(text: str, clock: ClientClock) -> LogLine | None:
    """Read a line of rocketmq_client.log; the mark before the milliseconds shows its version.

    4.9 and 5.0: ``HH:mm:ss,SSS LEVEL Logger - msg``; 5.1+: ``HH:mm:ss.SSS LEVEL [pid] [thread]
    [logger#method:line] - msg``.
    """
    mark, millis = text[19:20], text[20:23]
    if (
        mark not in (LOCAL_MARK, ".")
        or not (millis.isascii() and millis.isdecimal())
        or not text.startswith(LEVELS, CLIENT_LEVEL)
    ):
        return None
    times = clock.local if mark == LOCAL_MARK else clock.fixed
    second = times.second_ms(text[:SECOND_CHARACTERS])
    head, dash, message = text.partition(" - ")
    if second is None or not dash:
        return None
    start = head.find("[", CLIENT_LEVEL)
    end = head.find("]", start)
    pid = head[start + 1 : end] if 0 <= start < end else None
    return LogLine(second + int(millis), message.rstrip("\r"), pid)


LineFields = Mapping[str, object] | None
LineParser = Callable[[str], LineFields]
Template = tuple[str, str, LineParser]
"""The fact's kind, the words that the message begins with, and the reader of the message's fields.
"""

NOT_OURS: tuple[()] = ()
NOTHING: Mapping[str, object] = {"": None}
"""The fields of a message that begins like this template but does not match it; it yields no fact
unless a later template reads it.
"""


class Templates(tuple[Template, ...]):
    """The templates of a log's messages, in the order in which they are tried."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words with which the messages begin."""
        return tuple(words for _, words, _ in self)

    @cached_property
    def _length(self) -> int:
        return min(map(len, self.words))

    @cached_property
    def _by_beginning(self) -> dict[str, list[Template]]:
        """The templates by as many characters of their words as the shortest words have."""
        found: dict[str, list[Template]] = {}
        for template in self:
            found.setdefault(template[1][: self._length], []).append(template)
        return found

    def read(self, line: LogLine, text: str, source: str) -> tuple[Fact | Unread, ...]:
        """Return the fact of the first template whose words begin the message; nothing if none
        does.

        A message that begins like a template but lacks its fields becomes an `Unread`.
        """
        message = line.message
        for kind, words, reader in self._by_beginning.get(message[: self._length], ()):
            if message.startswith(words):
                fields = reader(message)
                if fields is NOTHING:
                    continue
                if fields is None:
                    return (not_read(text, source, words),)
                return (Fact(kind, line.at_ms, fields, source),)
        return NOT_OURS


def headless(words: Iterable[str], text: str, source: str) -> tuple[Unread, ...]:
    """Return an `Unread` for a line without a readable time that contains words of a template."""
    present = next((word for word in words if word in text), None)
    return (
        () if present is None else (not_read(text, source, present, "no time and level before it"),)
    )


def not_read(
    text: str, source: str, words: str, why: str = "its fields are not all there"
) -> Unread:
    """Return the refusal of one line."""
    return unread(source, text, Unreadable(UNPARSABLE_LINE, f"begins like {words!r}, but {why}"))


def with_fields(fields: LineFields, **more: object) -> LineFields:
    """Return the fields with these added; None if there are no fields."""
    return None if fields is None else {**fields, **more}


def named(names: Iterable[str], pieces: list[str] | None) -> dict[str, str] | None:
    """Return the pieces by name; None if they are missing or any named piece is empty."""
    if pieces is None:
        return None
    fields = dict(zip(names, pieces, strict=False))
    return fields if all(fields.values()) else None


def marked(names: Sequence[str], *marks: str) -> LineParser:
    """Return a reader of messages whose fields are `between` marks."""
    return lambda message: named(names, between(message, *marks))
