"""What tasks tell the driver of the producers whose rows they made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from rebalance_core.checks.issue_arrays import issue_counts
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.producers import BROKER_ISOLATIONS, PUBLISH_CHOICES
from rebalance_core.producers.simulation.answers import TALLIES, added_up
from rebalance_core.spark.tables.task_tables import Rows

DETAILED = (PUBLISH_CHOICES.name, BROKER_ISOLATIONS.name)
"""The tables that tasks write."""


@dataclass(slots=True)
class PartNote:
    """Counts of some producers.

    Attributes:
        tallies: Rows of `TALLIES`, one a key.
        rejected: How often each issue code occurs in ``rejected``.
        refused: Rows of ``rejected`` that the replay itself refused.
    """

    tallies: pa.Table = field(default_factory=TALLIES.arrow_schema().empty_table)
    rejected: Counter[str] = field(default_factory=Counter)
    refused: int = 0

    def counted(self, parts: Mapping[str, pa.Table]) -> Rows:
        """The rows of parts, once they are counted."""
        for name, rows in parts.items():
            if name == TALLIES.name:
                self.tallies = added_up(pa.concat_tables([self.tallies, rows]))
                continue
            if name == REJECTED.name:
                self.rejected.update(issue_counts(rows))
            yield from ((name, batch) for batch in rows.to_batches())


def added(notes: Iterable[PartNote]) -> PartNote:
    """The note of all tasks."""
    whole = PartNote()
    for note in notes:
        whole.tallies = added_up(pa.concat_tables([whole.tallies, note.tallies]))
        whole.rejected.update(note.rejected)
        whole.refused += note.refused
    return whole
