"""Clocks that are wrong: of a host that writes logs, of the machine that asks, of copies."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from tests.degraded.files import ADMIN, NOTHING, Draw, Files, host_of
from tests.degraded.logs import FORMAT, HEAD

BEAT = re.compile(rb"(lastUpdateTimestamp=)(\d{13})")
VERSION = re.compile(rb"(topic=([^,\]]+), subString=(?:(?!subVersion=).)*?subVersion=)(\d{13})")
CLIENT_ID = re.compile(rb"(?<=clientID=)[^,\]]+")
STARTED = re.compile(rb"(PROP_CONSUMER_START_TIMESTAMP *: )(\d{13})")
LAST = re.compile(rb"(last(?:Lock|Pull|Consume)Timestamp=)(\d{14})")
STORED = re.compile(rb'("timestamp" *: *)(\d{13})')
RUNNING_INFO = re.compile(rb"(?<= )(\d{13})(?=/\S+@)")
COPY = re.compile(r"(brokers/[^/]+/config-)(\d{13})(/.*)")
SHIFTS_S = (1, -1, 5, -5, 60, -60, 8 * 3600, -8 * 3600)
SECONDS = (1, -1, 2, -2, 5, -5, 10, -10, 30, -30)
MINUTES_S = (5, -5, 60, -60, 300, -300, 600, -600)


def clock_shifted(files: Files, rng: Draw) -> str:
    """The clock of one host was wrong; of 8 h: the zone of its log is another."""
    hosts = sorted({host_of(path) for path in files.logs()})
    if not hosts:
        return NOTHING
    host, seconds, beats = rng.choice(hosts), rng.choice(SHIFTS_S), rng.random() < 0.5
    delta = timedelta(seconds=seconds)

    own = b""
    for path in files.logs():
        if host_of(path) == host:
            text = files.text(path)
            files.taken.append((path, text))
            own += text
            text = _heads(text, lambda _: delta)
            files.put(path, BEAT.sub(partial(_later, ms=1000 * seconds), text) if beats else text)
    _note_unseen(files, [host], [seconds])
    if beats and host.startswith("clients/"):
        _shift_stamps(files, own, delta)
    return f"{host} {seconds:+d} s{', its stamps too' if beats else ''}"


def _shift_stamps(files: Files, log: bytes, delta: timedelta) -> None:
    """What a client of that clock sends: its subVersions at brokers, its answers to mqadmin."""
    names = {*CLIENT_ID.findall(log)}
    versions = {match.group(2, 3) for match in VERSION.finditer(log)}
    shift_ms = round(1000 * delta.total_seconds())

    def epoch(match: re.Match[bytes]) -> bytes:
        return match[1] + str(int(match[2]) + shift_ms).encode()

    def version(match: re.Match[bytes]) -> bytes:
        ours = match.group(2, 3) in versions  # others may have subscribed in that millisecond
        return match[1] + str(int(match[3]) + ours * shift_ms).encode()

    def local(match: re.Match[bytes]) -> bytes:
        moment = datetime.strptime(match[2].decode(), "%Y%m%d%H%M%S") + delta  # noqa: DTZ007
        return match[1] + moment.strftime("%Y%m%d%H%M%S").encode()

    for path in [*files.logs(), *files.dumps()]:
        text = files.text(path)
        changed = VERSION.sub(version, text) if path.startswith(("brokers/", "clients/")) else text
        if any(name in path.encode() for name in names):
            changed = LAST.sub(local, STARTED.sub(epoch, changed))
        pairs = zip(text.splitlines(), changed.splitlines(), strict=True)
        files.taken += ((path, line) for line, other in pairs if line != other)
        files.put(path, changed)


def _note_unseen(files: Files, hosts: Iterable[str], seconds: Iterable[int]) -> None:
    """Note the error of a clock where no file shows that it is this clock's, and not the others'.

    All hosts that logged have it, or all brokers at any time: if in place of these all other clocks
    were off as much the other way, the files would be the same, but for one shift of all times.
    """
    errors = frozenset(1000 * second for second in seconds)
    logged = {host_of(path) for path in files.logs()}
    steady_brokers = {*_brokers(files)} if len(errors) == 1 else logged
    if logged <= {*hosts} or steady_brokers <= {*hosts}:
        files.clocks.append(errors)


def _heads(text: bytes, ahead: Callable[[datetime], timedelta]) -> bytes:
    """The log as a clock writes it that is so far ahead at each moment."""

    def head(match: re.Match[bytes]) -> bytes:
        moment = datetime.strptime(match[1].decode(), FORMAT)  # noqa: DTZ007 (no zone)
        return (moment + ahead(moment)).strftime(FORMAT).encode()

    return HEAD.sub(head, text)


def broker_clock(files: Files, rng: Draw) -> str:
    """The clock of one broker is seconds off: its log, its stamps of heartbeats, its stores."""
    brokers = _brokers(files)
    if not brokers:
        return NOTHING
    broker, seconds = rng.choice(brokers), rng.choice(SECONDS)
    _shift_brokers(files, [broker], seconds)
    return f"{broker} {seconds:+d} s"


def all_brokers_clock(files: Files, rng: Draw) -> str:
    """The clocks of all brokers are off alike; half of the time those of name servers too."""
    brokers = _brokers(files)
    if not brokers:
        return NOTHING
    seconds, servers = rng.choice(MINUTES_S), rng.random() < 0.5
    _shift_brokers(files, [*brokers, "namesrv"] if servers else brokers, seconds)
    return f"{len(brokers)} brokers{' and name servers' if servers else ''} {seconds:+d} s"


def _brokers(files: Files) -> list[str]:
    return sorted({host_of(path) for path in files.kept if path.startswith("brokers/")})


def _shift_brokers(files: Files, hosts: list[str], seconds: int) -> None:
    delta = timedelta(seconds=seconds)
    _note_unseen(files, hosts, [seconds])

    stamp = partial(_later, ms=1000 * seconds)
    for path in sorted(files.kept):
        if host_of(path) not in hosts:
            continue
        text = files.text(path)
        if ".log" in path:
            files.change(path, BEAT.sub(stamp, _heads(text, lambda _: delta)))
        elif path.endswith(".json"):
            files.change(path, STORED.sub(stamp, text))


def drift(files: Files, rng: Draw) -> str:
    """The clock of one host runs fast or slow, and is seconds off when its log ends."""
    host, first, last = _span(files, rng)
    if not host:
        return NOTHING
    seconds = rng.choice(SECONDS) * rng.choice((1, 3))

    def ahead(at: datetime) -> timedelta:
        return timedelta(seconds=int(seconds * ((at - first) / (last - first))))

    _note_unseen(files, [host], range(min(seconds, 0), max(seconds, 0) + 1))
    _rewrite(files, host, ahead)
    return f"{host} by {seconds:+d} s"


def step(files: Files, rng: Draw) -> str:
    """The clock of one host was set in the middle of its log."""
    host, first, last = _span(files, rng)
    if not host:
        return NOTHING
    seconds, at = rng.choice(MINUTES_S), first + rng.random() * (last - first)
    before = rng.random() < 0.5
    _note_unseen(files, [host], [0, seconds])
    delta, none = timedelta(seconds=seconds), timedelta()
    _rewrite(files, host, lambda moment: delta if (moment < at) == before else none)
    return f"{host} {seconds:+d} s {'until' if before else 'from'} {at:%H:%M:%S} on"


def _span(files: Files, rng: Draw) -> tuple[str, datetime, datetime]:
    """A host with a log, and its first and last head."""
    hosts = sorted({host_of(path) for path in files.logs()})
    host = rng.choice(hosts) if hosts else ""
    heads = sorted(
        found[1]
        for path in files.logs()
        if host_of(path) == host
        for found in HEAD.finditer(files.text(path))
    )
    if not heads or heads[0] == heads[-1]:
        return "", *((datetime(1970, 1, 1),) * 2)  # noqa: DTZ001 (no zone)
    first, last = (datetime.strptime(head.decode(), FORMAT) for head in (heads[0], heads[-1]))  # noqa: DTZ007
    return host, first, last


def _rewrite(files: Files, host: str, ahead: Callable[[datetime], timedelta]) -> None:
    """Heads and stamps of heartbeats, the stamps as far ahead as the head of their line."""
    for path in files.logs():
        if host_of(path) != host:
            continue
        lines = []
        for line in files.text(path).splitlines(keepends=True):
            if head := HEAD.match(line):
                off = ahead(datetime.strptime(head[1].decode(), FORMAT))  # noqa: DTZ007
                ms = round(1000 * off.total_seconds())
                line = BEAT.sub(partial(_later, ms=ms), line)
            lines.append(line)
        files.change(path, _heads(b"".join(lines), ahead))


def _later(stamp: re.Match[bytes], ms: int) -> bytes:
    return stamp[1] + str(int(stamp[2]) + ms).encode()


def admin_clock(files: Files, rng: Draw) -> str:
    """The clock of the machine that dumps: the names of dumps; half of the time of copies too."""
    dumps = [path for path in files.dumps() if files.asked_ms(path)]
    if not dumps:
        return NOTHING
    seconds, copies = rng.choice(MINUTES_S), rng.random() < 0.5
    files.admin_ms += 1000 * seconds

    def later(match: re.Match[bytes]) -> bytes:
        return str(int(match[1]) + 1000 * seconds).encode()

    for path in sorted(dumps):
        head, _, rest = path.removeprefix(ADMIN).partition("-")
        files.put(path, RUNNING_INFO.sub(later, files.text(path)))
        files.rename(path, f"{ADMIN}{int(head) + 1000 * seconds}-{rest}")
    if copies:
        _rename_copies(files, seconds)
    return f"dumps{' and copies of stores' if copies else ''} {seconds:+d} s"


def store_clock(files: Files, rng: Draw) -> str:
    """The clock of whoever copied the stores: the names of their folders."""
    seconds = rng.choice(MINUTES_S)
    return f"{seconds:+d} s" if _rename_copies(files, seconds) else NOTHING


def _rename_copies(files: Files, seconds: int) -> bool:
    found = [match for path in sorted(files.kept) if (match := COPY.fullmatch(path))]
    for match in sorted(found, key=lambda m: m[2], reverse=seconds > 0):
        files.rename(match[0], f"{match[1]}{int(match[2]) + 1000 * seconds}{match[3]}")
    return bool(found)
