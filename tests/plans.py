"""Plans where they can be made: in this process, and on Spark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow.dataset as ds
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.engine.options import RowForecast
from rebalance_core.planning.sweep.plan_options import PlanConfig, PlanResult
from rebalance_core.planning.variants import Variants
from rebalance_core.process import plan as in_process
from rebalance_core.process.plan import read_queue_rates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACES = [
    pytest.param("process", marks=pytest.mark.unit),
    pytest.param("spark", marks=pytest.mark.spark),
]
"""Parameters of a fixture: each test runs in both, the first in the lane without a JVM."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where plans are made; without a session in this process."""

    session: "SparkSession | None" = None

    def plan(
        self,
        folder: Path,
        variants: Variants,
        output: Path,
        config: PlanConfig | None = None,
        *,
        rates: Path | None = None,
        before_writing: Callable[[Mapping[str, int]], None] | None = None,
    ) -> PlanResult:
        """`run_plan` of a folder of tables, and of a file of rates."""
        if self.session is None:
            return in_process.run_plan(
                read_input_tables(str(folder)),
                variants,
                output,
                config,
                queue_rates=None if rates is None else read_queue_rates(str(rates)),
                before_writing=before_writing,
            )
        from rebalance_core.spark import InputTables
        from rebalance_core.spark.plan import run_plan
        from rebalance_core.spark.runtime import SparkRuntime

        session, runtime = self.session, SparkRuntime(self.session)
        return run_plan(
            session,
            InputTables.read(session, str(folder)),
            variants,
            str(output),
            config,
            queue_rates=None if rates is None else read_queue_rates(str(rates), runtime=runtime),
            before_writing=before_writing,
        )

    def forecast(
        self, folder: Path, variants: Variants, config: PlanConfig | None = None
    ) -> tuple[RowForecast, tuple[str, ...]]:
        """`plan_forecast` of a folder of tables."""
        if self.session is None:
            inputs = read_input_tables(str(folder))
            return in_process.plan_forecast(inputs, variants, config)
        from rebalance_core.spark import InputTables
        from rebalance_core.spark.runtime import SparkRuntime

        inputs_of_spark, runtime = (
            InputTables.read(self.session, str(folder)),
            SparkRuntime(self.session),
        )
        return in_process.plan_forecast(inputs_of_spark, variants, config, runtime=runtime)


def rows_of(output: Path, table: str) -> list[Row]:
    """A table as it was written, with the contract's columns, by its key."""
    contract = ALL_TABLES[table]
    written = ds.dataset(output / table).to_table(columns=list(contract.column_names))
    key = [(name, "ascending") for name in contract.key]
    rows: list[Row] = (written.sort_by(key) if key else written).to_pylist()
    return rows


RowT = TypeVar("RowT", bound=Mapping[str, object])


def differing(one: Sequence[RowT], other: Sequence[RowT]) -> list[tuple[RowT, RowT]]:
    """Pairs of rows that differ; doubles, which are added up in any order, may in the last bits."""
    return [
        (row, twin)
        for row, twin in zip(one, other, strict=True)
        if list(row) != list(twin) or not all(_same(row[name], twin[name]) for name in row)
    ]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-12, abs=0)
    return bool(one == other)
