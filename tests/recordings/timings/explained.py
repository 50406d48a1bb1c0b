"""Why some of what was observed lies outside of what is simulated, and the log lines for it."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.recordings.tables import DATA, rows
from tests.recordings.timings.compared import Compared, Given
from tests.recordings.timings.timeline import GAP
from tests.recordings.truth import RETRY

NEAR_MS = 60
LONGEST_LINE = 220


@dataclass(frozen=True)
class Explanation:
    """Of the changes of one recording that one cause put outside.

    Attributes:
        recording: its name.
        numbers: of its changes; none: all.
        why: one sentence.
        given: only where this is simulated; None: whatever is.
    """

    recording: str
    numbers: frozenset[int]
    why: str
    given: Given | None = None


FREEZES = (
    "The recorder had stopped the members over their next pass (`client_frozen`), which no input "
    "tells; the simulation has one member in ten out of step."
)
OVERLOADED = (
    "Five JVMs were started at once on two cores: `start()` took 3 to 5 s, first passes up to "
    "1.7 s, and timers run from some seconds before the join."
)
DATED_BY_EFFECT = (
    "Nothing is sent, so the files date the event by what followed from it: some ms too late."
)
BUSY_HOST = "The host was overloaded: five JVMs of brokers and name server, four of clients."
EXPLANATIONS = (
    Explanation("timing", frozenset({20, 23, 34, 41, 53, 66}), FREEZES),
    Explanation("timing", frozenset({25, 45, 46, 47}), DATED_BY_EFFECT, Given.FILES),
    Explanation("timing", frozenset({37}), "c3's log was not collected, so the files date its "
                "`unsubscribe()` by a heartbeat 2 s before it.", Given.FILES),
    Explanation("pathologies", frozenset({22}), DATED_BY_EFFECT, Given.FILES),
    Explanation("scale-out-4.9", frozenset(), OVERLOADED),
    Explanation("join-leave-5.5", frozenset(), "The host was overloaded (load 30 to 50)."),
    Explanation("slave", frozenset(), BUSY_HOST),
    Explanation("slave-read", frozenset(), BUSY_HOST),
    Explanation("nightly", frozenset({19, 22, 28, 32}), "Eleven JVMs were started at once on two "
                "cores: first passes took up to 1.7 s."),
    Explanation("silent-loss", frozenset({11, 12}), "A host was frozen for 133 s and thawed: how "
                "often a pass waited 3 s for it, and how often it listed each member afterwards, "
                "is in no input."),
)  # fmt: skip


def why(one: Compared, given: Given) -> str | None:
    """The explanation of what lies outside, or None."""
    for each in EXPLANATIONS:
        numbers = each.numbers or {one.change.number}
        if (
            each.recording == one.change.recording
            and one.change.number in numbers
            and each.given in (None, given)
        ):
            return each.why
    return None


def log_line(one: Compared) -> str | None:
    """The line of a client's log, else of its truth file, about what was observed.

    Of a gap, about the client that took the queue last.
    """
    found = _last_taken(one) if one.what == GAP else _first_action(one)
    return found and (_of_client_log(one, *found) or _of_truth(one, *found))


def _first_action(one: Compared) -> tuple[str, str, int]:
    kind = "start" if one.what == "add" else "stop"
    return one.who, kind, one.change.event_ms + round(one.observed_ms)


def _last_taken(one: Compared) -> tuple[str, str, int] | None:
    """(client, kind of its truth line, when)."""
    topic, _, queue = one.who.partition(" ")
    broker, _, queue_id = queue.rpartition(":")
    its, found = (topic, broker, int(queue_id)), []
    for path in (DATA / one.change.recording / "truth").glob("*.jsonl"):
        found += [
            (row["t"], path.stem) for row in rows(path)
            if row["kind"] == "start" and row["group"] == one.change.group
            and (row["topic"], row["broker"], row["queue_id"]) == its
            and one.change.begin_ms <= row["t"] < one.change.until_ms
        ]  # fmt: skip
    if not found:
        return None
    at_ms, client = max(found)
    return client, "start", at_ms


def _of_client_log(one: Compared, client: str, kind: str, at_ms: int) -> str | None:
    folder = DATA / one.change.recording / "collection" / "clients" / client
    zone = _zone(one, client)
    words = ["add a new", "the message queue locked", "result changed"]
    if kind == "stop":
        words = ["remove unnecessary mq", *words]
    for path in sorted(folder.glob("rocketmq_client.log*")):
        for line in _lines(path):
            if any(word in line for word in words) and RETRY not in line:
                at = _time_ms(line, zone)
                if at is not None and abs(at - at_ms) <= NEAR_MS:
                    return line.strip()[:LONGEST_LINE]
    return None


def _of_truth(one: Compared, client: str, kind: str, at_ms: int) -> str | None:
    path = DATA / one.change.recording / "truth" / f"{client}.jsonl"
    for line, row in zip(path.read_text().splitlines(), rows(path), strict=True):
        if row["kind"] == kind and row["t"] == at_ms:
            return f"truth/{client}.jsonl: {line[:LONGEST_LINE]}"
    return None


def _zone(one: Compared, client: str) -> ZoneInfo:
    if not one.version.startswith("4."):
        return ZoneInfo("Etc/GMT-8")
    cluster = json.loads((DATA / one.change.recording / "cluster.json").read_text())
    zones = {each["name"]: each["timezone"] for each in cluster["clients"]}
    return ZoneInfo(zones.get(client, "UTC"))


def _lines(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode().splitlines()


def _time_ms(line: str, zone: ZoneInfo) -> int | None:
    try:
        at = datetime.fromisoformat(line[:23].replace(",", "."))
    except ValueError:
        return None
    return round(at.replace(tzinfo=zone).timestamp() * 1_000)
