"""What a JVM prints, with a shell in its place: it inherits the same two files."""

import os
import subprocess
import sys

import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.run import jvm as module
from rebalance_core.cli.run.jvm import KEPT_LINES, JvmOutput, jvm_output, last_lines
from rebalance_core.cli.terminal import STDOUT

NOISE = "echo to-stdout; echo WARNING: modules >&2; printf '\\r[Stage 0:> (0 + 1) / 1]\\r' >&2"


@pytest.fixture(autouse=True)
def nothing_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_started", [])


def start(script: str, *, shown: bool) -> None:
    with jvm_output(shown=shown):
        process = subprocess.Popen(["sh", "-c", script])
    process.wait()


def test_it_is_kept_from_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    start(NOISE, shown=False)
    print("ours")
    assert last_lines() == ["to-stdout", "WARNING: modules"]
    assert capfd.readouterr() == ("ours\n", "")


def test_shown_it_goes_to_stderr_whole(capfd: pytest.CaptureFixture[str]) -> None:
    start(NOISE, shown=True)
    print("ours")
    out, err = capfd.readouterr()
    assert (out, last_lines()) == ("ours\n", [])
    assert err.startswith("to-stdout\nWARNING: modules\n\r[Stage 0")


def test_the_files_are_given_back_when_the_start_fails(capfd: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        with jvm_output(shown=False):
            os.write(STDOUT, b"no room for the heap\n")
            raise ValueError("no java")

    with pytest.raises(ValueError, match="no java"):
        fails()
    print("seen")
    print("seen too", file=sys.stderr)
    assert capfd.readouterr() == ("seen\n", "seen too\n")
    assert last_lines() == ["no room for the heap"]


def test_the_last_lines_are_kept_and_none_without_end() -> None:
    start("yes 'line' | head -n 5000; printf %05000d 7; printf ' \\n\\n'; echo end", shown=False)
    lines = last_lines()
    assert len(lines) == KEPT_LINES
    assert lines[-1] == "end"
    assert max(map(len, lines)) == module.LONGEST_LINE


def test_a_progress_bar_alone_passes_to_the_terminal() -> None:
    (source, jvm), (terminal, shown) = os.pipe(), os.pipe()
    output = JvmOutput(source, shown)
    for part in (b"WARN a\n\r[Stage 3:=", b"> (1 + 2) / 4]\r", b"WARN b\r\n", b"\r     \r", b"c"):
        os.write(jvm, part)
    os.close(jvm)
    assert output.last_lines() == ["WARN a", "WARN b", "c"]
    os.close(shown)
    assert os.read(terminal, 1000) == b"\r[Stage 3:=> (1 + 2) / 4]\r\r     \r"


def test_a_bug_is_reported_with_the_last_words_and_a_mistake_without(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    start("echo 'java.lang.OutOfMemoryError: Java heap space'", shown=False)

    def breaks(*_: object) -> None:
        raise ConnectionRefusedError("the JVM is gone")

    assert main(None, ["simulate"]) == 2
    assert "OutOfMemoryError" not in capfd.readouterr().err
    monkeypatch.setattr("rebalance_core.cli.main.parse_options", breaks)
    assert main(None, ["simulate"]) == 1
    assert capfd.readouterr().err.splitlines() == [
        "rebalance: Spark and its JVM last printed:",
        "  java.lang.OutOfMemoryError: Java heap space",
        "rebalance: this is a bug: ConnectionRefusedError: the JVM is gone; see --debug",
    ]
