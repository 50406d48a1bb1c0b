"""A cluster's name in a history: its own, followed by the number of the history."""

from pyspark.sql import Column
from pyspark.sql import functions as sf

SEPARATOR = "\x1f"
"""Between a cluster's name and the number of a history; no name that people read has it."""


def cluster_of(cluster: str, history: int) -> str:
    """The name of a cluster in a history."""
    return f"{cluster}{SEPARATOR}{history}"


def given_cluster() -> Column:
    """The cluster's own name again."""
    number = sf.substring_index("cluster", SEPARATOR, -1)
    return sf.left(sf.col("cluster"), sf.length("cluster") - sf.length(number) - 1)


def history_number() -> Column:
    """The number of the history of a row."""
    return sf.substring_index("cluster", SEPARATOR, -1).cast("INT")
