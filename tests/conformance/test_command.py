"""``python -m tests.conformance``: formats, exit codes and the last line."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.tree import TREE

VECTORS = TREE / "tests" / "vectors"


def test_files_are_summed_and_the_last_line_states_it(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(VECTORS / "start-offset-vectors.tsv"), str(VECTORS / "replay-vectors-dev.jsonl")]
    assert main(files) == 0
    assert capsys.readouterr().out.endswith("\n6900 facts, 0 mismatches\n")


def test_mismatches_exit_with_1_and_twenty_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (VECTORS / "start-offset-vectors.tsv").read_text(encoding="utf-8").split("\n")[:31]
    wrong = [lines[0], *(line.rpartition("\t")[0] + "\t-9" for line in lines[1:])]
    path = tmp_path / "renamed.txt"
    path.write_text("\n".join(wrong) + "\n", encoding="utf-8")

    assert main([str(path)]) == 1

    printed = capsys.readouterr().out.splitlines()
    assert len([line for line in printed if line.startswith("  renamed.txt:")]) == 20
    assert printed[-1] == "30 facts, 30 mismatches"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version\tlatency_ms\tduration_ms\n4.9.7\t1\t0\n", "unknown format"),
        (b'{"id":0,"version":"4.9.7","queues":[],"calls":[]}\n', "unknown format"),
        (b"", "unknown format"),
        (b"\xff\xfe", "not UTF-8"),
        (None, "cannot be read"),
    ],
    ids=["other columns", "other keys", "empty", "binary", "missing"],
)
def test_what_cannot_be_compared_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    path = tmp_path / "vectors"
    if content is not None:
        path.write_bytes(content)
    assert main([str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(path) in captured.err
    assert message in captured.err


def test_no_file_and_no_fact_exit_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
    header = (VECTORS / "start-offset-vectors.tsv").read_text(encoding="utf-8").split("\n")[0]
    path = tmp_path / "header.tsv"
    path.write_text(header + "\n", encoding="utf-8")
    assert main([str(path)]) == 2
    assert "nothing was compared" in capsys.readouterr().err
