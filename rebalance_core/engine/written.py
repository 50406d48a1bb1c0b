"""What a job wrote, wherever it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.engine.facts import LedgerFacts
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.ingest.file_reader import FileStats


class Written(Protocol):
    """What a job made of input tables."""

    @property
    def tables(self) -> Mapping[str, TableWritten]:
        """Rows and digest of every table written."""

    @property
    def rejected(self) -> Mapping[str, int]:
        """How often each issue code occurs in ``rejected``."""

    @property
    def input_rows(self) -> Mapping[str, int]:
        """Rows of every input table."""


@dataclass(frozen=True)
class LedgerWritten:
    """What a simulation wrote.

    Attributes:
        tables: Rows and digest of every table written.
        facts: What a summary says of them (`LedgerFacts.totals`).
        rejected: How often each issue code occurs in ``rejected``.
        input_rows: Rows of every input table.
        replay_reasons: How many groups the replay took instead of the kernels, by reason.
    """

    tables: Mapping[str, TableWritten]
    facts: Mapping[str, Any]
    rejected: Mapping[str, int]
    input_rows: Mapping[str, int]
    replay_reasons: Mapping[str, int]


def ledger_written(
    tables: Mapping[str, TableWritten],
    facts: LedgerFacts,
    counts: Mapping[str, RowCounts],
    worst_groups: int,
) -> LedgerWritten:
    """What was written, summed up.

    Args:
        tables: Rows and digest of every table.
        facts: Of the whole ledger.
        counts: Of every input table.
        worst_groups: How many groups the facts list.
    """
    return LedgerWritten(
        tables=tables,
        facts=facts.totals(worst_groups),
        rejected=dict(sorted(facts.rejected.items())),
        input_rows={name: count.rows for name, count in counts.items()},
        replay_reasons=dict(sorted(facts.replay_reasons.items())),
    )


@dataclass(frozen=True)
class IngestWritten:
    """What an ingest wrote.

    Attributes:
        tables: Rows and digest of every table written.
        stats: How each file was understood.
        rejected: How often each issue code occurs in ``rejected``.
        findings: Rows of ``findings`` by rule.
    """

    tables: Mapping[str, TableWritten]
    stats: tuple[FileStats, ...]
    rejected: Mapping[str, int]
    findings: Mapping[str, int]


@dataclass(frozen=True)
class FleetWritten:
    """Rows and digest of every table of a synthetic fleet, and the events by type."""

    tables: Mapping[str, TableWritten]
    events: Mapping[str, int]


@dataclass(frozen=True)
class ProducersWritten:
    """What a simulation of producers wrote.

    Attributes:
        tables: Rows and digest of every table written.
        answers: The small tables among them: ``producer_outcomes``, ``producer_shares``.
        rejected: How often each issue code occurs in ``rejected``.
        input_rows: Rows of every input table; empty of a model.
    """

    tables: Mapping[str, TableWritten]
    answers: Mapping[str, pa.Table]
    rejected: Mapping[str, int] = field(default_factory=dict)
    input_rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PropagationWritten:
    """What a simulation of time wrote.

    Attributes:
        tables: Rows and digest of every table written.
        facts: What a summary says (`survey_facts` and `PropagationFacts.totals`).
        rejected: How often each issue code occurs in ``rejected``.
        input_rows: Rows of every input table.
    """

    tables: Mapping[str, TableWritten]
    facts: Mapping[str, Any]
    rejected: Mapping[str, int]
    input_rows: Mapping[str, int]


@dataclass(frozen=True)
class PropagationForecast:
    """How a simulation of time would end for its rows, and how much there is to do.

    Attributes:
        rows: What a run would make of its rows.
        facts: As `survey_facts` gives them; empty where the rows are refused.
    """

    rows: RowForecast
    facts: Mapping[str, Any]
