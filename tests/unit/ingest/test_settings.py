"""Settings of groups as files show them: start times, who asks a broker, when a topic was
popped.
"""

from typing import TYPE_CHECKING, Any

import pytest

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.contracts.inputs import TIME_RANGES
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.unlogged_members import Presence
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.group_settings_row import (
    FROM_TIMESTAMP,
    consume_timestamp,
    local_seconds_ms,
)
from rebalance_core.ingest.observed_facts import group_facts
from rebalance_core.ingest.request_modes import (
    members_dividing_themselves,
    rebalance_modes,
    request_mode_events,
)
from rebalance_core.ingest.rows import Event

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsGiven

# The timestamp of CONSUME_FROM_TIMESTAMP as a client writes it: local time, to the second.


@pytest.mark.parametrize(
    ("text", "zone", "at_ms"),
    [
        ("20261121030558", "UTC", 1_795_230_358_000),
        ("20261121110558", "Asia/Shanghai", 1_795_230_358_000),
        ("19700101000000", "UTC", 0),
        ("19700101000000", "Asia/Shanghai", 0),  # "from the beginning"
        ("00010101000000", "UTC", 0),
        ("99991231235959", "America/Los_Angeles", 253_402_329_599_000),
        ("2026", "UTC", None),
        (None, "UTC", None),
    ],
)
def test_a_consume_timestamp_is_one_that_the_input_may_have(
    text: str | None, zone: str, at_ms: int | None
) -> None:
    assert local_seconds_ms(text, zone) == at_ms
    good = TIME_RANGES["consume_timestamp_ms"]
    assert at_ms is None or good.first_ms <= at_ms < good.end_ms


STARTED_MS = 1_795_232_158_000


def shown(client: str, text: str | None, start_ms: int | None = STARTED_MS) -> Any:
    values = {
        "client_file": client,
        "consume_from_where": FROM_TIMESTAMP,
        "consume_timestamp": text,
        "start_ms": start_ms,
    }
    return Evidence("group", "g", "client", 1, "mqadmin", 0, "mqadmin/1:1", values)


def asked(
    *pieces: Any, members: int = 2, zone: str | None = "UTC", given_ms: int | None = None
) -> tuple[int | None, list[str]]:
    given: ConsumerGroupsGiven = {} if given_ms is None else {"consume_timestamp_ms": given_ms}
    context = ClusterContext("c", 0, STARTED_MS, group_rows={"g": given})
    at_ms, findings = consume_timestamp("g", pieces, members, lambda _: zone, context)
    return at_ms, [row["rule_id"] for row in findings]


SET = "20261121020000"
SET_MS = 1_795_226_400_000
HALF_AN_HOUR_BEFORE = "20261121030556"
ITS_MS = 1_795_230_356_000


def test_the_time_that_all_members_ask_for_is_the_group_s() -> None:
    assert asked(shown("a", SET), shown("b", SET)) == (SET_MS, [])
    assert asked(shown("a", SET), given_ms=7) == (SET_MS, [])


def test_no_time_is_right_for_members_that_ask_for_several() -> None:
    unknown = (None, ["INGEST_TIMESTAMP_UNKNOWN"])
    assert asked(shown("a", SET), shown("b", "20261121030000")) == unknown
    assert asked(shown("a", SET), shown("b", "20261121030000"), given_ms=7) == (7, [])


def test_the_default_is_another_time_for_every_process() -> None:
    """The dump shows the process that runs; those before it read from half an hour before them."""
    only = shown("a", HALF_AN_HOUR_BEFORE)
    assert asked(only, members=1) == (ITS_MS, [])
    assert asked(only, members=2) == (None, ["INGEST_TIMESTAMP_UNKNOWN"])
    assert asked(shown("a", HALF_AN_HOUR_BEFORE, start_ms=None)) == (ITS_MS, [])


def test_a_time_of_a_client_whose_zone_is_not_said_is_an_assumption() -> None:
    assert asked(shown("a", SET), zone=None) == (SET_MS, ["INGEST_ASSUMED"])
    assert asked(shown("a", SET), zone=None, given_ms=7) == (7, [])


def test_a_time_that_no_dump_tells_is_unknown_unless_it_is_given() -> None:
    assert asked(shown("a", None)) == (None, ["INGEST_TIMESTAMP_UNKNOWN"])
    assert asked(given_ms=7) == (7, [])


# Who asks a broker, and who gave up asking, as client logs and consumerStatus show it.


def status(name: str, own: bool | None, *, ordered: bool = False, start_ms: int = 0) -> Any:
    values = {"client_file": name, "client_rebalance": own, "ordered": ordered,
              "start_ms": start_ms}  # fmt: skip
    return Evidence(GROUP, "g", "client", 9, "", 0, "f", values)


def divided(client: str, topic: str = "T", pid: str = "7") -> Any:
    values = {"client_id": client, "topic": topic, "strategy": "AVG", "group": "g", "pid": pid}
    return Evidence(GROUP, "g", "allocated", 5, client, 1, f"{client}:1", values)


def answered(client: str, topic: str = "T", mode: str = "PULL", pid: str = "7") -> Any:
    values = {"client_id": client, "topic": topic, "strategy": "AVG", "mode": mode, "pid": pid}
    return Evidence(GROUP, "g", "broker_allocated", 6, client, 2, f"{client}:2", values)


def test_who_asks_the_broker() -> None:
    popping = {"client_file": "pops", "topic": "T", "dropped": False}
    popped: Any = Evidence(GROUP, "g", "client_pop_queue", 1, "", 0, "f", popping)
    assert rebalance_modes(
        [
            status("asks", False),
            status("does not", True),
            status("4.9", None),
            answered("told"),
            popped,
            divided("divides"),
            status("orderly", False, ordered=True),
            divided("orderly"),
        ]
    ) == {"asks": "BROKER", "does not": "CLIENT", "told": "BROKER", "pops": "BROKER",
          "divides": "CLIENT", "orderly": "BROKER"}  # fmt: skip


def test_a_proxy_lists_grpc_clients_and_remoting_ones() -> None:
    """Recorded: without the proxies' logs their lists alone show who is behind them."""

    def listed(client_id: str, place: str) -> Any:
        return Evidence(GROUP, "g", "member", 1, place, 0, "f", {"client_id": client_id})

    grpc = "vm@23926@2@1f4at5mtn"
    pieces = [listed(grpc, "proxy/p"), listed("10.0.0.1@7#8", "proxy/p"), listed("a@1@2@b", "a")]
    assert rebalance_modes(pieces) == {grpc: "PROXY"}


def test_a_member_that_gave_up_asking() -> None:
    """Recorded on 5.2.0: clients that started while a broker did not answer."""
    pieces = [
        divided("x"),
        answered("x", "%RETRY%g"),
        status("x", False),
        answered("y"),
        status("y", False),
    ]
    assert rebalance_modes(pieces) == {"x": "CLIENT", "y": "BROKER"}
    (alone,) = members_dividing_themselves(pieces)
    assert (alone.since.values["client_id"], alone.since.values["topic"]) == ("x", "T")
    assert alone.until is None


@pytest.mark.parametrize("shown", [[status("x", False)], [answered("x", "%RETRY%g")]])
def test_consumer_status_or_another_answer_shows_that_it_is_set_to_ask(
    shown: list[Any],
) -> None:
    assert len(members_dividing_themselves([divided("x"), *shown])) == 1
    assert rebalance_modes([divided("x"), *shown]) == {"x": "CLIENT"}


def test_one_that_gave_up_for_some_topics_counts_as_one_that_asks() -> None:
    pieces = [divided("x"), divided("x", "%RETRY%g"), answered("x", "U")]
    assert rebalance_modes(pieces) == {"x": "BROKER"}
    alone = members_dividing_themselves(pieces)
    assert [one.since.values["topic"] for one in alone] == ["T", "%RETRY%g"]


ASKS = answered("x", "%RETRY%g")
"""Another answer shows that process 7 of x is set to ask."""


@pytest.mark.parametrize(
    ("later", "until"),
    [
        pytest.param([answered("x", pid="8")], 0, id="the next process got an answer"),
        pytest.param([answered("x")], 0, id="from 5.3.2 on a client goes on asking"),
        pytest.param([status("x", False, start_ms=6)], 0, id="it was started anew"),
        pytest.param([status("x", True, start_ms=6)], 0, id="it was started anew, and divides"),
        pytest.param([answered("x", "U")], None, id="an answer for another topic"),
        pytest.param([answered("y")], None, id="an answer for another member"),
        pytest.param([status("x", False)], None, id="it is the process that runs"),
        pytest.param([answered("x", pid="8"), divided("x", pid="8")], None, id="it gave up again"),
    ],
)
def test_until_when_a_member_divides_alone(later: list[Any], until: int | None) -> None:
    again = [] if len(later) == 1 else [answered("x", "%RETRY%g", pid="8")]
    (alone,) = members_dividing_themselves([divided("x"), ASKS, *later, *again])
    assert alone.until == (None if until is None else later[until])
    assert alone.since.values["pid"] == ("8" if again else "7")


def test_the_fact_has_when_it_was_over_and_by_what() -> None:
    pieces = [divided("x"), ASKS, answered("x", pid="8")]
    context = ClusterContext("c", 0, 9)
    rows = group_facts("g", pieces, ProcessNames(pieces, context), context)
    (row,) = (row for row in rows if row["kind"] == "GAVE_UP_ASKING")
    assert row["details"] == {"strategy": "AVG", "over_ms": "6", "over_by": "x:2"}


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([divided("x"), status("x", True)], id="clientRebalance is true"),
        pytest.param([divided("x")], id="nothing shows that it is set to ask"),
        pytest.param([divided("x"), status("x", False, ordered=True)], id="orderly"),
        pytest.param([divided("x"), status("x", False, start_ms=6)], id="before its restart"),
        pytest.param([divided("x"), answered("x", "U", pid="8")], id="another process of its id"),
        pytest.param([answered("x"), status("x", False)], id="it asks"),
    ],
)
def test_who_did_not_give_up(pieces: list[Any]) -> None:
    assert members_dividing_themselves(pieces) == []


# When a topic was popped, from stores that were copied and lines of clients.

START, END = 1_000_000, 9_000_000
POP = "POP(share_queue_num=1)"


def store(at_ms: int, mode: str | None = POP, broker: str = "a", topic: str = "T") -> Any:
    values = {"consumer_group": "g", "topic": topic, "mode": mode}
    return Evidence(GROUP, "g", "request_mode", at_ms, broker, 0, f"{broker}-{at_ms}", values)


def line(
    at_ms: int, mode: str | None, client: str = "x", topic: str = "T", *, whole: bool = False
) -> Any:
    values = {"group": "g", "topic": topic, "client_id": client, "strategy": "AVG", "mode": mode,
              "whole_brokers": whole}  # fmt: skip
    return Evidence(GROUP, "g", "broker_allocated", at_ms, client, 1, f"{client}:{at_ms}", values)


def found(
    *pieces: Any, copies: tuple[tuple[str, int], ...] = (), joined_ms: tuple[int, ...] = ()
) -> list[tuple[int, str]]:
    """(moment, mode) of the events; copies: stores that were read, with an entry or not."""
    joins: list[Event] = [{"client_id": f"m{i}", "event_ms": at_ms, "event_type": "CONSUMER_JOIN",
              "source": f"b:{i}"}
             for i, at_ms in enumerate(joined_ms)]  # fmt: skip
    stores = {(p.place, p.at_ms, p.source) for p in pieces if p.kind == "request_mode" and p.at_ms}
    stores |= {(broker, at_ms, f"{broker}-{at_ms}") for broker, at_ms in copies}
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


def test_a_store_without_the_topic_says_that_it_is_pulled() -> None:
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


def test_the_switch_back_is_when_the_first_client_is_told() -> None:
    pieces = store(4_000_000), line(5_000_000, "PULL"), store(6_000_000, "PULL")
    assert found(*pieces) == [(START, POP), (5_000_000, "PULL")]


def test_one_broker_that_says_so_is_enough() -> None:
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
        pytest.param([(4_400_000, False), (4_500_000, True), (4_600_000, True)], 4_500_000,
                     id="the first of them counts"),
        pytest.param([(3_500_000, True)], 5_000_000, id="before a store showed the old number"),
        pytest.param([(3_000_500, True)], 5_000_000, id="a member joined just then"),
        pytest.param([], 5_000_000, id="no answer"),
    ],
)  # fmt: skip
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
    """Recorded on 5.2.0: setConsumeMode -b of one broker of two. Clients were told by turns."""
    told = [
        line(4_000_000 + 5_000 * n, ("POP", "PULL")[n % 2], ("x", "y")[n // 2 % 2])
        for n in range(7)
    ]
    assert found(*told, store(5_000_000), copies=(("b", 5_000_001),)) == [(START, POP)]
    context = ClusterContext("c", START, END, mode_stores=(("b", 5_000_001, "b-5000001"),))
    _, findings = request_mode_events("g", [*told, store(5_000_000)], Presence([]), context)
    (row,) = findings
    assert (row["rule_id"], row["severity"]) == ("INGEST_REQUEST_MODES_DIFFER", "WARNING")
    assert "3 times to pull T between answers to pop it" in row["summary"]
    assert row["evidence"] == {"times": "3", "stores": f"a {POP}, b PULL"}


def test_a_switch_there_and_back_is_no_difference() -> None:
    pieces = line(4_000_000, "POP"), line(5_000_000, "PULL"), line(6_000_000, "POP")
    expected = [(START, "POP(share_queue_num=-1)"), (5_000_000, "PULL"),
                (6_000_000 - 23_000, "POP(share_queue_num=-1)")]  # fmt: skip
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
    assert "went from PULL to POP(share_queue_num=-1)" in findings[1]["summary"]
