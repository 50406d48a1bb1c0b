"""Who asks a broker, and who gave up asking, as client logs and consumerStatus show it."""

from typing import Any

import pytest

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.request_modes import members_dividing_themselves, rebalance_modes


def status(name: str, own: bool | None, *, ordered: bool = False, start_ms: int = 0) -> Evidence:
    values = {"client_file": name, "client_rebalance": own, "ordered": ordered,
              "start_ms": start_ms}  # fmt: skip
    return Evidence(GROUP, "g", "client", 9, "", 0, "f", values)


def divided(client: str, topic: str = "T", pid: str = "7") -> Evidence:
    values = {"client_id": client, "topic": topic, "strategy": "AVG", "group": "g", "pid": pid}
    return Evidence(GROUP, "g", "allocated", 5, client, 1, f"{client}:1", values)


def told(client: str, topic: str = "T", mode: str = "PULL", pid: str = "7") -> Evidence:
    values = {"client_id": client, "topic": topic, "strategy": "AVG", "mode": mode, "pid": pid}
    return Evidence(GROUP, "g", "broker_allocated", 6, client, 2, f"{client}:2", values)


def test_who_asks_the_broker() -> None:
    popping: dict[str, Any] = {"client_file": "pops", "topic": "T", "dropped": False}
    assert rebalance_modes(
        [
            status("asks", False),
            status("does not", True),
            status("4.9", None),
            told("told"),
            Evidence(GROUP, "g", "client_pop_queue", 1, "", 0, "f", popping),
            divided("divides"),
            status("orderly", False, ordered=True),
            divided("orderly"),
        ]
    ) == {"asks": "BROKER", "does not": "CLIENT", "told": "BROKER", "pops": "BROKER",
          "divides": "CLIENT", "orderly": "BROKER"}  # fmt: skip


def test_a_member_that_gave_up_asking() -> None:
    """Recorded on 5.2.0: clients that started while a broker did not answer."""
    pieces = [
        divided("x"),
        told("x", "%RETRY%g"),
        status("x", False),
        told("y"),
        status("y", False),
    ]
    assert rebalance_modes(pieces) == {"x": "CLIENT", "y": "BROKER"}
    assert [
        (p.values["client_id"], p.values["topic"]) for p in members_dividing_themselves(pieces)
    ] == [("x", "T")]


@pytest.mark.parametrize("shown", [[status("x", False)], [told("x", "%RETRY%g")]])
def test_consumer_status_or_another_answer_shows_that_it_is_set_to_ask(
    shown: list[Evidence],
) -> None:
    assert len(members_dividing_themselves([divided("x"), *shown])) == 1
    assert rebalance_modes([divided("x"), *shown]) == {"x": "CLIENT"}


def test_one_that_gave_up_for_some_topics_counts_as_one_that_asks() -> None:
    pieces = [divided("x"), divided("x", "%RETRY%g"), told("x", "U")]
    assert rebalance_modes(pieces) == {"x": "BROKER"}
    assert [p.values["topic"] for p in members_dividing_themselves(pieces)] == ["T", "%RETRY%g"]


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([divided("x"), status("x", True)], id="clientRebalance is true"),
        pytest.param([divided("x")], id="nothing shows that it is set to ask"),
        pytest.param([divided("x"), status("x", False, ordered=True)], id="orderly"),
        pytest.param([divided("x"), status("x", False, start_ms=6)], id="before its restart"),
        pytest.param([divided("x"), told("x", "U", pid="8")], id="another process of its id"),
        pytest.param([told("x"), status("x", False)], id="it asks"),
    ],
)
def test_who_did_not_give_up(pieces: list[Evidence]) -> None:
    assert members_dividing_themselves(pieces) == []
