"""Logs copied from where the last night ended give the rows of one run over the whole logs."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.collection_settings import SETTINGS_NAME, read_settings
from rebalance_core.ingest.in_process import Ingested, read_collection
from rebalance_core.ingest.opening_evidence import (
    ContinuedCollection,
    OpeningEvidence,
    known_logs,
    with_opening,
)
from rebalance_core.ingest.rows import by_name
from rebalance_core.model.errors import InputRefused
from tests.recordings.continued_nights import collection_of
from tests.recordings.nights import TwoNights, two_nights
from tests.recordings.tables import RECORDINGS
from tests.recordings.test_opening_evidence import NAMING_FILES, kept, rows_of
from tests.unit.collect.machines import SCRIPT, run_script

PLACES = {"brokers": "broker", "namesrv": "namesrv", "proxy": "proxy", "clients": "client"}


def collected(night: Path, state: OpeningEvidence, folder: Path) -> Path:
    """Return a night whose logs the collector copied from where the state ended.

    Its stores and dumps, and logs below names that the collector does not look for, are copies.
    """
    folder.mkdir()
    (folder / "known").write_text(known_logs(state, "FIRST"))
    machines = [
        f"{kind} {place.name} {place} {place if kind == 'broker' else ''}\n"
        for name, kind in PLACES.items()
        for place in sorted((night / name).glob("*"))
        if place.is_dir()
    ]
    (folder / "sources").write_text("".join(machines))
    words = ["--sources", str(folder / "sources"), "--known", str(folder / "known")]
    run = run_script(SCRIPT, folder, *words, "--cluster", "C", "--no-admin")
    assert (run.output / SETTINGS_NAME).is_file(), run.stderr
    made = folder / "night"
    shutil.copytree(night, made)
    logs = [file.name for file in open_collection(night).files if file.is_log]
    for name in logs:
        if (run.output / name).is_file():
            shutil.copy(run.output / name, made / name)
    written = (run.output / SETTINGS_NAME).read_text()
    own = written.partition("\n[[continued]]")
    if own[1]:
        text = (night / SETTINGS_NAME).read_text()
        (made / SETTINGS_NAME).write_text('continues = "FIRST"\n' + text + own[1] + own[2])
    return made


def continued(
    night: Path, before: tuple[OpeningEvidence, pa.Table], folder: Path
) -> tuple[ContinuedCollection, Ingested]:
    """Collect a night and read it as the continuation of the one before."""
    state, evidence = before
    collection = with_opening(open_collection(collected(night, state, folder)), state)
    return collection, read_collection(collection, opening=collection.rows(evidence.to_batches()))


def first_of(nights: TwoNights) -> tuple[OpeningEvidence, pa.Table]:
    collection = open_collection(nights.first)
    return kept(collection, read_collection(collection))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_rows_are_those_of_one_run_over_the_whole_logs(
    recording: str, seed: int, tmp_path: Path
) -> None:
    nights = two_nights(collection_of(recording), tmp_path / "nights", seed)
    _, read = continued(nights.second, first_of(nights), tmp_path / "collected")
    left_out = NAMING_FILES if nights.gone else ()
    whole = read_collection(open_collection(nights.both))
    assert rows_of(by_name(read.tables), left_out) == rows_of(by_name(whole.tables), left_out)


@pytest.mark.parametrize("recording", ["join-leave", "scale-out-4.9"])
def test_three_nights_are_those_of_one_run_over_all(recording: str, tmp_path: Path) -> None:
    went_on = 0
    for seed in range(4):
        folder = tmp_path / str(seed)
        later = two_nights(collection_of(recording), folder / "later", seed)
        earlier = two_nights(later.first, folder / "earlier", seed + 10, rotates=False)
        second, read = continued(earlier.second, first_of(earlier), folder / "second")
        third, read = continued(later.second, kept(second, read), folder / "third")
        went_on += sum(file.left_out > 0 for file in third.files)
        whole = read_collection(open_collection(later.both))
        assert rows_of(by_name(read.tables), NAMING_FILES) == rows_of(
            by_name(whole.tables), NAMING_FILES
        ), seed
    assert went_on


@pytest.fixture
def nights(tmp_path: Path) -> TwoNights:
    return two_nights(collection_of("join-leave"), tmp_path / "nights", 1, rotates=False)


def test_only_what_grew_is_copied(nights: TwoNights, tmp_path: Path) -> None:
    collection, _ = continued(nights.second, first_of(nights), tmp_path / "collected")
    logs = [file for file in collection.own_files if file.left_out]
    assert logs
    for file in logs:
        whole = (nights.second / file.name).read_bytes()
        assert collection.path_of(file).read_bytes() == whole[file.begins_at :]
        assert (file.size, file.lines_before) == (
            len(whole),
            whole[: file.begins_at].count(b"\n"),
        )


def test_what_an_earlier_run_has_read_is_not_taken_for_all(
    nights: TwoNights, tmp_path: Path
) -> None:
    state, _ = first_of(nights)
    folder = collected(nights.second, state, tmp_path / "collected")
    with pytest.raises(InputRefused, match=r"name that run: --state FIRST"):
        read_collection(open_collection(folder))
    other = first_of(TwoNights(nights.both, nights.both, nights.both, False))
    with pytest.raises(InputRefused, match=r"continues at byte .* continues FIRST"):
        with_opening(open_collection(folder), other[0])


@pytest.mark.parametrize(
    "text",
    [
        "continued = 1",
        '[[continued]]\nlog = "a"',
        '[[continued]]\nlog = "a"\nhead = "b"\nbegins_at = 0\nsize = 5',
        '[[continued]]\nlog = "a"\nhead = "b"\nbegins_at = true\nsize = 5',
        "continues = 1",
    ],
)
def test_settings_that_no_collector_wrote_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / SETTINGS_NAME).write_text(f'cluster = "C"\n{text}\n')
    with pytest.raises(InputRefused, match="continue"):
        read_settings(tmp_path)
