"""Why some of what was observed lies outside of what is simulated, and the log lines for it."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.recordings.tables import DATA
from tests.recordings.timings.compared import Compared

NEAR_MS = 60


@dataclass(frozen=True)
class Explanation:
    """Of the changes of one recording that one cause put outside.

    Attributes:
        recording: its name.
        numbers: of its changes; none: all.
        why: one sentence.
        from_files_only: only where the input is what `ingest` makes of the files.
    """

    recording: str
    numbers: frozenset[int]
    why: str
    from_files_only: bool = False


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
EXPLANATIONS = (
    Explanation("timing", frozenset({20, 23, 34, 41, 53, 66}), FREEZES),
    Explanation("timing", frozenset({25, 45, 46, 47}), DATED_BY_EFFECT, from_files_only=True),
    Explanation("timing", frozenset({37}), "c3's log was not collected, so the files date its "
                "`unsubscribe()` by a heartbeat 2 s before it.", from_files_only=True),
    Explanation("pathologies", frozenset({22}), DATED_BY_EFFECT, from_files_only=True),
    Explanation("scale-out-4.9", frozenset(), OVERLOADED),
    Explanation("join-leave-5.5", frozenset(), "The host was overloaded (load 30 to 50)."),
    Explanation("nightly", frozenset({19, 22, 28, 32}), "Eleven JVMs were started at once on two "
                "cores: first passes took up to 1.7 s."),
    Explanation("start-offsets", frozenset({23}), "A lite pull consumer started a queue while it "
                "was being shut down."),
    Explanation("strategies", frozenset({32}), "k3 shut down six consumers one after the other; "
                "the table has all leaves at the first one's time."),
    Explanation("silent-loss", frozenset({11, 12}), "A host was frozen for 133 s and thawed: how "
                "often a pass waited 3 s for it, and how often it listed each member afterwards, "
                "is in no input."),
)  # fmt: skip


def why(one: Compared, *, from_files: bool) -> str | None:
    """The explanation of what lies outside, or None."""
    for each in EXPLANATIONS:
        numbers = each.numbers or {one.change.number}
        if (
            each.recording == one.change.recording
            and one.change.number in numbers
            and (from_files or not each.from_files_only)
        ):
            return each.why
    return None


def log_line(one: Compared) -> str | None:
    """The client's own line about a drop or an add: of its log, else of its truth file."""
    at_ms = one.change.event_ms + round(one.observed_ms)
    return _of_client_log(one, at_ms) or _of_truth(one, at_ms)


def _of_client_log(one: Compared, at_ms: int) -> str | None:
    folder = DATA / one.change.recording / "collection" / "clients" / one.who
    zone = _zone(one)
    words = ("add a new", "remove unnecessary mq", "the message queue locked", "result changed")
    for path in sorted(folder.glob("rocketmq_client.log*")):
        for line in _lines(path):
            if any(word in line for word in words):
                at = _time_ms(line, zone)
                if at is not None and abs(at - at_ms) <= NEAR_MS:
                    return line.strip()[:160]
    return None


def _of_truth(one: Compared, at_ms: int) -> str | None:
    kind = "start" if one.what == "add" else "stop"
    path = DATA / one.change.recording / "truth" / f"{one.who}.jsonl"
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row["kind"] == kind and row["t"] == at_ms:
            return f"truth/{one.who}.jsonl: {line[:140]}"
    return None


def _zone(one: Compared) -> ZoneInfo:
    if not one.version.startswith("4."):
        return ZoneInfo("Etc/GMT-8")
    cluster = json.loads((DATA / one.change.recording / "cluster.json").read_text())
    zones = {each["name"]: each["timezone"] for each in cluster["clients"]}
    return ZoneInfo(zones.get(one.who, "UTC"))


def _lines(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode().splitlines()


def _time_ms(line: str, zone: ZoneInfo) -> int | None:
    try:
        at = datetime.fromisoformat(line[:23].replace(",", "."))
    except ValueError:
        return None
    return round(at.replace(tzinfo=zone).timestamp() * 1_000)
