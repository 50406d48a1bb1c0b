"""What client logs tell of members that gave up asking, or never rest."""

from rebalance_core.model.events import CONSUMER_SUSPEND
from rebalance_core.model.group_settings import BROADCASTING, LITE_PULL, GroupSettings
from tests.unit.audit.sharing import BROKER, mode
from tests.unit.audit.snapshots import (
    Row,
    fact,
    findings_of,
    join,
    leave,
    ms,
    of_member,
    severities,
    snapshot_of,
    topic,
)

GAVE_UP_ASKING = "GAVE_UP_ASKING"
MEMBERS = join("x", rebalance_mode="CLIENT"), join("y")


def gave_up(client: str = "x", name: str = "T", over: float | None = None) -> Row:
    end: Row = {} if over is None else {"over_ms": ms(over), "over_by": "clients/x/client.log:9"}
    return fact("GAVE_UP_ASKING", 30, client_id=client, topic=name, strategy="AVG", **end)


def test_it_pulls_what_others_pop() -> None:
    group = snapshot_of(topic(), *MEMBERS, mode(), settings=BROKER, facts=[gave_up()])
    (one,) = findings_of(GAVE_UP_ASKING, group)
    assert severities(GAVE_UP_ASKING, group) == ["WARNING"]
    assert "x divides T itself, though clientRebalance is false and others pop it" in one.summary
    assert (one.topic, one.client_id, one.first_ms) == ("T", "x", ms(30))
    (mixed,) = findings_of("POP_MIXED_WITH_PULL", group)
    assert mixed.evidence["pull"] == "x"


def test_several_members() -> None:
    both = join("x", rebalance_mode="CLIENT"), join("y", rebalance_mode="CLIENT")
    group = snapshot_of(topic(), *both, settings=BROKER, facts=[gave_up(), gave_up("y")])
    (one,) = findings_of(GAVE_UP_ASKING, group)
    assert one.summary.startswith("x, y divide T themselves")
    assert one.client_id is None


def test_the_division_is_the_same_where_no_member_pops() -> None:
    facts = [gave_up(), gave_up(name="%RETRY%g")]
    group = snapshot_of(topic(), *MEMBERS, settings=BROKER, facts=facts)
    assert severities(GAVE_UP_ASKING, group) == ["INFO", "INFO"]


def test_it_was_restarted_or_no_client_gave_up() -> None:
    gone = leave("x", 40), join("z", at=41)
    group = snapshot_of(topic(), *MEMBERS, *gone, mode(), settings=BROKER, facts=[gave_up()])
    assert findings_of(GAVE_UP_ASKING, group) == []
    assert (
        findings_of(GAVE_UP_ASKING, snapshot_of(topic(), *MEMBERS, mode(), settings=BROKER)) == []
    )


def test_it_asks_again() -> None:
    over = [gave_up(over=400), gave_up("y", over=300)]
    group = snapshot_of(topic(), *MEMBERS, mode(), settings=BROKER, facts=over)
    (one,) = findings_of(GAVE_UP_ASKING, group)
    assert severities(GAVE_UP_ASKING, group) == ["INFO"]
    assert (one.first_ms, one.last_ms) == (ms(30), ms(400))
    assert one.ended_by == "x asks again (clients/x/client.log:9)"
    one_left = snapshot_of(
        topic(), *MEMBERS, mode(), settings=BROKER, facts=[gave_up(over=400), gave_up("y")]
    )
    (one,) = findings_of(GAVE_UP_ASKING, one_left)
    assert (one.client_id, one.last_ms) == ("y", None)
    assert severities(GAVE_UP_ASKING, one_left) == ["WARNING"]


def test_why_a_mode_has_no_effect() -> None:
    only = join("x", rebalance_mode="CLIENT")
    group = snapshot_of(topic(), only, mode(), settings=BROKER, facts=[gave_up()])
    (one,) = findings_of("POP_IGNORED", group)
    assert one.evidence["gave_up_asking"] == "x"


RESTLESS_PASSES = "RESTLESS_PASSES"
BY_HAND = "CONFIG(queues=T/a/0)"


def test_lists_by_hand_from_5_2_on() -> None:
    old = join("old", strategy=BY_HAND, version="5.1.4")
    new = join("new", strategy=BY_HAND, version="5.2.0")
    group = snapshot_of(topic(), old, new)
    (one,) = findings_of(RESTLESS_PASSES, group)
    assert one.client_id == "new"
    assert severities(RESTLESS_PASSES, group) == ["INFO"]


def test_other_strategies_models_and_consumers() -> None:
    by_hand = join("x", strategy=BY_HAND, version="5.3.3")
    assert findings_of(RESTLESS_PASSES, snapshot_of(topic(), join("x", version="5.3.3"))) == []
    for settings in (
        GroupSettings(message_model=BROADCASTING),
        GroupSettings(consumer_type=LITE_PULL),
    ):
        assert findings_of(RESTLESS_PASSES, snapshot_of(topic(), by_hand, settings=settings)) == []
    paused = of_member(CONSUMER_SUSPEND, "x", 50)
    assert findings_of(RESTLESS_PASSES, snapshot_of(topic(), by_hand, paused)) == []
