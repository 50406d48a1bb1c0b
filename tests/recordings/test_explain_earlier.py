"""``explain`` names the earlier night that showed a fact, in the ledger of a continued audit."""

from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from tests.recordings.continued_nights import collection_of
from tests.recordings.nights import TwoNights, two_nights

AT_MS = 1_795_232_842_000
"""After the second night began."""
CLIENT = "10.1.0.11@22602#3011742525158"
DUMP = f"mqadmin/1795232822655-consumerStatus-s-hash/{CLIENT}.txt"
"""What the client answered in the first night; the second did not ask it."""
QUEUE = "orders/room1@broker-a/3"
"""Held by that client."""


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> TwoNights:
    found = two_nights(collection_of("strategies"), tmp_path_factory.mktemp("nights"), 0)
    assert (found.first / DUMP).is_file()
    assert not (found.second / DUMP).exists()
    return found


def explain(collection: Path, output: Path, *words: str) -> None:
    assert main("audit", ["--collection", str(collection), "--output", str(output), *words]) == 3
    of_queue = ["--group", "s-hash", "--queue", QUEUE, "--at", str(AT_MS)]
    assert main("explain", ["--ledger", str(output), *of_queue]) == 0


def test_it_is_named_in_the_night_that_continues_and_nowhere_else(
    nights: TwoNights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main("audit", ["--collection", str(nights.first), "--output", str(tmp_path / "first")])
    capsys.readouterr()
    state = ["--state", str(tmp_path / "first"), "--previous", str(tmp_path / "first")]
    explain(nights.second, tmp_path / "second", *state)
    (note,) = (line for line in capsys.readouterr().out.splitlines() if "night of" in line)
    facts = "strategy CONSISTENT_HASH, subscriptions orders, version 5.3.3"
    assert note.startswith(f"  {facts} of {CLIENT}: shown by the night of 2026-11-21 03:47:02Z (")
    assert f"({DUMP})" in note
    assert note.endswith("and by no file since this one began (2026-11-21 03:47:15Z)")
    explain(nights.both, tmp_path / "both")
    assert "night of" not in capsys.readouterr().out
