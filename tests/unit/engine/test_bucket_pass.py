"""A pass for some tables gives them the rows that a pass for all of them does."""

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import SIMULATED_TABLES
from rebalance_core.engine.bucket_pass import bucket_pass
from rebalance_core.engine.options import SimulationOptions, engine_options
from tests.recordings.tables import DATA

pytestmark = pytest.mark.unit


def rows(wanted: tuple[str, ...]) -> dict[str, list[pa.RecordBatch]]:
    options = SimulationOptions()
    tables = check_tables(read_input_tables(str(DATA / "timing" / "tables"))).tables
    found: dict[str, list[pa.RecordBatch]] = {}
    for name, batch in bucket_pass(tables, {}, engine_options(tables, options), options, wanted):
        found.setdefault(name, []).append(batch)
    return found


@pytest.mark.parametrize("wanted", [("ownership",), ("epochs", "diffs"), ("pull_starts",)])
def test_the_tables_wanted_have_the_same_rows_alone(wanted: tuple[str, ...]) -> None:
    every, some = rows(tuple(SIMULATED_TABLES)), rows(wanted)
    assert set(some) & set(SIMULATED_TABLES) == set(wanted)
    for name in wanted:
        found = [row for batch in some[name] for row in batch.to_pylist()]
        assert found == [row for batch in every[name] for row in batch.to_pylist()]
        assert found
