"""What members subscribe when no broker's line says it."""

from typing import Any

from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.unlogged_subscriptions import unlogged_subscriptions
from rebalance_core.ingest.rows import ORDER, Event, event
from tests.unit.ingest.events.listing_evidence import CONTEXT, said

BOTH = ["T", "U"]


def join(second: int, client_id: str, topics: list[str] | None) -> Event:
    return event(
        "CONSUMER_JOIN",
        second * 1_000,
        f"a:{second}",
        consumer_group="g",
        client_id=client_id,
        channel_id=client_id,
        subscriptions=topics,
    )


def change(second: int, kind: str, client_id: str, topic: str) -> Event:
    return event(
        kind,
        second * 1_000,
        f"a:{second}",
        consumer_group="g",
        client_id=client_id,
        channel_id=client_id,
        topic=topic,
    )


def status(second: int, client_id: str, *topics: str) -> list[Any]:
    """``consumerStatus`` of a push consumer: what it subscribes."""
    own: dict[str, Any] = {"client_file": client_id}
    pieces = [said(second, "client", "", consumer_type="PUSH", **own)]
    return pieces + [said(second, "client_subscription", "", topic=t, **own) for t in topics]


def holds(second: int, client_id: str, topic: str) -> Any:
    return said(
        second,
        "client_queue",
        "",
        client_file=client_id,
        topic=topic,
        broker_name="a",
        queue_id=0,
        dropped=False,
    )


def found(
    events: list[Event], *pieces: Any, by_silence: list[Event] | None = None
) -> tuple[dict[str, Any], list[tuple[int, str, str]], list[str]]:
    """Topics of each join, (time, kind, topic) of the changes, severities of the findings."""
    for number, row in enumerate(events):
        row[ORDER] = number
    silent = {row[ORDER] for row in by_silence or ()}
    rows, findings = unlogged_subscriptions(
        "g", events, silent, Presence(events), [*pieces], CONTEXT
    )
    joins = {r["client_id"]: r.get("subscriptions") for r in rows if "topic" not in r}
    changes = [(r["event_ms"] // 1_000, r["event_type"], r["topic"]) for r in rows if "topic" in r]
    return joins, changes, [row["severity"] for row in findings]


def test_it_subscribes_what_it_states_itself() -> None:
    events = [join(20, "x", None), join(20, "y", ["T"])]
    joins, changes, severities = found(events, *status(60, "x", *BOTH, "%RETRY%g"))
    assert (joins["x"], changes, severities) == (BOTH, [], ["INFO"])
    beat = said(30, "heartbeat", "c", client_id="x", topics=("U", "%RETRY%g"))
    assert found([join(20, "x", None)], beat)[0] == {"x": ["U"]}


def test_what_another_process_of_the_id_states_is_not_its_own() -> None:
    gone = event(
        "CONSUMER_LEAVE", 50_000, "a:50", consumer_group="g", client_id="x", channel_id="x"
    )
    assert found([join(20, "x", None), gone], *status(60, "x", "T"))[0]["x"] is None


def test_later_statements_change_it() -> None:
    pieces = [*status(30, "x", "T", "%RETRY%g"), *status(60, "x", "U", "%RETRY%g")]
    joins, changes, _ = found([join(20, "x", None)], *pieces)
    assert joins == {"x": ["T"]}
    assert changes == [(60, "SUBSCRIBE", "U"), (60, "UNSUBSCRIBE", "T")]


def test_a_push_consumer_without_any_topic_was_cut_off() -> None:
    joins, _, severities = found([join(20, "x", None)], *status(60, "x"))
    assert (joins, severities) == ({"x": None}, ["WARNING"])
    pull = said(60, "client", "", consumer_type="PULL", client_file="x")
    assert found([join(20, "x", None)], pull)[0] == {"x": []}


def test_else_it_subscribes_what_the_group_does() -> None:
    assert found([join(20, "x", None), join(20, "y", BOTH)])[0]["x"] == BOTH
    table = said(60, "group_connection", subscriptions=(("T", "*"), ("%RETRY%g", "*")))
    assert found([join(20, "x", None)], table)[0] == {"x": ["T"]}


def test_where_the_group_has_no_one_set_its_queues_decide_or_nothing_does() -> None:
    events = [join(20, "x", None), join(20, "y", ["T"]), join(20, "z", BOTH)]
    assert found(events)[0]["x"] is None
    assert found(events, holds(60, "x", "T"))[0]["x"] is None
    assert found(events, holds(60, "x", "U"))[0]["x"] == BOTH
    assert found([join(20, "x", None), join(20, "y", ["T"])], holds(60, "x", "V"))[0]["x"] == ["V"]


def test_who_holds_a_queue_subscribes_its_topic_as_long_as_the_others() -> None:
    subscribed = change(40, "SUBSCRIBE", "y", "U")
    events = [join(20, "x", ["T"]), join(20, "y", ["T"]), subscribed]
    _, changes, severities = found(events, holds(90, "x", "U"))
    assert changes == [(40, "SUBSCRIBE", "U"), (40, "SUBSCRIBE", "U")]
    assert severities == ["INFO"]
    assert found([join(20, "x", ["T"])], holds(90, "x", "U"))[1] == [(55, "SUBSCRIBE", "U")]


def test_the_topic_of_a_queue_is_subscribed_until_the_member_states_others() -> None:
    joined, shown = join(20, "x", ["T"]), [holds(70, "x", "U"), holds(90, "x", "U")]
    _, changes, _ = found([joined], *shown, *status(120, "x", "T", "%RETRY%g"))
    assert changes == [(35, "SUBSCRIBE", "U"), (120, "UNSUBSCRIBE", "U")]
    for stated in (status(120, "x", *BOTH, "%RETRY%g"), status(80, "x", "T", "%RETRY%g")):
        assert found([join(20, "x", ["T"])], *shown, *stated)[1] == [(35, "SUBSCRIBE", "U")]


def test_who_subscribes_nothing_may_read_queues_that_its_application_names() -> None:
    assert found([join(20, "x", [])], holds(90, "x", "U")) == ({"x": []}, [], [])


def test_a_change_by_silence_is_taken_back_by_what_the_member_shows() -> None:
    for shown in (status(90, "x", *BOTH, "%RETRY%g"), [holds(90, "x", "U")]):
        silent = change(40, "UNSUBSCRIBE", "x", "U")
        _, changes, severities = found([join(20, "x", BOTH), silent], *shown, by_silence=[silent])
        assert (changes, severities) == ([], ["INFO"])
    silent = change(40, "UNSUBSCRIBE", "x", "U")
    again = change(80, "SUBSCRIBE", "x", "U")
    assert found([join(20, "x", BOTH), silent, again], by_silence=[silent])[1] == []


def test_a_change_by_its_own_line_stays() -> None:
    own = change(40, "UNSUBSCRIBE", "x", "U")
    again = change(80, "SUBSCRIBE", "x", "U")
    assert len(found([join(20, "x", BOTH), own, again])[1]) == 2
    silent = change(40, "UNSUBSCRIBE", "x", "U")
    agrees = status(90, "x", "T", "%RETRY%g")
    assert len(found([join(20, "x", BOTH), silent], *agrees, by_silence=[silent])[1]) == 1
