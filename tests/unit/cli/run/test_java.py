from pathlib import Path

import pytest

from rebalance_core.cli.run import jvm
from rebalance_core.cli.run.jvm import find_java_home, require_java_home
from rebalance_core.model.errors import UsageError


def fake_java(home: Path, version: str) -> Path:
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    launcher.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java of this machine's own is in the way."""
    monkeypatch.setattr(jvm, "INSTALLED", tmp_path / "jvm")
    monkeypatch.setattr(jvm, "FETCHED", tmp_path / ".java")


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
