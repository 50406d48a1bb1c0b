"""``python -m tests.recordings.timings.calibration``: what the delays of `delays.py` rest on.

Samples of the half of the changes that calibrates; `rebalance_core/timing/delays.py` has their
quantiles, widened at both ends.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tests.recordings.tables import DATA, RECORDINGS
from tests.recordings.timings.actions import Action, Run, observed_actions, observed_runs
from tests.recordings.timings.changes import Change, changes_of
from tests.recordings.timings.client_logs import Mark, marks_of
from tests.recordings.timings.compared import OVERLOADED
from tests.recordings.timings.corrections import corrected_tables
from tests.recordings.truth import Truth, read_truth

Samples = dict[str, list[int]]
COLD_PASSES = 2

START_UP = "client created until `start()` returned"
TIMERS = "client created until its timers started"
LEAD = "last broker's notice of a registration until `start()` returned"
STEP = "from one broker's notice of a registration to the next"
CLOSED = "death until the first CHANGE"
LEFT = "`shutdown()` until the first CHANGE"
LEFT_NEXT = "from one broker's CHANGE after a leave to the next"
SPREAD = "CHANGE of one broker at its receivers, after the first of them"
IDLE = "a pass that changes nothing"
DROP = "begin of a pass until it gave up queues"
ADD = "from there until it took others"
COLD = "begin of one of a process's first two passes until it took queues"
TAIL = "last action of a pass until its end"


@dataclass(frozen=True)
class _Recording:
    """What is known of one recording, and which half of it may be looked at."""

    truth: Truth
    marks: list[Mark]
    runs: list[Run]
    actions: list[Action]
    changes: list[Change]

    def calibrates(self, group: str, at_ms: int) -> bool:
        """True if the group's change at that time is in the calibrating half."""
        return any(
            one.calibrates
            for one in self.changes
            if one.group == group and one.begin_ms <= at_ms < one.until_ms
        )

    def passes(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """(begin, end) of each client's passes."""
        found = {
            who: sorted((row["t"] - row["ms"], row["t"]) for row in lines if row["kind"] == "pass")
            for who, lines in self.truth.lines.items()
        }
        return defaultdict(list, found)

    def notices(self, group: str, begin_ms: int, until_ms: int) -> dict[str, dict[str, int]]:
        """First CHANGE by broker and client in a stretch of time."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for mark in self.marks:
            if (
                mark.what == "notify"
                and mark.fields["group"] == group
                and begin_ms <= mark.at_ms < until_ms
            ):
                found[mark.fields["broker"]].setdefault(mark.client, mark.at_ms)
        return found


def samples() -> Samples:
    """Every sample in milliseconds, by what it is of."""
    found: Samples = defaultdict(list)
    for name in RECORDINGS:
        if name not in OVERLOADED:
            one = _read(name)
            for part in (_joins(one), _ends(one), _passes(one)):
                for what, value in part:
                    found[what].append(value)
    return found


def _read(name: str) -> _Recording:
    truth, tables, marks = read_truth(name), corrected_tables(name), marks_of(name)
    end_ms = json.loads((DATA / name / "cluster.json").read_text())["end_ms"]
    return _Recording(
        truth,
        marks,
        observed_runs(truth, tables["cluster_events"]),
        observed_actions(truth, marks, tables["cluster_events"]),
        changes_of(name, tables, end_ms),
    )


def _joins(of: _Recording) -> Iterator[tuple[str, int]]:
    pushed = {
        row["client_id"]
        for lines in of.truth.lines.values()
        for row in lines
        if row["kind"] == "started" and row.get("type") == "push"
    }
    for run in of.runs:
        if not of.calibrates(run.group, run.started_ms):
            continue
        own = {
            what: [
                m.at_ms
                for m in of.marks
                if m.client == run.client
                and m.what == what
                and run.called_ms - 50 <= m.at_ms <= run.started_ms + 50
                and m.fields.get("id", run.client_id) == run.client_id
            ]
            for what in ("instance_created", "instance_started")
        }
        for created in own["instance_created"][:1]:
            yield START_UP, run.started_ms - created
            for started in own["instance_started"][:1]:
                yield TIMERS, started - created
        if run.client_id in pushed:
            by_broker = of.notices(run.group, run.called_ms, run.started_ms + 700)
            firsts = sorted(
                of_client[run.client] for of_client in by_broker.values() if run.client in of_client
            )
            for last in firsts[-1:]:
                yield LEAD, run.started_ms - last
            yield from ((STEP, b - a) for a, b in pairwise(firsts))


def _ends(of: _Recording) -> Iterator[tuple[str, int]]:
    for change in of.changes:
        kind = change.kind.split(",")[0]
        if not change.calibrates or kind not in ("leave", "kill"):
            continue
        begins = (
            [change.event_ms]
            if kind == "kill"
            else [
                row["t"]
                for client in change.clients
                for row in of.truth.lines[client, change.group]
                if row["kind"] == "shutdown_begin" and abs(row["t"] - change.event_ms) < 5_000
            ]
        )
        for begin in begins:
            by_broker = of.notices(change.group, begin, begin + 900)
            others = [
                sorted(at for client, at in times.items() if client not in change.clients)
                for times in by_broker.values()
            ]
            firsts = sorted(times[0] for times in others if times)
            for first in firsts[:1]:
                yield (CLOSED if kind == "kill" else LEFT), first - begin
            if kind == "leave":
                yield from ((LEFT_NEXT, b - a) for a, b in pairwise(firsts))
            yield from ((SPREAD, at - times[0]) for times in others for at in times[1:])


def _passes(of: _Recording) -> Iterator[tuple[str, int]]:
    acted: dict[tuple[str, str, int], list[Action]] = defaultdict(list)
    for action in of.actions:
        if action.pass_ms is not None:
            acted[action.client, action.group, action.pass_ms].append(action)
    begun = {(run.client, run.group, run.called_ms) for run in of.runs}
    for (client, group), passes in of.passes().items():
        for begin, end in passes:
            if not of.calibrates(group, begin):
                continue
            actions = acted.get((client, group, begin))
            if not actions:
                yield IDLE, end - begin
                continue
            since = max(
                (t for c, g, t in begun if (c, g) == (client, group) and t <= begin), default=0
            )
            number = [b for b, _ in passes if b >= since].index(begin)
            yield from _acting(actions, begin, end, cold=number < COLD_PASSES)


def _acting(
    actions: list[Action], begin: int, end: int, *, cold: bool
) -> Iterator[tuple[str, int]]:
    drops = [one.at_ms for one in actions if not one.added]
    adds = [one.at_ms for one in actions if one.added]
    if drops:
        yield DROP, min(drops) - begin
    if adds and cold:
        yield COLD, min(adds) - begin
    elif adds and drops:
        yield ADD, max(0, min(adds) - max(drops))
    yield TAIL, end - max(drops + adds)


def main() -> None:
    """Print how many samples each delay has, and their quantiles in milliseconds."""
    for what, values in sorted(samples().items()):
        cells = np.quantile(values, [0, 0.5, 0.95, 0.99, 1])
        print(f"{what}: {len(values)}:", *(f"{value:,.0f}" for value in cells))


if __name__ == "__main__":
    main()
