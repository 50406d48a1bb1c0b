"""What tasks do with the rows of groups: look them over, play their futures, add up their parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from rebalance_core.checks.issue_arrays import issue_counts
from rebalance_core.checks.packed_rows import bucket_of, by_key, pack
from rebalance_core.clockwork.measure.measured import propagation
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import HANDOVERS, PROPAGATION
from rebalance_core.engine.fan_out import GROUP, fan_out
from rebalance_core.engine.ledger_pass import WHOLE, Giants, history_of, with_events
from rebalance_core.engine.propagation import (
    PropagationFacts,
    PropagationOptions,
    Survey,
    played,
    rejected_rows,
    surveyed,
)
from rebalance_core.engine.routing import Part
from rebalance_core.replay.history import GroupHistory
from rebalance_core.spark.engine.routed_rows import routed_batch, routed_tables
from rebalance_core.spark.tables.task_tables import Rows

Batches = Iterable[pa.RecordBatch]

_PARTIAL = "partial"
_NO_REJECTED = REJECTED.arrow_schema().empty_table()


@dataclass(frozen=True, slots=True)
class BucketGroups:
    """The groups of buckets, from the rows that `Routing` sent there.

    Attributes:
        giants: The parts of divided groups, by bucket.
        queue_offsets_given: There is such a table.
        committed_offsets_given: There is such a table.
    """

    giants: Mapping[int, Giants]
    queue_offsets_given: bool
    committed_offsets_given: bool

    def groups(
        self, bucket: int, tables: Mapping[str, pa.Table]
    ) -> Iterator[tuple[GroupHistory, list[Part]]]:
        """Each group, and which of how many parts of its seeds are to be played here."""
        rows = fan_out(with_events(tables))
        divided = self.giants.get(bucket, {})
        for number in range(len(rows)):
            history = history_of(
                rows.of(number, number + 1),
                queue_offsets_given=self.queue_offsets_given,
                committed_offsets_given=self.committed_offsets_given,
            )
            name = history.cluster, history.consumer_group
            yield history, divided.get(name, [WHOLE])


@dataclass(slots=True)
class SurveyNote:
    """What was found of some groups.

    Attributes:
        surveys: One a group, without its rejected rows.
        unknown: How many rows name an unknown process.
        rejected: How often each issue code occurs in ``rejected``.
    """

    surveys: list[Survey] = field(default_factory=list)
    unknown: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Surveying:
    """`Work` of `task_tables`: looks groups over; rows of ``rejected``, and a `SurveyNote`."""

    groups: BucketGroups
    options: PropagationOptions

    def __call__(self, batches: Batches) -> tuple[Rows, SurveyNote]:
        """Each group in the bucket that has its first part."""
        note = SurveyNote()
        return self._rows(batches, note), note

    def _rows(self, batches: Batches, note: SurveyNote) -> Rows:
        for bucket, tables in routed_tables(batches):
            found = [
                surveyed(history, self.options)
                for history, parts in self.groups.groups(bucket, tables)
                if parts[0][0] == 0
            ]
            unknown = rejected_rows(found)
            note.surveys += (replace(survey, rejected=()) for survey in found)
            note.unknown += len(unknown)
            for rows in (tables.get(REJECTED.name, _NO_REJECTED), unknown):
                note.rejected.update(issue_counts(rows))
                yield from ((REJECTED.name, batch) for batch in rows.to_batches())


@dataclass(frozen=True, slots=True)
class Playing:
    """Plays the parts of a bucket; what they come to goes to the bucket of their group.

    Attributes:
        groups: See there.
        options: Of the simulation.
        buckets: How many there are.
    """

    groups: BucketGroups
    options: PropagationOptions
    buckets: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of `ROUTED_DDL`: hand-overs, and partial sums."""
        for bucket, tables in routed_tables(batches):
            for history, parts in self.groups.groups(bucket, tables):
                name = history.cluster, history.consumer_group
                of_group = bucket_of(name, self.buckets)
                # a group may have more parts than seeds
                for seeds in filter(None, (self.options.part(*part) for part in parts)):
                    for made in played(history, self.options, seeds):
                        yield routed_batch(bucket, HANDOVERS.name, pack(made.handovers))
                        yield routed_batch(of_group, _PARTIAL, pack(made.partial))


def adding_up(batches: Batches) -> tuple[Rows, PropagationFacts]:
    """`Work` of `task_tables` over what `Playing` gives; the note counts ``propagation``."""
    facts = PropagationFacts()
    return _added_up(batches, facts), facts


def _added_up(batches: Batches, facts: PropagationFacts) -> Rows:
    for _, tables in routed_tables(batches):
        for batch in tables[HANDOVERS.name].to_batches() if HANDOVERS.name in tables else ():
            yield HANDOVERS.name, batch
        if _PARTIAL not in tables:
            continue
        for _, parts in by_key(tables[_PARTIAL], GROUP):
            rows = propagation([parts])
            facts.add(rows)
            yield from ((PROPAGATION.name, batch) for batch in rows.to_batches())
