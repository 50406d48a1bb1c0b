"""SUBSCRIPTION_NOT_LATEST: brokers refuse pulls until a heartbeat brings the newer subscription."""

from tests.unit.audit.snapshots import Row, fact, findings_of, join, severities, snapshot_of, topic

SUBSCRIPTION_NOT_LATEST = "SUBSCRIPTION_NOT_LATEST"
MEMBERS = topic(), join("x"), join("y")


def refused(seconds: float, times: int, broker: str = "a", at: float = 500) -> Row:
    return fact(SUBSCRIPTION_NOT_LATEST, at, at + seconds, times, broker_name=broker)


def test_how_late_the_first_messages_are() -> None:
    (one,) = findings_of(
        SUBSCRIPTION_NOT_LATEST, snapshot_of(*MEMBERS, facts=[refused(29, 10), refused(8, 3, "b")])
    )
    assert "a, b refused pulls" in one.summary
    assert "for up to 29 s" in one.summary
    assert "at a; the first messages" in one.summary
    assert "heartbeats are lost" not in one.summary
    assert severities(SUBSCRIPTION_NOT_LATEST, snapshot_of(*MEMBERS, facts=[refused(29, 10)])) == [
        "INFO"
    ]


def test_longer_than_a_heartbeat_is_said() -> None:
    (one,) = findings_of(SUBSCRIPTION_NOT_LATEST, snapshot_of(*MEMBERS, facts=[refused(90, 30)]))
    assert "a heartbeat should have ended it in 30 s" in one.summary


def test_moments_are_nothing() -> None:
    """A pull or two at each change, minutes apart."""
    assert (
        findings_of(
            SUBSCRIPTION_NOT_LATEST, snapshot_of(*MEMBERS, facts=[refused(0, 1), refused(4, 2)])
        )
        == []
    )
    assert (
        findings_of(SUBSCRIPTION_NOT_LATEST, snapshot_of(*MEMBERS, facts=[refused(120, 6)])) == []
    )
