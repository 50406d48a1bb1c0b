"""What each client added and dropped and when, by pass: the form that both sides are compared in."""

from collections import defaultdict
from dataclasses import dataclass

from tests.recordings.tables import Row
from tests.recordings.truth import RETRY, Queue, Truth, read_truth


@dataclass(frozen=True, order=True)
class Action:
    """One queue added or dropped.

    Attributes:
        at_ms: when, epoch milliseconds.
        client: the client's name in the recording; a restarted process keeps it.
        group: its consumer group.
        queue: (topic, broker, queue id).
        added: False if dropped.
        pass_ms: begin of the pass that did it; None outside any pass (end of a process).
    """

    at_ms: float
    client: str
    group: str
    queue: Queue
    added: bool
    pass_ms: float | None


@dataclass(frozen=True)
class Run:
    """One life of a consumer: `start()` called, returned, process ended (None: lives on)."""

    client: str
    group: str
    client_id: str
    called_ms: int
    started_ms: int
    ended_ms: int | None


def observed_actions(name: str) -> list[Action]:
    """Adds and drops of a recording, retry topics left out, in order of time."""
    found: list[Action] = []
    for (client, group), lines in read_truth(name).lines.items():
        passes = sorted((line["t"] - line["ms"], line["t"]) for line in lines
                        if line["kind"] == "pass")  # fmt: skip
        for line in lines:
            if line["kind"] in ("start", "stop") and not line["topic"].startswith(RETRY):
                at_ms, removed = line["t"], line.get("removed", True)
                if removed:
                    queue = line["topic"], line["broker"], line["queue_id"]
                    added = line["kind"] == "start"
                    begin = next((b for b, e in passes if b <= at_ms <= e), None)
                    found.append(Action(at_ms, client, group, queue, added, begin))
    return sorted(found)


def observed_runs(truth: Truth, ends: dict[tuple[str, str], list[int]]) -> list[Run]:
    """Lives of the consumers of a recording.

    Args:
        truth: of the recording.
        ends: when processes of a (client, group) left or died, epoch milliseconds, ascending.
    """
    runs = []
    for (client, group), lines in truth.lines.items():
        called = 0
        for line in lines:
            if line["kind"] == "starting":
                called = line["t"]
            if line["kind"] == "started":
                over = [t for t in ends[client, group] if t > line["t"]]
                runs.append(Run(client, group, line["client_id"], called, line["t"],
                                over[0] if over else None))  # fmt: skip
    return runs


def ends_of(events: list[Row]) -> dict[tuple[str, str], list[int]]:
    """When members left or were lost, by (client, group), from a recording's cluster_events."""
    ends = defaultdict(list)
    for row in events:
        if row["event_type"] in ("CONSUMER_LEAVE", "CONSUMER_LOST"):
            ends[row["channel_id"].split("/")[0], row["consumer_group"]].append(row["event_ms"])
    return ends
