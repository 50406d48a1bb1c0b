"""Jars that are not to be had, or are not those that were locked."""

from pathlib import Path

import pytest

from tests.bench.assignors.jars import NotToBeHad, cache_folder, class_path, locked_jars


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache_folder().mkdir()
    return cache_folder()


def java(folder: Path, script: str) -> Path:
    """A program in the place of Java."""
    path = folder / "java"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_jar_with_another_checksum_is_refused(cache: Path, tmp_path: Path) -> None:
    for jar in locked_jars():
        (cache / jar.file_name).write_bytes(b"another jar")
    with pytest.raises(NotToBeHad, match=r"rocketmq-client-5.3.3.jar has SHA-256 .* remove it"):
        class_path(java(tmp_path, "exit 1"))


def test_no_registry_is_said_with_its_reason(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(NotToBeHad, match="was not reached: UNRESOLVED DEPENDENCIES"):
        class_path(java(tmp_path, "echo UNRESOLVED DEPENDENCIES; exit 1"))


def test_a_jar_that_did_not_come_is_named(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(
        NotToBeHad, match=r"org.apache.rocketmq:rocketmq-client:5.3.3 was not found"
    ):
        class_path(java(tmp_path, "exit 0"))
