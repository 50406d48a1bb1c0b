"""The notebook of the SQL functions runs, in the session that is there, and prints the same."""

from unittest import mock

import pytest
from pyspark.sql import SparkSession

from rebalance_core.cli.run import session
from tests.jobs.test_notebook import check_copy, source_of
from tests.tree import TREE

NAME = "own_frames"


def test_it_says_what_simulate_says_and_so_does_its_copy(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = mock.create_autospec(session.open_session, return_value=spark.newSession())
    monkeypatch.setattr(session, "open_session", opened)
    monkeypatch.chdir(TREE)
    exec(source_of(NAME), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert "44 rows, 0 differ\n26 rows, 0 differ" in printed
    assert "AVERAGE: unknown strategy: 'AVERAGE'" in printed
    assert "CONSISTENT_HASH(virtual_nodes=200): " in printed
    check_copy(NAME, printed)
