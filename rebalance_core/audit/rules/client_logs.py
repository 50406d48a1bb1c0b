"""What clients' logs say of themselves: brokers they cannot reach, timers that starve, passes
without end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.dumps import number
from rebalance_core.audit.group_snapshot import (
    ClusterSnapshot,
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.recovery import goes_on_until
from rebalance_core.audit.subscriptions import (
    gave_up_asking,
    is_broadcasting,
    is_popped,
    version_of,
)
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, MASTER_DOWN, MASTER_UP
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.times import HEARTBEAT_MS, MINUTE_MS, ROUTE_POLL_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING, Severity
from rebalance_core.model.versions import parse_version
from rebalance_core.timing.timer_periods import MIN_INTERVAL

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        BrokerEventsRow,
        GaveUpAskingFact,
        HeartbeatFailedFact,
        MembershipsRow,
        NoBrokerAddressFact,
    )

# GAVE_UP_ASKING: members that are set to ask a broker divide a topic themselves.


def find_gave_up_asking(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic of clients that still divide it, else of clients that ask
    again.

    INFO if the broker's division would be the same.
    """
    members = {row["client_id"] for row in group.members}
    of_members = (fact for fact in group.facts["GAVE_UP_ASKING"] if fact["client_id"] in members)
    by_topic = grouped(of_members, lambda fact: fact["topic"])
    for topic, facts in sorted(by_topic.items()):
        alone = gave_up_asking(group, topic)
        shown = [fact for fact in facts if fact["client_id"] in alone] or facts
        clients = sorted({fact["client_id"] for fact in shown})
        last = None if alone else max(shown, key=_over_ms)
        popped = is_popped(group, topic, group.run.end_ms)
        single = len(clients) == 1
        does = f"divides {topic} itself" if single else f"divide {topic} themselves"
        others = "others pop it" if popped else "brokers divide it for members that ask"
        yield Finding(
            f"{listed(clients, 3)} {does}, though clientRebalance is false and {others}: no "
            "broker answered its first queries, and it does not ask again before a restart.",
            {"members": listed(clients)},
            severity=None if popped else INFO,
            topic=topic,
            client_id=clients[0] if single else None,
            first_ms=min(fact["first_ms"] for fact in shown),
            last_ms=None if last is None else _over_ms(last),
            ended_by="" if last is None else _asks_again(last),
        )


def _over_ms(fact: GaveUpAskingFact) -> int:
    return number(fact["details"].get("over_ms"))


def _asks_again(fact: GaveUpAskingFact) -> str:
    return f"{fact['client_id']} asks again ({fact['details'].get('over_by')})"


GAVE_UP_ASKING = Rule(
    "GAVE_UP_ASKING",
    WARNING,
    "A client up to 5.3.1 with clientRebalance = false received no answer to its first queries "
    "about a topic and divides it itself until it restarts: at once when the broker refuses, "
    "after 6 s when no broker answers.",
    "GAVE_UP_ASKING, memberships, cluster_events (REQUEST_MODE)",
    "Restart the named members while all brokers answer; clients from 5.3.2 on keep asking.",
    find_gave_up_asking,
    files=("client_log", "consumerStatus"),
    state=True,
)


# RESTLESS_PASSES: members that by rule run a pass every second.


def find_restless_passes(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding: push members with manual queue lists (rocketmq.md §2.4)."""
    if is_broadcasting(group) or (group.settings.get("consumer_type") or PUSH) != PUSH:
        return
    restless = sorted({row["client_id"] for row in group.members if _never_balanced(row)})
    if restless:
        yield Finding(
            f"{plural(len(restless), 'member')} with the strategy CONFIG ({listed(restless, 3)}) "
            "run a pass every second without logging it: the client compares the list with the "
            "queues of each single topic, and it never equals the retry topic's.",
            {"members": listed(restless)},
            client_id=restless[0] if len(restless) == 1 else None,
        )


def _never_balanced(row: MembershipsRow) -> bool:
    """Return True for CONFIG from 5.2 on; a suspended member runs no pass."""
    if row["strategy"].partition("(")[0] != "CONFIG" or row["suspended"]:
        return False
    return parse_version(version_of(row)) >= MIN_INTERVAL


RESTLESS_PASSES = Rule(
    "RESTLESS_PASSES",
    INFO,
    "With CONFIG, a client from 5.2 on never considers its allocation balanced and runs a pass "
    "every second instead of every 20 seconds.",
    "memberships (strategy, version)",
    "Nothing while brokers can handle one request per second, member and topic. Otherwise use "
    "AVG, or raise rocketmq.client.rebalance.minInterval in the members.",
    find_restless_passes,
)


# NO_BROKER_ADDRESS: Go clients that hold queues of a broker of which they know no address.


def find_no_broker_address(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding for each log and broker, INFO if the log continues without the trouble."""
    by_log: dict[tuple[str, str], list[NoBrokerAddressFact]] = {}
    for row in group.facts["NO_BROKER_ADDRESS"]:
        by_log.setdefault((row["details"]["log"], row["broker_name"]), []).append(row)
    for (log, broker), rows in sorted(by_log.items()):
        first, last = min(row["first_ms"] for row in rows), max(row["last_ms"] for row in rows)
        queues = sorted({(row["topic"], row["queue_id"]) for row in rows})
        topics = sorted({topic for topic, _ in queues})
        until_ms = goes_on_until(group.run.coverage, log, last)
        yield Finding(
            f"The Go client of clients/{log} has no address of {broker} and does not pull "
            f"{plural(len(queues), 'queue')} of {listed(topics, 3)} there (from {utc(first)} to "
            f"{utc(last)}).",
            {"log": log, "topics": listed(topics), "queues": str(len(queues))},
            severity=None if last - first >= ROUTE_POLL_MS else INFO,
            broker_name=broker,
            topic=topics[0] if len(topics) == 1 else None,
            first_ms=first,
            last_ms=last,
            ended_by=_without(log, until_ms) if until_ms else "",
        )


def _without(log: str, until_ms: int) -> str:
    return f"the log in clients/{log} continues until {utc(until_ms)} without"


NO_BROKER_ADDRESS = Rule(
    "NO_BROKER_ADDRESS",
    WARNING,
    "A Go client owns queues on a broker whose address its routes lack, for example while the "
    "broker has no master, and does not pull them (no broker found for mq). INFO if it lasted no "
    "longer than one route poll.",
    "NO_BROKER_ADDRESS",
    "Check the broker in clusterList and in topicRoute of every name server: it needs a master "
    "(BID 0). If it has one, restart the named client.",
    files=("client_log",),
    find_in_cluster=find_no_broker_address,
)


# STARVED_TIMERS: heartbeats to dead brokers block the one thread of all of a client's timers.

REQUEST_TIMEOUT_MS = 3_000
"""mqClientApiTimeout and connectTimeoutMillis: what one dead broker costs a round of heartbeats."""
SEVERE_MS = HEARTBEAT_MS // 2
"""A round of heartbeats that blocks the timers for half of the time."""
LEARNT_MS = ROUTE_POLL_MS + HEARTBEAT_MS + MINUTE_MS
"""A poll takes the broker from the routes, the next heartbeats leave it out; facts are minutes."""


@dataclass(frozen=True, slots=True)
class StarvedProcess:
    """The brokers that one process could not reach.

    Attributes:
        name: folder of its log and its pid, where the log has one.
        brokers: brokers that it could not reach at the worst time.
        blocked_ms: so long each round of heartbeats then took at most.
        late_ms: so long after a broker was out of the routes heartbeats still went there; 0: no
            longer than a client may need.
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
        """WARNING if it was blocked half of the time, or learnt the route too late."""
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
            # a broker that was back, of which no line is left, is out of no route
            since_ms = min(process.last_ms - process.late_ms for process in starved)
            gap = coverage.routes.gap(since_ms, finding.last_ms or since_ms)
        rows = [row for of_one in failed.values() for row in of_one]
        over = _recovered({process.log for process in starved}, rows, coverage)
        if over and finding.severity != INFO:
            last_ms = max(row["last_ms"] for row in rows)
            finding = replace(finding, last_ms=last_ms, ended_by=over)
        yield replace(finding, unknown=gap)


def _recovered(logs: set[str], rows: list[HeartbeatFailedFact], covered: Coverage) -> str | None:
    """Return what shows that these clients' heartbeats no longer fail, or None."""
    last_ms: dict[str, int] = {}
    for row in rows:
        log = row["details"].get("log", "")
        last_ms[log] = max(row["last_ms"], last_ms.get(log, 0))
    ends = {log: goes_on_until(covered, log, last_ms[log]) for log in logs}
    ended = [_without(log, until_ms) for log, until_ms in sorted(ends.items()) if until_ms]
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
    "A client sends heartbeats to brokers that do not answer. Each one blocks for up to 3 s the "
    "single thread that polls routes, sends heartbeats and commits offsets. All of these run "
    "late, and live brokers may expire the client.",
    "HEARTBEAT_FAILED; BROKER_DOWN and MASTER_DOWN",
    "Restart the named clients if they do not recover. Take brokers off the routes "
    "(wipeWritePerm, then stop them) before their hosts disappear, one at a time.",
    files=("client_log",),
    find_in_cluster=find_starved_timers,
)
