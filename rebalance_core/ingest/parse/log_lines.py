"""Lines of logs: their head, their clock, and the template that the message begins with."""

import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from typing import BinaryIO, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rebalance_core.contracts.unpacking import bomb
from rebalance_core.ingest.fact import UNPARSABLE_LINE, Fact, Unread, Unreadable, unread
from rebalance_core.ingest.parse.encodings import UTF_8, as_utf_8
from rebalance_core.ingest.parse.java_text import MS_MAX, between
from rebalance_core.model.times import SECOND_MS

# Clocks of log files: text of a time to epoch milliseconds UTC.
#
# Servers and 5.1+ clients write GMT+8 whatever the host's zone is (pattern ``%d{…,GMT+8}``); 4.9
# and 5.0 clients write the host's local time (rocketmq.md §10.1).

SERVER_ZONE = timezone(timedelta(hours=8))
SECOND_CHARACTERS = 19  # yyyy-MM-dd HH:mm:ss
FIRST_YEAR, LAST_YEAR = 1990, 2200


class Clock:
    """Reads times written in a zone.

    In the hour that a zone lives twice, when its summer time ends, the first pass is taken unless
    the file has been there already: lines of one file must be given in order.
    """

    def __init__(self, zone: tzinfo = SERVER_ZONE) -> None:
        self.zone = zone
        self._text = ""
        self._ms: int | None = None
        self._last = 0

    def second_ms(self, text: str) -> int | None:
        """Return epoch ms of ``yyyy-MM-dd HH:mm:ss``, or None if the text is no such time."""
        if text != self._text:
            self._text, self._ms = text, self._read(text)
        return self._ms

    def _read(self, text: str) -> int | None:
        if len(text) != SECOND_CHARACTERS or text[4] != "-" or text[10] != " " or text[13] != ":":
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
        return at_ms


def _ms(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp()) * 1000


# Time zones by name; UTC needs no tz database, which small images lack.

UTC_NAME = "UTC"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def zone_named(name: str) -> tzinfo:
    """Return the zone of that name.

    Raises:
        ValueError: the tz database of this machine has none.
    """
    if name == UTC_NAME:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"{name} is not a time zone of this machine's tz database") from error


def known_zone(name: str) -> bool:
    """Return True for a zone that `zone_named` has."""
    try:
        zone_named(name)
    except ValueError:
        return False
    return True


class ReadAt(tzinfo):
    """A time zone for times read at a known moment, such as those that a dump prints.

    Of the hour that the zone repeats when summer time ends, a time is in the second pass unless
    that had not come yet.
    """

    def __init__(self, zone: tzinfo, at_ms: int) -> None:
        self._zone = zone
        until = _EPOCH + timedelta(milliseconds=min(at_ms, MS_MAX))
        self._until = until.replace(tzinfo=None)

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Return the UTC offset that holds in the pass of the hour that the time belongs to."""
        if moment is None:
            return None
        local = moment.replace(tzinfo=None)
        first = local.replace(tzinfo=self._zone, fold=0).utcoffset()
        second = local.replace(tzinfo=self._zone, fold=1).utcoffset()
        if first is None or second is None or second >= first:
            return first
        return second if local - second <= self._until else first

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Return None, as the part that is daylight saving is not known."""
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        """Return the zone's own name for the time."""
        return None if moment is None else self._zone.tzname(moment.replace(tzinfo=self._zone))


def is_repeated(hour: str, zone: tzinfo) -> bool:
    """Return True for an hour (``yyyy-MM-dd HH``) of which the zone lives a part twice.

    >>> [is_repeated(f"2026-11-01 0{hour}", ZoneInfo("America/New_York")) for hour in range(3)]
    [False, True, False]
    """
    try:
        ends = [datetime.fromisoformat(f"{hour}:{rest}") for rest in ("00:00", "59:59")]
    except ValueError:
        return False
    return any(zone.utcoffset(end) != zone.utcoffset(end.replace(fold=1)) for end in ends)


# When, inside its second, something happened that a server logged.
#
# Broker and name server logs have seconds only (rocketmq.md §10.1). An event is placed in the
# middle of its second, at most half a second off, unless another file has the millisecond: a
# registration carries its own, and a CHANGE notification reaches every member's log within
# milliseconds of a leave or loss.

MIDDLE_MS = 500
DELIVERY_MS = 100
"""A notification may arrive this much after the second of the line it follows."""


def inside_second(second_ms: int, notified: list[int], not_before: int) -> int:
    """Return the best millisecond for a line of that second.

    Args:
        second_ms: the line's time.
        notified: sorted times of notifications by the same broker to the same group.
        not_before: time of the line before it in the same log; it counts if of the same second.
    """
    earliest = not_before if second_ms <= not_before < second_ms + SECOND_MS else second_ms
    index = bisect_left(notified, earliest)
    if index < len(notified) and notified[index] < second_ms + SECOND_MS + DELIVERY_MS:
        return notified[index]
    return max(second_ms + MIDDLE_MS, earliest)


# The head of a log line: when, and the message that follows (rocketmq.md §10.1).

LEVELS = ("TRACE ", "DEBUG ", "INFO ", "WARN ", "ERROR ")
_LEVEL = " (?:TRACE|DEBUG|INFO|WARN|ERROR) "
SERVER_HEAD = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d" + _LEVEL
"""RE2 and Python: what every line of name servers, brokers and proxies begins with."""
CLIENT_HEAD = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d{3}" + _LEVEL
"""The same of clients."""

ALARM = r"^\S+ \S+ (?:WARN|ERROR) "
"""RE2 and Python: the head of a line of a level at which nothing routine is logged."""

LOCAL_MARK = ","
"""Stands before the milliseconds of a line with the host's own time."""

_SPACE = "[\\s\x0b\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""RE2, too, where ``\\s`` is ASCII: what Python and Java call white space."""
STACK_LINE = (
    rf"^(?:{_SPACE}|Caused by: |Suppressed: |\.\.\. \d|(?:[a-z][\w$]*\.)+[A-Z][\w.$]*|See http|"
    r"For more |.*TID: \d+ STATE: |.*\.[\w$<>]+\((?:Native Method|Unknown Source|\w+\.java))"
)
"""What follows a line about an exception: frames, causes, the exception's own line; and the frames
of a thread dump (UtilAll.jstack), each after the name of its thread."""


class LogLine(NamedTuple):
    """A line with a head: its time, its message and the process that 5.1+ clients name."""

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
        failed: the last line on a failed request; the lines of its exception have no time.
    """

    def __init__(self, local: Clock) -> None:
        self.local = local
        self.fixed = Clock(SERVER_ZONE)
        self.failed: LogLine | None = None


def server_line(text: str, clock: Clock) -> LogLine | None:
    """Read a line of namesrv.log, broker.log, lock.log or filter.log; resolution one second."""
    if text[SECOND_CHARACTERS : SECOND_CHARACTERS + 1] != " ":
        return None
    at_ms = clock.second_ms(text[:SECOND_CHARACTERS])
    if at_ms is None or not text.startswith(LEVELS, SECOND_CHARACTERS + 1):
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
        or not text.startswith(LEVELS, 24)
    ):
        return None
    times = clock.local if mark == LOCAL_MARK else clock.fixed
    second = times.second_ms(text[:SECOND_CHARACTERS])
    head, dash, message = text.partition(" - ")
    if second is None or not dash:
        return None
    start = head.find("[", 24)
    end = head.find("]", start)
    pid = head[start + 1 : end] if 0 <= start < end else None
    return LogLine(second + int(millis), message.rstrip("\r"), pid)


# From the message of a log line to a fact, by the words that the message begins with.

LineFields = Mapping[str, object] | None
LineParser = Callable[[str], LineFields]
Template = tuple[str, str, LineParser]
"""Kind of the fact, words the message begins with, reader of the message's fields."""

NOT_OURS: tuple[()] = ()
NOTHING: Mapping[str, object] = {"": None}
"""The fields of a message that is none of this template, though it begins like it: it makes no
fact unless a later template reads it."""


def read_message(
    templates: Iterable[Template], line: LogLine, text: str, source: str
) -> tuple[Fact | Unread, ...]:
    """Return the fact of the first template whose words begin the message; nothing if none does.

    A message that begins like one of ours and whose fields are not there is `Unread`.
    """
    message = line.message
    for kind, words, reader in templates:
        if message.startswith(words):
            fields = reader(message)
            if fields is NOTHING:
                continue
            if fields is None:
                return (not_read(text, source, words),)
            return (Fact(kind, line.at_ms, fields, source),)
    return NOT_OURS


def headless(words: Iterable[str], text: str, source: str) -> tuple[Unread, ...]:
    """Return an `Unread` for a line without a readable time that holds words of ours."""
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
    """Make the reader of messages whose fields stand `between` marks."""
    return lambda message: named(names, between(message, *marks))


# Lines of a log, within limits: a gzip bomb or a hole in a file is a message, no dead job.

LINE_LIMIT = 64 * 1024**2
"""Bytes of one line; an allocation of 100,000 queues prints some 8 MB."""
_CHUNK = 1024**2
_READ = 16 * 1024
"""Bytes read at once: a file may have a member in every 20 of them, and each copies the rest."""
_GZIP = 31  # zlib: a gzip header, 32 KB window


def blocks_of(
    file: BinaryIO, size: int, *, gzipped: bool, encoding: str = UTF_8
) -> Iterator[bytes]:
    """Yield the lines of a log in UTF-8, many at once, each but the last of the file with its line
    end; memory for one line and a block.

    Args:
        file: it is read piece by piece.
        size: its bytes.
        gzipped: it is packed, in any number of members.
        encoding: of its characters.

    Raises:
        Unreadable: after all lines that could be read: it is broken, cut off or a bomb, or a line
            is above the limit; an empty line stands in its place.
    """
    pieces = _unpacked(file, size) if gzipped else iter(partial(file.read, _CHUNK), b"")
    if encoding != UTF_8:
        pieces = as_utf_8(pieces, encoding)
    ended, ended_bytes = list[bytes](), 0
    begun, length = list[bytes](), 0  # of the line that has no end yet
    failure = None
    try:
        for piece in pieces:
            end = piece.find(b"\n")
            length += len(piece) if end < 0 else end
            if length > LINE_LIMIT:
                begun, failure = [], long_line()
            if end < 0:
                begun += [piece] if length <= LINE_LIMIT else []
                continue
            behind = piece.rfind(b"\n") + 1
            ended += [*begun, piece[end if length > LINE_LIMIT else 0 : behind]]
            ended_bytes += behind
            begun, length = [piece[behind:]], len(piece) - behind
            if ended_bytes >= _CHUNK:
                yield b"".join(ended)
                ended, ended_bytes = [], 0
    except Unreadable as error:
        failure = error
    if last := b"".join([*ended, *begun]):
        yield last
    if failure is not None:
        raise failure


def long_line() -> Unreadable:
    """Return the refusal of a line above `LINE_LIMIT`; the file is read on behind it."""
    return Unreadable("TOO_LARGE", f"has a line above {LINE_LIMIT} bytes, which is not read")


def _unpacked(packed: BinaryIO, size: int) -> Iterator[bytes]:
    unpacked, pending, ended = 0, b"", False
    member = zlib.decompressobj(wbits=_GZIP)
    while True:
        if not pending:
            pending = packed.read(_READ)
            ended = not pending
        try:
            block = member.decompress(pending, _CHUNK)
        except zlib.error as error:
            raise Unreadable("BROKEN_GZIP", f"is broken: {error}") from None
        pending = member.unconsumed_tail
        unpacked += len(block)
        if why := bomb(unpacked, size):
            raise Unreadable("GZIP_BOMB", f"{why}; left there: unpack it first if it is a log")
        if block:
            yield block
        if member.eof:
            pending = member.unused_data.lstrip(b"\x00")  # padding
            while not pending and (more := packed.read(_READ)):
                pending = more.lstrip(b"\x00")
            if not pending:
                return
            member = zlib.decompressobj(wbits=_GZIP)
        elif ended and len(block) < _CHUNK:
            raise Unreadable("BROKEN_GZIP", "is cut off: its last member does not end")
