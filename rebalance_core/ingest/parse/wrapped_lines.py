"""Logs written by containers, collectors and applications' loggers, with each line restored to
RocketMQ's own form.

A wrapping is recognised once per file, from its first lines, and removed from the whole file.
Carriers surround a line (``kubectl logs``, CRI, Docker, Loki, ELK, CSV, compose, colours); inside
them the line has RocketMQ's own head, another head with a known date, or one without a date, in
which case the carrier's time applies. Ambiguous lines stay unchanged and are refused later.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from rebalance_core.ingest.fact import WRONG_FILE, Unreadable
from rebalance_core.ingest.parse.encodings import UTF_8
from rebalance_core.ingest.parse.go_and_cpp_logs import CPP, GO, Translator, json_object
from rebalance_core.ingest.parse.log_lines import LEVELS, SERVER_ZONE, STACK_LINE

FIRST_LINES = 50
"""Number of lines in which a wrapping is detected."""
MOST_CARRIERS = 4
OWN, DATED, DATELESS = "", "another logger's head", "heads without a date"
OF_GO, OF_CPP = "a Go client's log", "a C++ client's log"
"""Heads of the wrapped lines: RocketMQ's Java heads; other heads with a date; heads without a date,
or no head; and those of other clients.
"""
HEADS = (OWN, DATED, OF_GO, OF_CPP, DATELESS)
_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"\d\d:\d\d:\d\d"
_RFC_3339 = rf"{_DAY}T{_CLOCK}(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)"
_STACK = re.compile(STACK_LINE)
LINE_ENDS = "\r\x00\ufeff"
"""Remnants at line ends: CR from text mode, zeros from a crash, a byte order mark."""
_LEVEL = "(?:" + "|".join(level.strip() for level in LEVELS) + ")"


class CarriedLine(NamedTuple):
    """The text inside a wrapped line, and the wrapper's facts about it.

    Attributes:
        text: the line or lines inside.
        time: the carrier's time, as written there; empty if not stated.
        name: the line's origin: pod and container, or service.
        stream: stdout or stderr, which runtimes split separately.
        whole: False if the text continues in the next piece of the stream.
        head: level, process and thread, if they have their own fields.
    """

    text: str
    time: str = ""
    name: str = ""
    stream: str = ""
    whole: bool = True
    head: str = ""


_COLOUR = re.compile("\x1b\\[[\\d;]*m")
_CRI = re.compile(rf"({_RFC_3339}) (stdout|stderr) ([FP])(?::\S*)? (.*)", re.DOTALL)
_TIMED = re.compile(rf"({_RFC_3339})(?: (.*)|)", re.DOTALL)
_MESSAGES = ("log", "line", "message", "msg", "MESSAGE")
_TIMES = ("time", "timestamp", "@timestamp", "ts", "__REALTIME_TIMESTAMP")
"""The last of both: journalctl -o json."""
_LEVELS, _THREADS = ("level", "log.level", "severity"), ("thread_name", "thread")


def _uncoloured(line: str) -> CarriedLine | None:
    return CarriedLine(_COLOUR.sub("", line)) if "\x1b[" in line else None


def _cri(line: str) -> CarriedLine | None:
    match = _CRI.fullmatch(line)
    return match and CarriedLine(match[4], match[1], stream=match[2], whole=match[3] == "F")


def _named(pattern: str) -> Callable[[str], CarriedLine | None]:
    """Return a reader of lines that begin with a name, given a pattern for name and text."""
    form = re.compile(pattern, re.DOTALL)

    def read(line: str) -> CarriedLine | None:
        match = form.fullmatch(line)
        return match and CarriedLine(match[2], name=match[1])

    return read


def _timed(line: str) -> CarriedLine | None:
    match = _TIMED.fullmatch(line)
    return match and CarriedLine(match[2] or "", match[1])


_HOST = rf"((?!{_LEVEL}\b|\d{{4}}-)[\w.:-]+)"
_BSD_TIME = (
    rf"[A-Z][a-z]{{2}} [ \d]?\d {_CLOCK}(?:\.\d{{1,6}})?(?: \d{{4}})?"  # without a year
    rf"|[A-Z][a-z]{{2}} {_DAY} {_CLOCK}(?:\.\d{{1,6}})? \S+"  # journalctl -o short-full
)
_BSD = re.compile(
    rf"(?:<\d{{1,3}}>)?(?:({_RFC_3339}|\d{{10}}\.\d{{6}})|{_BSD_TIME}) {_HOST} "
    r"([A-Za-z_][\w./@-]*)(?:\[\d+\])?: ?(.*)",
    re.DOTALL,
)
_RFC_5424 = re.compile(
    rf"(?:<\d{{1,3}}>)?1 ({_RFC_3339}|-) (\S+) (\S+) \S+ \S+ (?:-|(?:\[[^\]]*\])+) ?\ufeff?(.*)",
    re.DOTALL,
)


def _syslog(line: str) -> CarriedLine | None:
    """Return the text of a syslog line; its container is the program on its host.

    Lines of other programs come in between, so only lines in RocketMQ's own form have a name.
    """
    match = _RFC_5424.fullmatch(line) or _BSD.fullmatch(line)
    if match is None:
        return None
    time, host, program, text = match.groups()
    own = _OWN_OF_SERVER.match(text) or _OWN_OF_CLIENT.match(text)
    return CarriedLine(text, "" if time in (None, "-") else time, f"{host} {program}" * bool(own))


def _json(line: str) -> CarriedLine | None:
    """Read ``log`` from Docker, which includes line ends, or ``line``, ``message`` or ``msg`` from
    collectors.
    """
    fields = json_object(line)
    if fields is None or GO.match(line):
        return None
    source = fields.get("_source")  # in documents exported from Elasticsearch
    fields = source if isinstance(source, dict) else fields
    messages = ((key, x) for key in _MESSAGES if isinstance(x := fields.get(key), str))
    key, text = next(messages, ("", ""))
    if not key:
        return None
    stamp = next(
        (fields[key] for key in _TIMES if isinstance(fields.get(key), str | int | float)), ""
    )
    stream = fields.get("stream")
    of_docker = key == "log" and isinstance(stream, str)
    return CarriedLine(
        text.removesuffix("\n").rstrip("\r"),
        str(stamp),
        stream=str(stream) if of_docker else "",
        whole=not of_docker or text.endswith("\n"),
        head=_head_of(fields),
    )


def _head_of(fields: dict[str, object]) -> str:
    level = next((x for key in _LEVELS if isinstance(x := fields.get(key), str)), "")
    if level + " " not in LEVELS:
        return ""
    thread = next((x for key in _THREADS if isinstance(x := fields.get(key), str)), "main")
    process = fields.get("pid")
    return f"{level} {f'[{process}] ' if process else ''}[{thread}]"


def _csv(line: str) -> CarriedLine | None:
    """Return the message in a row of a table, in which search engines export logs.

    It is the first column with the head of a log line. Lines of a message after its first, and the
    row of titles, have none. If there is a single other column besides the times, it names the
    host.
    """
    if "," not in line:
        return None
    try:
        columns = next(csv.reader([line]), [])
    except csv.Error:  # a line break outside quotes, or a very long column
        return None
    text = next(filter(_begins_a_line, columns), None)
    if text is None or (text is columns[0] and not line.startswith('"')):
        return None
    others = [column for column in columns if column is not text]
    times = [column for column in others if moment(column) is not None]
    hosts = [column for column in others if column and column not in times]
    name = hosts[0] if len(hosts) == 1 and f"{hosts[0]} " not in LEVELS else ""
    return CarriedLine(text, "".join(times[:1]), name)


def _begins_a_line(text: str) -> bool:
    if _OWN_OF_SERVER.match(text) or _OWN_OF_CLIENT.match(text):
        return True
    date = _DATED.match(text)
    return date is not None and " " in text[date.end() :].strip()


CSV = "CSV of a search engine"
CARRIERS: dict[str, Callable[[str], CarriedLine | None]] = {
    "a terminal's colours": _uncoloured,
    "a container's log as CRI writes it": _cri,
    "kubectl logs --prefix": _named(r"\[pod/([^\]\s]+)\] (.*)"),
    "docker compose logs": _named(rf"(?!{_LEVEL}\b)([A-Za-z][\w.-]*) *\| (.*)"),
    "JSON of Docker or a log collector": _json,
    "syslog": _syslog,
    CSV: _csv,
    "a time before each line": _timed,
}
"""Possible wrappings of lines by their names in findings, in the order of detection."""

_DATE = (
    rf"(?P<day>\d{{4}}(?P<sign>[-/])\d\d(?P=sign)\d\d)[ T](?P<clock>{_CLOCK})"
    r"(?:[.,:](?P<fraction>\d{1,9}))?(?P<zone> ?Z\b|[+-]\d\d:?\d\d)?"
)
_DATED = re.compile(
    rf"(?:\[?{_LEVEL} *\]?[ :|-]+|\[(?:[^\]\d]{{1,40}}|\d+)\] ?)?[\[(]?{_DATE}[\])]?"
)
"""A date in a format in which no country swaps day and month, after a level or an id, if any."""
_BARE = re.compile(rf"(?:{_CLOCK}(?:[.,]\d{{1,9}})? +)?(?:\[[^\]]*\] +)?\[?{_LEVEL}\b")
_SPRING = re.compile(rf" *{_LEVEL} +(?P<pid>\d*) *--- (?:\[[^\]]*\] )+(?P<logger>[^:]*?) *: ")
_PROCESS = re.compile(rf"\[?{_LEVEL} *\]? +\[(\d+)\] \[")
_OWN_OF_SERVER = re.compile(rf"{_DAY} {_CLOCK} {_LEVEL} +\S.*? - ")
_OWN_OF_CLIENT = re.compile(
    rf"{_DAY} {_CLOCK}(?:,\d{{3}} {_LEVEL} +\S+ - |\.\d{{3}} {_LEVEL} +\[-?\d+\] \[)"
)
_LONGEST_ROW = 64 * 1024
"""The length of a CSV row beyond which its quotes are considered unclosed."""
_HEAD_LIMIT = 250
"""Characters that end a head without a known separator."""


@dataclass(frozen=True)
class Wrapping:
    """The form in which a file's lines were stored.

    Attributes:
        carriers: the names in `CARRIERS`, outermost first.
        head: the head of the wrapped lines: `OWN`, `DATED`, `DATELESS`, `OF_GO` or `OF_CPP`.
        local: whether dated heads have no time zone.
        encoding: the encoding of the characters.
    """

    carriers: tuple[str, ...] = ()
    head: str = OWN
    local: bool = False
    encoding: str = UTF_8

    def __bool__(self) -> bool:
        return bool(self.carriers or self.head or self.encoding != UTF_8)

    def __str__(self) -> str:
        encoding = "" if self.encoding == UTF_8 else self.encoding.upper()
        return ", ".join(filter(None, (encoding, *self.carriers, self.head)))


UNWRAPPED = Wrapping()
"""RocketMQ's own lines without a wrapping."""


def wrapping_of(lines: Iterable[str], *, client: bool, encoding: str = UTF_8) -> Wrapping:
    """Return the wrapping of a log, judging by its first lines.

    Args:
        lines: the first lines; blank ones do not count.
        client: the client, for a client's log.
        encoding: the file's encoding.

    Raises:
        Unreadable: `WRONG_FILE`: they belong to several containers.
    """
    lines = islice((line for line in lines if line.strip()), FIRST_LINES)
    sample = [CarriedLine(line) for line in lines]
    carriers: list[str] = []
    while len(carriers) < MOST_CARRIERS:
        name = next((name for name in CARRIERS if _carries(name, sample, carriers)), None)
        if name is None:
            break
        carriers.append(name)
        inner = [(piece, CARRIERS[name](piece.text)) for piece in sample]
        sample = [_inside(outer, piece) if piece else outer for outer, piece in inner]
        one_container(Counter(piece.name for piece in sample if piece.name))
    heads = Counter(_head(piece, client=client) for piece in sample)
    (head, times), *_ = sorted(((head, heads[head]) for head in HEADS), key=lambda of: -of[1])
    if not times:
        return Wrapping(tuple(carriers), encoding=encoding)
    dates = [_DATED.match(piece.text) for piece in sample]
    local = head == DATED and not all(date["zone"] for date in dates if date)
    return Wrapping(tuple(carriers), head, local, encoding)


def _carries(name: str, sample: Sequence[CarriedLine], carriers: Sequence[str]) -> bool:
    """Return True if more than half of the lines are in it; stack traces may continue outside."""
    if name in carriers:
        return False
    within = [CARRIERS[name](piece.text) is not None for piece in sample]
    decides = [
        carried or not _STACK.match(piece.text)
        for carried, piece in zip(within, sample, strict=True)
    ]
    return 2 * sum(within) > sum(decides)


def _inside(outer: CarriedLine, inner: CarriedLine) -> CarriedLine:
    return inner._replace(
        time=inner.time or outer.time,
        name=" ".join(filter(None, (outer.name, inner.name))),
        stream=outer.stream + inner.stream,
        whole=outer.whole and inner.whole,
        head=inner.head or outer.head,
    )


def one_container(names: Counter[str]) -> None:
    """Refuse lines from several containers, because nothing shows which container to read.

    Raises:
        Unreadable: there are two containers.
    """
    if len(names) > 1:
        first, second, *_ = sorted(names)
        why = (
            f"holds lines from several containers, e.g. {first} and {second}: collect each into "
            "its own file"
        )
        raise Unreadable(WRONG_FILE, why)


def _head(piece: CarriedLine, *, client: bool) -> str | None:
    if (_OWN_OF_CLIENT if client else _OWN_OF_SERVER).match(piece.text):
        return OWN
    if client and GO.match(piece.text):
        return OF_GO
    if _DATED.match(piece.text):
        return DATED
    if client and CPP.match(piece.text):
        return OF_CPP
    bare = piece.head or _BARE.match(piece.text.lstrip(" "))
    return DATELESS if piece.time and bare else None


class UnwrappedLine(NamedTuple):
    """A line with RocketMQ's head, as it appears in its carrier, and the source where it begins."""

    text: str
    carried: str
    source: str


@dataclass
class Unwrapper:
    """Gives the lines of one file as RocketMQ writes them, in order.

    Attributes:
        wrapping: the file's wrapping.
        words: the beginnings of messages with facts.
        client: the client, for a client's log.
        to_server: a server's local time (``yyyy-MM-dd HH:mm:ss``) as epoch ms.
        group: the group of a Go or C++ client, if nothing in its log names one; may be empty.
    """

    wrapping: Wrapping
    words: Sequence[str]
    client: bool
    to_server: Callable[[str], int | None]
    group: str = ""
    _begun: dict[str, tuple[CarriedLine, str]] = field(default_factory=dict)
    _row: tuple[str, str] | None = None
    _names: Counter[str] = field(default_factory=Counter)
    _message: re.Pattern[str] = field(init=False)
    _translator: Translator = field(init=False)

    def __post_init__(self) -> None:
        self._translator = Translator(self.group)
        words = "|".join(map(re.escape, sorted(set(self.words), key=len, reverse=True)))
        self._message = re.compile(rf".{{0,{_HEAD_LIMIT}}}?(?:^|(?<=[\s\]:|)>-]))(?={words})")

    def lines(self, text: str, source: str) -> Iterator[UnwrappedLine]:
        """Yield the lines that end with this line of the file.

        Raises:
            Unreadable: the line comes from another container than earlier ones.
        """
        text = text.strip(LINE_ENDS)
        if self.wrapping.carriers[:1] == (CSV,):
            yield from self._rows(text, source)
        else:
            yield from self._carried(text, source)

    def _rows(self, text: str, source: str) -> Iterator[UnwrappedLine]:
        """Yield the lines of the rows that end with this line; a quoted message may span several.

        A line that begins a row ends the row before, even if its quotes are still open, and so does
        its length (`_LONGEST_ROW`).
        """
        if self._row is not None and _csv(text) is not None:
            yield from self._carried(*self._row)
            self._row = None
        if self._row is not None:
            text, source = f"{self._row[0]}\n{text}", self._row[1]
        if text.count('"') % 2 and len(text) < _LONGEST_ROW:
            self._row = text, source
        else:
            self._row = None
            yield from self._carried(text, source)

    def _carried(self, text: str, source: str) -> Iterator[UnwrappedLine]:
        piece = CarriedLine(text)
        for name in self.wrapping.carriers:
            inner = CARRIERS[name](piece.text)
            piece = piece if inner is None else _inside(piece, inner)
        if piece.name and piece.name not in self._names:
            self._names[piece.name] += 1
            one_container(self._names)
        begun, where = self._begun.pop(piece.stream, (None, source))
        if begun is not None:
            piece = piece._replace(text=begun.text + piece.text, time=begun.time)
        if piece.whole:
            yield from self._inner(piece, where)
        else:
            self._begun[piece.stream] = piece, where

    def rest(self) -> Iterator[UnwrappedLine]:
        """Yield, as `lines` does, the lines that lack an end at the end of the file."""
        if self._row is not None:
            yield from self._carried(*self._row)
            self._row = None
        for piece, where in self._begun.values():
            yield from self._inner(piece, where)
        self._begun.clear()

    def _inner(self, piece: CarriedLine, source: str) -> Iterator[UnwrappedLine]:
        for number, line in enumerate(piece.text.split("\n")):
            bare = line.strip(LINE_ENDS)
            unwrapped = bare if number else self._own(piece._replace(text=bare))
            yield UnwrappedLine(unwrapped, bare, source)

    def _own(self, piece: CarriedLine) -> str:
        """Return the line with RocketMQ's head, if it has one to put in its place."""
        text, style = piece.text, self.wrapping.head
        if style == OWN or _head(piece, client=self.client) in (OWN, None):
            return text
        date = None if style == OF_GO and GO.match(text) else _DATED.match(text)
        if date:
            return self._dated(text, date)
        if style in (OF_GO, OF_CPP):
            return self._translated(text)
        time = moment(piece.time) if style == DATELESS else None
        if time is None:
            return text
        if piece.head and not _BARE.match(text.lstrip(" ")):
            text = f"{piece.head} - {text}"
        return self._written(time, None, text, 0)

    def _translated(self, text: str) -> str:
        of_java = self._translator.line(text)
        if of_java is None:
            return text
        seconds, _, fraction = of_java.time.partition(".")
        if self.wrapping.head == OF_CPP:
            return f"{seconds},{_millis(fraction)} INFO wrapped - {of_java.message}"
        time = moment(of_java.time)
        return (
            text
            if time is None
            else f"{_gmt_8(time, millis=True)} INFO wrapped - {of_java.message}"
        )

    def _dated(self, text: str, date: re.Match[str]) -> str:
        day, millis = date["day"].replace("/", "-"), _millis(date["fraction"])
        local = f"{day} {date['clock']}"
        if date["zone"]:
            time = moment(f"{day}T{date['clock']}.{millis}{date['zone'].strip()}")
            return text if time is None else self._written(time, None, text, date.end())
        if self.client:
            return self._written(None, f"{local},{millis}", text, date.end())
        at_ms = self.to_server(local)
        if at_ms is None:
            return text
        return self._written(datetime.fromtimestamp(at_ms / 1000, UTC), None, text, date.end())

    def _written(self, time: datetime | None, local: str | None, text: str, begin: int) -> str:
        process, message = self._split(text, begin)
        if time is not None:
            local = _gmt_8(time, millis=self.client)
        return f"{local} INFO {f'[{process}] ' if process else ''}wrapped - {message}"

    def _split(self, text: str, begin: int) -> tuple[str, str]:
        """Return the process, if the head names it, and the message."""
        spring = _SPRING.match(text, begin)
        if spring:
            return spring["pid"], text[spring.end() :]
        process = _PROCESS.match(text[begin:].lstrip())
        dash = text.find(" - ", begin, begin + _HEAD_LIMIT)
        match = self._message.match(text, begin)
        ends = [dash + 3] if dash >= 0 else []
        ends += [match.end()] if match else []
        return process[1] if process else "", text[min(ends, default=begin) :].lstrip()


def _gmt_8(time: datetime, *, millis: bool) -> str:
    local = time.astimezone(SERVER_ZONE)
    return f"{local:%Y-%m-%d %H:%M:%S}" + (f".{local.microsecond // 1000:03d}" if millis else "")


def _millis(fraction: str | None) -> str:
    """Return the milliseconds of a time, or 999 if it has none, because the line was written by the
    end of that second.
    """
    return f"{fraction:0<3}"[:3] if fraction else "999"


_EPOCH_UNITS = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
"""The fraction of a second in an epoch time with this many digits."""


def moment(text: str) -> datetime | None:
    """Return a carrier's time: RFC 3339 with its zone, or an epoch time; None for any other text.

    A time in whole seconds is taken as the end of its second, as in `_millis`.

    >>> moment("2026-11-21T03:28:55.123456789Z"), moment("1795231735135")
    (datetime.datetime(2026, 11, 21, 3, 28, 55, 123456, tzinfo=datetime.timezone.utc), \
datetime.datetime(2026, 11, 21, 3, 28, 55, 135000, tzinfo=datetime.timezone.utc))
    """
    digits, _, fraction = text.partition(".")
    if digits.isascii() and digits.isdecimal():
        unit = _EPOCH_UNITS.get(len(digits))
        if unit is None:
            return None
        micros = int(digits) * 1_000_000 // unit + int(f"{fraction:0<6}"[:6] or "0") * (unit == 1)
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if "." not in text and "," not in text:
        time = time.replace(microsecond=999_000)
    return time.astimezone(UTC) if time.tzinfo else None
