"""What a simulation wrote, wherever it ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rebalance_core.checks.digest import TableWritten


class LedgerWritten(Protocol):
    """What a simulation wrote."""

    @property
    def tables(self) -> Mapping[str, TableWritten]:
        """Rows and digest of every table written."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a summary says of them (`LedgerFacts.totals`)."""

    @property
    def rejected(self) -> Mapping[str, int]:
        """How often each issue code occurs in ``rejected``."""

    @property
    def input_rows(self) -> Mapping[str, int]:
        """Rows of every input table."""

    @property
    def replay_reasons(self) -> Mapping[str, int]:
        """How many groups the replay took instead of the kernels, by reason."""
