"""What the collected files can tell of, and whether that is enough for a rule to speak."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from rebalance_core.contracts.observed import (
    CLOCK_UNSURE,
    FROM_START,
    LINES_REFUSED,
    NAME_ALONE,
    STEADY,
)
from rebalance_core.ingest.clock_zones import is_zone
from rebalance_core.ingest.collection import CONFIG_STORES, OFFSETS, TOPICS
from rebalance_core.model.times import HOUR_MS, MINUTE_MS
from rebalance_core.model.verdicts import LOG_BEGINS, LOG_ENDED, NOT_COVERED

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import CoverageRow


LOG_SILENT_MS = MINUTE_MS
"""A broker that runs writes a line every minute at least: it registers at the name servers."""


FAR_MS = 1 << 62
"""After the end of all logs."""
NAME_SERVERS = "the name servers"
"""The host of a gap in their logs."""


@dataclass(frozen=True, slots=True)
class LogSpan:
    """A stretch of a log that was collected.

    Attributes:
        from_ms: its first line; to_ms: its last one.
        from_start: there was nothing to tell before.
        steady: the log has lines all the time.
        torn: lines of it were refused: what it does not show may stand there.
    """

    from_ms: int
    to_ms: int
    from_start: bool
    steady: bool = False
    torn: bool = False


EVER = (LogSpan(0, FAR_MS, True),)
"""All the time."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A time of which a log tells nothing.

    Attributes:
        reason: LOG_BEGINS, LOG_ENDED or NOT_COVERED.
        host: whose log, a broker's name or a client's folder; empty: of no single one.
        from_ms: since when; None: since ever.
        to_ms: until when; None: to the end.
        kind: of which file.
    """

    reason: str
    host: str
    from_ms: int | None
    to_ms: int | None
    kind: str = "broker.log"


@dataclass(frozen=True)
class Coverage:
    """The stretches of the brokers' logs, by broker name; small, travels to every task.

    Attributes:
        known: False: the tables say nothing of it, as those of an older ingest or of no collection:
            everything counts as covered.
        clients: the stretches of the logs of clients, by folder.
        name_servers: the stretches in which a name server's log tells which brokers were up.
        offsets_lost: by broker from when to when the newest copy of its consumerOffset.json is
            missing, or not whole, though stores were copied then.
        clock_off: the clock of a broker is off and its times are not corrected.
        client_clock_unknown: that of a client is, or nothing compares it with the brokers'.
        topic_stores: by broker when its newest whole topics.json was copied.
        offset_stores: by broker when whole copies of its consumerOffset.json were made, in order.
        clock_error_ms: how far off times may be that were corrected.
        named_error_ms: the same of dumps and of copies of stores, by the moment that each is of.
    """

    brokers: Mapping[str, tuple[LogSpan, ...]] = field(default_factory=dict)
    known: bool = False
    clients: Mapping[str, tuple[LogSpan, ...]] = field(default_factory=dict)
    name_servers: tuple[LogSpan, ...] = EVER
    offsets_lost: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    clock_off: bool = False
    client_clock_unknown: bool = False
    topic_stores: Mapping[str, int] = field(default_factory=dict)
    clock_error_ms: int = 0
    offset_stores: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    named_error_ms: Mapping[int, int] = field(default_factory=dict)

    def client_gap(self, host: str, from_ms: int, to_ms: int) -> tuple[int, int | None] | None:
        """The first time between these two of which a client's log tells nothing."""
        stretches = self.clients.get(host, ())
        for one, other in pairwise(stretches):
            if from_ms < other.from_ms and one.to_ms < to_ms:
                return one.to_ms, other.from_ms
        ended = bool(stretches) and to_ms > stretches[-1].to_ms + LOG_SILENT_MS
        return (stretches[-1].to_ms, None) if ended else None

    def ends(self, broker: str) -> int:
        """Return when the broker's log ends; 0: none was collected."""
        return max((one.to_ms for one in self.brokers.get(broker, ())), default=0)

    def gap(self, broker: str, from_ms: int, to_ms: int, *, down: bool = False) -> Gap | None:
        """The first time of which no log of the broker tells; None: there is none.

        Args:
            broker: its name.
            from_ms: begin of the time asked for.
            to_ms: its end.
            down: the broker is down at the end, so that its log may end.
        """
        if not self.known:
            return None
        stretches = self.brokers.get(broker, ())
        if not stretches:
            return Gap(NOT_COVERED, broker, None, None)
        found = _first_gap(broker, stretches, from_ms, to_ms)
        if found is not None:
            return found
        if not down and to_ms > stretches[-1].to_ms + LOG_SILENT_MS:
            return Gap(LOG_ENDED, broker, stretches[-1].to_ms, None)
        return None

    def hole(self, broker: str, from_ms: int, to_ms: int) -> Gap | None:
        """As `gap`; a log that ends before ``to_ms`` lacks what comes then, however soon."""
        end_ms = self.ends(broker)
        late = Gap(LOG_ENDED, broker, end_ms, None) if self.known and 0 < end_ms < to_ms else None
        return self.gap(broker, from_ms, to_ms, down=True) or late

    def name_server_gap(self, from_ms: int, to_ms: int | None) -> Gap | None:
        """The first time between these of which no name server's log tells; None: there is none.

        Args:
            from_ms: begin of the time asked for.
            to_ms: its end; None: whenever the logs end.
        """
        if not self.known:
            return None
        stretches = self.name_servers
        if not stretches:
            return Gap(NOT_COVERED, NAME_SERVERS, None, None, kind="log")
        end = stretches[-1]
        to_ms = end.to_ms if to_ms is None else to_ms
        gap = _first_gap(NAME_SERVERS, stretches, from_ms, to_ms)
        if to_ms > end.to_ms + LOG_SILENT_MS:
            gap = gap or Gap(LOG_ENDED, NAME_SERVERS, end.to_ms, None)
        return gap and replace(gap, kind="log")


def _first_gap(host: str, stretches: tuple[LogSpan, ...], from_ms: int, to_ms: int) -> Gap | None:
    """The first time between these before or among the stretches that nothing tells of."""
    if from_ms < stretches[0].from_ms and not stretches[0].from_start:
        return Gap(LOG_BEGINS, host, None, stretches[0].from_ms)
    for one, other in pairwise(stretches):
        if from_ms < other.from_ms and one.to_ms < to_ms and not other.from_start:
            return Gap(NOT_COVERED, host, one.to_ms, other.from_ms)
    return None


def name_servers_tell(rows: Iterable[CoverageRow], at_ms: int) -> bool:
    """False if the logs of name servers end before that: a broker that was down may be back."""
    ends = [row["to_ms"] for row in rows if row["kind"] == "namesrv_log" and row["to_ms"]]
    return not ends or max(ends) + LOG_SILENT_MS >= at_ms


def coverage_of(rows: Iterable[CoverageRow], folders: Mapping[str, Iterable[str]]) -> Coverage:
    """The coverage of one cluster.

    Args:
        rows: of the table; none: it is not known.
        folders: by broker name the hosts whose logs tell of it.
    """
    rows = list(rows)
    logs = logs_of(rows, "broker_log")
    brokers = {
        broker: tuple(_joined(one for host in hosts for one in logs.get(host, ())))
        for broker, hosts in folders.items()
    }
    clients = {host: tuple(_joined(of, 0)) for host, of in logs_of(rows, "client_log").items()}
    clocks = {kind: {_clock(row) for row in rows if row["kind"] == kind} for kind in _CLOCKS}
    # no event is dated by the copy of a store
    timed = [row for row in rows if row["kind"] not in CONFIG_STORES]
    unsure = any(CLOCK_UNSURE in (row["note"] or "") for row in timed)
    off, unknown = unsure or OFF in clocks["broker_log"], not clocks["client_log"] <= {RIGHT}
    lost = dict(_offsets_lost(rows, folders))
    stores: dict[str, int] = {}
    for row in rows:
        if row["kind"] == TOPICS and row["complete"] and row["from_ms"]:
            stores[row["host"]] = max(row["from_ms"], stores.get(row["host"], 0))
    for broker, hosts in folders.items():
        stores[broker] = max((stores.get(host, 0) for host in hosts), default=0)
    left = max((row.get("clock_error_ms") or 0 for row in timed), default=0)
    named = dict(_named_errors(rows))
    return Coverage(
        brokers,
        bool(rows),
        clients,
        _name_servers(rows),
        lost,
        off,
        unknown,
        stores,
        left,
        dict(_offset_stores(rows, folders)),
        named,
    )


UNSURE_MS = 14 * HOUR_MS
"""So far off a clock may be of which nothing shows how far: a wrong zone."""


def _named_errors(rows: Iterable[CoverageRow]) -> Iterator[tuple[int, int]]:
    """As `Coverage.named_error_ms`."""
    for row in rows:
        if row["from_ms"] is not None and (row["role"] == "ADMIN" or row["kind"] in CONFIG_STORES):
            note = row["note"] or ""
            unsure = CLOCK_UNSURE in note or NAME_ALONE in note
            error_ms = UNSURE_MS if unsure else row.get("clock_error_ms")
            if error_ms:
                yield row["from_ms"], error_ms


STORES_APART_MS = 30_000
"""The stores of all brokers are copied in one go."""


def _offset_stores(
    rows: Iterable[CoverageRow], folders: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """As `Coverage.offset_stores`."""
    whole = [row for row in rows if row["kind"] == OFFSETS and row["complete"] and row["from_ms"]]
    for broker, hosts in folders.items():
        copies = sorted({row["from_ms"] or 0 for row in whole if row["host"] in hosts})
        if copies:
            yield broker, tuple(copies)


def _offsets_lost(
    rows: Iterable[CoverageRow], folders: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """As `Coverage.offsets_lost`; of a broker that keeps its offsets elsewhere nothing."""
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
            (at_ms, next((ms for ms in whole if ms > at_ms), FAR_MS))
            for at_ms in rounds
            if kept and not any(abs(ms - at_ms) <= STORES_APART_MS for ms in whole)
        ]
        if lost:
            yield broker, tuple(lost)


RIGHT, OFF, NOT_COMPARED = "right", "off", "not compared"
_CLOCKS = ("broker_log", "client_log")


def _clock(row: CoverageRow) -> str:
    """How right the times of a log are, after what ingest corrected."""
    behind = row["clock_offset_ms"]
    if CLOCK_UNSURE in (row["note"] or ""):
        return OFF
    if behind is None:
        return RIGHT if row["from_ms"] is None else NOT_COMPARED
    return OFF if is_zone(behind) and row.get("clock_error_ms") is None else RIGHT


def _name_servers(rows: Iterable[CoverageRow]) -> tuple[LogSpan, ...]:
    """As `Coverage.name_servers`: a cluster's name servers start before its brokers.

    One that writes little may have ended early, and its silence tells nothing: as long as each
    broker's own log goes on from there, that tells that it ran.
    """
    rows = list(rows)
    stretches = list(
        _joined((one for of in logs_of(rows, "namesrv_log").values() for one in of), 0)
    )
    begins = [row["from_ms"] for row in rows if row["kind"] == "broker_log" and row["from_ms"]]
    if stretches and stretches[0].from_ms <= min(begins, default=FAR_MS) + LOG_SILENT_MS:
        stretches[0] = replace(stretches[0], from_start=True)
    if stretches and not stretches[-1].steady:
        last_ms = stretches[-1].to_ms
        logs = (_joined(of) for of in logs_of(rows, "broker_log").values())
        ran = (max((s.to_ms for s in of if s.from_ms <= last_ms), default=0) for of in logs)
        stretches[-1] = replace(stretches[-1], to_ms=max(last_ms, min(ran, default=0)))
    return tuple(stretches)


def name_servers_gap(logs: Mapping[str, list[LogSpan]], begins: Mapping[str, int]) -> Gap | None:
    """A time after these that the log of a name server, by name, lacks and another one has."""
    end_ms = max(one.to_ms for of in logs.values() for one in of)
    for server, from_ms in sorted(begins.items()):
        found = Coverage(name_servers=tuple(_joined(logs.get(server, ()), 0)), known=True)
        gap = found.name_server_gap(from_ms, end_ms)
        if gap is not None:
            return replace(gap, host=server)
    return None


def logs_of(rows: Iterable[CoverageRow], kind: str) -> dict[str, list[LogSpan]]:
    """The stretches of logs of this kind by host."""
    logs: dict[str, list[LogSpan]] = {}
    for row in rows:
        if row["kind"] == kind and row["from_ms"] is not None and row["to_ms"] is not None:
            note = row["note"] or ""
            one = LogSpan(
                row["from_ms"],
                row["to_ms"],
                from_start=FROM_START in note,
                steady=STEADY in note,
                torn=LINES_REFUSED in note,
            )
            logs.setdefault(row["host"], []).append(one)
    return logs


def _joined(stretches: Iterable[LogSpan], apart_ms: int = LOG_SILENT_MS) -> Iterator[LogSpan]:
    """Stretches of one or several logs as one, those no further apart among them."""
    current: LogSpan | None = None
    for one in sorted(stretches, key=lambda s: (s.from_ms, s.to_ms)):
        if current is None:
            current = one
        elif one.from_ms <= current.to_ms + apart_ms:
            last = max(current, one, key=lambda s: s.to_ms)
            current = replace(
                last,
                from_ms=current.from_ms,
                from_start=current.from_start,
                torn=current.torn or one.torn,
            )
        else:
            yield current
            current = one
    if current is not None:
        yield current
