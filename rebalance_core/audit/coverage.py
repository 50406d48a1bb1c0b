"""Derives the periods that the collected files cover, as one timeline per log."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from rebalance_core.audit.unknowns import (
    CLOCK_OFF,
    LogFile,
    broker_log,
    client_log,
    name_server_log,
)
from rebalance_core.contracts.observed import (
    CLOCK_UNSURE,
    FROM_START,
    LINES_REFUSED,
    NAME_ALONE,
    STEADY,
)
from rebalance_core.ingest.clock_zones import is_zone
from rebalance_core.ingest.collection import ADMIN, OFFSETS, STORE_KINDS, TOPICS
from rebalance_core.model.timeline import EVER_MS, Timeline, Unknown
from rebalance_core.model.times import HOUR_MS, MINUTE_MS, SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import CoverageRow


LOG_SILENT_MS = MINUTE_MS
"""A running broker logs at least one line per minute: it registers with the name servers."""
CLIENT_SILENT_MS = 50 * SECOND_MS
"""A running client logs more often than this, because it commits every 5 s or delays its pulls."""


class Process(Enum):
    """The state of a process at a given time, as shown by its log."""

    RUNS = "runs"
    STOPPED = "stopped"


RUNS, STOPPED = Process.RUNS, Process.STOPPED
ALWAYS: Timeline[Process] = Timeline.always(RUNS)


@dataclass(frozen=True, slots=True)
class LogSpan:
    """A collected stretch of a log.

    Attributes:
        from_ms: the time of its first line; to_ms: that of its last.
        from_start: whether the process started at its beginning and logged nothing just before.
        steady: whether the log has lines at all times.
        torn: whether lines were refused, which may state facts that the stretch lacks.
    """

    from_ms: int
    to_ms: int
    from_start: bool
    steady: bool = False
    torn: bool = False


@dataclass(frozen=True)
class CollectedLog:
    """The stretches of a log that were collected, in order.

    Attributes:
        file: the log.
        spans: its stretches, which do not touch.
        down: whether its process is down at the end, so that the log may end early.
        begun: whether the log is complete from its process's first start.
        silent_ms: how long its process may continue to run without writing another line.
    """

    file: LogFile
    spans: tuple[LogSpan, ...]
    down: bool = False
    begun: bool = False
    silent_ms: int = LOG_SILENT_MS

    @property
    def end_ms(self) -> int:
        """Return when its last line was written, or 0 if it has no lines."""
        return self.spans[-1].to_ms if self.spans else 0

    @property
    def torn(self) -> bool:
        """Return whether any of its lines were refused."""
        return any(span.torn for span in self.spans)

    @cached_property
    def timeline(self) -> Timeline[Process]:
        """Return the times for which the log records its process's actions."""
        if not self.spans:
            return Timeline.always(self.file.missing())
        first, last = self.spans[0], self.spans[-1]
        begin_known = self.begun or first.from_start
        before = STOPPED if begin_known else self.file.begins(first.from_ms)
        timeline = ALWAYS.put(-EVER_MS, first.from_ms, before)
        for span, following in pairwise(self.spans):
            gap = self.file.silent(span.to_ms, following.from_ms)
            value = STOPPED if following.from_start else gap
            timeline = timeline.put(span.to_ms + 1, following.from_ms, value)
        after = STOPPED if self.down else self.file.ended(last.to_ms)
        return timeline.put(last.to_ms + self.silent_ms + 1, EVER_MS, after)


@dataclass(frozen=True)
class Coverage:
    """The coverage of the collected files; small, because every task receives it.

    Attributes:
        brokers: the brokers' logs, by broker name.
        known: False if the tables do not state it because they were not written by ingest; then
            everything counts as covered.
        clients: the logs of clients, by folder.
        name_servers: the logs of all name servers as one, which show which brokers were up; None:
            every broker is up unless its own log shows otherwise.
        offsets_lost: by broker, the periods (from, to) in which the newest copy of its
            consumerOffset.json is missing or incomplete, although stores were copied.
        clocks: by folder, the possible error in ms of times dated by its host's clock, after
            ingest's corrections; the empty name has the errors that concern every group.
        hosts: the folders of each broker's logs, by broker.
        client_clock_unknown: whether a client's clock is off, or was never compared with the
            brokers'.
        topic_stores: by broker, when its newest complete topics.json was copied.
        offset_stores: by broker, when complete copies of its consumerOffset.json were made, in
            order.
        named_error_ms: the possible error, ms, of dumps and store copies, by the time of each.
    """

    brokers: Mapping[str, CollectedLog] = field(default_factory=dict)
    known: bool = False
    clients: Mapping[str, CollectedLog] = field(default_factory=dict)
    name_servers: CollectedLog | None = None
    offsets_lost: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    clocks: Mapping[str, Timeline[int]] = field(default_factory=dict)
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    client_clock_unknown: bool = False
    topic_stores: Mapping[str, int] = field(default_factory=dict)
    offset_stores: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    named_error_ms: Mapping[int, int] = field(default_factory=dict)

    def of_broker(self, broker: str) -> Timeline[Process]:
        """Return the times for which the broker's log records its events."""
        if not self.known:
            return ALWAYS
        log = self.brokers.get(broker)
        return log.timeline if log else Timeline.always(broker_log(broker).missing())

    def of_client(self, folder: str) -> Timeline[Process]:
        """Return the times for which a client's log records its actions."""
        log = self.clients.get(folder)
        return log.timeline if log else ALWAYS

    @property
    def routes(self) -> Timeline[Process]:
        """Return the times for which name servers' logs record which brokers were up."""
        return self.name_servers.timeline if self.known and self.name_servers else ALWAYS

    @property
    def hears_name_servers(self) -> bool:
        """Return True if a name server's log was collected, or if this is unknown."""
        return not self.known or self.name_servers is None or bool(self.name_servers.spans)

    @property
    def logged_until(self) -> int | None:
        """Return when the first log of a running broker ends, or None if none was collected."""
        ends = (log.end_ms for log in self.brokers.values() if log.spans and not log.down)
        return min(ends, default=None)

    def clocks_of(self, brokers: Iterable[str]) -> Iterator[Timeline[Process]]:
        """Yield the periods in which times from these brokers can be compared with others."""
        folders = ["", *(folder for broker in brokers for folder in self.hosts.get(broker, ()))]
        for folder in folders:
            if folder in self.clocks:
                yield self.clocks[folder].where_known(RUNS)

    def clock_error_ms(self, from_ms: int, to_ms: int | None = None) -> int:
        """Return the maximum possible error of times in this period.

        Args:
            from_ms: the first moment.
            to_ms: the last moment; None for the same as the first.
        """
        until_ms = from_ms if to_ms is None else to_ms
        return max(
            (
                span.value
                for clock in self._inexact
                for span in clock.over(from_ms, until_ms)
                if not isinstance(span.value, Unknown)
            ),
            default=0,
        )

    @cached_property
    def _inexact(self) -> tuple[Timeline[int], ...]:
        exact = Timeline.always(0)
        return tuple(clock for clock in self.clocks.values() if clock != exact)

    def ends(self, broker: str) -> int:
        """Return when the broker's log ends, or 0 if none was collected."""
        return self.brokers[broker].end_ms if broker in self.brokers else 0


def name_servers_tell(rows: Iterable[CoverageRow], at_ms: int) -> bool:
    """Return False if the name servers' logs end earlier, in which case a broker may be back."""
    ends = [row["to_ms"] for row in rows if row["kind"] == "namesrv_log" and row["to_ms"]]
    return not ends or max(ends) + LOG_SILENT_MS >= at_ms


def coverage_of(
    rows: Iterable[CoverageRow],
    folders: Mapping[str, Iterable[str]],
    down: Container[str] = frozenset(),
) -> Coverage:
    """Return the coverage of a cluster.

    Args:
        rows: the table's rows; empty if the coverage is unknown.
        folders: the hosts that keep each broker's logs, by broker name.
        down: brokers that are down at the end.
    """
    rows = list(rows)
    logs = logs_of(rows, "broker_log")
    brokers = {
        broker: CollectedLog(
            broker_log(broker),
            tuple(_joined(span for host in hosts for span in logs.get(host, ()))),
            down=broker in down,
        )
        for broker, hosts in folders.items()
    }
    clients = {
        host: CollectedLog(
            client_log(host), tuple(_joined(of, 0)), begun=True, silent_ms=CLIENT_SILENT_MS
        )
        for host, of in logs_of(rows, "client_log").items()
    }
    unknown = any(_clock(row) != RIGHT for row in rows if row["kind"] == "client_log")
    lost = dict(_offsets_lost(rows, folders))
    stores: dict[str, int] = {}
    for row in rows:
        if row["kind"] == TOPICS and row["complete"] and row["from_ms"]:
            stores[row["host"]] = max(row["from_ms"], stores.get(row["host"], 0))
    for broker, hosts in folders.items():
        stores[broker] = max((stores.get(host, 0) for host in hosts), default=0)
    named = dict(_named_errors(rows))
    return Coverage(
        brokers,
        known=bool(rows),
        clients=clients,
        name_servers=_name_servers(rows),
        offsets_lost=lost,
        clocks=_clocks(rows, folders),
        hosts={broker: tuple(f"brokers/{host}" for host in of) for broker, of in folders.items()},
        client_clock_unknown=unknown,
        topic_stores=stores,
        offset_stores=dict(_offset_stores(rows, folders)),
        named_error_ms=named,
    )


MOST_ERROR_MS = MINUTE_MS
"""With a larger error, times do not show the order of events, because it exceeds the interval
between passes.
"""
_DATING = {
    "broker_log": "brokers",
    "client_log": "clients",
    "namesrv_log": "namesrv",
    ADMIN: ADMIN,
}
"""The sources whose times date events, with their folders; store copies are not among them."""


def _clocks(
    rows: Iterable[CoverageRow], folders: Mapping[str, Iterable[str]]
) -> dict[str, Timeline[int]]:
    """Return `Coverage.clocks`, for the clocks that may be off.

    Clocks of hosts that do not log a known broker's events concern every group while they are off.
    """
    by_folder: dict[str, list[CoverageRow]] = {}
    for row in rows:
        if row["from_ms"] is not None and row["kind"] in _DATING:
            folder = f"{_DATING[row['kind']]}/{row['host']}"
            by_folder.setdefault(folder, []).append(row)
    clocks = {folder: clock for folder, of in by_folder.items() if (clock := _clock_of(of))}
    known = {f"brokers/{host}" for hosts in folders.values() for host in hosts}
    anyones: Timeline[int] = Timeline.always(0)
    for folder in clocks.keys() - known:
        for gap, why in clocks[folder].gaps():
            anyones = anyones.put(gap.from_ms, gap.to_ms, why)
    return {"": anyones, **clocks} if next(anyones.gaps(), None) else clocks


def _clock_of(rows: list[CoverageRow]) -> Timeline[int] | None:
    """Return the possible error of a host's times, or None if there is none."""
    errors = {_error_of(row) for row in rows}
    if errors == {0}:
        return None
    if len(errors) == 1:
        return Timeline.always(*errors)
    clock: Timeline[int] = Timeline.always(0)
    for row in rows:
        error, begin_ms, end_ms = _error_of(row), row["from_ms"], row["to_ms"]
        if error and begin_ms is not None and end_ms is not None:
            wide_ms = row["clock_error_ms"] or 0
            clock = clock.put(begin_ms - wide_ms, end_ms + wide_ms + 1, error)
    return clock


def _error_of(row: CoverageRow) -> int | Unknown:
    states_events = row["kind"] == "broker_log" or CLOCK_UNSURE in (row["note"] or "")
    if _clock(row) == OFF and states_events:
        return CLOCK_OFF
    return row.get("clock_error_ms") or 0


UNSURE_MS = 14 * HOUR_MS
"""The possible error of a clock that no evidence covers: a wrong time zone."""


def _named_errors(rows: Iterable[CoverageRow]) -> Iterator[tuple[int, int]]:
    """Yield the rows of `Coverage.named_error_ms`."""
    for row in rows:
        if row["from_ms"] is not None and (row["role"] == "ADMIN" or row["kind"] in STORE_KINDS):
            note = row["note"] or ""
            unsure = CLOCK_UNSURE in note or NAME_ALONE in note
            error_ms = UNSURE_MS if unsure else row.get("clock_error_ms")
            if error_ms:
                yield row["from_ms"], error_ms


STORES_APART_MS = 30_000
"""The maximum time that copying all brokers' stores may take."""


def _offset_stores(
    rows: Iterable[CoverageRow], folders: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the rows of `Coverage.offset_stores`."""
    whole = [row for row in rows if row["kind"] == OFFSETS and row["complete"] and row["from_ms"]]
    for broker, hosts in folders.items():
        copies = sorted({row["from_ms"] or 0 for row in whole if row["host"] in hosts})
        if copies:
            yield broker, tuple(copies)


def _offsets_lost(
    rows: Iterable[CoverageRow], folders: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """Yield the rows of `Coverage.offsets_lost`; none for a broker that keeps its offsets
    elsewhere.
    """
    stores = [
        (row["from_ms"], row)
        for row in rows
        if row["kind"].endswith("_json") and row["from_ms"] is not None
    ]
    rounds = sorted({ms for ms, row in stores if row["role"] == "BROKER"})
    for broker, hosts in folders.items():
        kept = [(ms, row) for ms, row in stores if row["host"] in hosts and row["kind"] == OFFSETS]
        whole = sorted(ms for ms, row in kept if row["complete"])
        lost = [
            (at_ms, next((ms for ms in whole if ms > at_ms), EVER_MS))
            for at_ms in rounds
            if kept and not any(abs(ms - at_ms) <= STORES_APART_MS for ms in whole)
        ]
        if lost:
            yield broker, tuple(lost)


RIGHT, OFF, NOT_COMPARED = "right", "off", "not compared"


def _clock(row: CoverageRow) -> str:
    """Return how accurate a log's times are after ingest's corrections."""
    behind = row["clock_offset_ms"]
    if CLOCK_UNSURE in (row["note"] or ""):
        return OFF
    if behind is None:
        return RIGHT if row["from_ms"] is None else NOT_COMPARED
    if row["kind"] != ADMIN and (row.get("clock_error_ms") or 0) > MOST_ERROR_MS:
        return OFF if row["kind"] == "broker_log" else NOT_COMPARED
    return OFF if is_zone(behind) and row.get("clock_error_ms") is None else RIGHT


def _name_servers(rows: Iterable[CoverageRow]) -> CollectedLog:
    """Return `Coverage.name_servers`, which start before their cluster's brokers.

    A name server that writes little may have ended early, so its silence is no evidence. Brokers
    whose own logs continue beyond that point were up.
    """
    rows = list(rows)
    spans = list(_joined((span for of in logs_of(rows, "namesrv_log").values() for span in of), 0))
    begins = [row["from_ms"] for row in rows if row["kind"] == "broker_log" and row["from_ms"]]
    begun = bool(spans) and spans[0].from_ms <= min(begins, default=EVER_MS) + LOG_SILENT_MS
    if spans and not spans[-1].steady:
        last_ms = spans[-1].to_ms
        logs = (_joined(of) for of in logs_of(rows, "broker_log").values())
        ran = (max((s.to_ms for s in of if s.from_ms <= last_ms), default=0) for of in logs)
        spans[-1] = replace(spans[-1], to_ms=max(last_ms, min(ran, default=0)))
    return CollectedLog(name_server_log(), tuple(spans), begun=begun)


def name_servers_gap(
    logs: Mapping[str, list[LogSpan]], begins: Mapping[str, int]
) -> Unknown | None:
    """Return a later time that one name server's log, given by name, lacks but another log
    covers.
    """
    end_ms = max(span.to_ms for of in logs.values() for span in of)
    lines = (
        CollectedLog(name_server_log(server), tuple(_joined(logs.get(server, ()), 0))).timeline.gap(
            from_ms, end_ms
        )
        for server, from_ms in sorted(begins.items())
    )
    return next((gap for gap in lines if gap is not None), None)


def logs_of(rows: Iterable[CoverageRow], kind: str) -> dict[str, list[LogSpan]]:
    """Return the stretches of logs of this kind, by host."""
    logs: dict[str, list[LogSpan]] = {}
    for row in rows:
        if row["kind"] == kind and row["from_ms"] is not None and row["to_ms"] is not None:
            note = row["note"] or ""
            span = LogSpan(
                row["from_ms"],
                row["to_ms"],
                from_start=FROM_START in note,
                steady=STEADY in note,
                torn=LINES_REFUSED in note,
            )
            logs.setdefault(row["host"], []).append(span)
    return logs


def _joined(stretches: Iterable[LogSpan], apart_ms: int = LOG_SILENT_MS) -> Iterator[LogSpan]:
    """Yield the stretches of several logs, joining those that are at most this far apart."""
    current: LogSpan | None = None
    for stretch in sorted(stretches, key=lambda s: (s.from_ms, s.to_ms)):
        if current is None:
            current = stretch
        elif stretch.from_ms <= current.to_ms + apart_ms:
            last = max(current, stretch, key=lambda s: s.to_ms)
            current = replace(
                last,
                from_ms=current.from_ms,
                from_start=current.from_start,
                torn=current.torn or stretch.torn,
            )
        else:
            yield current
            current = stretch
    if current is not None:
        yield current
