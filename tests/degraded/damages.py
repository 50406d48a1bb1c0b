"""Kinds of damage, each as files are damaged in practice; a draw says where and how much.

Every function takes the files, which it changes, and the draw; it returns what it did in a few
words, none if the collection has nothing to damage so. Nothing is chosen by what a line means: one
of any template may be lost.
"""

import random
import re
from collections.abc import Callable
from datetime import datetime, timedelta

from tests.degraded.files import Files, dump_ms, host_of
from tests.recordings.wrappings import FORMS, LOG, wrapped_files

HEAD = re.compile(rb"(?m)^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
FORMAT = "%Y-%m-%d %H:%M:%S"
BEAT = re.compile(rb"(lastUpdateTimestamp=)(\d{13})")
VERSION = re.compile(rb"(topic=([^,\]]+), subString=(?:(?!subVersion=).)*?subVersion=)(\d{13})")
CLIENT_ID = re.compile(rb"(?<=clientID=)[^,\]]+")
STARTED = re.compile(rb"(PROP_CONSUMER_START_TIMESTAMP *: )(\d{13})")
LAST = re.compile(rb"(last(?:Lock|Pull|Consume)Timestamp=)(\d{14})")
MESSAGE = re.compile(rb"^[^A-Za-z]*(?:INFO|WARN|ERROR|DEBUG)\S* .*? - ")
WORDS = re.compile(rb"[A-Za-z][A-Za-z' _-]*")
SHIFTS_S = (1, -1, 5, -5, 60, -60, 8 * 3600, -8 * 3600)
SHARES = (0.01, 0.05, 0.1, 0.3)

SETTINGS = "collection.toml"

Draw = random.Random
NOTHING = ""
"""What a damage did that found nothing of its kind to take."""


def files_dropped(files: Files, rng: Draw) -> str:
    """A share of all files was not copied."""
    share = rng.choice((0.02, 0.1, 0.3, 0.6))
    paths = [path for path in sorted(files.kept) if rng.random() < share]
    return _dropped(files, paths or [rng.choice(sorted(files.kept))])


def folder_dropped(files: Files, rng: Draw) -> str:
    """A folder: of a host, of a role, of copies of a store, of clients' answers."""
    folders = {
        "/".join(path.split("/")[:depth])
        for path in files.kept
        for depth in (1, 2, 3)
        if path.count("/") >= depth
    }
    if not folders:
        return NOTHING
    folder = rng.choice(sorted(folders))
    return _dropped(files, [path for path in files.kept if path.startswith(folder + "/")], folder)


def round_dropped(files: Files, rng: Draw) -> str:
    """The dumps after or before a moment were not kept."""
    dated = [(ms, path) for path in files.dumps() if (ms := dump_ms(path))]
    if not dated:
        return NOTHING
    at = rng.choice(sorted(dated))[0]
    later = rng.random() < 0.7
    return _dropped(files, [p for ms, p in dated if (ms > at if later else ms < at)],
                    f"dumps {'after' if later else 'before'} {at}")  # fmt: skip


def _dropped(files: Files, paths: list[str], named: str = "") -> str:
    for path in paths:
        files.drop(path)
    return named or f"{len(paths)} files, {', '.join(paths[:3])}"


def log_head(files: Files, rng: Draw) -> str:
    """Logs begin late: what came before was rotated away, or tailed off in the middle of a line."""
    return _cut(files, rng, lambda heads, a, b: lambda at: at >= heads[b], torn=-1)


def log_tail(files: Files, rng: Draw) -> str:
    """Logs end early: they were copied before the rest was written, be it of a line."""
    return _cut(files, rng, lambda heads, a, b: lambda at: at <= heads[a], torn=1)


def log_middle(files: Files, rng: Draw) -> str:
    """A stretch of the logs is missing: a rotated file in between, or a disk that was full."""
    return _cut(files, rng, lambda heads, a, b: lambda at: not heads[a] < at < heads[b])


Keep = Callable[[bytes], bool]


def _cut(
    files: Files, rng: Draw, rule: Callable[[list[bytes], int, int], Keep], torn: int = 0
) -> str:
    logs = _some_logs(files, rng)
    if not logs:
        return NOTHING
    heads = sorted({m[1] for path in logs for m in HEAD.finditer(files.text(path))})
    if len(heads) < 3:
        return NOTHING
    first, last = sorted(rng.sample(range(len(heads)), 2))
    keep = rule(heads, first, last)
    for path in logs:
        there = True

        def kept(_: int, line: bytes) -> bool:
            nonlocal there
            head = HEAD.match(line)
            there = keep(head[1]) if head else there
            return there

        files.keep_lines(path, kept)
        if torn:
            _tear(files, path, torn)
    return f"{heads[first].decode()} .. {heads[last].decode()} of {_named(logs)}"


def _tear(files: Files, path: str, end: int) -> None:
    """Half of the cuts go through a line: the first one, or the last; drawn by what is left."""
    lines = files.text(path).splitlines(keepends=True)
    own = random.Random(f"{path} {len(lines)}")
    if len(lines) > 1 and own.random() < 0.5:
        line = lines[0 if end < 0 else -1]
        at = own.randrange(1, max(len(line), 2))
        lines[0 if end < 0 else -1] = line[at:] if end < 0 else line[:at]
        files.taken.append((path, line))
        files.put(path, b"".join(lines))


def lines_lost(files: Files, rng: Draw) -> str:
    """Lines were dropped at random, as loggers drop them under load."""
    share = rng.choice(SHARES)
    logs = _some_logs(files, rng)
    for path in logs:
        files.keep_lines(path, lambda _, line: rng.random() >= share)
    return f"{share:.0%} of the lines of {_named(logs)}" if logs else NOTHING


def template_lost(files: Files, rng: Draw) -> str:
    """Lines of one template were dropped: all, those of one second, or a share."""
    logs = _some_logs(files, rng)
    kinds = sorted({_template(line) for path in logs for line in files.text(path).splitlines()})
    if not kinds:
        return NOTHING
    kind, how = rng.choice(kinds), rng.choice(("all", "half", "one second"))
    lines = [
        line
        for path in logs
        for line in files.text(path).splitlines()
        if _template(line) == kind
    ]  # fmt: skip
    second = HEAD.match(rng.choice(lines))

    def kept(_: int, line: bytes) -> bool:
        if _template(line) != kind:
            return True
        if how == "one second" and second:
            return not line.startswith(second[1])
        return how == "half" and rng.random() < 0.5

    for path in logs:
        files.keep_lines(path, kept)
    return f"{how} of {kind.decode('utf-8', 'replace')!r} of {_named(logs)}"


def _template(line: bytes) -> bytes:
    message = line[m.end() :] if (m := MESSAGE.match(line[:200])) else line
    words = WORDS.match(message)
    return b" ".join(words[0].split()[:5]) if words else b""


def dumps_cut(files: Files, rng: Draw) -> str:
    """Dumps or stores end in their middle, as a killed mqadmin or a full disk leaves them."""
    paths = [*files.dumps(), *(path for path in files.kept if path.endswith(".json"))]
    paths = [path for path in paths if len(files.text(path)) > 1]
    if not paths:
        return NOTHING
    wanted = rng.choice((1, 1, 3, 10))
    chosen = rng.sample(paths, min(wanted, len(paths)))
    for path in chosen:
        text = files.text(path)
        at = rng.randrange(1, len(text))
        if rng.random() < 0.5:
            at = text.rfind(b"\n", 0, at) + 1
        files.taken.append((path, text))  # whose dump it is, its head says too
        files.put(path, text[:at])
    return _named(chosen)


def clock_shifted(files: Files, rng: Draw) -> str:
    """The clock of one host was wrong; of 8 h: the zone of its log is another."""
    hosts = sorted({host_of(path) for path in files.logs()})
    if not hosts:
        return NOTHING
    host, seconds, beats = rng.choice(hosts), rng.choice(SHIFTS_S), rng.random() < 0.5
    delta = timedelta(seconds=seconds)

    def head(match: re.Match[bytes]) -> bytes:
        moment = datetime.strptime(match[1].decode(), FORMAT) + delta  # noqa: DTZ007 (no zone)
        return moment.strftime(FORMAT).encode()

    def beat(match: re.Match[bytes]) -> bytes:
        return match[1] + str(int(match[2]) + 1000 * seconds).encode()

    own = b""
    for path in files.logs():
        if host_of(path) == host:
            text = files.text(path)
            files.taken.append((path, text))
            own += text
            text = HEAD.sub(head, text)
            files.put(path, BEAT.sub(beat, text) if beats else text)
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


def shuffled(files: Files, rng: Draw) -> str:
    """Logs in pieces that are named like rotated files, and the seconds of a piece out of order."""
    logs = _some_logs(files, rng)
    for path in logs:
        seconds = _seconds(files.text(path))
        rng.shuffle(seconds)
        files.put(path, b"".join(seconds))
    return _named(logs)


def wrapped(files: Files, rng: Draw) -> str:
    """Logs as containers, collectors and loggers write them: all in one form, or a host's."""
    logs = sorted(path for path in files.logs() if LOG.fullmatch(path))
    if not logs:
        return NOTHING
    form, host = rng.choice(sorted(FORMS)), host_of(rng.choice(logs))
    one_host = rng.random() < 0.3
    chosen = [path for path in logs if not one_host or host_of(path) == host]
    before = {path: files.text(path) for path in (*chosen, SETTINGS) if path in files.kept}
    for path, text in wrapped_files(before, form).items():
        if text != before[path]:
            files.put(path, text)
    return f"{form}, {_named(chosen)}"


def _seconds(text: bytes) -> list[bytes]:
    """The lines of a log by second, in order; what has no head belongs to the line before."""
    parts: list[list[bytes]] = [[]]
    last = b""
    for line in text.splitlines(keepends=True):
        head = HEAD.match(line)
        if head and head[1] != last:
            parts.append([])
            last = head[1]
        parts[-1].append(line if line.endswith(b"\n") else line + b"\n")
    return [b"".join(part) for part in parts if part]


def _some_logs(files: Files, rng: Draw) -> list[str]:
    """One log, those of one host, of one role, or all."""
    logs = sorted(files.logs())
    if not logs:
        return []
    one = rng.choice(logs)
    how = rng.choice(("file", "host", "role", "all"))
    if how == "file":
        return [one]
    if how == "host":
        return [path for path in logs if host_of(path) == host_of(one)]
    role = one.split("/")[0]
    return [path for path in logs if how == "all" or path.split("/")[0] == role]


def _named(paths: list[str]) -> str:
    return ", ".join(paths[:2]) + (f" and {len(paths) - 2} more" if len(paths) > 2 else "")


DAMAGES: dict[str, Callable[[Files, Draw], str]] = {
    "files dropped": files_dropped,
    "folder dropped": folder_dropped,
    "round dropped": round_dropped,
    "log head": log_head,
    "log tail": log_tail,
    "log middle": log_middle,
    "lines lost": lines_lost,
    "template lost": template_lost,
    "dumps cut": dumps_cut,
    "clock": clock_shifted,
}
"""Take something away, or make it wrong."""

HARMLESS: dict[str, Callable[[Files, Draw], str]] = {"shuffled": shuffled, "wrapped": wrapped}
"""Change the form alone."""
