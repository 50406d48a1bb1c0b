"""Moments that clients logged to the millisecond: start-up, CHANGE notices, routes, truncations."""

import csv
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.recordings.tables import DATA

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3}) .*?(?: - )(.*)")
_MARKS = (
    ("start_beginning", re.compile(r"the consumer \[(?P<group>[^]]+)\] start beginning")),
    ("instance_created", re.compile(r"Created a new client Instance, .*?ClientID:(?P<id>[^,]+),")),
    ("instance_started", re.compile(r"the client factory \[(?P<id>[^]]+)\] start OK")),
    ("notify", re.compile(r"receive broker's notification\[(?P<broker>[^]]+)\], "
                          r"the consumer group: (?P<group>\S+) changed")),
    ("route", re.compile(r"the topic\[(?P<topic>[^]]+)\] route info changed, old\[(?P<old>.)")),
    ("truncate", re.compile(r"doRebalance, (?P<group>\S+), truncateMessageQueueNotMyTopic remove "
                            r"unnecessary mq, MessageQueue \[topic=(?P<topic>[^,]+), "
                            r"brokerName=(?P<broker>[^,]+), queueId=(?P<queue>\d+)")),
)  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """One such moment.

    Attributes:
        at_ms: epoch milliseconds.
        client: the client's name in the recording.
        what: a key of `_MARKS`.
        fields: what the line names; of ``notify`` the sending broker's name.
    """

    at_ms: int
    client: str
    what: str
    fields: dict[str, str]


def marks_of(name: str) -> list[Mark]:
    """All marks of a recording in order of time.

    Of the logs that are left out of `timing`, those in its marks.csv.
    """
    cluster = json.loads((DATA / name / "cluster.json").read_text())
    brokers = {one["addr"]: one["name"] for one in cluster["brokers"]}
    local = cluster["version"].startswith("4.")
    zones = {one["name"]: one["timezone"] if local else "Etc/GMT-8" for one in cluster["clients"]}
    found = []
    for path in sorted((DATA / name / "collection" / "clients").glob("*/rocketmq_client.log*")):
        found += list(_of_log(path, brokers, ZoneInfo(zones[path.parent.name])))
    logs = {mark.client for mark in found}
    path = DATA / name / "marks.csv"
    if path.exists():
        found += [mark for mark in _of_marks(path) if mark.client not in logs]
    return sorted(found, key=lambda mark: mark.at_ms)


def _of_log(path: Path, brokers: dict[str, str], zone: ZoneInfo) -> Iterator[Mark]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in data.decode().splitlines():
        found = _LINE.match(line)
        if not found:
            continue
        for what, pattern in _MARKS:
            hit = pattern.search(found[2])
            if hit:
                at = datetime.fromisoformat(found[1].replace(",", ".")).replace(tzinfo=zone)
                fields = hit.groupdict()
                if what == "notify":
                    fields["broker"] = brokers.get(fields["broker"], fields["broker"])
                at_ms = round(at.timestamp() * 1000)
                yield Mark(at_ms, path.parent.name, what, fields)


def _of_marks(path: Path) -> Iterator[Mark]:
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            fields = {"topic": row["topic"], "broker": row["broker"]}
            if row["what"] == "notify":
                fields["group"] = row["detail"]
            if row["what"] == "truncate":
                fields["queue"] = row["detail"]
            yield Mark(int(row["t"]), row["client"], row["what"], fields)
