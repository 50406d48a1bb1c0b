"""A cluster's name in a history, as columns; see `planning.sweep.history_names`."""

from pyspark.sql import Column
from pyspark.sql import functions as sf

from rebalance_core.planning.sweep.history_names import SEPARATOR


def given_cluster() -> Column:
    """The cluster's own name again."""
    number = sf.substring_index("cluster", SEPARATOR, -1)
    return sf.left(sf.col("cluster"), sf.length("cluster") - sf.length(number) - 1)


def history_number() -> Column:
    """The number of the history of a row."""
    return sf.substring_index("cluster", SEPARATOR, -1).cast("INT")
