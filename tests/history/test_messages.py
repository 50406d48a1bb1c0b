"""What each channel gets of which night, and once."""

from typing import Any

from rebalance_core.history.messages import LISTED, Message, message_of
from rebalance_core.history.owners import Owner

OWNERS = (
    Owner("order-*", "*", "checkout", "#checkout"),
    Owner("quiet-*", "*", "quiet"),
    Owner("*", "*", "ops", "#ops"),
)
NIGHTS: list[Any] = [{"cluster": "c", "end_ms": end} for end in (10, 20, 30)]


def finding(group: str | None, state: str, opened: int | None, **changes: Any) -> Any:
    row = {
        "cluster": "c",
        "fingerprint": f"f-{group}",
        "rule_id": "IDLE_MEMBER",
        "consumer_group": group,
        "topic": None,
        "broker_name": None,
        "state": state,
        "opened_night_ms": opened,
        "over_night_ms": None,
        "reopened": 0,
        "severity": "WARNING",
        "summary": f"what {group} has",
        "remedy": f"Add queues to the topic of {group}.",
        "caused_by": None,
    }
    return row | changes


def message(
    rows: list[Any], channel: str = "#ops", delivered: dict[str, int] | None = None
) -> Message | None:
    return message_of(channel, NIGHTS, rows, OWNERS, delivered or {})


def lines(made: Message | None) -> list[str]:
    assert made is not None
    return [line for line in made.text.split("\n") if line and not line.startswith("→")]


def test_new_reopened_and_healed_of_the_last_night() -> None:
    rows = [
        finding("a", "NEW", 30, severity="ERROR"),
        finding("b", "REOPENED", 30, reopened=1),
        finding("c", "HEALED", 10, over_night_ms=30),
        finding("d", "OPEN", 20),
        finding("e", "HEALED", 10, over_night_ms=20),
        finding("f", "GONE", 10, over_night_ms=30),
        finding("g", "NOT_LOOKED_AT", 20),
        finding("h", "ACCEPTED", 30),
        finding("i", "OPEN", None),  # the night before may have had it
        finding("quiet-1", "NEW", 30),
    ]
    made = message(rows)
    assert made is not None
    assert made.title == ("rebalance: 1 NEW, 1 REOPENED, 1 HEALED in c until 1970-01-01 00:00:00Z")
    assert lines(made) == [
        "NEW ERROR a: what a has",
        "REOPENED WARNING b: what b has",
        "HEALED WARNING c: what c has",
    ]
    assert made.findings == 3
    assert made.text.count("→ Add queues to the topic") == 2  # what is healed needs nothing


def test_a_night_that_was_delivered_is_not_delivered_again() -> None:
    rows = [finding("a", "NEW", 30), finding("b", "HEALED", 10, over_night_ms=30)]
    assert message(rows, delivered={"c": 30}) is None


def test_what_was_not_delivered_waits() -> None:
    """The night after a failed delivery has the same finding OPEN."""
    rows = [
        finding("a", "OPEN", 20),
        finding("b", "OPEN", 20, reopened=2),
        finding("c", "NOT_LOOKED_AT", 20),
        finding("d", "HEALED", 10, over_night_ms=20),
        finding("e", "OPEN", 10),
    ]
    assert lines(message(rows, delivered={"c": 10})) == [
        "NEW WARNING a: what a has",
        "NEW WARNING c: what c has",
        "REOPENED WARNING b: what b has",
        "HEALED WARNING d: what d has",
    ]
    assert message(rows, delivered={"c": 20}) is None


def test_each_channel_gets_its_groups() -> None:
    rows = [finding("order-1", "NEW", 30), finding(None, "NEW", 30), finding("x", "NEW", 30)]
    assert lines(message(rows, "#checkout")) == ["NEW WARNING order-1: what order-1 has"]
    assert [line.split(":")[0] for line in lines(message(rows))] == [
        "NEW WARNING c",
        "NEW WARNING x",
    ]
    assert message(rows, "#none") is None


def test_what_follows_is_counted_beside_its_cause() -> None:
    rows = [
        finding("x", "NEW", 30, fingerprint="cause"),
        finding("y", "NEW", 30, caused_by="cause"),
        finding("z", "NEW", 30, caused_by="cause"),
        finding("order-1", "NEW", 30, caused_by="cause"),
    ]
    assert lines(message(rows)) == ["NEW WARNING x: what x has (2 findings follow from it)"]
    assert lines(message(rows, "#checkout")) == ["NEW WARNING order-1: what order-1 has"]


def test_a_message_is_bounded_and_gives_no_orders() -> None:
    rows = [
        finding(f"g{number:04}", "NEW", 30, summary="<!channel> \u202e" + "主" * 5000)
        for number in range(2000)
    ]
    made = message(rows)
    assert made is not None
    assert made.findings == 2000
    assert made.text.count("NEW WARNING") == LISTED
    assert made.text.endswith(f"… and {2000 - LISTED:,} more, listed on the history page.")
    assert "‹!channel› \\u202e主" in made.text
    assert not any(sign in made.text for sign in "<>\u202e")
    assert len((made.title + made.text).encode()) < 20_000


def test_a_finding_without_a_group_names_its_broker() -> None:
    made = message([finding(None, "NEW", 30, broker_name="broker-b")])
    assert made is not None
    assert "NEW WARNING broker-b: " in made.text


def test_a_message_has_the_remedy_of_its_finding_not_of_the_rule() -> None:
    made = message([finding("a", "NEW", 30, rule_id="OF_AN_OLDER_VERSION")])
    assert made is not None
    assert made.text == "NEW WARNING a: what a has\n→ Add queues to the topic of a."
    healed = message([finding("a", "HEALED", 10, over_night_ms=30)])
    assert healed is not None
    assert healed.text == "HEALED WARNING a: what a has"
