"""The notebook of the SQL functions as a plain script, in a session that is there already."""

import pytest
from pyspark.sql import SparkSession

from rebalance_core.contracts import INPUT_TABLES
from tests.jobs.test_notebook import check_copy, source_of
from tests.tree import TREE

NAME = "own_frames"
VIEWS = ("shares", "diffs", "starts", *INPUT_TABLES)


def test_it_states_what_simulate_states_and_so_does_its_copy(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(TREE)
    capsys.readouterr()
    exec(compile(source_of(NAME), NAME, "exec"), {})
    printed = capsys.readouterr().out
    for view in VIEWS:
        assert spark.catalog.dropTempView(view), view
    assert "44 rows, 0 differ\n26 rows, 0 differ" in printed
    assert "AVERAGE: unknown strategy: 'AVERAGE'" in printed
    assert "CONSISTENT_HASH(virtual_nodes=200): " in printed
    check_copy(NAME, printed)
