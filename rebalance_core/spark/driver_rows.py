"""Rows of frames on the driver.

`DataFrame.collect` ends early, without an error, where the JVM fails while it hands rows over, for
want of memory for one; `toArrow` waits for it and raises.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from rebalance_core.contracts.table import rows_of_arrow


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts, structs as well, in the frame's order; only for what is known to be few.

    Raises:
        PySparkException: Not all of them came.
    """
    return rows_of_arrow(frame.toArrow())
