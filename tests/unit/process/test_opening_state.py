"""A run that begins at the end of another gives the later rows of one run over both inputs."""

from itertools import cycle
from pathlib import Path

import pytest

from rebalance_core.checks.input_tables import ArrowTables, input_tables_of
from rebalance_core.checks.opening_state import with_state
from rebalance_core.engine.options import ENGINES, SimulationOptions
from rebalance_core.process.simulate import simulate, simulate_and_write
from tests.recordings.tables import RECORDINGS
from tests.unit.process.cut_inputs import (
    Tables,
    by_text,
    cuts_of,
    later_rows,
    since,
    state_of,
    tables_of,
    until,
)
from tests.unit.process.test_simulate import day as day  # a fixture


def assert_continues(tables: Tables, cut_ms: int, folder: Path, options: SimulationOptions) -> int:
    """Assert the property for later rows and for all rows again; return how many rows there are."""
    whole = by_text(later_rows(simulate(ArrowTables(tables), options).tables(), cut_ms))
    state = state_of(tables, cut_ms, folder, options)
    for new in (since(tables, cut_ms), tables):
        ledger = simulate(with_state(ArrowTables(new), state), options)
        assert by_text({n: t.to_pylist() for n, t in ledger.tables().items()}) == whole
    return sum(map(len, whole.values()))


@pytest.mark.parametrize(("recording", "engine"), [*zip(RECORDINGS, cycle(ENGINES), strict=False)])
def test_recordings_continue_where_they_are_cut(
    recording: str, engine: str, tmp_path: Path
) -> None:
    tables = tables_of(recording)
    (cut_ms,) = cuts_of(tables, 60, 1)
    assert assert_continues(tables, cut_ms, tmp_path, SimulationOptions(engine=engine))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_generated_day_continues(day: Tables, tmp_path: Path, engine: str) -> None:
    tables = input_tables_of(day).tables
    (cut_ms,) = cuts_of(tables, 3, 1)
    assert assert_continues(tables, cut_ms, tmp_path, SimulationOptions(engine=engine)) > 100


def test_states_follow_each_other(tmp_path: Path) -> None:
    tables = tables_of("nightly")
    first_ms, second_ms = sorted(cuts_of(tables, 8, 2))
    options = SimulationOptions()
    first = state_of(tables, first_ms, tmp_path / "1", options)
    between = since(until(tables, second_ms), first_ms)
    opened = with_state(ArrowTables(between), first)
    simulate_and_write(opened, tmp_path / "2", options, state_output=tmp_path / "of 2")
    second = with_state(ArrowTables(since(tables, second_ms)), str(tmp_path / "of 2"))
    expected = later_rows(simulate(ArrowTables(tables)).tables(), second_ms)
    found = {name: table.to_pylist() for name, table in simulate(second).tables().items()}
    assert by_text(found) == by_text(expected)
    assert found["epochs"]
