"""A broker's revive service: messages that are redelivered late, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from rebalance_core.audit import unknowns
from rebalance_core.audit.dumps import number
from rebalance_core.audit.group_snapshot import (
    BROKER,
    ClusterSnapshot,
    Finding,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
)
from rebalance_core.model.times import MINUTE_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ReviveMetricsFact,
        RevivePassFact,
        ReviveProgressFact,
        ReviveTroubleFact,
    )


LATE_S = 30
"""In recorded healthy runs, passes find their first checkpoint up to 4 s late, or up to 6 s by the
metric: a pass waits up to 4 s for more (``noMsgCount``), and rests up to 3 s before the next
(``reviveMaxSlow``)."""
HELD_UP_MS = 30 * SECOND_MS
"""After a failed pass the next follows within seconds."""
SETTLED_MS = MINUTE_MS
"""Due messages are read within seconds; a queue that has not moved for this long has stalled."""


def _late_s(row: RevivePassFact) -> int:
    return number(row["details"].get("late_s"), 0)


def _queue(row: RevivePassFact | ReviveTroubleFact | ReviveProgressFact) -> str:
    return row["details"].get("revive_queue", "")


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes over one revive queue that a log shows.

    Attributes:
        late: passes whose first checkpoint was due `LATE_S` before, by time.
        rest: all others.
    """

    late: tuple[RevivePassFact, ...]
    rest: tuple[RevivePassFact, ...]

    @property
    def until_ms(self) -> int:
        """Return the time of the last late pass."""
        return max(row["last_ms"] for row in self.late)

    @property
    def worst(self) -> RevivePassFact:
        """The latest of all passes."""
        return max(self.late, key=_late_s)

    @property
    def on_time_again(self) -> bool:
        """True if a pass after the late ones was on time."""
        return any(row["last_ms"] > self.until_ms for row in self.rest)

    def stand(self) -> RevivePassFact | None:
        """Return the passes that ended where they began for `SETTLED_MS`, if none has advanced
        since.
        """
        standing = [row for row in self.late if row["details"].get("stands") == "true"]
        if not standing:
            return None
        first, until = (
            min(row["first_ms"] for row in standing),
            max(row["last_ms"] for row in standing),
        )
        moved = [row for row in self.late if row["details"].get("stands") != "true"]
        if until - first < SETTLED_MS or any(row["last_ms"] > first for row in moved):
            return None
        return max(standing, key=_late_s)


@dataclass(frozen=True, slots=True)
class Standing:
    """A stalled revive queue: the start of the stall, when it was last seen, and the offset."""

    queue: str
    first_ms: int
    until_ms: int
    source: str


def passes_of(rows: Iterable[RevivePassFact]) -> dict[tuple[str, str], Passes]:
    """Return the passes by broker and revive queue."""
    found = grouped(rows, lambda row: (row["broker_name"], _queue(row)))
    return {
        key: Passes(
            tuple(row for row in of_queue if _late_s(row) >= LATE_S),
            tuple(row for row in of_queue if _late_s(row) < LATE_S),
        )
        for key, of_queue in sorted(found.items())
    }


def find_behind(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding for each broker; REVIVE_STUCK covers stalled queues."""
    late: dict[str, dict[str, Passes]] = {}
    for (broker, queue), passes in passes_of(cluster.facts["REVIVE_PASS"]).items():
        if passes.late and passes.stand() is None:
            late.setdefault(broker, {})[queue] = passes
    for broker, queues in late.items():
        yield _behind(broker, queues)
    for broker, rows in sorted(_scraped_late(cluster).items()):
        if broker not in late:
            yield _behind_by_metrics(broker, rows)


def _scraped_late(cluster: ClusterSnapshot) -> dict[str, list[ReviveMetricsFact]]:
    """Return the queues that each broker's newest metrics show as late; if pop.log has passes, it
    shows more.
    """
    logged = {row["broker_name"] for row in cluster.facts["REVIVE_PASS"]}
    newest: dict[str, int] = {}
    for row in cluster.facts["REVIVE_METRICS"]:
        newest[row["broker_name"]] = max(row["first_ms"], newest.get(row["broker_name"], 0))
    late = [
        row
        for row in cluster.facts["REVIVE_METRICS"]
        if row["first_ms"] == newest[row["broker_name"]]
        and row["broker_name"] not in logged
        and number(row["details"].get("late_ms"), 0) >= LATE_S * SECOND_MS
    ]
    return grouped(late, lambda row: row["broker_name"])


def _behind_by_metrics(broker: str, rows: list[ReviveMetricsFact]) -> Finding:
    worst_ms = max(number(row["details"].get("late_ms"), 0) for row in rows)
    queues = sorted(row["details"].get("revive_queue", "") for row in rows)
    at_ms = rows[0]["first_ms"]
    return Finding(
        f"{broker} delivers unacknowledged popped messages again {lasting(worst_ms)} after their "
        f"invisible time, according to its metrics of {utc(at_ms)}: "
        f"{plural(len(queues), 'revive queue')} ({listed(queues)}).",
        {
            "late_s": str(worst_ms // SECOND_MS),
            "revive_queues": listed(queues),
            "seen_in": rows[0]["source"],
        },
        broker_name=broker,
        first_ms=at_ms,
    )


def _behind(broker: str, queues: dict[str, Passes]) -> Finding:
    worst = max((passes.worst for passes in queues.values()), key=_late_s)
    over = all(passes.on_time_again for passes in queues.values())
    ended_ms = max(passes.until_ms for passes in queues.values()) if over else None
    first_ms = min(row["first_ms"] for passes in queues.values() for row in passes.late)
    delivers = "delivers" if ended_ms is None else "delivered"
    return Finding(
        f"{broker} {delivers} unacknowledged popped messages again at least "
        f"{lasting(_late_s(worst) * SECOND_MS)} after their invisible time, first at "
        f"{utc(first_ms)}: {plural(len(queues), 'revive queue')} ({listed(queues)}) had "
        "checkpoints due for that long.",
        {
            "late_s": str(_late_s(worst)),
            "revive_queues": listed(queues),
            "seen_in": worst["source"],
        },
        broker_name=broker,
        first_ms=first_ms,
        last_ms=ended_ms,
        ended_by="" if ended_ms is None else "later passes of these queues were on time",
    )


BEHIND = Rule(
    "REVIVE_BEHIND",
    WARNING,
    "A broker delivers unacknowledged messages again later than their invisible time demands, "
    "because it reads the checkpoints of popped messages too late.",
    "REVIVE_PASS (pop.log), else REVIVE_METRICS (metrics of the broker)",
    "Find out what held the broker up at that time: a restart, a long pause, a slow disk, or more "
    "checkpoints than it can read (every pop writes one, so raise the batch size of small pops).",
    find_in_cluster=find_behind,
    about=BROKER,
    files=("pop_log", "broker_metrics"),
    state=True,
)


_WHY = {
    "SWITCHED_OFF": "timerWheelEnable is false",
    "FAILED": "each pass ends with an exception",
    "OFFSET_ILLEGAL": "the revive queue lacks the offset that it reads",
    "PUT_FAILED": "the retry topic accepts no messages",
    "TOO_SLOW": "reading messages takes longer than 30 s",
    "GIVEN_UP": "it gave up on checkpoints after their last retry",
}
_FINAL = ("GIVEN_UP",)
"""Losses that later passes do not repair."""


def find_stuck(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding for each broker and reason, and for stalled queues."""
    passes = passes_of(cluster.facts["REVIVE_PASS"])
    popped, explained = {broker for broker, _ in passes}, set[str]()
    popped |= {r["broker_name"] for r in cluster.facts["REVIVE_PROGRESS"] if _due(r) >= 0}
    for (broker, reason), rows in sorted(
        grouped(
            cluster.facts["REVIVE_TROUBLE"],
            lambda row: (row["broker_name"], row["details"].get("reason", "")),
        ).items()
    ):
        if reason == "SWITCHED_OFF" and broker not in popped:
            continue  # it refuses pops, so no messages wait
        if reason in _WHY and (reason in _FINAL or _held_up(rows)):
            finding = _as_of(cluster, _trouble(broker, reason, rows, passes), reason)
            explained |= {broker} if finding.last_ms is None and reason not in _FINAL else set()
            yield finding
    for broker, queues in sorted(_standing_queues(cluster, passes).items()):
        if broker not in explained:
            yield _standing(broker, queues, passes)


def _standing_queues(
    cluster: ClusterSnapshot, passes: dict[tuple[str, str], Passes]
) -> dict[str, list[Standing]]:
    """Return each broker's stalled queues, from its log or otherwise from dumps."""
    standing: dict[str, list[Standing]] = {}
    for (broker, queue), of_queue in passes.items():
        row = of_queue.stand()
        if row is not None:
            found = Standing(queue, row["first_ms"], of_queue.until_ms, row["source"])
            standing.setdefault(broker, []).append(found)
    for broker, found in _unmoved(cluster.facts["REVIVE_PROGRESS"]):
        if all(found.queue != other.queue for other in standing.get(broker, ())):
            standing.setdefault(broker, []).append(found)
    return standing


def _as_of(cluster: ClusterSnapshot, finding: Finding, reason: str) -> Finding:
    """Return the finding, uncertain if pop.log has no line on the revive service at the end.

    A stalled service logs this at every pass, within seconds.
    """
    rows = (*cluster.facts["REVIVE_TROUBLE"], *cluster.facts["REVIVE_PASS"])
    broker = finding.broker_name or ""
    until_ms = max(row["last_ms"] for row in rows if row["broker_name"] == broker)
    if finding.last_ms is not None or reason in _FINAL:
        return finding
    if until_ms + SETTLED_MS >= cluster.run.end_ms:
        return finding
    return replace(finding, unknown=unknowns.pop_log(broker).ended(until_ms))


def _held_up(rows: list[ReviveTroubleFact]) -> bool:
    first_ms, last_ms = min(r["first_ms"] for r in rows), max(r["last_ms"] for r in rows)
    return last_ms - first_ms >= HELD_UP_MS


def _trouble(
    broker: str,
    reason: str,
    rows: list[ReviveTroubleFact],
    passes: dict[tuple[str, str], Passes],
) -> Finding:
    first_ms, last_ms = min(r["first_ms"] for r in rows), max(r["last_ms"] for r in rows)
    queues = sorted({_queue(row) for row in rows} - {""})
    ended_ms = None if reason in _FINAL else _went_on_ms(broker, queues, last_ms, passes)
    topics = sorted({row["topic"] for row in rows if row["topic"]})
    until = "" if ended_ms is None else f" to {utc(ended_ms)}"
    verb = "did" if ended_ms is not None or reason in _FINAL else "does"
    return Finding(
        f"{broker} {verb} not deliver unacknowledged popped messages again, from "
        f"{utc(first_ms)}{until}: {_WHY[reason]}"
        + (f" (topics {listed(topics, 3)})." if topics else "."),
        {
            "reason": reason,
            "revive_queues": listed(queues) or "all",
            "topics": listed(topics),
            "seen_in": rows[0]["source"],
        },
        broker_name=broker,
        first_ms=first_ms,
        last_ms=ended_ms,
        ended_by="" if ended_ms is None else "later passes read on",
    )


def _went_on_ms(
    broker: str, queues: list[str], after_ms: int, passes: dict[tuple[str, str], Passes]
) -> int | None:
    """Return when reading of all these queues, or of any if none is named, resumed; None if not
    seen.
    """
    moved = {
        queue: [
            row["last_ms"]
            for row in (*of_queue.late, *of_queue.rest)
            if row["last_ms"] > after_ms and row["details"].get("stands") != "true"
        ]
        for (name, queue), of_queue in passes.items()
        if name == broker
    }
    if queues:
        times = [min(moved.get(queue, ()), default=None) for queue in queues]
        known = [at_ms for at_ms in times if at_ms is not None]
        return max(known) if len(known) == len(times) else None
    return min((at_ms for of_queue in moved.values() for at_ms in of_queue), default=None)


def _unmoved(rows: Iterable[ReviveProgressFact]) -> Iterator[tuple[str, Standing]]:
    """Yield the broker and queue that the last dumps show at one offset for `SETTLED_MS` after a
    new entry.

    Acknowledgements after the last checkpoint stay unread until the next checkpoint, however long
    that takes (#3443), so entries alone are no evidence.
    """
    by_queue = grouped(rows, lambda row: (row["broker_name"], _queue(row)))
    for (broker, queue), dumps in sorted(by_queue.items()):
        dumps.sort(key=lambda row: row["first_ms"])
        last = dumps[-1]
        runs = [list(run) for _, run in groupby(dumps, lambda row: row["details"].get("offset"))]
        same = runs[-1]
        since = [row["first_ms"] for row in same if _due(row) > _due(same[0])]
        if since and last["first_ms"] - min(since) >= SETTLED_MS:
            yield broker, Standing(queue, min(since), last["first_ms"], last["source"])


def _due(row: ReviveProgressFact) -> int:
    """Return the number of entries in the queue after the last one read."""
    details = row["details"]
    return number(details.get("end"), 0) - number(details.get("offset"), 0) - 1


def _standing(
    broker: str, queues: list[Standing], passes: dict[tuple[str, str], Passes]
) -> Finding:
    names = sorted(standing.queue for standing in queues)
    first_ms = min(standing.first_ms for standing in queues)
    until_ms = max(standing.until_ms for standing in queues)
    ended_ms = _went_on_ms(broker, names, until_ms, passes)
    until = "" if ended_ms is None else f" to {utc(ended_ms)}"
    verb = "stand" if ended_ms is None else "stood"
    return Finding(
        f"{plural(len(names), 'revive queue')} of {broker} ({listed(names)}) {verb} still from "
        f"{utc(first_ms)}{until} with checkpoints due: unacknowledged popped messages are not "
        "delivered again.",
        {"reason": "STANDS", "revive_queues": listed(names), "seen_in": queues[0].source},
        broker_name=broker,
        first_ms=first_ms,
        last_ms=ended_ms,
        ended_by="" if ended_ms is None else "later passes read on",
    )


STUCK = Rule(
    "REVIVE_STUCK",
    WARNING,
    "A broker does not deliver unacknowledged messages again: its revive service is switched off, "
    "fails, makes no progress, or gave up on messages.",
    "REVIVE_TROUBLE and REVIVE_PASS (pop.log), REVIVE_PROGRESS (consumerProgress of the revive "
    "group)",
    "Remove the cause named here (timerWheelEnable=true, a writable retry topic, disk space); "
    "pop.log has the exception. If a queue stands still without an exception, restart the broker "
    "and compare its version with the known issues.",
    find_in_cluster=find_stuck,
    about=BROKER,
    files=("pop_log", "consumerProgress"),
    state=True,
)
