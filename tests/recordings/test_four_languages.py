"""Groups whose members are clients of four languages, audited from a collection.

Who holds what is what the clients themselves gave when they were run (`tests/vectors`): each member
has the share that its own language's vector has.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.audit.group_snapshot import queue_names
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import parse_strategy
from tests.recordings.audited import audit_folder
from tests.recordings.language_groups import write_group
from tests.recordings.tables import Tables
from tests.tree import TREE

VECTORS = TREE / "tests" / "vectors"
RUN = ("GO", "CPP", "NODE", "RUST")
FOUR = ("CPP", "JAVA", "GO", "NODE")
Shares = dict[str, list[MessageQueue]]


@cache
def vectors(language: str) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    """The questions of a language's file by strategy, parameters, queues and ids."""
    path = VECTORS / f"language-vectors-{language.lower()}.jsonl"
    cases = map(json.loads, path.read_text("utf-8").splitlines())
    return {
        (one["strategy"], str(one["params"]), str(one["queues"]), str(one["cids"])): one
        for one in cases
    }


def text_of(case: Mapping[str, Any]) -> str:
    name, params = str(case["strategy"]), case["params"]
    if name == "MACHINE_ROOM":
        return (
            f"{name}(consumer_idcs={'|'.join(params)})"  # Go counts a room twice that is there so
        )
    return f"{name}(virtual_nodes={params})" if params else name


def groups(strategy: str) -> list[dict[str, Any]]:
    """Questions put to Go that a real group can have: some members, all queues of their topic."""
    found = []
    for case in vectors("GO").values():
        ids, queues = case["cids"], [MessageQueue(*queue) for queue in case["queues"]]
        numbers: dict[str, list[int]] = defaultdict(list)
        for queue in queues:
            numbers[queue.broker_name].append(queue.queue_id)
        if (
            case["strategy"] == strategy
            and case["order"] == "sorted"
            and len(FOUR) <= len(ids) == len({one.partition("@")[0] for one in ids})
            and all(one.isascii() for one in ids)
            and len({queue.topic for queue in queues}) == 1
            and all(sorted(its) == list(range(len(its))) for its in numbers.values())
        ):
            found.append(case)
    return found


def share(case: Mapping[str, Any], client_id: str, language: str) -> list[MessageQueue]:
    """What a member of a language took when it was run; of Java, our own strategy's answer."""
    queues = [MessageQueue(*queue) for queue in case["queues"]]
    if language == "JAVA":
        return parse_strategy(text_of(case)).allocate(client_id, queues, case["cids"])
    key = (case["strategy"], str(case["params"]), str(case["queues"]), str(case["cids"]))
    (answer,) = (one for one in vectors(language)[key]["answers"] if one["self"] == client_id)
    return [queues[place] for place in answer["result"]]


def held_by(
    case: Mapping[str, Any], languages: Iterable[str]
) -> tuple[dict[str, str], dict[MessageQueue, list[str]]]:
    """The members' languages by turns, and who holds each queue."""
    members = dict(zip(case["cids"], cycle(languages), strict=False))
    held: dict[MessageQueue, list[str]] = {MessageQueue(*queue): [] for queue in case["queues"]}
    for client_id, language in members.items():
        for queue in share(case, client_id, language):
            held[queue].append(client_id)
    return members, held


def verdict(tables: Tables) -> tuple[str, int]:
    (row,) = (one for one in tables["group_verdicts"] if one["consumer_group"] == "g-mixed")
    return row["verdict"], row["differences"]


def severities(tables: Tables) -> dict[str, str]:
    return {row["rule_id"]: row["severity"] for row in tables["findings"]}


SOUND = groups("AVG")


@pytest.mark.parametrize(
    "languages", [FOUR, ("GO",), ("GO", "JAVA"), ("RUST", "GO", "CPP", "JAVA")]
)
@pytest.mark.parametrize("case", SOUND, ids=[str(one["case"]) for one in SOUND])
def test_a_sound_group_is_equal(
    case: dict[str, Any], languages: tuple[str, ...], tmp_path: Path
) -> None:
    members, held = held_by(case, languages)
    tables = audit_folder(write_group(tmp_path / "c", members, held))
    assert verdict(tables) == ("EQUAL", 0)
    assert "ERROR" not in severities(tables).values()
    mixed = "INFO" if len(languages) > 1 else None
    assert severities(tables).get("MIXED_LANGUAGES") == mixed


RINGS = [one for one in groups("CONSISTENT_HASH") if one["params"] == 10]


@pytest.mark.parametrize("named", [True, False], ids=["named", "inferred"])
@pytest.mark.parametrize("case", RINGS, ids=[str(one["case"]) for one in RINGS])
def test_the_audit_names_what_go_and_java_leave_out_and_read_twice(
    case: dict[str, Any], named: bool, tmp_path: Path
) -> None:
    """The ledger predicts just what the clients took, so live ownership is EQUAL, and wrong."""
    members, held = held_by(case, ("JAVA", "GO"))
    folder = write_group(tmp_path / "c", members, held, text_of(case) if named else None)
    tables = audit_folder(folder)
    assert verdict(tables) == ("EQUAL", 0)
    found = {row["rule_id"]: row for row in tables["findings"]}
    nobody = [queue for queue, owners in held.items() if not owners]
    several = {queue: owners for queue, owners in held.items() if len(owners) > 1}
    mixed = found["MIXED_LANGUAGES"]
    assert mixed["severity"] == ("ERROR" if nobody or several else "INFO")
    assert mixed["evidence"].get("no_owner") == (named_queues(nobody) if nobody else None)
    assert mixed["evidence"].get("several") == (
        ", ".join(f"{named_queues([one])} by {' and '.join(several[one])}" for one in several)
        if several
        else None
    )
    assert ("MIXED_STRATEGIES" in found, "MIXED_VERSIONS" in found) == (False, False)
    assert ("ORPHAN_QUEUES" in found) == bool(nobody)
    if nobody or several:
        assert mixed["remedy"] == (
            "Set AVG or AVG_BY_CIRCLE in every member: with "
            "it, all members divide queues identically."
        )


GO_RINGS = [one for one in groups("CONSISTENT_HASH") if len(one["queues"]) > 2 * len(one["cids"])]


@pytest.mark.parametrize("case", GO_RINGS, ids=[str(one["case"]) for one in GO_RINGS])
def test_the_points_of_go_s_ring_are_inferred(case: dict[str, Any], tmp_path: Path) -> None:
    """Go has no usual number of them; only one of those that people give fits what is held."""
    members, held = held_by(case, ("GO",))
    tables = audit_folder(write_group(tmp_path / "c", members, held))
    assert verdict(tables) == ("EQUAL", 0)
    (found,) = (r for r in tables["findings"] if r["rule_id"] == "INGEST_STRATEGY_INFERRED")
    usual = "CONSISTENT_HASH" if case["params"] == 10 else text_of(case)
    assert found["evidence"]["strategy"] == usual


OTHERS = [
    one
    for strategy in ("AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM")
    for one in groups(strategy)
    if len(one["queues"]) >= len(one["cids"])
]


@pytest.mark.parametrize("languages", [("GO",), ("RUST", "JAVA"), ("GO", "RUST", "JAVA")])
@pytest.mark.parametrize("case", OTHERS, ids=[str(one["case"]) for one in OTHERS])
def test_by_every_strategy_live_ownership_is_equal_and_what_is_lost_is_named(
    case: dict[str, Any], languages: tuple[str, ...], tmp_path: Path
) -> None:
    members, held = held_by(case, languages)
    tables = audit_folder(write_group(tmp_path / "c", members, held, text_of(case)))
    assert verdict(tables) == (("EQUAL" if any(held.values()) else "UNKNOWN"), 0)
    uniform = [held_by(case, (language,))[1] for language in languages]
    lost = [q for q, owners in held.items() if not owners and any(one[q] for one in uniform)]
    twice = [queue for queue, owners in held.items() if len(owners) > 1]
    if len(languages) > 1:
        (mixed,) = (row for row in tables["findings"] if row["rule_id"] == "MIXED_LANGUAGES")
        assert mixed["severity"] == ("ERROR" if lost or twice else "INFO")
        assert mixed["evidence"].get("no_owner") == (named_queues(lost) if lost else None)
        several = mixed["evidence"].get("several", "")
        assert several.count(" by ") == len(twice)


def named_queues(queues: Iterable[MessageQueue]) -> str:
    return f"T {queue_names((queue.broker_name, queue.queue_id) for queue in queues)}"


def test_a_sound_group_of_which_half_the_members_answer_is_equal(tmp_path: Path) -> None:
    """Recorded: C++ 1.0.1 and ali-ons answer nothing, and consumerProgress -s is N/A throughout."""
    members, held = held_by(SOUND[4], FOUR)
    folder = write_group(tmp_path / "c", members, held, holders_shown=False, answers=True)
    tables = audit_folder(folder)
    assert verdict(tables) == ("EQUAL", 0)
    assert {*severities(tables).values()} == {"INFO"}
    untold = next(row for row in tables["findings"] if row["rule_id"] == "QUEUES_NOT_TOLD")
    said = (
        "2 of 4 members did not report their queues (CPP, ali-ons); 4 queues could not be verified"
    )
    assert said in untold["summary"]


def test_members_that_do_not_report_which_queues_they_hold_raise_no_alarm(tmp_path: Path) -> None:
    """mqadmin gives up at the first that does not answer: consumerProgress -s is N/A throughout."""
    members, held = held_by(SOUND[4], FOUR)
    folder = write_group(tmp_path / "c", members, held, "AVG", holders_shown=False)
    tables = audit_folder(folder)
    assert verdict(tables) == ("UNKNOWN", 0)
    assert "ERROR" not in severities(tables).values()
    assert severities(tables)["MIXED_LANGUAGES"] == "INFO"


def test_a_group_that_holds_otherwise_is_reported(tmp_path: Path) -> None:
    """The comparison above does not pass by comparing nothing."""
    members, held = held_by(SOUND[5], ("JAVA", "GO"))
    one, other = next(iter(members)), list(members)[-1]
    for owners in held.values():
        owners[:] = [other if owner == one else owner for owner in owners]
    tables = audit_folder(write_group(tmp_path / "c", members, held, "AVG"))
    assert verdict(tables)[0] == "DIFFERS"


@pytest.mark.parametrize("named", ["AVG", None])
def test_beside_a_net_client_owners_are_unknown(named: str | None, tmp_path: Path) -> None:
    """It sorts ids as its host does: here as Java, or as ICU, where it takes a Java one's share."""
    members = dict(zip(SOUND[5]["cids"], cycle(("JAVA", "DOTNET")), strict=False))
    for swapped in (False, True):
        held = held_by(SOUND[5], ("JAVA", "JAVA"))[1]
        net = [one for one, language in members.items() if language == "DOTNET"]
        other = dict(zip(net, reversed(net), strict=True)) if swapped else {}
        held = {queue: [other.get(one, one) for one in owners] for queue, owners in held.items()}
        tables = audit_folder(write_group(tmp_path / str(swapped), members, held, named))
        (row,) = (one for one in tables["group_verdicts"] if one["consumer_group"] == "g-mixed")
        assert (row["verdict"], row["reason"]) == ("UNKNOWN", "LANGUAGE")
        assert "ERROR" not in severities(tables).values()
        assert severities(tables)["MIXED_LANGUAGES"] == "WARNING"
