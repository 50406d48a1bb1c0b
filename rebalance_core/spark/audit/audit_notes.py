"""What is wanted of used rows before groups are judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.engine.interests import Interests, interests_of_named
from rebalance_core.process.audit.cluster_rows import ClusterTables, cluster_tables_of


@dataclass(frozen=True, slots=True)
class AuditNotes:
    """What concerns which group, and what concerns clusters; those of parts of rows are merged."""

    interests: Interests
    clusters: ClusterTables

    @classmethod
    def merged(cls, parts: Iterable[AuditNotes]) -> AuditNotes:
        """Those of all parts."""
        found = [*parts]
        return cls(
            Interests.merged(part.interests for part in found),
            ClusterTables.merged(part.clusters for part in found),
        )


def notes_of(table: str, rows: pa.Table) -> AuditNotes | None:
    """The notes of used rows of a table; None: rows of this table say nothing."""
    interests, clusters = interests_of_named(table, rows), cluster_tables_of(table, rows)
    if interests is None and clusters is None:
        return None
    return AuditNotes(interests or Interests.merged(()), clusters or ClusterTables.merged(()))
