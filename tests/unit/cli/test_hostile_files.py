"""A file that is no settings file, or no input: a sentence and a code, in each option."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from rebalance_core.audit.known_issues import read_accepted
from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.cli.main import main
from rebalance_core.cli.settings import resolve_settings
from rebalance_core.contracts.settings_file import MOST_BYTES, option_text
from rebalance_core.history.owners import read_owners
from rebalance_core.ingest.collection_settings import read_settings
from rebalance_core.model.errors import InputRefused, RebalanceError, UsageError
from rebalance_core.planning.producer_model import read_model
from rebalance_core.planning.rollout.search import read_search
from rebalance_core.planning.scenario.file import read_scenarios
from tests.tree import TREE

TABLES = TREE / "rebalance_core/bundled/demo/join-leave/tables"
READERS: dict[str, Callable[[Path], Any]] = {
    "--config": lambda path: resolve_settings([str(path)]),
    "--scenario": lambda path: read_scenarios([path]),
    "--search": read_search,
    "--model": read_model,
    "--accepted": lambda path: read_accepted(
        option_text("--accepted", str(path)), str(path), ("R",), (), date(2026, 1, 1)
    ),
    "--owners": lambda path: read_owners(option_text("--owners", str(path)), str(path)),
    "collection.toml": lambda path: read_settings(path.parent),
}


def big(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)


def bound(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


CONTENTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "arrays": (lambda p: p.write_text("a = " + "[" * 20_000 + "]" * 20_000), "nested deeper than"),
    "tables": (lambda p: p.write_text("a = " + "{a=" * 20_000 + "1" + "}" * 20_000), "nested"),
    "a key": (lambda p: p.write_text(".".join("a" * 20_000) + " = 1"), "nested deeper than 100"),
    "a head": (lambda p: p.write_text("[" + ".".join(["'a'"] * 500) + "]"), "nested deeper than"),
    "digits": (lambda p: p.write_text("max_bad_share = " + "9" * 5_000), "digits"),
    "fewer digits": (lambda p: p.write_text("max_bad_share = " + "9" * 4_000), "of 13288 bits"),
    "nul": (lambda p: p.write_bytes(b"a = 1\0"), "not TOML"),
    "latin": (lambda p: p.write_bytes(b'a = "\xe9"'), "not UTF-8"),
    "utf-16": (lambda p: p.write_text("a = 1", "utf-16"), "not UTF-8"),
    "folder": (lambda p: p.mkdir(), "Is a directory"),
    "pipe": (os.mkfifo, "it is a pipe"),
    "socket": (bound, "it is a socket"),
    "device": (lambda p: p.symlink_to("/dev/zero"), "it is a device"),
    "loop": (lambda p: p.symlink_to(p), "Too many levels"),
    "large": (big, "a settings file may have 16,777,216"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("option", READERS)
@pytest.mark.parametrize("content", CONTENTS)
def test_what_is_no_settings_file_is_refused(option: str, content: str, tmp_path: Path) -> None:
    make, said = CONTENTS[content]
    make(tmp_path / "collection.toml")
    kind: type[RebalanceError] = InputRefused if option == "collection.toml" else UsageError
    with pytest.raises(kind) as caught:
        READERS[option](tmp_path / "collection.toml")
    assert said in str(caught.value)
    assert "collection.toml" in str(caught.value)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("option", READERS)
def test_a_byte_order_mark_is_no_part_of_the_text(option: str, tmp_path: Path) -> None:
    (tmp_path / "collection.toml").write_text("colour = 1", "utf-8-sig")
    with pytest.raises(RebalanceError, match="unknown key colour"):
        READERS[option](tmp_path / "collection.toml")


@pytest.mark.parametrize("option", READERS)
def test_the_first_twenty_unknown_keys_are_named(option: str, tmp_path: Path) -> None:
    keys = "\n".join(f"key{n} = 1" for n in range(30_000))
    (tmp_path / "collection.toml").write_text(keys)
    with pytest.raises(RebalanceError) as caught:
        READERS[option](tmp_path / "collection.toml")
    text = str(caught.value)
    assert text.count("unknown key key") == 20
    assert "unknown key key19" in text
    assert "29,980 more unknown keys" in text


@pytest.mark.parametrize(
    "value", ["[" * 20_000, "[" * 2_000 + "]" * 2_000, "9" * 5_000, "{a=" * 9_000]
)
def test_a_value_of_set_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="expected a number from 0 to 1") as caught:
        resolve_settings([], [f"max_bad_share={value}"])
    assert len(str(caught.value)) < 500


# Inputs.


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
