"""Tables that are not as the record has them."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.checks.table_reading import read_table
from rebalance_core.cli.in_python import read_tables
from rebalance_core.cli.main import main
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model.errors import InputRefused


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "tables"
    assert main("generate", ["--groups", "2", "--output", str(folder)]) == 0
    return folder


@pytest.fixture
def tables(generated: Path, tmp_path: Path) -> Path:
    return shutil.copytree(generated, tmp_path / "tables")


def part(folder: Path) -> Path:
    (file,) = (folder / "queue_offsets").glob("*.parquet")
    return file


def halve(folder: Path) -> None:
    rows = pq.read_table(part(folder))
    pq.write_table(rows.slice(0, len(rows) // 2), part(folder))


def twice(folder: Path) -> None:
    shutil.copy(part(folder), part(folder).with_name("part-00001.zstd.parquet"))


def in_a_folder_below(folder: Path) -> None:
    below = folder / "queue_offsets" / "copy"
    below.mkdir()
    shutil.copy(part(folder), below / "part-0.parquet")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "half": (halve, r"queue_offsets has [\d,]+ rows; [\d,]+ are recorded"),
    "twice": (twice, "queue_offsets has"),
    "below": (in_a_folder_below, "queue_offsets has"),
    "emptied": (lambda folder: part(folder).unlink(), "queue_offsets has 0 rows"),
    "gone": (lambda folder: shutil.rmtree(folder / "queue_offsets"), "queue_offsets is missing"),
    "no octet": (lambda folder: part(folder).write_bytes(b""), "part-00000.zstd.parquet is no"),
    "stray": (
        lambda folder: (folder / "queue_offsets" / "notes.txt").write_text("x"),
        "notes.txt is not Parquet",
    ),
    "torn": (
        lambda folder: part(folder).write_bytes(part(folder).read_bytes()[:-100]),
        "is not Parquet",
    ),
    "record torn": (
        lambda folder: os.truncate(folder / "_run.json", 100),
        "_run.json is not JSON",
    ),
    "record empty": (lambda folder: os.truncate(folder / "_run.json", 0), "_run.json is not JSON"),
    "record without a job": (
        lambda folder: (folder / "_run.json").write_text('{"status": "OK", "outputs": {}}'),
        "contract_version, job, library_version is missing",
    ),
    "writing": (
        lambda folder: (folder / "_run.json").rename(folder / "_lock.json"),
        "a run is writing here or died here",
    ),
    "failed": (
        lambda folder: rewrite(folder, status="FAILED", error="no disk"),
        "a run that failed: no disk",
    ),
    "newer": (lambda folder: rewrite(folder, contract_version=99), "upgrade rebalance-core"),
}


def rewrite(folder: Path, **changes: object) -> None:
    record = json.loads((folder / "_run.json").read_text())
    (folder / "_run.json").write_text(json.dumps(record | changes))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_changed_table_is_refused_by_every_reader(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    change, said = DAMAGES[damage]
    change(tables)
    output = str(tmp_path / "out")
    for job in ("simulate", "plan", "propagate", "audit"):
        for more in ((), ("--dry-run",)):
            assert main(job, ["--input", str(tables), "--output", output, *more]) == 4
            assert re.search(said, capsys.readouterr().err)
    for read in (read_tables, read_input_tables):
        with pytest.raises(InputRefused, match=said):
            read(str(tables))
    assert not Path(output).exists()


@pytest.mark.parametrize("damage", ["half", "emptied", "twice", "writing"])
def test_a_changed_table_is_refused_by_itself(
    tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    change, said = DAMAGES[damage]
    change(tables)
    one = str(tables / "queue_offsets")
    with pytest.raises(InputRefused, match=said):
        read_table(INPUT_TABLES["queue_offsets"], one)
    words = ["--events", str(tables / "cluster_events"), "--queue-offsets", one]
    assert main("simulate", [*words, "--output", str(tmp_path / "out")]) == 4
    assert re.search(said, capsys.readouterr().err)


def test_what_is_as_recorded_and_what_has_no_record_is_read(tables: Path) -> None:
    (tables / "queue_offsets" / "_SUCCESS").touch()
    (tables / "queue_offsets" / ".part-0.crc").write_bytes(b"x")
    assert len(read_tables(str(tables)).queue_offsets) > 0
    halve(tables)
    (tables / "_run.json").unlink()  # a folder that was made by hand
    assert len(read_tables(str(tables)).queue_offsets) > 0
