"""A disk that fills up is the operator's to mend, not a bug, and leaves no half files behind."""

import errno
import os
from pathlib import Path

import pytest

from rebalance_core.cli import main
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.terminal import ExitCode, exit_code_of


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_it_ends_with_2_in_one_line(capsys: pytest.CaptureFixture[str], code: int) -> None:
    arrow = OSError(code, "Error writing bytes to file. Detail: …")
    assert main._explain(arrow, debug=False)[0] == ExitCode.USAGE == exit_code_of(arrow)
    told = capsys.readouterr().err
    why = os.strerror(code)
    assert told == f"rebalance: the output cannot be written, and there is no result: {why}\n"


def test_the_file_is_named_where_it_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match="No space left") as caught, Path("/dev/full").open("w") as f:
        f.write("x")
    caught.value.filename = "/dev/full"
    assert main._explain(caught.value, debug=False)[0] == ExitCode.USAGE
    assert capsys.readouterr().err.endswith("no result: /dev/full: No space left on device\n")


def test_other_errors_are_still_bugs() -> None:
    assert exit_code_of(OSError(errno.EBADF, "x")) == ExitCode.BUG


def test_a_small_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        (typed_place(str(tmp_path)) / "_lock.json").create_text("{}")
    assert list(tmp_path.iterdir()) == []
