"""The contestants of `engine`, and the seconds that each of them took."""

import tempfile
import time
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.digest import table_written
from rebalance_core.spark.engine.work_units import AssignedRows
from rebalance_core.spark.tables.write import write_table
from tests.bench.passes.own_pass import OwnPass
from tests.bench.report import say

CONTESTANTS = (
    VECTORIZED,
    FROM_MEMORY,
    OWN,
    WRITTEN,
    FROM_MEMORY_WRITTEN,
    PER_GROUP,
    REFERENCE,
) = (
    "engine",
    "from memory",
    "the job's own pass",
    "engine, written",
    "from memory, written",
    "applyInPandas per group",
    "reference (share)",
)


@dataclass
class Bench:
    """The rows to work on, and the seconds of every contestant in every round."""

    spark: SparkSession
    assigned: AssignedRows
    members: DataFrame
    """The rows of members, not packed."""
    own: OwnPass
    tasks: int
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def run(self, name: str, frame: DataFrame, *, written: bool = False) -> float:
        """Compute every row and throw it away, or write it as the job does."""
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            if written:
                write_table(frame, folder, "ownership")
            else:
                frame.write.format("noop").mode("overwrite").save()
            taken = time.perf_counter() - begin
        return self._took(name, taken)

    def run_own(self, expected: tuple[int, int]) -> float:
        """The job's own pass; what it writes must have these rows and this sum of hashes."""
        taken, written = self.own.run("ownership")
        assert written == table_written(*expected), "the job's own pass gives other rows"
        return self._took(OWN, taken)

    def _took(self, name: str, taken: float) -> float:
        self.seconds.setdefault(name, []).append(taken)
        say(f"  {name:<24} {taken:8.2f} s")
        return taken
