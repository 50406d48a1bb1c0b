"""What is set before a JVM is started for a job."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from rebalance_core.cli.run import on_spark, session
from rebalance_core.cli.settings import resolve_settings


def test_options_of_the_operator_come_after_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", '-XX:TieredStopAtLevel=4 -Da="b  c"')
    for _ in range(2):
        session._prefer_jvm_option("-XX:TieredStopAtLevel=1")
        expected = '-XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4 -Da="b  c"'
        assert os.environ["SPARK_SUBMIT_OPTS"] == expected
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")
    session._prefer_jvm_option("-XX:TieredStopAtLevel=1")
    assert os.environ["SPARK_SUBMIT_OPTS"] == "-XX:TieredStopAtLevel=1"


@pytest.mark.parametrize(
    ("job", "output", "in_jvm"),
    [
        ("simulate", "out", False),
        ("simulate", "hdfs://host/out", True),  # Spark writes each table by itself
        ("plan", "out", False),
        ("audit", "out", False),
        ("ingest", "out", False),
    ],
)
def test_the_jvm_computes_rows_unless_tasks_write_the_tables(
    monkeypatch: pytest.MonkeyPatch, job: str, output: str, in_jvm: bool
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(on_spark, "open_session", lambda _, **settings: asked.update(settings))
    options: Any = SimpleNamespace(master=None, debug=False, output=output)
    assert on_spark.OnSpark(job, options, resolve_settings()).session is None
    assert asked["rows_in_jvm"] is in_jvm
