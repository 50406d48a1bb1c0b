"""What a plan comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_core.checks.digest import TableWritten


@dataclass(frozen=True)
class PlanResult:
    """What a plan wrote, and its results in short.

    Attributes:
        tables: Rows and digest of every table written.
        input_rows: Rows of every input table.
        rejected: How often each issue code occurs in ``rejected``.
        scenarios: A row for each scenario and strategy, over all groups and seeds
            (``scenario_figures``).
        league: The rows of ``plan_league``.
        warnings: Patterns of scenarios that matched nothing, and what edits could not do.
    """

    tables: Mapping[str, TableWritten]
    input_rows: Mapping[str, int]
    rejected: Mapping[str, int]
    scenarios: list[dict[str, Any]]
    league: list[dict[str, Any]]
    warnings: tuple[str, ...]
