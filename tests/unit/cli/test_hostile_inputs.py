"""An input that is no plain file is refused, and a line that is no JSON is a bad row."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree

import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.cli.main import main
from rebalance_core.model.errors import InputRefused
from tests.tree import TREE
from tests.unit.cli.test_hostile_files import bound

TABLES = TREE / "rebalance_core/bundled/demo/join-leave/tables"


@contextmanager
def ended(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[list[str]], str]]:
    def run(words: list[str]) -> str:
        code = main(None, [*words, "--run-on", "process"])
        said = capsys.readouterr().err
        assert code == 4, said
        assert "this is a bug" not in said
        return said

    yield run


SPECIAL = {
    "pipe": os.mkfifo,
    "socket": bound,
    "device": lambda p: p.symlink_to("/dev/zero"),
    "link to nothing": lambda p: p.symlink_to("nothing.jsonl"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("where", ["queue_offsets.jsonl", "queue_offsets/part-0.jsonl"])
def test_a_table_that_is_no_plain_file_is_refused(
    special: str, where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tables"
    copytree(TABLES, folder)
    for file in folder.glob("queue_offsets*"):
        file.unlink()
    (folder / where).parent.mkdir(exist_ok=True)
    SPECIAL[special](folder / where)
    if "/" in where:
        (folder / "queue_offsets/part-1.jsonl").write_text("{}\n")
    with pytest.raises(InputRefused, match="cannot be read"):
        read_input_tables(str(folder))
    with ended(capsys) as run:
        said = run(["simulate", "--input", str(folder), "--output", str(tmp_path / "out")])
        events = str(next(TABLES.glob("cluster_events*")))
        run(
            [
                "simulate",
                "--events",
                events,
                "--queue-offsets",
                str(folder / "queue_offsets*"),
                "--output",
                str(tmp_path / "out"),
            ]
        )
    assert "cannot be read" in said


@pytest.mark.parametrize(
    "line", ['{"a":' * 20_000, '{"event_ms":' + "9" * 5_000 + "}", "[" * 20_000]
)
def test_lines_of_a_table_that_json_does_not_take_are_bad_rows(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/cluster_events.jsonl").write_text(f"{line}\n")
    with ended(capsys) as run:
        said = run(["simulate", "--input", f"{tmp_path}/in", "--output", f"{tmp_path}/out"])
    assert "1 of 1 rows are bad" in said
