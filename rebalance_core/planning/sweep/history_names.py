"""A cluster's name in a history: its own, followed by the number of the history."""

SEPARATOR = "\x1f"
"""Between a cluster's name and the number of a history; no name that people read has it."""


def cluster_of(cluster: str, history: int) -> str:
    """The name of a cluster in a history."""
    return f"{cluster}{SEPARATOR}{history}"


def given_name(cluster: str) -> str:
    """The cluster's own name, whether or not a history is named with it.

    >>> given_name(cluster_of("prod", 3)), given_name("prod")
    ('prod', 'prod')
    """
    return cluster.rpartition(SEPARATOR)[0] or cluster
