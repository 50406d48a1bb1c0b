"""What each client took and gave up and when, as its own log has it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.recordings.tables import Row
from tests.recordings.timings.client_logs import Mark
from tests.recordings.truth import RETRY, Queue, Truth


@dataclass(frozen=True, order=True)
class Action:
    """One queue taken or given up.

    Attributes:
        at_ms: when, epoch milliseconds.
        client: the client's name in the recording; a restarted process keeps it.
        group: its consumer group.
        queue: (topic, broker, queue id).
        added: False if given up.
        pass_ms: begin of the pass that did it; None outside any pass (end of a process).
    """

    at_ms: int
    client: str
    group: str
    queue: Queue
    added: bool
    pass_ms: int | None = None


@dataclass(frozen=True)
class Run:
    """One lifetime of a consumer: `start()` called, returned, process ended (None: lives on)."""

    client: str
    group: str
    client_id: str
    called_ms: int
    started_ms: int
    ended_ms: int | None


def observed_actions(truth: Truth, marks: list[Mark], events: list[Row]) -> list[Action]:
    """Who took and gave up which queue, retry topics left out, in order of time.

    A process that ends gives up what it holds then. Truth has no line where an unsubscribed topic's
    queues are given up, so that is taken from the client logs.

    Args:
        truth: of the recording.
        marks: of its client logs.
        events: its cluster_events.
    """
    logged_actions = [*_logged_actions(truth), *_truncated(truth, marks)]
    ends = [
        (min((t for t in _shutdowns(truth, *who) if 0 <= t - at_ms < 5_000), default=at_ms), who)
        for who, times in ends_of(events).items()
        for at_ms in times
    ]
    found: list[Action] = []
    held: dict[tuple[str, str], set[Queue]] = defaultdict(set)
    for at_ms, _, who, action in sorted(
        [
            *((t, 0, who, None) for t, who in ends),
            *((one.at_ms, 1 + one.added, (one.client, one.group), one) for one in logged_actions),
        ],
        key=lambda each: each[:3],
    ):
        if action is None:
            found += [Action(at_ms, *who, queue, False) for queue in sorted(held.pop(who, ()))]
        elif action.pass_ms is None and not action.added:
            continue  # OFFSET_ILLEGAL (rocketmq.md §5.5): the same client takes it again
        elif action.added != (action.queue in held[who]):
            (held[who].add if action.added else held[who].discard)(action.queue)
            found.append(action)
    return found


def _logged_actions(truth: Truth) -> list[Action]:
    found = []
    tells_of_passes = any(line["kind"] == "pass" for its in truth.lines.values() for line in its)
    for (client, group), lines in truth.lines.items():
        passes = [(line["t"] - line["ms"], line["t"]) for line in lines if line["kind"] == "pass"]
        if not tells_of_passes:  # so all is taken for theirs
            passes = [(line["t"], line["t"]) for line in lines]
        for line in _moves(lines):
            if line.get("removed", True):
                at_ms = line["t"]
                queue = line["topic"], line["broker"], line["queue_id"]
                begin = next((b for b, e in sorted(passes) if b <= at_ms <= e), None)
                found.append(Action(at_ms, client, group, queue, line["kind"] == "start", begin))
    return found


def _moves(lines: Iterable[Row]) -> Iterator[Row]:
    """Where queues are taken and given up.

    A pull task that starts again while its lite pull consumer shuts down takes none.
    """
    ending = False
    for line in lines:
        if line["kind"] in ("starting", "shutdown_begin"):
            ending = line["kind"] == "shutdown_begin"
        kinds = ("stop",) if ending else ("start", "stop")
        if line["kind"] in kinds and not line["topic"].startswith(RETRY):
            yield line


def _truncated(truth: Truth, marks: list[Mark]) -> list[Action]:
    """What a client gave up since it had unsubscribed the topic."""
    found = []
    for mark in marks:
        if mark.what == "truncate":
            queue = mark.fields["topic"], mark.fields["broker"], int(mark.fields["queue"])
            groups = {group for client, group in truth.lines if client == mark.client}
            group = mark.fields.get("group") or groups.pop()
            passes = [
                (line["t"] - line["ms"], line["t"] + 1)
                for line in truth.lines[mark.client, group]
                if line["kind"] == "pass"
            ]
            begin = next((b for b, e in passes if b <= mark.at_ms <= e), None)
            found.append(Action(mark.at_ms, mark.client, group, queue, False, begin))
    return found


def _shutdowns(truth: Truth, client: str, group: str) -> list[int]:
    return [line["t"] for line in truth.lines[client, group] if line["kind"] == "shutdown_begin"]


def observed_runs(truth: Truth, events: list[Row]) -> list[Run]:
    """Lifetimes of the consumers of a recording."""
    ends, runs = ends_of(events), []
    for (client, group), lines in truth.lines.items():
        called = 0
        for line in lines:
            if line["kind"] == "starting":
                called = line["t"]
            if line["kind"] == "started":
                over = [t for t in ends[client, group] if t > line["t"]]
                runs.append(
                    Run(
                        client,
                        group,
                        line["client_id"],
                        called,
                        line["t"],
                        over[0] if over else None,
                    )
                )
    return runs


def ends_of(events: list[Row]) -> dict[tuple[str, str], list[int]]:
    """When members left or were lost, by (client, group), from a recording's cluster_events."""
    ends = defaultdict(list)
    for row in events:
        if row["event_type"] in ("CONSUMER_LEAVE", "CONSUMER_LOST"):
            ends[row["channel_id"].split("/")[0], row["consumer_group"]].append(row["event_ms"])
    return ends
