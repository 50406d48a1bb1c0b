"""The fenced blocks of a page, what is to be done with each, and a folder to do it in.

A block runs if it is labelled `python` or `sh`, or has no label and a line that begins with a
command. `$ ` before a command: what follows up to the next one is what it prints; so is a block
without a label right behind one that runs. Lines shown are looked for in their order; `…` stands
for anything, and columns at the right may be left out. `toml` and `json` are parsed. Comments of
HTML right before a block say otherwise:

    <!-- not run: REASON -->
    <!-- on Spark -->                       tests/spark runs it, with a session `spark`
    <!-- run: exit=3 DIR=out/demo -->       words to put in place of others; the exit code
    <!-- file: NAME -->                     the block is that file, which commands below it read
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from tests.tree import TREE

PAGES = sorted([*TREE.glob("README*.md"), TREE / "CONTRIBUTING.md", *TREE.glob("docs/**/*.md")])
COMMAND = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:(?:rebalance|make|pip|python3?|git|cd|cp|diff|jq|sed|grep|docker|kubectl|"
    r"ssh|curl|spark-submit|promtool|airflow) |(?:scripts|\.venv|\.)/\S)"
)
MARK = re.compile(r"<!-- (?:(not run|run|file): (.+)|(on Spark)) -->")
FENCE = re.compile(r"```(\S*)")
MOST_SHOWN = 2_000
"""Characters of what a command printed, in a message."""
SHELL = re.compile(r"[|<>;&$*`]|^[A-Z_]+=")
"""What a plain call of ``rebalance`` has not: then no shell is needed, nor a process."""


@dataclass(frozen=True)
class Block:
    """One fenced block; ``line`` is that of its fence, ``marks`` are by kind."""

    page: Path
    line: int
    label: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)
    follows: "Block | None" = None
    """The block right before it, nothing between them."""

    @property
    def place(self) -> str:
        """Where it stands, for messages."""
        return f"{self.page.name}:{self.line}"

    @property
    def kind(self) -> str:
        """`python`, `console`, `sh`, or `data`: nothing to run."""
        if self.label == "python":
            return "python"
        if self.label in ("", "console", "text") and re.search(r"^\$ ", self.text, re.MULTILINE):
            return "console"
        commands = self.label == "" and any(map(COMMAND.match, self.text.splitlines()))
        return "sh" if commands or self.label in ("sh", "bash", "console") else "data"

    @property
    def runs(self) -> bool:
        """Whether this lane runs it."""
        return self.kind != "data" and not {"not run", "file", "on Spark"} & set(self.marks)

    def replaced(self, text: str) -> tuple[str, int]:
        """The text as it is to run, and the exit code that it ends with."""
        words = dict(word.split("=", 1) for word in shlex.split(self.marks.get("run", "")))
        code = int(words.pop("exit", "0"))
        for old, new in words.items():
            text, count = re.subn(rf"(?<![\w/-]){re.escape(old)}(?![\w-])", new, text)
            assert count or self.kind != "python", f"{self.place}: {old} does not stand there"
        return text, code

    def calls(self) -> Iterator[tuple[str, list[str]]]:
        """Each command, on one line, and the lines that it is said to print."""
        command, shown, open_ended = "", list[str](), False
        for line in self.text.splitlines():
            begins = line.startswith("$ ") if self.kind == "console" else bool(line.strip())
            if open_ended or begins:
                if not open_ended and command:
                    yield command, shown
                    command, shown = "", []
                part = line if open_ended else line.removeprefix("$ ")
                open_ended = part.endswith("\\")
                command += " " * bool(command) + part.removesuffix("\\").strip()
            else:
                shown.append(line)
        if command and not command.startswith("#"):
            yield command, shown


def blocks_of(page: Path, text: str | None = None) -> list[Block]:
    """The blocks of a page, in order.

    Raises:
        ValueError: a mark that is none, has no reason, or stands before no block.
    """
    found: list[Block] = []
    marks, inside, last, follows, comment = dict[str, str](), None, "", None, ""
    lines = (page.read_text("utf-8") if text is None else text).splitlines()
    for number, line in enumerate(lines, start=1):
        fence = FENCE.match(line)
        if inside is None and fence:
            if comment:
                raise ValueError(f"{page.name}:{number}: {comment} is no mark of the block")
            inside, label, marked = number, fence[1], marks
            marks, follows = {}, found[-1] if found and last == "```" else None
        elif fence and inside is not None:
            body = "\n".join(lines[inside : number - 1]) + "\n"
            found.append(Block(page, inside, label, body, marked, follows))
            inside, last = None, "```"
        elif inside is None and (mark := MARK.fullmatch(line)):
            marks[mark[1] or mark[3]] = mark[2] or ""
        elif inside is None and line.strip():
            if marks:
                raise ValueError(f"{page.name}:{number}: a mark stands before no block")
            comment = line if line.startswith("<!--") else ""
            last = line
    return found


def missing(shown: Sequence[str], printed: str) -> str | None:
    """The first line shown that is not printed, or not in this order; None: all are."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in shown:
        if line.strip() in ("", "…"):
            continue
        parts = " ".join(line.split()).split("…")
        pattern = re.compile(".*".join(map(re.escape, parts)) + "(?: .*)?")
        if not any(pattern.fullmatch(one) for one in lines):
            return line
    return None


class Folder:
    """Where the blocks of one page run: the tree's folders, and outputs that stand ready.

    Args:
        folder: an empty one.
        ready: outputs that commands may name without having made them, by name.
        read: what was printed since it was asked last, standard error too.
    """

    def __init__(self, folder: Path, ready: dict[str, Path], read: Callable[[], str]) -> None:
        self.folder, self.ready, self.read = folder, ready, read
        self.module = ModuleType("__main__")
        self.printed = ""
        """What the last block printed."""
        for name in ("rebalance_core", "tests", "conf", "docs", "notebooks", "scripts"):
            (folder / name).symlink_to(TREE / name)
        (folder / "out").mkdir()
        (folder / "bin").mkdir()
        command = folder / "bin/rebalance"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rebalance_core.cli.main "$@"\n')
        command.chmod(0o755)

    def write_files(self, blocks: Sequence[Block]) -> None:
        """Write the blocks that are files; commands above and below read them."""
        for block in blocks:
            if "file" in block.marks:
                (self.folder / block.marks["file"]).write_text(block.text)

    def run(self, block: Block) -> None:
        """Do what the block is for.

        Raises:
            AssertionError: it fails, or prints something else.
        """
        if block.label == "toml":
            tomllib.loads(block.text)
        elif block.label == "json":
            [json.loads(line) for line in block.text.splitlines()]
        if not block.runs:
            return
        if block.kind == "python":
            self.execute(block)
            return
        self.printed = ""
        for command, shown in block.calls():
            replaced, code = block.replaced(command)
            found = self.call(replaced)
            printed = self.read()
            self.printed += printed
            assert found == code, (
                f"{replaced} ended with {found}, not {code}:\n{printed[-MOST_SHOWN:]}"
            )
            line = missing(shown, printed)
            assert line is None, f"{replaced} does not print {line!r}, but\n{printed[:MOST_SHOWN]}"

    def execute(self, block: Block, **names: object) -> None:
        """Run a block of Python, with what the blocks before it and ``names`` define."""
        code, _ = block.replaced(block.text)
        self.stand_ready(code)
        self.module.__dict__.update(names)
        exec(compile(code, block.place, "exec"), self.module.__dict__)
        self.printed = self.read()

    def call(self, command: str) -> int:
        """The exit code of a command."""
        from rebalance_core.cli.main import main

        self.stand_ready(command)
        if command.startswith("rebalance ") and not SHELL.search(command.partition(" #")[0]):
            return int(main(None, shlex.split(command, comments=True)[1:]))
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(TREE)},
        )
        print(done.stdout, done.stderr)
        return done.returncode

    def stand_ready(self, text: str) -> None:
        """Link what the text reads and does not write."""
        for name, made in self.ready.items():
            there = self.folder / name
            reads = re.search(rf"(?<!--output )(?<![\w/-]){re.escape(name)}(?![\w-])", text)
            if reads and not there.exists():
                there.symlink_to(made)
