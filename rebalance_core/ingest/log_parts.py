"""Splits logs where their hosts' clocks were set, so that each part has its own clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_core.ingest.collection import (
    BROKER_LOG,
    BROKERS_LOGS,
    CLIENT_LOG,
    NAMESRV_LOG,
    CollectedFile,
)
from rebalance_core.ingest.file_reader import ClockStep, FileStats
from rebalance_core.model.timeline import EVER_MS, Interval, Timeline


class Host(NamedTuple):
    """The clock that dates the lines of a log from one of its steps to the next.

    Attributes:
        kind: the kind of log; a broker's lock and POP logs use its broker's clock.log.
        place: its folder.
        part: the number of earlier steps of its clock.
    """

    kind: str
    place: str
    part: int = 0

    @property
    def machine(self) -> tuple[str, str]:
        """Return the host independently of when its clock was set."""
        return self.kind, self.place


@dataclass(frozen=True)
class LogPart:
    """The lines of a log that are dated by a single clock.

    Attributes:
        file: the log, or one of its files.
        host: the host with this clock.
        since: the position of its first line; 0 for the first part of a file.
        stats: its stats.
        step: the step back at its beginning; None if its file begins with it or its clock was set
            forward.
    """

    file: CollectedFile
    host: Host
    since: int
    stats: FileStats
    step: ClockStep | None = None


def log_parts(
    files: Iterable[CollectedFile], counted: Mapping[str, FileStats]
) -> Iterator[LogPart]:
    """Yield the parts of the logs of brokers, clients and name servers, with those of each host in
    order.

    A broker's lock and POP logs have the same steps as its broker.log; if they have others, each of
    their parts has the clock whose lines in broker.log cover the largest share.
    """
    logs: dict[tuple[str, str], list[CollectedFile]] = {}
    others: dict[str, dict[str, list[CollectedFile]]] = {}
    for file in files:
        if file.kind in (BROKER_LOG, CLIENT_LOG, NAMESRV_LOG):
            logs.setdefault((file.kind, file.place), []).append(file)
        elif file.kind in BROKERS_LOGS:
            others.setdefault(file.place, {}).setdefault(file.kind, []).append(file)
    for (kind, place), of_host in logs.items():
        own = list(_numbered(kind, place, of_host, counted))
        yield from own
        for of_kind in others.pop(place, {}).values() if kind == BROKER_LOG else ():
            yield from _as_broker_log(own, list(_numbered(kind, place, of_kind, counted)))
    for place, by_kind in others.items():
        for of_kind in by_kind.values():
            yield from _numbered(BROKER_LOG, place, of_kind, counted)


def _numbered(
    kind: str, place: str, files: Iterable[CollectedFile], counted: Mapping[str, FileStats]
) -> Iterator[LogPart]:
    number = 0
    for file in sorted(files, key=lambda file: file.turn):
        steps = {step.position: step for step in counted[file.name].steps_back}
        for part in counted[file.name].parts():
            number += part.since > 0
            step = steps.get(part.since)
            yield LogPart(file, Host(kind, place, number), part.since, part, step)


def _as_broker_log(own: Iterable[LogPart], others: list[LogPart]) -> Iterator[LogPart]:
    spans = [(part.host, part.stats.first_line_at, part.stats.last_line) for part in own]
    if {host.part for host, *_ in spans} == {part.host.part for part in others}:
        yield from others
        return
    for part in others:
        begin, end = part.stats.first_line_at, part.stats.last_line
        # the strings of one clock sort like their times
        inside = [host for host, first, last in spans if first <= begin and end <= last]
        begun = [host for host, first, last in spans if first <= begin <= last]
        host = next(iter([*inside, *begun, *(span[0] for span in spans)]))
        yield LogPart(part.file, host, part.since, part.stats, part.step)


def by_position(values: Mapping[int, int]) -> Timeline[int]:
    """Return a timeline over the positions in a file.

    Args:
        values: the values by the position from which each applies; the first one also applies
            before that.
    """
    begins = sorted(values)
    ends = [*begins[1:], EVER_MS]
    begins[0] = -EVER_MS
    intervals = zip(begins, ends, (values[key] for key in sorted(values)), strict=True)
    return Timeline(tuple(Interval(*interval) for interval in intervals))
