"""Names of the stages in the Spark UI and event log, and the rows that they read and produced."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.process.stage_rows import StageRows
from rebalance_core.spark.spark_versions import context_of

_DESCRIPTION = "spark.job.description"
_GROUP = "spark.jobGroup.id"
OURS = "rebalance-core"
"""The job group for callers without one, and the prefix of all descriptions."""
_NAMED = 3
"""The maximum number of tables that a description names."""


@contextmanager
def described(session: SparkSession, what: str, tables: Iterable[str] = ()) -> Iterator[None]:
    """Describe the jobs of a block in the Spark UI and event log; under Spark Connect, do nothing.

    The jobs also belong to the caller's job group, or to `OURS`.

    Args:
        session: Any session.
        what: Description of the jobs, such as ``check``.
        tables: The tables concerned.
    """
    context = context_of(session)
    if context is None:
        yield
        return
    before = {name: context.getLocalProperty(name) for name in (_DESCRIPTION, _GROUP)}
    context.setLocalProperty(_DESCRIPTION, f"{OURS}: {with_tables(what, tables)}")
    context.setLocalProperty(_GROUP, before[_GROUP] or OURS)
    try:
        yield
    finally:
        for name, value in before.items():
            # None removes it, but the type hints do not allow it
            context.setLocalProperty(name, value)  # type: ignore[arg-type]


def with_tables(what: str, tables: Iterable[str]) -> str:
    """Return a description with the tables that it concerns, naming at most three.

    >>> with_tables("check", ["cluster_events", "consumer_groups"])
    'check cluster_events, consumer_groups'
    """
    names = [*tables]
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return f"{what} {', '.join([*names[:_NAMED], *more])}".rstrip()


@dataclass(frozen=True)
class Stage:
    """A stage whose rows are counted.

    Attributes:
        what: Its description, without `OURS`.
        done: Receives its row counts; one list for all stages of a run, or None.
    """

    what: str
    done: list[StageRows] | None = None

    def writing(self, tables: Iterable[str]) -> Self:
        """Return this stage as one that also writes tables."""
        return replace(self, what=with_tables(f"{self.what}, write", tables))

    def observed(self, counts: DataFrame) -> DataFrame:
        """Return a frame of counts whose sums Spark's listeners receive under the description.

        They are metrics of a ``QueryExecution`` (`DataFrame.observe`). The driver sums the rows
        itself (`count`), because a metric is lost if the optimiser removes its node.

        Args:
            counts: At least ``rows_in`` and ``rows_out``.
        """
        sums = [sf.sum(name).alias(name) for name in ("rows_in", "rows_out")]
        return counts.observe(f"{OURS}: {self.what}", *sums)

    def count(self, counts: Iterable[Mapping[str, Any]]) -> None:
        """Record the rows of the stage, given those from `observed`."""
        if self.done is None:
            return
        rows = [*counts]
        taken, made = (sum(row[name] or 0 for row in rows) for name in ("rows_in", "rows_out"))
        self.done.append(StageRows(self.what, taken, made))


UNNAMED = Stage("make tables")
"""A stage that no run counts."""
