"""Whether another order of the same client ids explains live owners, and what is a fault."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rebalance_core.audit.comparison import compare
from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import DIFFERS, EQUAL, IDS_REWRITTEN, UNKNOWN
from rebalance_core.strategies import parse_strategy
from tests.unit.audit.snapshots import (
    Row,
    broker_logs,
    join,
    leave,
    ms,
    queue_row,
    snapshot_of,
    topic,
)

HASHED = ("10.117.122.188@7#1", "10.137.54.235@7#2", "10.71.254.20@7#3", "10.9.80.3@7#4")
NEAR = ("10.0.0.1@7#1", "10.0.0.2@7#2", "10.0.0.3@7#3", "10.0.0.4@7#4")
QUEUES = {"T": 8, "U": 3}


def shown(
    order: Sequence[str], at: float, strategy: str = "AVG", topics: Sequence[str] = ("T", "U")
) -> list[Row]:
    """Who held what, where members stand in this order."""
    places = {f"{number:03}": client for number, client in enumerate(order)}
    rows = []
    for name in topics:
        queues = [queue_row(name, "a", number, at) for number in range(QUEUES[name])]
        for place, client in places.items():
            all_ = [MessageQueue(name, "a", number) for number in range(QUEUES[name])]
            held = parse_strategy(strategy).allocate(place, all_, list(places))
            own = {"client_id": client, "source": f"dump {at}"}
            rows += [queues[queue.queue_id] | own for queue in held]
    return rows


def snapshot(
    *rounds: list[Row], ids: Sequence[str], strategy: str = "AVG", events: Sequence[Event] = ()
) -> GroupSnapshot:
    topics = [topic(name, read=read) for name, read in QUEUES.items()]
    joins = [join(one, *QUEUES) for one in ids]
    owned = [row for of_round in rounds for row in of_round]
    settings = GroupSettings(strategy=strategy)
    return snapshot_of(*topics, *joins, *events, owned=owned, settings=settings)


@pytest.mark.parametrize(("hashed", "verdict"), [(False, DIFFERS), (True, UNKNOWN)])
def test_two_members_that_changed_places_are_judged_by_the_ids_of_the_whole_cluster(
    *, hashed: bool, verdict: str
) -> None:
    """Two addresses alone look like those of any two networks."""
    two = HASHED[:2]
    swapped = snapshot(shown(two[::-1], 900), ids=two)
    swapped = replace(swapped, run=replace(swapped.run, ids_hashed=hashed))
    assert compare(swapped).verdict == verdict
    equal = snapshot(shown(two, 900), ids=two)
    equal = replace(equal, run=replace(equal.run, ids_hashed=hashed))
    # by chance, where ids are hashed: who owned what before is as little known
    assert compare(equal).verdict == (UNKNOWN if hashed else EQUAL)


def test_a_list_of_queues_does_not_go_by_ids() -> None:
    live = shown(HASHED[:2], 900)
    listed = snapshot(live, ids=HASHED[:2], strategy="CONFIG(queues=T/a/0)")
    hashed = replace(listed, run=replace(listed.run, ids_hashed=True))
    assert compare(listed).verdict == compare(hashed).verdict == DIFFERS


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_another_order_of_hashed_ids_explains_all_topics(strategy: str) -> None:
    first, second, third, fourth = HASHED
    right = snapshot(shown(HASHED, 900, strategy), ids=HASHED, strategy=strategy)
    assert compare(right).verdict == EQUAL
    live = shown([third, second, first, fourth], 900, strategy)
    hashed = snapshot(live, ids=HASHED, strategy=strategy)
    result = compare(hashed)
    assert (result.verdict, result.reason) == (UNKNOWN, IDS_REWRITTEN)
    rows = run_rules(hashed)["findings"]
    (row,) = [row for row in rows if row["rule_id"] == "INGEST_IDS_REWRITTEN"]
    assert row["severity"] == "WARNING"
    assert "another order of the same 4 client ids explains every queue" in row["summary"]
    assert not any(row["rule_id"].startswith("OWNERSHIP_DIFFERS") for row in rows)


@pytest.mark.parametrize("log_ends", [1_000, 800])
def test_what_differed_before_a_log_ended_is_no_difference_of_hashed_ids_either(
    log_ends: float,
) -> None:
    two = HASHED[:2]
    live = [*shown(two[::-1], 500), *shown(two[::-1], 900)]
    hashed = snapshot(live, ids=two)
    logs = broker_logs(a=[LogSpan(ms(0), ms(log_ends), from_start=True)])
    run = replace(hashed.run, ids_hashed=True, coverage=Coverage(logs, known=True))
    judged = run_rules(replace(hashed, run=run))
    assert judged["group_verdicts"][0]["reason"] == IDS_REWRITTEN
    rules = {row["rule_id"] for row in judged["findings"]}
    assert not any(rule.startswith("OWNERSHIP_DIFFERS") for rule in rules)


def test_members_that_changed_places_in_one_round_differ() -> None:
    """Their ids are of one network, and one round shows no order."""
    first, second, third, fourth = NEAR
    for order in ([second, first, third, fourth], [second, third, first, fourth]):
        assert compare(snapshot(shown(order, 900), ids=NEAR)).verdict == DIFFERS


def test_one_order_in_rounds_with_different_members_is_an_order() -> None:
    first, second, third, fourth = NEAR
    events = [leave(fourth, 500)]
    rounds = shown([third, second, first, fourth], 400), shown([third, second, first], 900)
    assert compare(snapshot(*rounds, ids=NEAR, events=events)).reason == IDS_REWRITTEN
    another = shown([third, second, first, fourth], 400), shown([second, third, first], 900)
    assert compare(snapshot(*another, ids=NEAR, events=events)).verdict == DIFFERS


@pytest.mark.parametrize(
    "fault",
    [
        lambda rows: [rows[0] | {"client_id": rows[-1]["client_id"]}, *rows[1:]],  # one queue
        lambda rows: (
            [row for row in rows if row["topic"] == "T"] + shown(HASHED, 900, topics=["U"])
        ),  # one topic by another order
        lambda rows: [*rows, rows[0] | {"client_id": rows[-1]["client_id"]}],  # held twice
    ],
)
def test_what_an_order_does_not_explain_wholly_differs(fault: object) -> None:
    first, second, third, fourth = HASHED
    live = shown([third, second, first, fourth], 900)
    assert callable(fault)
    assert compare(snapshot(fault(live), ids=HASHED)).verdict == DIFFERS


def test_a_member_with_a_stale_list_differs() -> None:
    """It divides by three: what it holds is nobody's share."""
    first = HASHED[0]
    live = [row for row in shown(HASHED, 900) if row["client_id"] != first]
    live += [row for row in shown(HASHED[:3], 900) if row["client_id"] == first]
    assert compare(snapshot(live, ids=HASHED)).verdict == DIFFERS


@pytest.mark.parametrize("masked", ["10.0.0.1@***", "10.0.0.1@7#****", "xxx.xxx@7", "<ip>@7"])
def test_masked_ids_never_differ(masked: str) -> None:
    """Several members may be one such id, and none stands where it stood."""
    ids = (masked, *NEAR[1:3])
    result = compare(snapshot(shown([ids[1], ids[0], ids[2]], 900), ids=ids))
    assert (result.verdict, result.reason) == (UNKNOWN, IDS_REWRITTEN)
    assert compare(snapshot(shown(sorted(ids), 900), ids=ids)).verdict == EQUAL


def test_a_strategy_that_hashes_ids_gives_no_order() -> None:
    live = shown([HASHED[2], HASHED[1], HASHED[0], HASHED[3]], 900)
    assert compare(snapshot(live, ids=HASHED, strategy="CONSISTENT_HASH")).verdict == DIFFERS
