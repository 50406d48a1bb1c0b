"""Heartbeats to dead brokers that block the one thread of a client's timers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.group_snapshot import (
    ClusterSnapshot,
    Finding,
    Rule,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.recovery import goes_on_until
from rebalance_core.audit.rules.broker_addresses import without_lines
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, MASTER_DOWN, MASTER_UP
from rebalance_core.model.times import HEARTBEAT_MS, MINUTE_MS, ROUTE_POLL_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING, Severity

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        BrokerEventsRow,
        HeartbeatFailedFact,
    )


REQUEST_TIMEOUT_MS = 3_000
"""mqClientApiTimeout and connectTimeoutMillis: the cost of one dead broker in a round of
heartbeats."""


SEVERE_MS = HEARTBEAT_MS // 2
"""The duration at which a round of heartbeats blocks the timers half of the time."""


LEARNT_MS = ROUTE_POLL_MS + HEARTBEAT_MS + MINUTE_MS
"""A poll removes the broker from the routes, and the next heartbeats omit it; facts have whole
minutes."""


@dataclass(frozen=True, slots=True)
class StarvedProcess:
    """The brokers that one process could not reach.

    Attributes:
        name: the folder of its log, and its pid if the log has one.
        brokers: brokers that it could not reach at the worst time.
        blocked_ms: the maximum duration of a round of heartbeats at that time.
        late_ms: how long heartbeats still went to a broker after it left the routes; 0 if no longer
            than a client may need.
        log: the folder of its log.
    """

    name: str
    brokers: tuple[str, ...]
    blocked_ms: int
    late_ms: int
    first_ms: int
    last_ms: int
    log: str

    @property
    def severity(self) -> Severity:
        """WARNING if it was blocked half of the time, or learned the route too late."""
        return WARNING if self.late_ms or self.blocked_ms >= SEVERE_MS else INFO


def find_starved_timers(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield at most one finding for a cluster's processes (rocketmq.md §6.1).

    One dead broker costs a tenth of the time, which is no finding unless the route change is
    learnt late.
    """
    gone, coverage = _gone(group.broker_events), group.run.coverage
    failed: dict[str, list[HeartbeatFailedFact]] = {}
    for row in group.facts["HEARTBEAT_FAILED"]:
        pid = row["details"]["pid"]
        name = f"clients/{row['details']['log']}" + (f", pid {pid}" if pid else "")
        failed.setdefault(name, []).append(row)
    starved = [
        process
        for name, rows in sorted(failed.items())
        if (process := _process(name, rows, gone)) and (process.late_ms or len(process.brokers) > 1)
    ]
    if starved:
        finding, gap = _finding(starved), None
        if all(process.blocked_ms < SEVERE_MS for process in starved):
            # a broker that came back without a surviving line has left no route
            since_ms = min(process.last_ms - process.late_ms for process in starved)
            gap = coverage.routes.gap(since_ms, finding.last_ms or since_ms)
        rows = [row for of_one in failed.values() for row in of_one]
        over = _recovered({process.log for process in starved}, rows, coverage)
        if over and finding.severity != INFO:
            last_ms = max(row["last_ms"] for row in rows)
            finding = replace(finding, last_ms=last_ms, ended_by=over)
        yield replace(finding, unknown=gap)


def _recovered(logs: set[str], rows: list[HeartbeatFailedFact], covered: Coverage) -> str | None:
    """Return the evidence that these clients' heartbeats no longer fail, or None."""
    last_ms: dict[str, int] = {}
    for row in rows:
        log = row["details"].get("log", "")
        last_ms[log] = max(row["last_ms"], last_ms.get(log, 0))
    ends = {log: goes_on_until(covered, log, last_ms[log]) for log in logs}
    ended = [without_lines(log, until_ms) for log, until_ms in sorted(ends.items()) if until_ms]
    return listed(ended, 3) if len(ended) == len(ends) else None


def _gone(events: Iterable[BrokerEventsRow]) -> dict[str, list[tuple[int, int | None]]]:
    """Return broker -> when its master was out of the routes, epoch ms; the last may still be."""
    gone: dict[str, list[tuple[int, int | None]]] = {}
    for row in sorted(events, key=lambda event: (event["event_ms"], event["sequence"])):
        times = gone.setdefault(row["broker_name"], [])
        is_out = bool(times) and times[-1][1] is None
        if row["event_type"] in (BROKER_DOWN, MASTER_DOWN) and not is_out:
            times.append((row["event_ms"], None))
        elif row["event_type"] in (BROKER_UP, MASTER_UP) and is_out:
            times[-1] = (times[-1][0], row["event_ms"])
    return gone


def _process(
    name: str, rows: list[HeartbeatFailedFact], gone: dict[str, list[tuple[int, int | None]]]
) -> StarvedProcess | None:
    """Return the worst time of one process, or None if failures did not last two heartbeats."""
    lasting_rows = [row for row in rows if row["last_ms"] - row["first_ms"] >= HEARTBEAT_MS]
    if not lasting_rows:
        return None
    worst = max(
        (
            [row for row in lasting_rows if row["first_ms"] <= moment["first_ms"] <= row["last_ms"]]
            for moment in lasting_rows
        ),
        key=len,
    )
    addresses = {row["details"].get("address", row["broker_name"]) for row in worst}
    return StarvedProcess(
        name=name,
        brokers=tuple(sorted({row["broker_name"] or "" for row in worst})),
        blocked_ms=min(len(addresses) * REQUEST_TIMEOUT_MS, HEARTBEAT_MS),
        late_ms=max(_late(row, gone.get(row["broker_name"], [])) for row in lasting_rows),
        first_ms=min(row["first_ms"] for row in worst),
        last_ms=max(row["last_ms"] for row in worst),
        log=rows[0]["details"].get("log", ""),
    )


def _late(row: HeartbeatFailedFact, gone: list[tuple[int, int | None]]) -> int:
    """Return how long heartbeats still went to the broker after it left the routes; 0: unknown."""
    late = 0
    for down_ms, up_ms in gone:
        until = row["last_ms"] if up_ms is None else min(row["last_ms"], up_ms)
        if row["first_ms"] <= until and until - down_ms > LEARNT_MS:
            late = max(late, until - down_ms)
    return late


def _finding(starved: list[StarvedProcess]) -> Finding:
    worst = max(
        starved,
        key=lambda process: (process.severity == WARNING, process.late_ms, process.blocked_ms),
    )
    names = [process.name for process in starved]
    late = (
        f"; the client still sent heartbeats there {lasting(worst.late_ms)} after the broker was "
        "out of the routes, so its route polls did not run, or no other broker has its topics"
        if worst.late_ms
        else ""
    )
    return Finding(
        f"Heartbeats of {plural(len(starved), 'client process')} to unresponsive brokers blocked "
        f"their timers ({listed(names, 3)}). The worst, {worst.name}: {listed(worst.brokers, 5)} "
        f"from {utc(worst.first_ms)} to {utc(worst.last_ms)}, up to "
        f"{worst.blocked_ms // SECOND_MS} s of every {HEARTBEAT_MS // SECOND_MS} s{late}.",
        {
            "processes": listed(names),
            "brokers": listed(
                sorted({broker for process in starved for broker in process.brokers})
            ),
            "blocked_s": str(worst.blocked_ms // SECOND_MS),
            "late_s": str(worst.late_ms // SECOND_MS),
        },
        severity=worst.severity,
        first_ms=min(process.first_ms for process in starved),
        last_ms=max(process.last_ms for process in starved),
    )


STARVED_TIMERS = Rule(
    "STARVED_TIMERS",
    WARNING,
    "A client sends heartbeats to brokers that do not answer. Each heartbeat blocks, "
    "for up to 3 s, the only thread that polls routes, sends heartbeats and commits offsets. All "
    "of these run late, and live brokers may expire the client.",
    "HEARTBEAT_FAILED; BROKER_DOWN and MASTER_DOWN",
    "Restart the named clients if they do not recover. Take brokers off the routes "
    "(wipeWritePerm, then stop them) before their hosts disappear, one at a time.",
    files=("client_log",),
    find_in_cluster=find_starved_timers,
)
