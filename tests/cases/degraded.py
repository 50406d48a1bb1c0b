"""Whole recordings, damaged the way files are damaged in practice."""

import gzip
import os
import re
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from tests.recordings.tables import DATA

HEAD = re.compile(rb"(?m)^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
HEAD_FORMAT = "%Y-%m-%d %H:%M:%S"


def _rewrite(folder: Path, pattern: str, change: Callable[[bytes], bytes]) -> None:
    for path in sorted(folder.glob(pattern)):
        packed = path.suffix == ".gz"
        content = path.read_bytes()
        content = change(gzip.decompress(content) if packed else content)
        path.write_bytes(gzip.compress(content) if packed else content)


def _without(*words: bytes) -> Callable[[bytes], bytes]:
    """Without the lines that hold all the words."""

    def change(content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        return b"".join(line for line in lines if not all(word in line for word in words))

    return change


def _from(head: bytes) -> Callable[[bytes], bytes]:
    """Without what comes before the first line whose head is not earlier."""

    def change(content: bytes) -> bytes:
        begins = next((m.start() for m in HEAD.finditer(content) if m[1] >= head), len(content))
        return content[begins:]

    return change


def _slower(seconds: int) -> Callable[[bytes], bytes]:
    """The clock at the head of each line set back."""

    def shifted(match: re.Match[bytes]) -> bytes:
        moment = datetime.strptime(match[1].decode(), HEAD_FORMAT) - timedelta(seconds=seconds)  # noqa: DTZ007 (a shift needs no zone)
        return moment.strftime(HEAD_FORMAT).encode()

    return lambda content: HEAD.sub(shifted, content)


def lost_subscription_lines(folder: Path) -> None:
    """Both brokers dropped the line that says what one member subscribes."""
    line = (b"2026-11-21 11:29:59", b"registerConsumer info changed", b"groupName=order-service")
    _rewrite(folder, "brokers/*/broker.log*", _without(*line))


def late_broker_log(folder: Path) -> None:
    """The older half of one broker's log was rotated away."""
    broker = min((folder / "brokers").iterdir())
    heads = sorted(m[1] for path in broker.glob("*.log") for m in HEAD.finditer(path.read_bytes()))
    first, last = (datetime.strptime(h.decode(), HEAD_FORMAT) for h in (heads[0], heads[-1]))  # noqa: DTZ007 (as above)
    middle = (first + (last - first) / 2).strftime(HEAD_FORMAT).encode()
    _rewrite(folder, f"brokers/{broker.name}/*.log*", _from(middle))


def skewed_client(folder: Path) -> None:
    """The clock of one client's host is 5 s slow."""
    _rewrite(folder, "clients/c2/*.log*", _slower(5))


def cut_dump(folder: Path) -> None:
    """A ``consumerStatus`` ends in its middle, as a killed mqadmin leaves it."""
    name = "1795233405453-consumerStatus-order-service/10.0.7.11@3922#3357793349619.txt"
    path = folder / "mqadmin" / name
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:30]))


def non_utf8_name(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/brokers/broker-a/caf\xe9.log")).write_text("x")


def symlink_loop(folder: Path) -> None:
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")


def gz_long_line(folder: Path, megabytes: int = 8) -> None:
    """A packed log with one line that never ends."""
    with gzip.open(folder / "brokers/broker-a/broker.1.log.gz", "wb", 1) as log:
        log.write(os.urandom(megabytes * 500_000).hex().encode())


def redact_id_without_at(folder: Path) -> None:
    """A client id that is no `ip@pid`, and stands in a file name only."""
    group = next((folder / "mqadmin").glob("*-consumerStatus-p-idle"))
    (group / "worker0xq7.txt").write_text("not readable\n")


DAMAGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "lost-subscription-lines": ("join-leave", lost_subscription_lines),
    "late-broker-log": ("silent-loss", late_broker_log),
    "skewed-client": ("start-offsets", skewed_client),
    "cut-dump": ("silent-loss", cut_dump),
    "non-utf8-name": ("join-leave", non_utf8_name),
    "symlink-loop": ("join-leave", symlink_loop),
    "gz-long-line": ("join-leave", gz_long_line),
    "redact-id-without-at": ("pathologies", redact_id_without_at),
}
"""What is damaged and how, by the name of the case."""


def damaged(name: str, target: Path) -> Path:
    """Copy the recording of a damage to a new folder and damage it there."""
    recording, damage = DAMAGES[name]
    shutil.copytree(DATA / recording / "collection", target)
    damage(target)
    return target
