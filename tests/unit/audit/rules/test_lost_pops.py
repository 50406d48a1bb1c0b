"""Messages that a killed client had popped, from snapshots of a queue as a real 5.5.0 broker wrote
them.
"""

from rebalance_core.model.events import CONSUMER_LOST
from tests.unit.audit.sharing import PROXY
from tests.unit.audit.snapshots import (
    Row,
    fact,
    findings_of,
    join,
    ms,
    of_member,
    severities,
    snapshot_of,
    topic,
)

RULE = "POP_ORDER_BLOCKED"
LOST = of_member(CONSUMER_LOST, "y", 229, detail="EXPIRED")
MEMBERS = topic(), join("x"), join("y")


def snapshot(at: float, popped: float, until: float | None, queue: int = 0) -> Row:
    """consumerOrderInfo.json at this time; ``until`` None: all is acknowledged."""
    blocked = "" if until is None else str(ms(until))
    return fact(
        "ORDER_BLOCK",
        at,
        topic="T",
        broker_name="a",
        queue_id=queue,
        attempt_id="a",
        commit_bits=int(until is None),
        offsets="150",
        pop_ms=ms(popped),
        invisible_ms=60_000,
        next_visible_ms=blocked,
        blocked_until_ms=blocked,
    )


def test_what_a_client_that_was_killed_had_popped() -> None:
    facts = [
        snapshot(60, 56, None),
        snapshot(175, 100, 211),
        snapshot(175, 100.02, 211, queue=1),
        snapshot(175, 164, None, queue=2),
        snapshot(500, 496, None),
    ]
    group = snapshot_of(*MEMBERS, LOST, settings=PROXY, facts=facts)
    (one,) = findings_of(RULE, group)
    assert severities(RULE, group) == ["WARNING"]
    assert "2 FIFO queues of T (a:0-1) made no progress" in one.summary
    assert "for 129 s" in one.summary
    assert (one.client_id, one.first_ms, one.last_ms) == ("y", ms(100), ms(229))


def test_a_message_that_is_just_being_consumed() -> None:
    facts = [snapshot(175, 170, 230)]
    assert findings_of(RULE, snapshot_of(*MEMBERS, settings=PROXY, facts=facts)) == []
    assert findings_of(RULE, snapshot_of(*MEMBERS, LOST, settings=PROXY, facts=facts)) == []


def test_a_time_that_is_over_or_all_acknowledged() -> None:
    facts = [snapshot(175, 100, 160), snapshot(175, 100, None, queue=1)]
    assert findings_of(RULE, snapshot_of(*MEMBERS, LOST, settings=PROXY, facts=facts)) == []


def test_two_snapshots_of_one_pop() -> None:
    facts = [snapshot(200, 100, 240), snapshot(300, 100, 330)]
    group = snapshot_of(*MEMBERS, settings=PROXY, facts=facts)
    (one,) = findings_of(RULE, group)
    assert severities(RULE, group) == ["WARNING"]
    assert "for at least 3 min" in one.summary
    assert "slow, or is gone" in one.summary
    assert (one.queue_id, one.first_ms, one.last_ms) == (0, ms(100), None)


def test_one_snapshot_and_no_client_lost() -> None:
    facts = [snapshot(200, 100, 240)]
    group = snapshot_of(*MEMBERS, settings=PROXY, facts=facts)
    assert severities(RULE, group) == ["INFO"]
    over = snapshot_of(*MEMBERS, settings=PROXY, facts=[*facts, snapshot(400, 399, None)])
    assert [one.last_ms for one in findings_of(RULE, over)] == [ms(400)]


def test_a_loss_that_cannot_be_it() -> None:
    """y joined after the pop, or was lost long after the snapshot."""
    facts = [snapshot(200, 100, 240)]
    late = topic(), join("x"), join("y", at=150), LOST
    assert severities(RULE, snapshot_of(*late, settings=PROXY, facts=facts)) == ["INFO"]
    much_later = of_member(CONSUMER_LOST, "y", 600)
    group = snapshot_of(*MEMBERS, much_later, settings=PROXY, facts=facts)
    assert severities(RULE, group) == ["INFO"]


def test_one_queue_that_stood_twice_is_one_queue() -> None:
    """Recorded with 5.5.0 (case fifo-push-restarts): a client of Python retries each message by
    itself first. The queue went on between.
    """
    facts = [snapshot(175, 100, 240), snapshot(400, 300, 430)]
    group = snapshot_of(*MEMBERS, settings=PROXY, facts=facts)
    (one,) = findings_of(RULE, group)
    assert severities(RULE, group) == ["INFO"]
    assert "1 FIFO queue of T (a:0) made no progress" in one.summary
    assert "on, 2 times for up to 100 s as far as snapshots show" in one.summary
    assert (one.broker_name, one.queue_id) == ("a", 0)
