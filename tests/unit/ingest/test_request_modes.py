"""When a topic was popped, from stores that were copied and lines of clients."""

from typing import Any

import pytest

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.broker_history import StoreRead
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.request_modes import request_mode_events
from rebalance_core.ingest.rows import Event

START, END = 1_000_000, 9_000_000
POP = "POP(share_queue_num=1)"


def store(at_ms: int, mode: str | None = POP, broker: str = "a", topic: str = "T") -> Any:
    values = {"consumer_group": "g", "topic": topic, "mode": mode}
    return Evidence(GROUP, "g", "request_mode", at_ms, broker, 0, f"{broker}-{at_ms}", values)


def line(
    at_ms: int, mode: str | None, client: str = "x", topic: str = "T", *, whole: bool = False
) -> Any:
    values = {
        "group": "g",
        "topic": topic,
        "client_id": client,
        "strategy": "AVG",
        "mode": mode,
        "whole_brokers": whole,
    }
    return Evidence(GROUP, "g", "broker_allocated", at_ms, client, 1, f"{client}:{at_ms}", values)


def found(
    *pieces: Any, copies: tuple[tuple[str, int], ...] = (), joined_ms: tuple[int, ...] = ()
) -> list[tuple[int, str]]:
    """(moment, mode) of the events; copies: stores that were read, with an entry or not."""
    joins: list[Event] = [
        {"client_id": f"m{i}", "event_ms": at_ms, "event_type": "CONSUMER_JOIN", "source": f"b:{i}"}
        for i, at_ms in enumerate(joined_ms)
    ]
    entries = (p for p in pieces if p.kind == "request_mode" and p.at_ms)
    stores = {StoreRead(p.place, p.at_ms, p.source) for p in entries}
    stores |= {StoreRead(broker, at_ms, f"{broker}-{at_ms}") for broker, at_ms in copies}
    context = ClusterContext("c", START, END, mode_stores=tuple(sorted(stores)))
    events, _ = request_mode_events("g", pieces, Presence(joins), context)
    assert {(row["consumer_group"], row["topic"]) for row in events} <= {("g", "T")}
    return [(row["event_ms"], row["detail"]) for row in events]


def test_what_a_store_shows_first_was_so_before() -> None:
    assert found(store(5_000_000)) == [(START, POP)]


def test_what_a_client_shows_first_was_so_before() -> None:
    assert found(line(5_000_000, "POP")) == [(START, "POP(share_queue_num=-1)")]
    assert found(line(5_000_000, "POP"), store(6_000_000)) == [(START, POP)]


def test_what_is_always_pulled_has_no_event() -> None:
    assert found(store(5_000_000, "PULL"), line(5_000_000, "PULL"), line(6_000_000, None)) == []


def test_a_store_without_the_topic_states_that_it_is_pulled() -> None:
    assert found(store(5_000_000), copies=(("a", 4_000_000),)) == [(4_000_001, POP)]


def test_between_two_copies_a_topic_counts_as_popped() -> None:
    pieces = store(4_000_000, "PULL"), store(5_000_000), store(6_000_000, "PULL")
    assert found(*pieces) == [(4_000_001, POP), (6_000_000, "PULL")]


def test_a_client_that_had_pulled_finds_the_change_within_its_own_pass() -> None:
    assert found(line(4_000_000, "PULL"), line(5_000_000, "POP"), store(6_000_000)) == [
        (5_000_000 - 23_000, POP)
    ]
    newcomer = line(4_000_000, "PULL"), line(5_000_000, "POP", "y"), store(6_000_000)
    assert found(*newcomer) == [(4_000_001, POP)]


def test_the_switch_back_is_when_the_first_client_gets_the_answer() -> None:
    pieces = store(4_000_000), line(5_000_000, "PULL"), store(6_000_000, "PULL")
    assert found(*pieces) == [(START, POP), (5_000_000, "PULL")]


def test_one_broker_that_reports_it_is_enough() -> None:
    pieces = store(4_000_000), store(4_000_000, "PULL", "b"), store(5_000_000, "PULL")
    assert found(*pieces) == [(START, POP), (5_000_000, "PULL")]


def test_another_share() -> None:
    other = "POP(share_queue_num=5)"
    assert found(store(4_000_000), store(5_000_000, other)) == [(START, POP), (5_000_000, other)]


@pytest.mark.parametrize(
    ("answers", "changed_ms"),
    [
        pytest.param([(4_500_000, True)], 4_500_000, id="only the new number gives whole brokers"),
        pytest.param([(4_500_000, False)], 5_000_000, id="the old number explains it"),
        pytest.param(
            [(4_400_000, False), (4_500_000, True), (4_600_000, True)],
            4_500_000,
            id="the first of them counts",
        ),
        pytest.param([(3_500_000, True)], 5_000_000, id="before a store showed the old number"),
        pytest.param([(3_000_500, True)], 5_000_000, id="a member joined just then"),
        pytest.param([], 5_000_000, id="no answer"),
    ],
)
def test_a_new_share_is_dated_by_the_answers(
    answers: list[tuple[int, bool]], changed_ms: int
) -> None:
    other = "POP(share_queue_num=5)"
    pieces = [line(at_ms, "POP", whole=whole) for at_ms, whole in answers]
    members = (1_000_000, 1_000_000, 1_000_000, 3_000_000)  # four: 1 shares, 5 shares all
    dated = found(*pieces, store(4_000_000), store(5_000_000, other), joined_ms=members)
    assert dated == [(START, POP), (changed_ms, other)]


def test_a_share_that_any_number_of_members_explains_is_dated_by_the_store() -> None:
    other = "POP(share_queue_num=2)"
    pieces = store(4_000_000), line(4_500_000, "POP", whole=True), store(5_000_000, other)
    assert found(*pieces, joined_ms=(1_000_000,) * 2) == [(START, POP), (5_000_000, other)]


def test_brokers_that_differ_make_no_changes() -> None:
    """Recorded on 5.2.0: setConsumeMode -b of one broker of two. Clients got both in turns."""
    stated_modes = [
        line(4_000_000 + 5_000 * n, ("POP", "PULL")[n % 2], ("x", "y")[n // 2 % 2])
        for n in range(7)
    ]
    assert found(*stated_modes, store(5_000_000), copies=(("b", 5_000_001),)) == [(START, POP)]
    context = ClusterContext("c", START, END, mode_stores=(StoreRead("b", 5_000_001, "b-5000001"),))
    _, findings = request_mode_events("g", [*stated_modes, store(5_000_000)], Presence([]), context)
    (row,) = findings
    assert (row["rule_id"], row["severity"]) == ("INGEST_REQUEST_MODES_DIFFER", "WARNING")
    assert "3 times to pull T between answers to pop it" in row["summary"]
    assert row["evidence"] == {"times": "3", "stores": f"a {POP}, b PULL"}


def test_a_switch_there_and_back_is_no_difference() -> None:
    pieces = line(4_000_000, "POP"), line(5_000_000, "PULL"), line(6_000_000, "POP")
    expected = [
        (START, "POP(share_queue_num=-1)"),
        (5_000_000, "PULL"),
        (6_000_000 - 23_000, "POP(share_queue_num=-1)"),
    ]
    assert found(*pieces) == expected


def test_retry_topics_are_never_popped() -> None:
    assert found(store(4_000_000, topic="%RETRY%g")) == []


def test_what_a_store_shows_changed_since_the_store_before() -> None:
    context = ClusterContext("c", START, END)
    pieces = store(4_000_000), store(5_000_000, "POP(share_queue_num=7)"), store(6_000_000, "PULL")
    _, findings = request_mode_events("g", pieces, Presence([]), context)
    spans = [(row["first_ms"], row["last_ms"]) for row in findings]
    assert spans == [(4_000_000, 5_000_000), (5_000_000, 6_000_000)]


def test_findings_say_what_is_not_known() -> None:
    context = ClusterContext("c", START, END)
    pieces = line(4_000_000, "PULL"), line(5_000_000, "POP")
    _, findings = request_mode_events("g", pieces, Presence([]), context)
    assert [row["rule_id"] for row in findings] == ["INGEST_ASSUMED", "INGEST_REQUEST_MODE_CHANGED"]
    assert (findings[1]["first_ms"], findings[1]["last_ms"]) == (4_977_000, 5_000_000)
    assert "changed from PULL to POP(share_queue_num=-1)" in findings[1]["summary"]
