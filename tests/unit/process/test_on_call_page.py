"""What docs/on-call.md shows is what its commands print."""

import re
import shlex
from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from tests.tree import TREE

PAGE = (TREE / "docs/on-call.md").read_text("utf-8")


def test_where_owners_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    after = PAGE.partition("## After the deployment")[2]
    command, python, shown = re.findall(r"```(?:python)?\n(.*?)```", after, re.DOTALL)
    words = shlex.split(command)[1:]
    words[words.index("--input") + 1] = str(TREE / words[words.index("--input") + 1])
    monkeypatch.chdir(tmp_path)
    assert main(None, words) == 0
    capsys.readouterr()
    exec(compile(python, "docs/on-call.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert f"Of {len(printed)} lines" in after
    assert [line for line in printed if line.startswith("so-last ")] == shown.splitlines()


def test_a_question_of_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = PAGE.partition("## What happens if")[2]
    toml, shown = re.findall(r"```(?:toml)?\n(.*?)```", part, re.DOTALL)[:2]
    monkeypatch.chdir(tmp_path)
    Path("sixteen.toml").write_text(toml)
    tables = str(TREE / "rebalance_core/bundled/demo/join-leave/tables")
    words = ["--input", tables, "--scenario", "sixteen.toml", "--output", "before"]
    assert main("plan", words) == 0
    assert shown.partition("\n\n")[2] in capsys.readouterr().out
