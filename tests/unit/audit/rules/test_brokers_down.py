"""Brokers that are down, or were: what shows it, what it costs, and what is no evidence."""

from dataclasses import replace
from typing import Any

import pytest

from rebalance_core.audit.broker_states import broker_outages
from rebalance_core.audit.cluster_findings import cluster_findings
from rebalance_core.audit.cluster_snapshot import cluster_rows
from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.findings import run_rules
from rebalance_core.audit.group_snapshot import BrokerOutage, GroupSnapshot, facts_by_kind
from rebalance_core.audit.rules.brokers_down import find_down
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.snapshots import (
    commit,
    end,
    fact,
    join,
    ms,
    name_server_logs,
    snapshot_of,
    topic,
)

A, B = "a", "b"
MAX_LISTED = fact("BROKER_IN_CLUSTER", 900, broker_name=A)


def turn(kind: str, at: float, detail: str | None = None, broker: str = B) -> Any:
    return {
        "event_ms": ms(at),
        "sequence": 0,
        "event_type": f"BROKER_{kind}",
        "broker_name": broker,
        "detail": detail,
        "source": "namesrv/namesrv.log:7",
    }


def expected(*brokers: str) -> list[Any]:
    return [fact("EXPECTED_BROKER", 0, broker_name=name) for name in brokers]


def outages(
    *turns: Any,
    facts: list[Any] | None = None,
    alive: float = 0,
    heard: bool = True,
    covered: Coverage | None = None,
) -> tuple[BrokerOutage, ...]:
    """Those of broker b."""
    found = broker_outages(
        turns,
        facts_by_kind(expected(A, B) if facts is None else facts),
        {B: ms(alive)},
        covered or Coverage(),
        heard_to_the_end=heard,
    )
    return found.get(B, ())


UP, DOWN = turn("UP", 5), turn("DOWN", 500, "CLOSED")


def test_a_broker_that_name_servers_removed_and_that_did_not_come_back() -> None:
    (one,) = outages(UP, DOWN)
    assert (one.down_ms, one.up_ms, one.planned) == (ms(500), None, False)
    assert outages(UP) == ()


@pytest.mark.parametrize("last_s", [700, 990])
def test_a_sign_of_life_after_it_shows_that_it_is_back(last_s: float) -> None:
    assert outages(UP, DOWN, alive=last_s) == ()
    listed = fact("BROKER_IN_CLUSTER", last_s, broker_name=B)
    assert outages(UP, DOWN, facts=[*expected(A, B), MAX_LISTED, listed]) == ()


def test_name_servers_whose_logs_end_early_do_not_show_that_it_is_still_away() -> None:
    assert outages(UP, DOWN, heard=False) == ()
    assert len(outages(UP, DOWN, heard=False, facts=[*expected(A, B), MAX_LISTED])) == 1
    nothing = Coverage(known=True, name_servers=name_server_logs())
    assert outages(UP, turn("DOWN", 500, "STOPPED"), covered=nothing) == ()


def test_an_expected_broker_that_the_cluster_s_list_lacks() -> None:
    """Without an event: no name server's log, or one that ended."""
    unheard = Coverage(known=True, name_servers=name_server_logs())
    observed = turn("UP", 0, "OBSERVED")
    facts = [*expected(A, B), MAX_LISTED]
    (one,) = outages(observed, facts=facts, alive=600, covered=unheard)
    assert (one.down_ms, one.seen_ms) == (None, ms(600))
    assert "clusterList" in one.evidence
    assert outages(observed, facts=facts, alive=880, covered=unheard) == ()  # it answered
    assert outages(observed, facts=expected(A, B), covered=unheard) == ()  # no list at all
    assert outages(UP, facts=facts, covered=Coverage(known=True)) == ()  # registered elsewhere
    assert outages(observed, facts=[*expected(A), MAX_LISTED], covered=unheard) == ()


def test_an_outage_that_ended() -> None:
    (one,) = outages(UP, DOWN, turn("UP", 565))
    assert (one.down_ms, one.up_ms) == (ms(500), ms(565))
    (short,) = outages(UP, DOWN, turn("UP", 560))
    assert [*find_down({B: (short,)}, ())] == []  # the page has it; it is no finding
    (found,) = find_down({B: (short, one)}, ())
    assert (found.severity, found.evidence) == ("WARNING", {"outages": 1})
    flap = turn("DOWN", 500, "EXPIRED"), turn("UP", 580)
    assert outages(UP, *flap) == ()  # BROKER_FLAPS
    restarted = fact("BROKER_STARTED", 570, broker_name=B)
    assert len(outages(UP, *flap, facts=[*expected(A, B), restarted])) == 1


def snapshot(*, planned: bool = False, model: str | None = None, **outage: Any) -> GroupSnapshot:
    """Group g reads T on a and b; b has been gone since 500 s."""
    ends = [end(0, 30), end(0, 90, broker=B, at=400)]
    commits = [commit(0, 30), commit(0, 50, broker=B, at=400)]
    both = topic(read=1), topic(read=1, broker=B)
    settings = GroupSettings() if model is None else GroupSettings(message_model=model)
    one = snapshot_of(*both, join("x"), ends=ends, commits=commits, settings=settings)
    gone = {B: (BrokerOutage(ms(500), outage.get("up_ms"), "as seen", planned=planned),)}
    return replace(one, run=replace(one.run, outages=gone))


def test_a_group_whose_queues_are_there_is_behind_by_an_unknown_number() -> None:
    judged = run_rules(snapshot())
    (row,) = (row for row in judged["findings"] if row["rule_id"] == "BROKER_DOWN")
    assert row["severity"] == "INFO"
    assert "1 queue cannot be read since" in row["summary"]
    assert (row["evidence"]["queues"], row["evidence"]["behind"]) == ("1", "40")
    assert judged["group_verdicts"][0]["behind"] is None
    back = run_rules(snapshot(up_ms=ms(600)))
    assert back["group_verdicts"][0]["behind"] == 40
    assert "BROKER_DOWN" not in {row["rule_id"] for row in back["findings"]}


def test_a_group_some_of_whose_queues_cannot_be_read_is_not_well() -> None:
    def health(group: GroupSnapshot) -> str:
        (row,) = run_rules(group)["group_verdicts"]
        return row["health"]

    assert health(snapshot()) == "UNREAD"
    assert health(snapshot(planned=True)) == "UNREAD"  # messages wait there
    drained = replace(snapshot(planned=True), tables={**snapshot().tables, "queue_offsets": ()})
    assert health(drained) != "UNREAD"
    assert health(snapshot(up_ms=ms(600))) != "UNREAD"


def test_what_waits_for_members_with_their_own_offsets_is_unknown() -> None:
    """BROADCASTING: no commit is stored, so not all that is stored is behind."""
    found = run_rules(snapshot(model="BROADCASTING"))["findings"]
    (row,) = (row for row in found if row["rule_id"] == "BROKER_DOWN")
    assert row["evidence"]["behind"] == "unknown"
    assert "the number of messages waiting there is unknown" in row["summary"]


def of_cluster(*turns: Any, facts: list[Any], groups: int = 2, of_own: int = 0) -> list[Any]:
    """The findings BROKER_DOWN of a cluster in which some groups lose queues."""
    span: Any = {"cluster": "c", "first_ms": ms(0), "last_ms": ms(1000)}
    rows = cluster_rows(
        [span],
        [one | {"cluster": "c"} for one in facts],
        [],
        [one | {"cluster": "c"} for one in turns],
    )
    of_group = next(r for r in run_rules(snapshot())["findings"] if r["rule_id"] == "BROKER_DOWN")
    lost: Any = [{**of_group, "cluster": "c", "consumer_group": f"g{n}"} for n in range(groups)]
    unknown = {**of_group["evidence"], "behind": "unknown"}
    lost += [{**lost[0], "consumer_group": f"h{n}", "evidence": unknown} for n in range(of_own)]
    found = cluster_findings(rows, 6.0, None).all_findings([], lost, {}, (), None)
    return [row for row in found if row["rule_id"] == "BROKER_DOWN"]


def test_one_error_a_broker_counts_queues_groups_and_what_waits() -> None:
    turns = UP, turn("DOWN", 100, "STOPPED"), turn("UP", 170), DOWN
    (row,) = of_cluster(*turns, facts=expected(A, B))
    assert (row["severity"], row["broker_name"], row["first_ms"]) == ("ERROR", B, ms(500))
    assert "2 queues of 2 groups cannot be read; 80 messages behind" in row["summary"]
    assert "Before: for 70 s" in row["summary"]
    assert "unknown" not in row["summary"]
    (some,) = of_cluster(*turns, facts=expected(A, B), of_own=1)
    assert "at the last known offsets; unknown for 1 group. Before" in some["summary"]
    (row,) = of_cluster(*turns[:3], facts=expected(A, B))
    assert (row["severity"], row["last_ms"]) == ("WARNING", ms(170))


@pytest.mark.parametrize(
    ("names", "detail", "groups", "severity"),
    [
        ((A, B), "STOPPED", 0, "ERROR"),
        ((), "STOPPED", 1, "ERROR"),
        ((A,), "CLOSED", 1, "ERROR"),
        ((A,), "STOPPED", 1, "WARNING"),  # messages wait there
        ((A,), "STOPPED", 0, "INFO"),
    ],
)
def test_a_broker_that_was_taken_out_on_purpose(
    names: tuple[str, ...], detail: str, groups: int, severity: str
) -> None:
    turns = UP, turn("DOWN", 500, detail)
    (row,) = of_cluster(*turns, facts=expected(*names), groups=groups)
    assert row["severity"] == severity
