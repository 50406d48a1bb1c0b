from tests.unit.audit.cases import case_of, end, findings_of, join, severities, topic
from tests.unit.audit.sharing import BROKER, PROXY, mode

RULE = "POP_UNREACHED_QUEUE"
HASH = "CONSISTENT_HASH"


def test_a_strategy_that_brokers_do_not_know() -> None:
    members = join("x", strategy=HASH), join("y", strategy=HASH)
    case = case_of(topic(), mode(at=1), *members, settings=BROKER,
                   ends=[end(n, 5) for n in range(4)])  # fmt: skip
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["ERROR"]
    assert "4 queues of T (a:0-3): 20 messages behind" in one.summary
    assert "brokers do not know the strategy CONSISTENT_HASH" in one.summary


def test_a_member_that_does_not_subscribe_the_topic() -> None:
    """It counts: its part is popped by its neighbours only."""
    members = [join("a"), *(join(name, "U") for name in "bcd")]
    case = case_of(topic(), topic("U"), mode("POP(share_queue_num=1)", at=1), *members,
                   settings=BROKER)  # fmt: skip
    (one,) = findings_of(RULE, case)
    assert one.evidence["queues"] == "a:2-3"
    assert one.evidence["behind"] == "unknown"


def test_everything_is_reached() -> None:
    many = [join(name) for name in "abcdef"]
    for share in (-1, 0, 1, 2, 4):
        for members in (many[:1], many[:2], many[:3], many):
            happened = topic(), mode(f"POP(share_queue_num={share})", at=1), *members
            assert findings_of(RULE, case_of(*happened, settings=BROKER)) == []
    assert findings_of(RULE, case_of(topic(), *many, settings=PROXY)) == []


def test_just_now() -> None:
    late = join("x", strategy=HASH, at=999)
    assert findings_of(RULE, case_of(topic(), mode(at=1), late, settings=BROKER)) == []
