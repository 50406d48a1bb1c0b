"""What is set before a JVM is started for a job."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rebalance_core.cli.run import java_home, on_spark, session
from rebalance_core.cli.run.java_home import find_java_home, require_java_home
from rebalance_core.cli.run.spark_failure import connect_address
from rebalance_core.cli.settings import resolve_settings
from rebalance_core.model.errors import UsageError


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
    ("address", "why"),
    [("sc://127.0.0.1:1", "refused"), ("sc://127.0.0.1:99999", "Port out of range")],
)
def test_a_server_that_does_not_answer_is_reported_at_once(
    monkeypatch: pytest.MonkeyPatch, address: str, why: str
) -> None:
    for name in session._PROXIES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=f"server answers at 127.0.0.1: .*{why}"):
        session.refuse_no_answer(address)


@pytest.mark.parametrize(
    ("master", "remote", "expected"),
    [
        ("sc://a", None, "sc://a"),
        ("sc://a", "sc://b", "sc://a"),
        (None, "sc://b", "sc://b"),
        ("local[2]", "sc://b", None),
        (None, "", None),
        (None, None, None),
    ],
)
def test_where_the_session_is(
    monkeypatch: pytest.MonkeyPatch, master: str | None, remote: str | None, expected: str | None
) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    if remote is not None:
        monkeypatch.setenv("SPARK_REMOTE", remote)
    assert connect_address(master) == expected
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # spark-submit has a session of its own
    assert connect_address(None) is None


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


def fake_java(home: Path, version: str) -> Path:
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    launcher.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java of this machine's own is in the way."""
    monkeypatch.setattr(java_home, "INSTALLED", tmp_path / "jvm")
    monkeypatch.setattr(java_home, "FETCHED", tmp_path / ".java")


def test_the_order_of_places(tmp_path: Path) -> None:
    fetched = fake_java(tmp_path / ".java", "25.0.2")
    assert find_java_home({"PATH": ""}) == fetched
    installed = fake_java(tmp_path / "jvm" / "jdk-17", "17.0.15")
    assert find_java_home({"PATH": ""}) == installed
    on_path = fake_java(tmp_path / "path", "21")
    path = str(on_path / "bin")
    assert find_java_home({"PATH": path}) == on_path
    stated = fake_java(tmp_path / "stated", "17.0.1")
    assert find_java_home({"PATH": path, "JAVA_HOME": str(stated)}) == stated


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_an_old_java_is_passed_over_and_named(tmp_path: Path, version: str) -> None:
    old = fake_java(tmp_path / "old", version)
    with pytest.raises(UsageError, match="needs Java 17 or newer") as caught:
        require_java_home({"PATH": "", "JAVA_HOME": str(old)})
    assert len(str(caught.value).splitlines()) == 1
    assert "apt-get install default-jre-headless" in str(caught.value)
