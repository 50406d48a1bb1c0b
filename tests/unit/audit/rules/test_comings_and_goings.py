"""Members that come, go and flap, or are known to some brokers alone."""

from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST, EXPIRED, Event
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.sharing import listed_by
from tests.unit.audit.snapshots import (
    fact,
    findings_of,
    join,
    leave,
    listed_at,
    ms,
    of_member,
    severities,
    snapshot_of,
    topic,
)

EXPIRED_WHILE_ALIVE = "EXPIRED_WHILE_ALIVE"
ID = "10.0.0.1@7#1"


def pause(client: str, at: float, back: float, detail: str | None = EXPIRED) -> list[Event]:
    gone = of_member(CONSUMER_LOST, client, at, detail=detail)
    return [gone, join(client, at=back, channel=f"{client}:{back}")]


def test_a_process_that_came_back() -> None:
    group = snapshot_of(topic(), join(ID), join("y"), *pause(ID, 200, 224))
    (one,) = findings_of(EXPIRED_WHILE_ALIVE, group)
    assert one.client_id == ID
    assert "back up to 24 s later" in one.summary
    assert severities(EXPIRED_WHILE_ALIVE, group) == ["INFO"]


def test_again_and_again() -> None:
    again = of_member(CONSUMER_LOST, ID, 400, f"{ID}:224", detail=EXPIRED)
    back = join(ID, at=500, channel=f"{ID}:500")
    group = snapshot_of(topic(), join(ID), join("y"), *pause(ID, 200, 224), again, back)
    assert severities(EXPIRED_WHILE_ALIVE, group) == ["WARNING"]


def test_one_pause_that_several_brokers_saw_is_one() -> None:
    lived = [
        of_member(CONSUMER_LOST, ID, 202, broker_name="a", detail=EXPIRED),
        of_member(CONSUMER_JOIN, ID, 225, broker_name="a"),
    ]
    group = snapshot_of(topic(), join(ID), join("y"), *pause(ID, 200, 224), *lived)
    assert severities(EXPIRED_WHILE_ALIVE, group) == ["INFO"]


def test_a_closed_connection_another_process_and_a_fixed_name() -> None:
    closed = pause(ID, 200, 224, None)
    new = [of_member(CONSUMER_LOST, ID, 200, detail=EXPIRED), join("10.0.0.1@8#2", at=224)]
    for happened in (closed, new):
        assert (
            findings_of(EXPIRED_WHILE_ALIVE, snapshot_of(topic(), join(ID), join("y"), *happened))
            == []
        )
    for name in ("10.0.0.1@svc", "10.0.0.1@svc#1"):
        fixed = pause(name, 200, 224)
        assert findings_of(EXPIRED_WHILE_ALIVE, snapshot_of(topic(), join(name), *fixed)) == []


def test_one_broker_alone_and_the_interval_that_explains_it() -> None:
    lived = [
        of_member(CONSUMER_LOST, ID, 200, broker_name="a", detail=EXPIRED),
        of_member(CONSUMER_JOIN, ID, 220, broker_name="a"),
    ]
    happened = (topic(), join(ID), join("y"), *lived)
    (one,) = findings_of(EXPIRED_WHILE_ALIVE, snapshot_of(*happened))
    assert one.broker_name == "a"
    assert "expired 1 time by a although it was alive" in one.summary
    assert severities(EXPIRED_WHILE_ALIVE, snapshot_of(*happened)) == ["INFO"]
    for interval, severity in (("200000", "WARNING"), ("60000", "INFO")):
        beats = [fact("HEARTBEAT_INTERVAL", 500, client_id=ID, interval_ms=interval)]
        group = snapshot_of(*happened, facts=beats)
        assert severities(EXPIRED_WHILE_ALIVE, group) == [severity]
        (one,) = findings_of(EXPIRED_WHILE_ALIVE, group)
        assert ("heartbeatBrokerInterval" in one.summary) == (severity == "WARNING")
        assert ("120 s" in (one.remedy or "")) == (severity == "WARNING")
        assert one.ended_by == ""
    beats = [fact("HEARTBEAT_INTERVAL", 500, client_id=ID, interval_ms="200000")]
    gone = snapshot_of(*happened, of_member(CONSUMER_LEAVE, ID, 600), facts=beats)
    (one,) = findings_of(EXPIRED_WHILE_ALIVE, gone)
    assert (one.ended_by, one.last_ms) == (f"{ID} went", ms(600))


MEMBER_FLAPS = "MEMBER_FLAPS"
STEADY = topic(), join("10.0.0.9@1#1")


def restarts(times: int, step: float, stay: float) -> list[Event]:
    """Processes of one host, each there for ``stay`` seconds."""
    happened = []
    for number in range(times):
        client, at = f"10.0.0.1@{number}#1", 20 + number * step
        happened += [join(client, at=at), leave(client, at + stay)]
    return happened


def test_a_container_in_a_crash_loop() -> None:
    group = snapshot_of(*STEADY, *restarts(6, 60, 20))
    (one,) = findings_of(MEMBER_FLAPS, group)
    assert "6 processes of 10.0.0.1 joined and left 6 times" in one.summary
    assert severities(MEMBER_FLAPS, group) == ["WARNING"]


def test_a_connection_that_keeps_breaking() -> None:
    happened = []
    for number in range(5):
        at, channel = 20 + 40 * number, f"channel-{number}"
        happened.append(join("x", at=at, channel=channel))
        happened.append(of_member(CONSUMER_LOST, "x", at + 10, channel))
    (one,) = findings_of(MEMBER_FLAPS, snapshot_of(*STEADY, *happened))
    assert one.client_id == "x"
    assert "x reconnected and left again 5 times" in one.summary


def test_long_ago_is_for_information() -> None:
    assert severities(MEMBER_FLAPS, snapshot_of(*STEADY, *restarts(6, 60, 20), until=9000)) == [
        "INFO"
    ]


def test_restarts_that_stay_or_are_few_or_far_apart() -> None:
    for happened in (restarts(4, 60, 20), restarts(6, 200, 180), restarts(6, 4000, 20)):
        assert findings_of(MEMBER_FLAPS, snapshot_of(*STEADY, *happened, until=30_000)) == []


def test_connections_of_one_process_that_overlap_are_one_stay() -> None:
    happened = []
    for number in range(6):
        at, channel = 20 + 10 * number, f"channel-{number}"
        happened.append(join("x", at=at, channel=channel))
        happened.append(of_member(CONSUMER_LOST, "x", at + 15, channel))
    assert findings_of(MEMBER_FLAPS, snapshot_of(*STEADY, *happened)) == []


MEMBERS_APART = "MEMBERS_APART"
TWO = topic(), topic(broker="b"), join("x"), join("y", at=20)
AT_BROKERS = [*listed_at("a", 500, "x"), *listed_at("b", 501, "x")]


def test_neither_side_lists_the_other_s_members() -> None:
    group = snapshot_of(*TWO, members=AT_BROKERS, facts=listed_by("p1", 502, "y"))
    (one,) = findings_of(MEMBERS_APART, group)
    assert severities(MEMBERS_APART, group) == ["ERROR"]
    assert "1 member at brokers (x) and 1 behind proxies (y)" in one.summary
    assert (one.first_ms, one.last_ms) == (ms(500), None)


def test_later_all_are_on_one_side() -> None:
    later = [*listed_by("p1", 502, "y"), *listed_by("p1", 802, "x", "y")]
    no_member = fact("GROUP_AT_BROKER", 800, broker_name="a", members=0)
    group = snapshot_of(*TWO, members=AT_BROKERS, facts=[*later, no_member])
    (one,) = findings_of(MEMBERS_APART, group)
    assert severities(MEMBERS_APART, group) == ["INFO"]
    assert one.last_ms == ms(800)


def test_grpc_clients_divide_nothing() -> None:
    mixed = topic(), join("x"), join("y", at=20, rebalance_mode="PROXY")
    group = snapshot_of(*mixed, members=listed_at("a", 500, "x"), facts=listed_by("p1", 502, "y"))
    assert findings_of(MEMBERS_APART, group) == []


def test_a_proxy_inside_a_broker_lists_the_broker_s_members() -> None:
    group = snapshot_of(*TWO, members=AT_BROKERS, facts=listed_by("p1", 502, "x", "y"))
    assert findings_of(MEMBERS_APART, group) == []


def test_sides_asked_at_different_times_and_broadcasting() -> None:
    apart = snapshot_of(*TWO, members=AT_BROKERS, facts=listed_by("p1", 800, "y"))
    assert findings_of(MEMBERS_APART, apart) == []
    news = GroupSettings(message_model="BROADCASTING")
    model = "BROADCASTING"
    both = topic(), join("x", message_model=model), join("y", at=20, message_model=model)
    facts = listed_by("p1", 502, "y")
    group = snapshot_of(*both, members=AT_BROKERS, facts=facts, settings=news)
    assert findings_of(MEMBERS_APART, group) == []
