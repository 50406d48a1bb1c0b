"""A file that is no settings file: a sentence and a code, in each option."""

import os
import socket
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.accepted_findings import read_accepted
from rebalance_core.cli.settings import resolve_settings
from rebalance_core.contracts.settings_file import MOST_BYTES, option_text
from rebalance_core.history.owners import read_owners
from rebalance_core.ingest.collection_settings import read_settings
from rebalance_core.model.errors import InputRefused, RebalanceError, UsageError
from rebalance_core.planning.producer_model import read_model
from rebalance_core.planning.rollout.search import read_search
from rebalance_core.planning.scenario.file import read_scenarios

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
    "large": (big, "a settings file may have at most 16,777,216"),
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
