"""Collections of which the clock of a host is off."""

import gzip
import re
import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import DATA

HEAD = re.compile(rb"(?m)^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
BEAT = re.compile(rb"(lastUpdateTimestamp=)(\d{13})")
STORED = re.compile(rb'("timestamp" *: *)(\d{13})')


def skewed(
    recording: str,
    hosts: str,
    seconds: int,
    target: Path,
    *,
    notices: bool = True,
    copies: bool = True,
) -> Any:
    """The tables of a recording with the clock of a host, or of several, off.

    Args:
        recording: its name.
        hosts: their folders, with blanks between them.
        seconds: how far the clock is ahead.
        target: a new folder for the collection.
        notices: keep what logs of clients have of brokers' notices.
        copies: keep dumps and copies of stores.
    """
    shutil.copytree(DATA / recording / "collection", target)
    if not notices:
        _without_notices(target)
    for path in () if copies else [target / "mqadmin", *target.glob("brokers/*/config*")]:
        shutil.rmtree(path)
    stamp = partial(_stamped, ms=1_000 * seconds)
    for path in (path for host in hosts.split() for path in (target / host).rglob("*.*")):
        if ".log" in path.name:
            text = path.read_bytes()
            packed = path.suffix == ".gz"
            text = HEAD.sub(
                lambda m: _later(m[1], seconds), gzip.decompress(text) if packed else text
            )
            text = BEAT.sub(stamp, text)
            path.write_bytes(gzip.compress(text, 1) if packed else text)
        elif path.suffix == ".json" and path.is_relative_to(target / "brokers"):
            path.write_bytes(STORED.sub(stamp, path.read_bytes()))
    return ingest_collection(target).tables


def _stamped(match: re.Match[bytes], ms: int) -> bytes:
    return match[1] + b"%d" % (int(match[2]) + ms)


def _without_notices(folder: Path) -> None:
    """Take the lines on a broker's notices out of the logs of clients."""
    for path in folder.glob("clients/*/*.log*"):
        packed, text = path.suffix == ".gz", path.read_bytes()
        lines = (gzip.decompress(text) if packed else text).splitlines(keepends=True)
        text = b"".join(line for line in lines if b"receive broker's notification" not in line)
        path.write_bytes(gzip.compress(text, 1) if packed else text)


def _later(text: bytes, seconds: int) -> bytes:
    at = datetime.fromisoformat(text.decode()) + timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%d %H:%M:%S").encode()


def offsets(tables: Any) -> dict[str, int]:
    return {
        row["host"]: row["clock_offset_ms"] for row in tables["coverage"] if row["clock_offset_ms"]
    }


def named(tables: Any) -> list[str]:
    found = [row for row in tables["findings"] if row["rule_id"] == "INGEST_CLOCK_OFFSET"]
    return [row["summary"] for row in found]


BEAT_MS = 1_795_231_735_100  # 2026-11-21 11:28:55 GMT+8
JOIN = (
    "2026-11-21 {} INFO t - new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING "
    "channel: ClientChannelInfo [channel=[id: 0x1, L:/1.1.1.1:1 - R:/2.2.2.2:2], clientId=c1, "
    "language=JAVA, version=479, lastUpdateTimestamp={}]\n"
)
HEARTBEAT_LOG = (
    "2026-11-21 {},687 INFO RocketmqClient - HeartbeatData [clientID=c1, producerDataSet=[], "
    "consumerDataSet=[ConsumerData [groupName=g, consumeType=CONSUME_PASSIVELY, "
    "messageModel=CLUSTERING, consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, "
    "subscriptionDataSet=[SubscriptionData [classFilterMode=false, topic=T, subString=*, "
    "tagsSet=[], codeSet=[], subVersion={}, expressionType=TAG]]]]]\n"
)


def ingested(folder: Path, files: Mapping[str, str], settings: str = "") -> Any:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "collection.toml").write_text(f'cluster = "C"\n{settings}')
    return ingest_collection(folder).tables
