"""How a run would end for the rows of its input; for dry runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.model.errors import InputRefused


@dataclass(frozen=True)
class RowForecast:
    """What a run would make of its rows.

    Attributes:
        counts: Rows of each input table; without a refusal those that the replay rejects count.
        complaints: What is wrong with them.
        refusal: What the run would raise; None: the rows let it go on.
    """

    counts: Mapping[str, RowCounts]
    complaints: Sequence[Complaint]
    refusal: InputRefused | None

    def without_rows(self) -> Self:
        """The same without any row's text: rows may name clients."""
        refusal = self.refusal and InputRefused(str(self.refusal).partition("\n")[0])
        return replace(self, complaints=(), refusal=refusal)
