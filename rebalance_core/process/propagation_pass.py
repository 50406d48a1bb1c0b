"""The tasks of the propagate job: survey groups, play futures, add up the parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from rebalance_core.checks.packed_rows import by_key
from rebalance_core.checks.rejections import Rejections
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import (
    HANDOVERS,
    HOLDERS,
    PROPAGATION,
    PROPAGATION_TOTALS,
)
from rebalance_core.engine.fan_out import GROUP, fan_out, with_empty_events_if_missing
from rebalance_core.engine.ledger_pass import (
    Giants,
    HistoriesOfSharedInstances,
)
from rebalance_core.engine.options import like_pattern, matches
from rebalance_core.engine.propagation import (
    PropagationFacts,
    PropagationOptions,
    Survey,
    played,
    rejected_rows,
    surveyed,
)
from rebalance_core.engine.sharing_groups import Group
from rebalance_core.kernels import queue_parts
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.process.runtime import Part, Sent, TableRows
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.propagation_parts import propagation
from rebalance_core.timing.totals import propagation_totals

_PARTIAL, _TOTALS = "partial", "totals"
_NO_REJECTED = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True, slots=True)
class BucketGroups:
    """The groups in buckets, built from the rows that `engine.routing.Routing` sent there.

    Attributes:
        engine: Knows which input tables exist.
        wanted: A glob of group names; None for all.
        giants: The parts of divided groups, by bucket.
        sharing_groups: For each group, the other groups that share client instances with it.
        guests: For each bucket, groups that are present only for the sake of others.
    """

    engine: EngineOptions
    wanted: str | None = None
    giants: Mapping[int, Giants] = field(default_factory=dict)
    sharing_groups: Mapping[Group, tuple[Group, ...]] = field(default_factory=dict)
    guests: Mapping[int, frozenset[Group]] = field(default_factory=dict)

    def groups(
        self, bucket: int, tables: Mapping[str, pa.Table]
    ) -> Iterator[tuple[GroupHistory, list[queue_parts.Part]]]:
        """Yield each group with the parts of its seeds to play here, as (number, total)."""
        pattern = None if self.wanted is None or self.sharing_groups else like_pattern(self.wanted)
        rows = fan_out(with_empty_events_if_missing(tables), pattern)
        divided, guests = self.giants.get(bucket, {}), self.guests.get(bucket, frozenset())
        histories = HistoriesOfSharedInstances(rows, self.sharing_groups, self.engine)
        for name in histories.numbers:
            if name not in guests and (self.wanted is None or matches(self.wanted, name[1])):
                yield histories.history(name), divided.get(name, [queue_parts.WHOLE])

    def whole(self, parts: Iterable[Part]) -> Iterator[GroupHistory]:
        """Yield each group once, in the bucket that has its first part."""
        for bucket, tables in parts:
            yield from (
                history for history, seeds in self.groups(bucket, tables) if seeds[0].number == 0
            )


@dataclass(slots=True)
class SurveyStats:
    """The surveys of a task's groups.

    Attributes:
        surveys: A survey per group, without its rejected rows.
        rejected: What is wrong with rows of ``rejected``.
    """

    surveys: list[Survey] = field(default_factory=list)
    rejected: Rejections = field(default_factory=Rejections)

    def merge(self, other: SurveyStats) -> None:
        """Add the facts of other groups."""
        self.surveys += other.surveys
        self.rejected.merge(other.rejected)

    def pieces(self, options: PropagationOptions) -> dict[Group, int]:
        """Return the number of pieces of each group that has something to play."""
        return {
            (survey.cluster, survey.consumer_group): survey.parts(options)
            for survey in self.surveys
            if survey.changes
        }


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """`Work` that surveys groups; its rows belong to ``rejected``, its facts are `SurveyStats`."""

    VERB: ClassVar[str] = "survey"
    groups: BucketGroups
    options: PropagationOptions

    def __call__(self, parts: Iterable[Part], facts: SurveyStats) -> TableRows:
        """Survey each group in the bucket that has its first part."""
        for bucket, tables in parts:
            bad = tables.pop(REJECTED.name, _NO_REJECTED)
            whole = self.groups.whole([(bucket, tables)])
            surveys = [surveyed(history, self.options) for history in whole]
            facts.surveys += (replace(survey, rejected=()) for survey in surveys)
            for rows in (bad, rejected_rows(surveys)):
                facts.rejected.add(rows)
                yield from ((REJECTED.name, batch) for batch in rows.to_batches())


@dataclass(frozen=True)
class GroupFutures:
    """A piece of work: some futures of a group.

    Attributes:
        history: The group's history.
        seeds: The futures to play.
        options: The simulation's options.
    """

    history: GroupHistory
    seeds: range
    options: PropagationOptions

    @property
    def name(self) -> str:
        """The name of the group, with its cluster."""
        return f"{self.history.cluster}/{self.history.consumer_group}"


@dataclass(frozen=True, slots=True)
class Futures:
    """Divides the futures of groups into pieces.

    Attributes:
        groups: The groups.
        options: The simulation's options.
        pieces: Number of pieces per group; groups without an entry are not played.
    """

    groups: BucketGroups
    options: PropagationOptions
    pieces: Mapping[Group, int]

    def __call__(self, parts: Iterable[Part]) -> Iterator[GroupFutures]:
        """Yield the pieces of the given buckets, those of a group in succession."""
        for bucket, tables in parts:
            for history, shares in self.groups.groups(bucket, tables):
                pieces = self.pieces.get((history.cluster, history.consumer_group), 0)
                for share in shares if pieces else ():
                    count = max(pieces, share.parts)
                    for number in range(share.number, count, share.parts):
                        # a group may have more parts than seeds
                        if seeds := self.options.part(number, count):
                            yield GroupFutures(history, seeds, self.options)


def play_futures(piece: GroupFutures) -> Sent:
    """Yield hand-overs, holders, and partial sums for the task that adds up the group."""
    group = piece.history.cluster, piece.history.consumer_group
    for made in played(piece.history, piece.options, piece.seeds):
        yield None, HANDOVERS.name, made.handovers
        yield None, HOLDERS.name, made.holders
        yield group, _PARTIAL, made.partial
        yield group, _TOTALS, made.totals


def add_up(parts: Iterable[Part], facts: PropagationFacts) -> TableRows:
    """Add up the results of `play_futures` as a `Work` whose facts count ``propagation`` rows."""
    for _, tables in parts:
        for name in (HANDOVERS.name, HOLDERS.name):
            for batch in tables[name].to_batches() if name in tables else ():
                yield name, batch
        for _, sums in by_key(tables[_PARTIAL], GROUP) if _PARTIAL in tables else ():
            rows = propagation([sums])
            facts.add(rows)
            yield from ((PROPAGATION.name, batch) for batch in rows.to_batches())
        for _, sums in by_key(tables[_TOTALS], GROUP) if _TOTALS in tables else ():
            rows = propagation_totals([sums])
            yield from ((PROPAGATION_TOTALS.name, batch) for batch in rows.to_batches())
