"""A cluster's name in a history: its own, followed by the number of the history."""

SEPARATOR = "\x1f"
"""Between a cluster's name and the number of a history; no name that people read has it."""


def cluster_of(cluster: str, history: int) -> str:
    """The name of a cluster in a history."""
    return f"{cluster}{SEPARATOR}{history}"
