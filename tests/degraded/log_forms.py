"""What carriers, editors, exports and disks make of logs and of other files."""

import csv
import io
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from tests.degraded.files import NOTHING, SETTINGS, Draw, Files, host_of
from tests.degraded.logs import FORMAT, HEAD, events, named, some_logs
from tests.recordings.wrappings import FORMS, LOG, wrapped_files

CLIPPED = (80, 120, 200, 256, 512)
CHINESE = ("连接超时", "拒绝连接", "系统找不到指定的文件", "消费者组异常,请检查配置")


def shuffled(files: Files, rng: Draw) -> str:
    """Logs in pieces that are named like rotated files, and the seconds of a piece out of order."""
    logs = some_logs(files, rng)
    for path in logs:
        seconds = _seconds(files.text(path))
        rng.shuffle(seconds)
        files.put(path, b"".join(seconds))
    return named(logs)


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
    return f"{form}, {named(chosen)}"


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


def clipped(files: Files, rng: Draw) -> str:
    """Long lines end at so many characters, as syslog and viewers cut them off."""
    return _narrowed(files, rng, lambda line, width: line[:width] + line[len(line.rstrip()) :])


def split(files: Files, rng: Draw) -> str:
    """Long lines go on in the next one after so many characters."""

    def parts(line: bytes, width: int) -> bytes:
        return b"\n".join(line[at : at + width] for at in range(0, len(line), width))

    return _narrowed(files, rng, parts)


def _narrowed(files: Files, rng: Draw, narrow: Callable[[bytes, int], bytes]) -> str:
    logs, width = some_logs(files, rng), rng.choice(CLIPPED)
    for path in logs:
        text = files.text(path)
        lines = text.splitlines(keepends=True)
        files.taken += ((path, line) for line in lines if len(line.rstrip()) > width)
        files.put(
            path,
            b"".join(narrow(one, width) if len(one.rstrip()) > width else one for one in lines),
        )
    return f"{width}, {named(logs)}" if logs else NOTHING


def newest_first(files: Files, rng: Draw) -> str:
    """Logs as consoles export them: the last event first, or as ``tac``: the last line."""
    logs, by_line = some_logs(files, rng), rng.random() < 0.5
    for path in logs:
        text = files.text(path)
        parts = text.splitlines(keepends=True) if by_line else events(text)
        files.change(path, b"".join(reversed(parts)))
    return f"by {'line' if by_line else 'event'}, {named(logs)}" if logs else NOTHING


def as_csv(files: Files, rng: Draw) -> str:
    """Logs as a search engine exports its table: a head, and the line as a quoted column."""
    logs, stamped = some_logs(files, rng), rng.random() < 0.5
    for path in logs:
        out = io.StringIO()
        rows = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
        rows.writerow(["@timestamp", "host.name", "message"][0 if stamped else 1 :])
        for event in events(files.text(path)):
            head = HEAD.match(event)
            at = head[1].decode().replace(" ", "T") + ".000+08:00" if head else ""
            row = [at, host_of(path), event.decode("utf-8", "replace").rstrip("\r\n")]
            rows.writerow(row[0 if stamped else 1 :])
        files.change(path, out.getvalue().encode())
    if logs and rng.random() < 0.3:
        for path in logs:
            files.rename(path, re.sub(r"\.log", ".csv", path))
    return f"{'with times, ' if stamped else ''}{named(logs)}" if logs else NOTHING


def syslog(files: Files, rng: Draw) -> str:
    """The head of syslog before each line: of RFC 3164 or 5424, a second after the line's own."""
    logs, new = some_logs(files, rng), rng.random() < 0.5
    for path in logs:
        at = datetime(2026, 11, 21, 3, 30)  # noqa: DTZ001 (no zone)
        lines = []
        for line in files.text(path).splitlines(keepends=True):
            if head := HEAD.match(line):
                with suppress(ValueError):  # another damage has changed the date
                    own = datetime.strptime(head[1].decode(), FORMAT)  # noqa: DTZ007 (no zone)
                    at = own + timedelta(seconds=1)
            stamp = f"{at:%b} {at.day:2} {at:%H:%M:%S} mq-1 rocketmq[1234]: "
            stamp_new = f"<134>1 {at:%Y-%m-%dT%H:%M:%S}.120000+08:00 mq-1 rocketmq 1234 - - "
            lines.append((stamp_new if new else stamp).encode() + line)
        files.put(path, b"".join(lines))
    return f"RFC {5424 if new else 3164}, {named(logs)}" if logs else NOTHING


def utf_16(files: Files, rng: Draw) -> str:
    """Dumps, stores or logs in UTF-16 with a mark of its order, as PowerShell's ``>`` writes."""
    kind, big = rng.choice(("dumps", "dumps", "stores", "logs")), rng.random() < 0.2
    paths = {
        "dumps": files.dumps(),
        "stores": [path for path in files.kept if path.endswith(".json")],
        "logs": files.logs(),
    }[kind]
    paths = [path for path in paths if files.text(path)]
    for path in paths:
        text = files.text(path).decode("utf-8", "replace").replace("\r\n", "\n")
        lines = text.replace("\n", "\r\n")
        mark, codec = (b"\xfe\xff", "utf-16-be") if big else (b"\xff\xfe", "utf-16-le")
        files.put(path, mark + lines.encode(codec))
    return f"{kind}, {'big' if big else 'little'}-endian" if paths else NOTHING


def cr_cr_lf(files: Files, rng: Draw) -> str:
    """Lines of logs or dumps end in CR CR LF: CR LF, copied once more in text mode."""
    dumps = rng.random() < 0.3
    paths = files.dumps() if dumps else some_logs(files, rng)
    for path in paths:
        text = files.text(path).replace(b"\r\n", b"\n")
        files.put(path, text.replace(b"\n", b"\r\r\n"))
    return named(paths) if paths else NOTHING


def gbk(files: Files, rng: Draw) -> str:
    """Lines in GBK between those of logs: messages of a Chinese operating system."""
    logs = some_logs(files, rng)
    for path in logs:
        lines = []
        for line in files.text(path).splitlines(keepends=True):
            lines.append(line)
            if (head := HEAD.match(line)) and line.endswith(b"\n") and rng.random() < 0.02:
                words = rng.choice(CHINESE).encode("gbk")
                lines.append(head[1] + b" WARN NettyClientWorkerThread_1 - " + words + b"\n")
                lines.append(b"java.net.ConnectException: " + words + b"\n")
        files.put(path, b"".join(lines))
    return named(logs) if logs else NOTHING


def nul_blocks(files: Files, rng: Draw) -> str:
    """NUL characters in logs: at the head, after a truncation; or where a host lost power."""
    logs, where = some_logs(files, rng), rng.choice(("head", "between lines", "over lines"))
    for path in logs:
        lines = files.text(path).splitlines(keepends=True)
        at, block = rng.randrange(len(lines)), b"\0" * rng.choice((37, 512, 4096))
        if where == "over lines":
            end = at + rng.choice((1, 3, 10))
            files.taken += ((path, line) for line in lines[at:end])
            lines[at:end] = [b"\0" * len(b"".join(lines[at:end]))]
        else:
            lines.insert(0 if where == "head" else at, block)
        files.put(path, b"".join(lines))
    return f"{where}, {named(logs)}" if logs else NOTHING
