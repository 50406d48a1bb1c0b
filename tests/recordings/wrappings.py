"""Logs as containers, collectors and applications' loggers write them: one function a form.

Each takes the lines of one log and returns those of the wrapped file. Forms of `CARRIERS` put each
line into something else; those of `HEADS` write another head before the message, and leave lines
without a head as they are; `DATELESS` ones leave the time to the carrier. A time that a carrier
adds is `LATE_MS` after the line's own, so that a reader that takes the wrong one is found out,
except where the line inside has none.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from fnmatch import fnmatchcase
from itertools import groupby
from typing import NamedTuple
from zoneinfo import ZoneInfo

Files = dict[str, bytes]
LATE_MS = 7_000
SHOWN = "Asia/Shanghai"
"""The zone of a host for which none is said: as that of RocketMQ's own heads."""
PART = 200
"""Characters after which a runtime breaks a line; the real ones break at 16 KB."""

_GMT_8 = timezone(timedelta(hours=8))
_OWN = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:(?P<mark>[,.])(?P<millis>\d{3}))? "
    r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR) +"
    r"(?:\[(?P<pid>-?\d+)\] \[(?P<thread>.*?)\] \[(?P<place>[^\]]*)\]|(?P<word>\S.*?)) - "
    r"(?P<message>.*)"
)
LOG = re.compile(
    r"(?:namesrv/.*namesrv|(?:brokers|proxy)/[^/]+/(?:.*/)?(?:broker|lock|filter|proxy)"
    r"|clients/[^/]+/(?:.*/)?rocketmq_client)[\d._-]*\.log[\d._-]*(?:\.gz)?"
)


class Line(NamedTuple):
    """A line, the parts of its head (None: it has none) and when it was written, in local time."""

    text: str
    head: dict[str, str] | None
    at: datetime

    @property
    def thread(self) -> str:
        """Of the head: thread, or what stands in its place."""
        assert self.head is not None
        return self.head["thread"] or self.head["word"] or "main"


def read(lines: Sequence[str], zone: str | None) -> Iterator[Line]:
    """The lines with their heads; a line without one was written when that before it was."""
    at = datetime(2026, 11, 21, tzinfo=UTC)
    local, shown = ZoneInfo(zone or "UTC"), ZoneInfo(zone or SHOWN)
    for text in lines:
        found = _OWN.fullmatch(text)
        if found:
            own = local if found["mark"] == "," else _GMT_8
            at = datetime.fromisoformat(found["time"]).replace(tzinfo=own)
            at = at.astimezone(shown) + timedelta(milliseconds=int(found["millis"] or 0))
        yield Line(text, found and {k: v or "" for k, v in found.groupdict().items()}, at)


def _rfc3339(at: datetime, late_ms: int = LATE_MS) -> str:
    moment = (at + timedelta(milliseconds=late_ms)).astimezone(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}789Z"


def _kubectl(lines: Sequence[Line]) -> Iterator[str]:
    return (f"{_rfc3339(line.at)} {line.text}" for line in lines)


def _kubectl_prefix(lines: Sequence[Line]) -> Iterator[str]:
    return (f"[pod/mq-7d4c9-x2x/main] {line.text}" for line in lines)


def _kubectl_both(lines: Sequence[Line]) -> Iterator[str]:
    return (f"[pod/mq-7d4c9-x2x/main] {_rfc3339(line.at)} {line.text}" for line in lines)


def _parts(text: str) -> list[str]:
    return [text[begin : begin + PART] for begin in range(0, len(text), PART)] or [""]


def _cri(lines: Sequence[Line]) -> Iterator[str]:
    return (f"{_rfc3339(line.at)} stdout F {line.text}" for line in lines)


def _cri_parts(lines: Sequence[Line]) -> Iterator[str]:
    """Long lines in parts, with one of the other stream between the first two."""
    for line in lines:
        *first, last = _parts(line.text)
        for number, part in enumerate(first):
            yield f"{_rfc3339(line.at)} stdout P {part}"
            if not number:
                yield f"{_rfc3339(line.at)} stderr F Picked up JAVA_TOOL_OPTIONS: -Xmx1g"
        yield f"{_rfc3339(line.at)} stdout F {last}"


def _docker(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        *first, last = _parts(line.text)
        for part in (*first, last + "\n"):
            yield json.dumps({"log": part, "stream": "stdout", "time": _rfc3339(line.at)})


def _loki(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        yield json.dumps(
            {"labels": {"pod": "mq-0"}, "line": line.text, "timestamp": _rfc3339(line.at)},
            separators=(",", ":"),
        )


def _elk(lines: Sequence[Line]) -> Iterator[str]:
    """As filebeat ships a file's lines."""
    for line in lines:
        fields = {"@timestamp": _rfc3339(line.at), "@metadata": {"beat": "filebeat"},
                  "log": {"file": {"path": "/x.log"}}, "message": line.text}  # fmt: skip
        yield json.dumps(fields, ensure_ascii=False)


def _compose(lines: Sequence[Line]) -> Iterator[str]:
    return (f"mq-1      | {line.text}" for line in lines)


def _compose_times(lines: Sequence[Line]) -> Iterator[str]:
    return (f"\x1b[36mmq-1      | \x1b[0m{_rfc3339(line.at)} {line.text}" for line in lines)


def _ansi(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        if line.head is None:
            yield line.text
            continue
        level = line.head["level"]
        yield line.text.replace(level, f"\x1b[32m{level}\x1b[0;39m", 1) + "\x1b[m"


def _spring(lines: Sequence[Line], time: Callable[[Line], str], *, colours: bool) -> Iterator[str]:
    dim, off = ("\x1b[2m", "\x1b[0;39m") if colours else ("", "")
    for line in lines:
        head = line.head
        if head is None:
            yield line.text
            continue
        pid = head["pid"] or " "
        place = (head["place"] or head["word"]).partition("#")[0]
        yield (
            f"{dim}{time(line)}{off} {head['level']:>5} {pid} {dim}---{off} "
            f"{dim}[{line.thread[-15:]:>15}]{off} {place:<40} {dim}:{off} {head['message']}"
        )


def _spring_2(lines: Sequence[Line]) -> Iterator[str]:
    return _spring(lines, lambda line: _local(line, "."), colours=False)


def _spring_2_colours(lines: Sequence[Line]) -> Iterator[str]:
    return _spring(lines, lambda line: _local(line, "."), colours=True)


def _local(line: Line, mark: str) -> str:
    return f"{line.at:%Y-%m-%d %H:%M:%S}{mark}{line.at.microsecond // 1000:03d}"


def _spring_3(lines: Sequence[Line]) -> Iterator[str]:
    return _spring(lines, lambda line: line.at.isoformat("T", "milliseconds"), colours=False)


def _logback(lines: Sequence[Line]) -> Iterator[str]:
    """``%d{yyyy/MM/dd HH:mm:ss.SSS} [%thread] %-5level PID:… %logger - %msg%n``, as users have."""
    for line in lines:
        if line.head is None:
            yield line.text
            continue
        head = line.head
        yield (
            f"{_local(line, '.').replace('-', '/')} [{line.thread}] {head['level']:<5} "
            f"{head['place'] or head['word']} - {head['message']}"
        )


def _dateless(lines: Sequence[Line]) -> Iterator[str]:
    """``kubectl logs --timestamps`` of a logger without a date."""
    for line in lines:
        inside = line.text
        if line.head is not None:
            head = line.head
            process = f"[{head['pid']}] " if head["pid"] else ""
            inside = f"{head['level']:<5} {process}[{line.thread}] - {head['message']}"
        yield f"{_rfc3339(line.at, 0)} {inside}"


def _encoder(lines: Sequence[Line]) -> Iterator[str]:
    """As logstash's encoder writes an event, its stack trace or further lines in the message."""
    events: list[tuple[Line, list[str]]] = []
    for line in lines:
        if line.head is None and events:
            events[-1][1].append(line.text)
        else:
            events.append((line, [line.head["message"] if line.head else line.text]))
    for line, message in events:
        head = line.head or {"level": "INFO", "pid": "", "place": "main", "word": ""}
        fields = {
            "@timestamp": _rfc3339(line.at, 0),
            "@version": "1",
            "message": "\n".join(message),
            "logger_name": head["place"] or head["word"],
            "thread_name": line.thread if line.head else "main",
            "level": head["level"],
            "level_value": 20000,
        }
        if head["pid"]:
            fields["pid"] = head["pid"]
        yield json.dumps(fields, ensure_ascii=False)


def _csv(lines: Sequence[Line]) -> Iterator[str]:
    """As a search engine exports its table: titles, and each event with its further lines."""
    out = io.StringIO()
    rows = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    rows.writerow(("@timestamp", "host.name", "message"))
    for _, event in groupby(lines, key=_events()):
        of_event = list(event)
        text = "\n".join(line.text for line in of_event)
        rows.writerow((_rfc3339(of_event[0].at, 0), "broker-0", text))
    yield from out.getvalue().splitlines()


def _events() -> Callable[[Line], int]:
    """Number the events: a line without a head belongs to the event before."""
    number = 0

    def of_line(line: Line) -> int:
        nonlocal number
        number += line.head is not None
        return number

    return of_line


Form = Callable[[Sequence[Line]], Iterator[str]]
CARRIERS: dict[str, Form] = {
    "kubectl-timestamps": _kubectl,
    "kubectl-prefix": _kubectl_prefix,
    "kubectl-prefix-timestamps": _kubectl_both,
    "cri": _cri,
    "cri-parts": _cri_parts,
    "docker": _docker,
    "loki": _loki,
    "elk": _elk,
    "compose": _compose,
    "compose-timestamps": _compose_times,
    "ansi": _ansi,
    "csv": _csv,
}
HEADS: dict[str, Form] = {
    "spring-2": _spring_2,
    "spring-2-colours": _spring_2_colours,
    "spring-3": _spring_3,
    "logback": _logback,
}
DATELESS: dict[str, Form] = {"dateless": _dateless, "encoder": _encoder}
FORMS = CARRIERS | HEADS | DATELESS


def wrapped(lines: Sequence[str], form: str, zone: str | None = None) -> list[str]:
    """The lines of one log in a form, without line ends.

    Args:
        lines: of the log, without line ends.
        form: one of `FORMS`.
        zone: of lines with local time (4.9 and 5.0 clients); None: taken as UTC.
    """
    return list(FORMS[form](list(read(lines, zone))))


def can_wrap(text: str, form: str, zone: str | None) -> bool:
    """Whether the log states the same in that form: what it says of its times must be there."""
    if form in CARRIERS:
        return True
    local = any(found["mark"] == "," for found in map(_OWN.match, text.split("\n")) if found)
    if form == "logback":  # lines of 5.1+ name their process, and this pattern cannot
        return not any(found["pid"] for found in map(_OWN.match, text.split("\n")) if found)
    return zone is not None or not local


def wrapped_files(files: Files, form: str) -> Files:
    """A collection in memory (names to bytes, unpacked) with each log in that form.

    Zones are those of its collection.toml. Where heads show the host's own time and it names none
    for a log, `SHOWN` is added.
    """
    settings = tomllib.loads(files.get("collection.toml", b"").decode())
    zones: dict[str, str] = settings.get("time_zones", {})
    written, added = dict(files), list[str]()
    for name, content in files.items():
        if not LOG.fullmatch(name):
            continue
        zone = next((z for p, z in zones.items() if fnmatchcase(name, p)), None)
        text = content.decode("utf-8", "surrogateescape")
        if not can_wrap(text, form, zone):
            continue
        ends = "\r\n" if "\r\n" in text else "\n"
        lines = wrapped(text.removesuffix("\n").replace("\r\n", "\n").split("\n"), form, zone)
        written[name] = (ends.join(lines) + ends).encode("utf-8", "surrogateescape")
        if form in HEADS and form != "spring-3" and zone is None:
            added.append(name)
    if added and "collection.toml" in files:
        written["collection.toml"] = _with_zones(files["collection.toml"].decode(), added).encode()
    return written


def _with_zones(settings: str, names: Sequence[str]) -> str:
    lines = "".join(f'"{name}" = "{SHOWN}"\n' for name in names)
    if "[time_zones]" in settings:
        return re.sub(r"\[time_zones\].*\n", lambda m: m[0] + lines, settings, count=1)
    return f"{settings}\n[time_zones]\n{lines}"
