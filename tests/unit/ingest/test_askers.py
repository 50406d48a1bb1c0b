"""Which members ask a broker or gave up asking, by client logs and consumerStatus."""

from typing import Any

import pytest

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.observed_facts import group_facts
from rebalance_core.ingest.request_modes import members_dividing_themselves, rebalance_modes


def status(name: str, own: bool | None, *, ordered: bool = False, start_ms: int = 0) -> Any:
    values = {
        "client_file": name,
        "client_rebalance": own,
        "ordered": ordered,
        "start_ms": start_ms,
    }
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
            answered("answered"),
            popped,
            divided("divides"),
            status("orderly", False, ordered=True),
            divided("orderly"),
        ]
    ) == {
        "asks": "BROKER",
        "does not": "CLIENT",
        "answered": "BROKER",
        "pops": "BROKER",
        "divides": "CLIENT",
        "orderly": "BROKER",
    }


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
