"""Rows of ``queue_rates`` that are no rates: the table is refused."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.model.errors import InputRefused

MOST_REASONS = 3
"""Of each kind, in the message."""


def refuse_bad_rates(table: str, issues: Iterable[str], rates: Iterable[float]) -> None:
    """Raise `InputRefused` if there is any: rates are few, and one left out would go unnoticed.

    Args:
        table: What the message calls the table.
        issues: What row checks found; the first `MOST_REASONS`.
        rates: Rates that are negative or NaN; the first `MOST_REASONS`.
    """
    reasons = [*issues, *(f"messages_per_second is {rate}; valid: 0 and more" for rate in rates)]
    if reasons:
        raise InputRefused(f"{table}: {'; '.join(dict.fromkeys(reasons))}")
