"""Strategies told from live ownership, with the recordings' logs of the clients taken away."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.group_strategies import (
    GroupStrategies,
    check_parameters,
    fit_strategy,
    group_strategies,
)
from rebalance_core.ingest.in_process import Ingested, ingest_collection
from rebalance_core.ingest.rows import Event
from rebalance_core.strategies import parse_strategy
from tests.recordings.tables import DATA, ledger_of
from tests.tree import TREE

CASES = TREE / "tests" / "cases" / "data"


def without_names(folder: Path, recording: str) -> Path:
    """The collection without the files that name strategies."""
    shutil.copytree(DATA / recording / "collection", folder)
    shutil.rmtree(folder / "clients")
    (folder / "consumer_groups.jsonl").unlink()
    for path in (folder / "mqadmin").glob("*consumerStatus*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


def strategies(done: Any) -> dict[str, str]:
    return {row["consumer_group"]: row["strategy"] for row in done.tables["consumer_groups"]}


def rules(done: Ingested, group: str) -> set[str]:
    return {row["rule_id"] for row in done.tables["findings"] if row.get("consumer_group") == group}


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    return ingest_collection(without_names(tmp_path_factory.mktemp("n") / "c", "nightly"))


def test_ownership_that_fits_the_assumed_strategy_confirms_it(nightly: Ingested) -> None:
    assert strategies(nightly)["order-service"] == "AVG"
    assert "INGEST_STRATEGY_UNKNOWN" not in rules(nightly, "order-service")


def test_ownership_that_fits_another_strategy_names_it(nightly: Ingested) -> None:
    assert strategies(nightly)["pay-service"] == "AVG_BY_CIRCLE"
    assert "INGEST_STRATEGY_INFERRED" in rules(nightly, "pay-service")


def test_ownership_that_fits_none_is_unknown(tmp_path: Path) -> None:
    done = ingest_collection(without_names(tmp_path / "c", "strategies"))
    assert strategies(done)["s-hash"].startswith("CONSISTENT_HASH")
    assert "INGEST_STRATEGY_UNKNOWN" in rules(done, "s-near")


def test_a_dump_that_leaves_a_broker_out_proves_nothing(tmp_path: Path) -> None:
    done = ingest_collection(without_names(tmp_path / "c", "strategies"))
    assert rules(done, "s-room") == {"INGEST_ASSUMED"}


@pytest.mark.parametrize(("lines", "said"), [(13, None), (7, "may lack rows")])
def test_a_dump_that_is_cut_off_fits_no_strategy_and_contradicts_none(
    lines: int, said: str | None, tmp_path: Path
) -> None:
    folder = tmp_path / "c"
    shutil.copytree(CASES / "min-06-go-member", folder)
    (dump,) = (folder / "mqadmin").glob("*consumerProgress-s-G1.txt")
    dump.write_text("".join(dump.read_text().splitlines(keepends=True)[:lines]))
    rows = ingest_collection(folder).tables["findings"]
    found = [row for row in rows if row["rule_id"] == "INGEST_STRATEGY_UNKNOWN"]
    assert [row["severity"] for row in found] == ([] if said is None else ["INFO"])
    assert all(str(said) in row["summary"] for row in found)


def of_departed(done: Ingested) -> dict[str, str]:
    """What is assumed of members that left, by group."""
    named = "strategy of members that left"
    found = (row for row in done.tables["findings"] if named in (row["evidence"] or ()))
    return {str(row["consumer_group"]): str((row["evidence"] or {})[named]) for row in found}


def test_the_strategy_of_members_that_left_is_an_assumption_unless_a_file_shows_it(
    tmp_path: Path,
) -> None:
    assert of_departed(ingest_collection(DATA / "strategies" / "collection")) == {}
    folder = without_names(tmp_path / "c", "strategies")
    assumed = of_departed(ingest_collection(folder))
    assert assumed == {"s-circle": "AVG_BY_CIRCLE", "s-hash": "CONSISTENT_HASH"}
    findings = ingest_collection(folder).tables["findings"]
    said = {row["summary"] for row in findings if row["consumer_group"] in assumed}
    assert any("AVG_BY_CIRCLE is assumed. If they used another strategy," in text for text in said)
    rows = [{"consumer_group": group, "strategy": text} for group, text in assumed.items()]
    text = "\n".join(json.dumps({"cluster": "DefaultCluster"} | row) for row in rows)
    (folder / "consumer_groups.jsonl").write_text(text + "\n")
    assert of_departed(ingest_collection(folder)) == {}


NEARBY = "MACHINE_ROOM_NEARBY-AVG"
ONE_ROOM = "(client_rooms=:unknown, broker_rooms=:unknown)"


def strategies_without(folder: Path, *patterns: str) -> Path:
    """The collection `strategies` without some of its files."""
    shutil.copytree(DATA / "strategies" / "collection", folder)
    for pattern in patterns:
        for path in list(folder.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


@pytest.mark.parametrize("dumps", [True, False])
def test_rooms_that_no_file_gives_are_one_room_and_unknown(dumps: bool, tmp_path: Path) -> None:
    """A room that is null would freeze the group, and nothing says that it is frozen."""
    without = ["consumer_groups.jsonl", *([] if dumps else ["mqadmin"])]
    done = ingest_collection(strategies_without(tmp_path / "c", *without))
    assert strategies(done)["s-near"] == f"{NEARBY}(client_rooms=:unknown, broker_rooms=:unknown)"
    assert {"INGEST_STRATEGY_UNKNOWN", "INGEST_ASSUMED"} <= rules(done, "s-near")
    near = [row for row in ledger_of(done.tables)["epochs"] if row["consumer_group"] == "s-near"]
    assert {row["status"] for row in near} == {"SETTLED"}


def test_given_rooms_need_no_dump(tmp_path: Path) -> None:
    done = ingest_collection(strategies_without(tmp_path / "c", "mqadmin"))
    assert "INGEST_STRATEGY_UNKNOWN" not in rules(done, "s-near")
    assert "client_rooms=10.1.:room1" in strategies(done)["s-near"]


@pytest.mark.parametrize(("part", "without_room"), [
    ("|10.3.:room3", "10.3.0.31@24279#3063906469834"),
    ("|room2@broker-b:room2", "room2@broker-b"),
])  # fmt: skip
def test_given_rooms_that_lack_one_of_those_that_allocate_are_not_all(
    part: str, without_room: str, tmp_path: Path
) -> None:
    folder = strategies_without(tmp_path / "c", "mqadmin")
    given = folder / "consumer_groups.jsonl"
    assert part in given.read_text()
    text = (
        given.read_text()
        .replace(part, "")
        .replace("client_rooms", "room_separator=!, client_rooms")
    )
    given.write_text(text)
    done = ingest_collection(folder)
    (found,) = (f for f in done.tables["findings"] if f["rule_id"] == "INGEST_STRATEGY_UNKNOWN")
    assert found["consumer_group"] == "s-near"
    assert f" has no room for {without_room}: " in found["summary"]


def test_a_list_and_rooms_that_no_file_gives_are_unknown(tmp_path: Path) -> None:
    """Names alone, as of clients that held nothing: without parameters upstream gives all up."""
    given = ("clients", "consumer_groups.jsonl", "mqadmin/*consumerProgress*")
    folder = strategies_without(tmp_path / "c", *given)
    for status in folder.glob("mqadmin/*-consumerStatus-s-*/*.txt"):
        status.write_text(status.read_text().partition("#Consumer MQ Detail#")[0])
    done = ingest_collection(folder)
    assert {strategies(done)[group] for group in ("s-config", "s-room")} == {"AVG"}
    for group, name in (
        ("s-config", "CONFIG, whose list"),
        ("s-room", "MACHINE_ROOM, whose rooms"),
    ):
        found = [
            f["summary"]
            for f in done.tables["findings"]
            if f["rule_id"] == "INGEST_STRATEGY_UNKNOWN" and f["consumer_group"] == group
        ]
        assert found
        assert all(f" allocates with {name} no file states: " in summary for summary in found)


def said(kind: str, place: str, number: int, **values: object) -> Evidence:
    return Evidence("group", "g", kind, 900_000, place, number, f"dump:{number}", values)


def fitted(*addresses: str | None, ordinal: int = 479, members: int = 2) -> tuple[str | None, str]:
    """The strategy by one dump of queues 0, 1, … of broker b, and the rules of the findings."""
    push = ordinal == 479
    consume_type = "CONSUME_PASSIVELY" if push else "CONSUME_ACTIVELY"
    connected = said("consumer_connected", "b", 0, consume_type=consume_type, version=ordinal)
    queues = [
        said(
            "queue_progress",
            "mqadmin",
            q,
            with_clients=True,
            topic="T",
            topic_truncated=False,
            broker_name="b",
            queue_id=q,
            client_ip=address,
        )
        for q, address in enumerate(addresses)
    ]
    joined: list[Event] = [
        {
            "event_type": "CONSUMER_JOIN",
            "client_id": f"10.0.0.{n + 1}@1",
            "event_ms": 0,
            "source": "",
        }
        for n in range(members)
    ]
    context = ClusterContext("c", 0, 1_000_000, brokers=("b",))
    text, findings = fit_strategy("g", [connected, *queues], Presence(joined), "AVG", context)
    return text, " ".join(row["rule_id"] for row in findings)


A, B, INFERRED = "10.0.0.1", "10.0.0.2", "INGEST_STRATEGY_INFERRED"


def test_unowned_queues_prove_nothing_where_members_do_not_tell_theirs() -> None:
    """A lite pull consumer tells its queues from 5.1.1 on; 401 is 4.9.4, 479 is 5.3.3."""
    assert fitted(A, None, ordinal=401, members=1) == (None, "")
    assert fitted(A, None, members=1) == ("AVG", INFERRED)
    assert fitted(None, None, ordinal=401, members=1) == (None, "")
    assert fitted(None, None, members=1) == (None, "INGEST_STRATEGY_UNKNOWN")


def test_a_strategy_that_gives_every_holder_is_taken_though_some_queues_have_none() -> None:
    """What the others lack is then a finding, and not the strategy."""
    assert fitted(A, A, B, None) == ("AVG", INFERRED)
    assert fitted(A, B, None, B) == ("AVG_BY_CIRCLE", INFERRED)
    assert fitted(A, B, B, None) == (None, "INGEST_STRATEGY_UNKNOWN")


def test_one_holder_alone_and_a_stranger_tell_of_no_other_strategy() -> None:
    assert fitted(A, None, A, None)[0] is None
    assert fitted(A, "10.9.9.9", None, B)[0] is None


@pytest.mark.parametrize("given", [True, False])
def test_rooms_that_some_members_shares_show_may_not_be_all(given: bool, tmp_path: Path) -> None:
    """MACHINE_ROOM: the shares of members without a log may lie in rooms that no log shows."""
    without = [*(f"clients/k{n}" for n in (2, 3, 4)), "mqadmin/*consumerStatus*"]
    without += [] if given else ["consumer_groups.jsonl"]
    done = ingest_collection(strategies_without(tmp_path / "c", *without))
    assert strategies(done)["s-room"] == "MACHINE_ROOM(consumer_idcs=room1)"
    assert ("INGEST_STRATEGY_UNKNOWN" in rules(done, "s-room")) == (not given)
    assert ("s-room" in of_departed(done)) == (not given)


def test_rooms_of_members_that_show_their_queues_are_all(tmp_path: Path) -> None:
    """``consumerStatus`` shows what each member holds, and so do the logs of all members."""
    for without in ("clients", "mqadmin/*consumerStatus*"):
        folder = strategies_without(tmp_path / without[:2], without, "consumer_groups.jsonl")
        done = ingest_collection(folder)
        assert strategies(done)["s-room"] == "MACHINE_ROOM(consumer_idcs=room1)"
        assert "INGEST_STRATEGY_UNKNOWN" not in rules(done, "s-room")
        assert ("INGEST_ASSUMED" in rules(done, "s-room")) == ("s-room" in of_departed(done))


@pytest.mark.parametrize(
    ("owners", "taken", "found_rules"),
    [
        ("xxxxyyzz", NEARBY, ["INGEST_STRATEGY_INFERRED"]),
        ("xxxyyyzz", f"{NEARBY}{ONE_ROOM}", []),
        ("xyzxyzxy", f"{NEARBY}{ONE_ROOM}", ["INGEST_STRATEGY_UNKNOWN"]),
    ],
    ids=["rooms in names", "one room", "neither"],
)
def test_rooms_are_cut_from_names_where_that_alone_fits(
    owners: str, taken: str, found_rules: list[str]
) -> None:
    clients = {"x": "r1-x", "y": "r2-y", "z": "r2-z"}
    names = {f"{host}@1": NEARBY for host in clients.values()}
    joins: list[Event] = [
        {"event_type": "CONSUMER_JOIN", "client_id": client, "event_ms": 0, "source": ""}
        for client in names
    ]
    assumed = {f"parameters of {NEARBY}": f"{NEARBY}{ONE_ROOM}"}
    text = f"{NEARBY}{ONE_ROOM}"
    found = GroupStrategies(dict.fromkeys(names, text), text, assumed=assumed)
    queues = [
        Evidence(
            "group",
            "g",
            "queue_progress",
            900_000,
            "mqadmin",
            place,
            "dump:1",
            {
                "with_clients": True,
                "topic": "T",
                "topic_truncated": False,
                "broker_name": "r1-a" if place < 4 else "r2-b",
                "queue_id": place % 4,
                "client_ip": clients[owner],
            },
        )
        for place, owner in enumerate(owners)
    ]
    context = ClusterContext("c", 0, 1_000_000, brokers=("r1-a", "r2-b"))
    findings = check_parameters("g", queues, Presence(joins), found, context)
    assert {found.group, *found.members.values(), *found.assumed.values()} == {
        str(parse_strategy(taken))
    }
    assert [row["rule_id"] for row in findings] == found_rules


def test_the_list_that_a_row_gives_the_group_is_not_that_of_a_member_without_one(
    tmp_path: Path,
) -> None:
    """Each member of CONFIG has a list of its own, as those of others show that differ from it."""
    folder = strategies_without(tmp_path / "c", "clients/k1", "mqadmin/*consumerStatus-s-config*")
    done = ingest_collection(folder)
    assert strategies(done)["s-config"].startswith("CONFIG")
    assert "INGEST_STRATEGY_UNKNOWN" in rules(done, "s-config")


@pytest.mark.parametrize(
    ("given", "shown", "of_others"),
    [
        ("CONSISTENT_HASH", ["AVG", "AVG"], "AVG"),
        ("CONSISTENT_HASH", ["AVG", "AVG", "AVG_BY_CIRCLE"], "AVG"),
        ("AVG_BY_CIRCLE", ["AVG", "AVG_BY_CIRCLE"], "AVG_BY_CIRCLE"),
        ("CONSISTENT_HASH", ["AVG"], "CONSISTENT_HASH"),
        (None, ["AVG"], "AVG"),
    ],
)
def test_a_given_strategy_that_no_member_uses_stands_for_no_other(
    given: str | None, shown: list[str], of_others: str
) -> None:
    pieces = [
        Evidence(
            "group",
            "g",
            "allocated",
            1_000 + number,
            "c",
            number,
            f"log:{number}",
            {"client_id": f"10.0.0.{number}@1", "strategy": name, "topic": "T"},
        )
        for number, name in enumerate(shown)
    ]
    context = ClusterContext("c", 0, 1_000_000, brokers=("b",))
    assert group_strategies(pieces, given, Presence([]), context).group == of_others
