"""The optional input ``queue_rates``: messages per second of each queue."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.reading.tables import read_table
from rebalance_core.checks.row_checks import check_table
from rebalance_core.contracts.planning import QUEUE_RATES
from rebalance_core.planning.sweep.plan_options import MOST_REASONS, refuse_bad_rates

_RATE = "messages_per_second"


def read_queue_rates(location: str, input_format: str | None = None, *, name: str = "") -> pa.Table:
    """The rows of the table.

    Args:
        location: A local path.
        input_format: Of the files; None: by their names.
        name: What the message calls the table; the location if it is empty.

    Raises:
        InputRefused: Any row is bad; rates are few, and one left out would go unnoticed.
    """
    rows, _ = read_table(QUEUE_RATES, location, input_format)
    checked = check_table(QUEUE_RATES.name, rows)
    good = checked.tables[QUEUE_RATES.name]
    wrong = pc.or_(pc.is_nan(good[_RATE]), pc.less(good[_RATE], 0))
    negative = good[_RATE].filter(wrong).slice(0, MOST_REASONS).to_pylist()
    bad = checked.rejected["issues"].slice(0, MOST_REASONS).to_pylist()
    refuse_bad_rates(name or location, [issues[0]["message"] for issues in bad], negative)
    return good
