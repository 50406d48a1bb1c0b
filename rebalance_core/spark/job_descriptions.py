"""Descriptions of Spark's jobs in its UI and event log."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from rebalance_core.spark.spark_versions import context_of

_DESCRIPTION = "spark.job.description"
_NAMED = 3
"""The most tables that a description names."""


@contextmanager
def described(session: SparkSession, what: str, tables: Iterable[str] = ()) -> Iterator[None]:
    """Describe the jobs of a block in Spark's UI and event log; under Spark Connect do nothing.

    Args:
        session: Any session.
        what: Description of the jobs, such as ``check``.
        tables: The tables concerned, if they are few.
    """
    context = context_of(session)
    if context is None:
        yield
        return
    names = [*tables]
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    before = context.getLocalProperty(_DESCRIPTION)
    text = f"{what} {', '.join([*names[:_NAMED], *more])}".rstrip()
    context.setLocalProperty(_DESCRIPTION, f"rebalance-core: {text}")
    try:
        yield
    finally:
        # None removes it, which the type hints do not allow
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]
