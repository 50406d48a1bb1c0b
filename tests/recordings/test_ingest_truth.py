"""Ingest of the operators' files alone, simulated, against what the clients really did.

``docs/fidelity.md`` holds the figures; they are compared with it here.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import Ingested, ingest_collection
from tests.recordings.tables import (
    DATA,
    RECORDINGS,
    Tables,
    ingested_recording,
    ledger_of,
    replayed,
    rows,
)
from tests.recordings.truth import (
    RETRY,
    Comparison,
    Truth,
    check_moves,
    check_owned,
    check_starts,
    covers,
    read_truth,
    rest_points,
)
from tests.tree import TREE

FIDELITY = TREE / "docs" / "fidelity.md"
EXCEPTION = ("silent-loss", RETRY)
"""See test_truth.py: a thawed broker listed each member many times."""


@dataclass
class Fidelity:
    """What one recording's ingest and simulation is compared in."""

    members: Comparison
    owned: Comparison
    moves: Comparison
    starts: Comparison

    @property
    def parts(self) -> tuple[Comparison, ...]:
        return self.members, self.owned, self.moves, self.starts


@cache
def ingested(name: str) -> Ingested:
    return ingested_recording(name)


@cache
def truth(name: str) -> Truth:
    return read_truth(name)


@cache
def fidelity(name: str) -> Fidelity:
    ledger, derived = ledger_of(ingested(name).tables), replayed(name)
    # truth files are known by the channel names of the derived tables
    named = ledger | {"memberships": derived["memberships"]}
    return Fidelity(
        check_members(name, ledger, derived),
        check_owned(truth(name), named),
        check_moves(truth(name), ledger),
        check_starts(truth(name), ledger),
    )


def check_members(name: str, ledger: Tables, derived: Tables) -> Comparison:
    """The client ids in every group, with duplicates, whenever it is at rest."""
    result = Comparison()
    events = rows(DATA / name / "tables" / "cluster_events.jsonl")
    for group in sorted({row["consumer_group"] for row in derived["memberships"]}):
        own = [e for e in events if e.get("consumer_group", group) == group]
        for at_ms, _ in rest_points(truth(name), own, ordered=False):
            found, real = (
                Counter(
                    row["client_id"]
                    for row in tables["memberships"]
                    if row["consumer_group"] == group and covers(row, at_ms)
                )
                for tables in (ledger, derived)
            )
            result.expect(found == real, name, group, at_ms, "real", real, "ledger", found)
    return result


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_the_files_can_give_is_equal_to_the_truth(name: str) -> None:
    recording, topic = EXCEPTION
    found = [m for part in fidelity(name).parts for m in part.mismatches]
    assert [m for m in found if not (m.startswith(recording + " ") and topic in m)] == []


@pytest.mark.parametrize(
    "name", [*RECORDINGS, "controller", "go-java", "intervals-2", "no-notices"]
)
def test_nothing_in_a_recording_is_misread(name: str) -> None:
    done = ingested(name)
    assert done.tables["rejected"] == []
    assert [one for one in done.stats if one.understood != one.lines] == []


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_documented_figures_are_these(name: str) -> None:
    found = fidelity(name)
    cells = [f"{part.facts:,}" for part in found.parts]
    facts = sum(part.facts for part in found.parts)
    unequal = sum(len(part.mismatches) for part in found.parts)
    expected = f"| {name} | {' | '.join(cells)} | {facts - unequal:,} of {facts:,} |"
    assert expected in FIDELITY.read_text("utf-8")


def test_without_the_given_settings_only_parameters_are_lost(tmp_path: Path) -> None:
    """Machine rooms and the TIMESTAMP are in no file: a finding says so, nothing is made up."""
    import shutil

    for name in ("strategies", "start-offsets"):
        shutil.copytree(DATA / name / "collection", tmp_path / name)
        (tmp_path / name / "consumer_groups.jsonl").unlink()
    rooms: Any = ingest_collection(tmp_path / "strategies").tables
    assumed = [f for f in rooms["findings"] if f["rule_id"] == "INGEST_ASSUMED"]
    assert {f["consumer_group"] for f in assumed} == {"s-near", "s-hash"}
    unknown = {f["consumer_group"] for f in rooms["findings"] if "UNKNOWN" in f["rule_id"]}
    assert unknown == {"s-near"}
    settings = {row["consumer_group"]: row["strategy"] for row in rooms["consumer_groups"]}
    assert settings["s-room"] == "MACHINE_ROOM(consumer_idcs=room1)"
    given = {
        (row["client_id"], row["strategy"])
        for row in rows(DATA / "strategies" / "tables" / "cluster_events.jsonl")
        if row["event_type"] == "CONSUMER_JOIN" and row["consumer_group"] == "s-config"
    }
    told = {
        (row["client_id"], row["strategy"])
        for row in rooms["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN" and row["consumer_group"] == "s-config"
    }
    assert told == given
    times: Any = ingest_collection(tmp_path / "start-offsets").tables
    unknown = {(f["rule_id"], f["consumer_group"]) for f in times["findings"]}
    groups = ("so-ts-mid", "so-ts-future", "so-ts-past")
    assert unknown == {
        ("INGEST_ASSUMED", "so-lite"),  # a heartbeat of lite pull does not tell where it starts
        *(("INGEST_TIMESTAMP_UNKNOWN", group) for group in groups),
    }
