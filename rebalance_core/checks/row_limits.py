"""The limits on bad rows, and the refusal of an input that exceeds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.model.errors import InputRefused

QUARANTINE = "quarantine"
MAX_BAD_SHARE = 0.5
SHOWN_COMPLAINTS = 10
"""Maximum number of codes that a message lists."""


@dataclass(frozen=True, slots=True)
class BadRowLimits:
    """The limits on bad rows in an input; the defaults are those in ``conf/rebalance.toml``.

    Attributes:
        on_bad_rows: ``quarantine`` puts bad rows into ``rejected``; ``fail`` allows none.
        max_bad_share: An input with a larger share of bad rows in a table is refused either way.
    """

    on_bad_rows: str = QUARANTINE
    max_bad_share: float = MAX_BAD_SHARE


def refuse_bad_rows(
    counts: Mapping[str, RowCounts],
    limits: BadRowLimits,
    complaints: Callable[[], Sequence[Complaint]] = tuple,
) -> None:
    """Raise `InputRefused` if the input is empty or has more bad rows than the limits allow.

    Args:
        counts: the counts of each input table.
        limits: the limits on bad rows.
        complaints: called only on refusal; the message ends with the table's complaints.
    """
    of_events = counts.get("cluster_events")
    if of_events is not None and of_events.rows == of_events.of_state == 0:
        raise InputRefused(
            "cluster_events has no row, so there is nothing to simulate (to see what a single "
            "answer, store or log shows, run rebalance read FILE…)"
        )
    for name, count in counts.items():
        share = count.bad / count.rows if count.rows else 0.0
        refusal = f"{name}: {count.bad:,} of {count.rows:,} rows are bad"
        if count.bad and limits.on_bad_rows == "fail":
            refusal += "; --on-bad-rows fail allows none"
        elif share > limits.max_bad_share:
            refusal += (
                f" ({share:.0%}), more than max_bad_share = {limits.max_bad_share}; check that "
                "this is the right file, or pass --set max_bad_share=1 to list all bad rows in "
                "`rejected`"
            )
        else:
            continue
        of_table = [complaint for complaint in complaints() if complaint.table == name]
        raise InputRefused("\n".join([refusal, *complaint_lines(of_table)]))


def complaint_lines(complaints: Sequence[Complaint]) -> list[str]:
    """Return a line for each code, with its count and the first row that has it."""
    lines = [
        _one_line(
            f"  {complaint.code} {complaint.times:,}, first {complaint.source}: {complaint.message}"
        )
        for complaint in complaints[:SHOWN_COMPLAINTS]
    ]
    more = len(complaints) - SHOWN_COMPLAINTS
    return [*lines, f"  and {more} more codes"] if more > 0 else lines


def _one_line(text: str) -> str:
    """Return the text with line breaks escaped, so that no value starts a new line in the
    message.
    """
    return text.replace("\r", "\\r").replace("\n", "\\n")


def with_unknown_members(counts: Mapping[str, RowCounts], unknown: int) -> dict[str, RowCounts]:
    """Return the counts, with events that the replay rejects counted as bad rows."""
    of_events = counts["cluster_events"]
    return {**counts, "cluster_events": replace(of_events, bad=of_events.bad + unknown)}
