"""What a summary tells of ``propagation``, counted while its rows go by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from math import fsum
from typing import Any

import pyarrow as pa

from rebalance_core.clockwork.batch.play import REGULAR
from rebalance_core.engine.propagation.pieces import Survey

SLOWEST = 10
"""Changes that a summary lists."""
DIGITS = 3
"""Of sums of seconds; carriers add in different orders."""
LISTED = (
    "cluster",
    "consumer_group",
    "change_ms",
    "cause",
    "convergence_ms_p50",
    "convergence_ms_p99",
    "gap_ms_p99",
    "orphan_queue_seconds",
    "double_queue_seconds",
    "replayed_messages",
)


@dataclass
class PropagationFacts:
    """Totals by cause, and the slowest changes."""

    _causes: dict[str, _Cause] = field(default_factory=dict)
    _slowest: list[dict[str, Any]] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        """Count some rows of ``propagation``."""
        listed = rows.select(LISTED).to_pylist()
        for row in listed:
            self._causes.setdefault(row["cause"], _Cause()).add(row)
        self._slowest = nsmallest(SLOWEST, [*self._slowest, *listed], key=slowness)

    def merge(self, other: PropagationFacts) -> None:
        """Add what was counted of other rows."""
        for name, cause in other._causes.items():
            self._causes.setdefault(name, _Cause()).merge(cause)
        self._slowest = nsmallest(SLOWEST, [*self._slowest, *other._slowest], key=slowness)

    def totals(self) -> dict[str, Any]:
        """For a person and for a program: ``causes`` and ``slowest``, the worst first."""
        causes = (_rounded({"cause": name, **one.row()}) for name, one in self._causes.items())
        return {
            "causes": sorted(
                causes, key=lambda cause: (-cause["convergence_ms_p99"], cause["cause"])
            ),
            "slowest": [_rounded(row) for row in self._slowest],
        }


def slowness(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What changes are listed by: the slowest 99th percentile first."""
    return (
        -row["convergence_ms_p99"],
        -row["orphan_queue_seconds"],
        row["cluster"],
        row["consumer_group"],
        row["change_ms"],
    )


def survey_facts(surveys: Iterable[Survey]) -> dict[str, Any]:
    """How much there is to simulate, and what is left out."""
    found = list(surveys)
    reasons = Counter(survey.reason for survey in found if survey.reason != REGULAR)
    return {
        "groups": len(found),
        "changes": sum(survey.changes for survey in found),
        "groups_with_shared_topics": sum(bool(survey.shared_topics) for survey in found),
        "groups_that_broadcast": sum(survey.broadcasts for survey in found),
        "groups_of_unknown_subscriptions": sum(survey.unknown for survey in found),
        "played_one_by_one": dict(sorted(reasons.items())),
    }


@dataclass
class _Cause:
    """What is counted of one cause."""

    changes: int = 0
    p99: int = 0
    orphan: list[float] = field(default_factory=list)
    double: list[float] = field(default_factory=list)

    def add(self, row: Mapping[str, Any]) -> None:
        self.changes += 1
        self.p99 = max(self.p99, row["convergence_ms_p99"])
        self.orphan.append(row["orphan_queue_seconds"])
        self.double.append(row["double_queue_seconds"])

    def merge(self, other: _Cause) -> None:
        self.changes += other.changes
        self.p99 = max(self.p99, other.p99)
        self.orphan += other.orphan
        self.double += other.double

    def row(self) -> dict[str, Any]:
        return {
            "changes": self.changes,
            "convergence_ms_p99": self.p99,
            "orphan_queue_seconds": fsum(self.orphan),
            "double_queue_seconds": fsum(self.double),
        }


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, DIGITS) if isinstance(value, float) else value
        for name, value in row.items()
    }
