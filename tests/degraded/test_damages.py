"""Every kind of damage finds something to damage, and does the same for the same seed."""

import random

import pytest

from tests.degraded.damages import KINDS
from tests.degraded.files import Files, subjects


def damaged(kind: str, name: str, seed: int) -> tuple[str, Files]:
    files = Files.of(name)
    return KINDS[kind](files, random.Random(seed)), files


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_changes_files_and_is_replayed_by_its_seed(kind: str) -> None:
    said, files = damaged(kind, "pathologies", 7)
    assert said
    again = damaged(kind, "pathologies", 7)
    assert (said, files) == again
    assert files.kept != Files.of("pathologies").kept


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_finds_nothing_leaves_the_files_alone(kind: str) -> None:
    for name in (name for name in subjects() if name.startswith("min-")):
        said, files = damaged(kind, name, 3)
        if not said:
            assert files.kept == Files.of(name).kept, name


def test_a_copy_or_a_renamed_dump_was_taken_when_its_original_was() -> None:
    for kind in ("copies", "clock of dumps", "names escaped"):
        _, files = damaged(kind, "pathologies", 1)
        before = {files.asked_ms(path) for path in Files.of("pathologies").dumps()}
        assert {files.asked_ms(path) for path in files.dumps()} == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_reads_files_that_another_damage_cut(kind: str) -> None:
    files = Files.of("pathologies")
    for path in files.logs():
        files.kept[path] = files.kept[path][: len(files.kept[path]) // 2]
    KINDS[kind](files, random.Random(7))
