"""POP: modes that are ignored, times that are too short, topics that are missing."""

import pytest

from rebalance_core.model.group_settings import GroupSettings
from tests.unit.audit.sharing import BROKER, PROXY, mode
from tests.unit.audit.snapshots import (
    Row,
    commit,
    end,
    fact,
    findings_of,
    join,
    leave,
    ms,
    severities,
    snapshot_of,
    topic,
)

POP_IGNORED = "POP_IGNORED"
TWO = join("x"), join("y")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (GroupSettings(), "clientRebalance = true"),
        (GroupSettings(rebalance_mode="BROKER", ordered=True), "an orderly listener"),
        (GroupSettings(rebalance_mode="BROKER", client_version="4.9"), "client version 4.9"),
        (GroupSettings(rebalance_mode="BROKER", message_model="BROADCASTING"), "broadcasting"),
        (GroupSettings(consumer_type="LITE_PULL"), "only push consumers"),
    ],
)
def test_a_mode_without_effect(settings: GroupSettings, why: str) -> None:
    (one,) = findings_of(POP_IGNORED, snapshot_of(topic(), *TWO, mode(), settings=settings))
    assert why in one.summary
    assert "(x, y)" in one.summary
    assert one.topic == "T"


def test_each_member_with_its_own_reason() -> None:
    members = join("x", version="4.9.7"), join("y")
    (one,) = findings_of(POP_IGNORED, snapshot_of(topic(), *members, mode()))
    assert one.evidence["version_without_pop"] == "x"
    assert one.evidence["client_rebalance"] == "y"


def test_members_of_several_old_versions_are_one_entry_of_the_evidence() -> None:
    members = join("x", version="4.9.7"), join("y", version="4.9.4")
    (one,) = findings_of(POP_IGNORED, snapshot_of(topic(), *members, mode()))
    assert one.evidence["version_without_pop"] == "x, y"


def test_a_mode_that_a_client_follows() -> None:
    some = *TWO, join("z", rebalance_mode="CLIENT")
    assert findings_of(POP_IGNORED, snapshot_of(topic(), *some, mode(), settings=BROKER)) == []
    assert findings_of(POP_IGNORED, snapshot_of(topic(), *TWO, mode(), settings=PROXY)) == []


def test_pull_no_member_left_and_a_mode_set_just_now() -> None:
    assert findings_of(POP_IGNORED, snapshot_of(topic(), *TWO, mode(), mode("PULL", at=30))) == []
    gone = leave("x", 40), leave("y", 41)
    assert findings_of(POP_IGNORED, snapshot_of(topic(), *TWO, mode(), *gone)) == []
    assert findings_of(POP_IGNORED, snapshot_of(topic(), *TWO, mode(at=999))) == []
    assert findings_of(POP_IGNORED, snapshot_of(topic(), *TWO, mode(name="%RETRY%g"))) == []
    assert severities(POP_IGNORED, snapshot_of(topic(), *TWO, mode())) == ["WARNING"]


INVISIBLE_TIME_TOO_SHORT = "INVISIBLE_TIME_TOO_SHORT"
POPPING = topic(), mode(at=1), join("x")


def timed_out(at: float, until: float, times: int, log: str = "app-1") -> Row:
    return fact("POP_TIMED_OUT", at, until, times, topic="T", invisible_ms=20_000, log=log)


def test_messages_that_timed_out_before_the_client_went() -> None:
    """The near miss, a client that stays, is `test_a_listener_that_is_too_slow`."""
    timed = timed_out(100, 400, 200) | {"client_id": "x"}
    group = snapshot_of(*POPPING, leave("x", 700), settings=BROKER, facts=[timed])
    (one,) = findings_of(INVISIBLE_TIME_TOO_SHORT, group)
    assert (one.last_ms, one.ended_by) == (ms(700), "x left")


def test_a_listener_that_is_too_slow() -> None:
    waiting = fact(
        "POP_QUEUE",
        800,
        topic="T",
        broker_name="a",
        queue_id=-1,
        client_id="x",
        wait_ack_count=119,
        dropped=False,
    )
    retry = "%RETRY%g_T"
    group = snapshot_of(
        *POPPING, settings=BROKER,
        facts=[timed_out(100, 400, 200), timed_out(300, 700, 90, "app-2"), waiting],
        ends=[end(0, 6018, name=retry)], commits=[commit(0, 5718, name=retry)],
    )  # fmt: skip
    (one,) = findings_of(INVISIBLE_TIME_TOO_SHORT, group)
    assert severities(INVISIBLE_TIME_TOO_SHORT, group) == ["WARNING"]
    assert "in 290 seconds" in one.summary
    assert "invisible time of 20 s" in one.summary
    assert one.evidence["waiting_in_a_client"] == "119"
    assert one.evidence["retries_waiting"] == "300 messages"
    assert (one.first_ms, one.last_ms, one.ended_by) == (ms(100), ms(700), "")


def test_a_pause_of_one_client() -> None:
    group = snapshot_of(*POPPING, settings=BROKER, facts=[timed_out(100, 101, 2)])
    assert severities(INVISIBLE_TIME_TOO_SHORT, group) == ["INFO"]


def test_nothing_timed_out() -> None:
    assert findings_of(INVISIBLE_TIME_TOO_SHORT, snapshot_of(*POPPING, settings=BROKER)) == []


def dumped(waiting: int, rt: float, client: str = "x") -> list[Row]:
    """One consumerStatus of a client with 2 threads and 20 s."""
    return [
        fact("POP_SETTINGS", 800, client_id=client, invisible_ms=20_000, threads=2),
        fact("CONSUME_RATE", 800, client_id=client, topic="T", consume_rt_ms=rt),
        *(
            fact(
                "POP_QUEUE",
                800,
                topic="T",
                broker_name=broker,
                queue_id=-1,
                client_id=client,
                wait_ack_count=waiting // 2,
                dropped=False,
            )
            for broker in "ab"
        ),
    ]


def test_a_listener_that_cannot_be_in_time() -> None:
    facts = dumped(100, 1_500.5) + dumped(60, 1_500.5, "y")
    (one,) = findings_of(
        INVISIBLE_TIME_TOO_SHORT, snapshot_of(*POPPING, settings=BROKER, facts=facts)
    )
    assert severities(
        INVISIBLE_TIME_TOO_SHORT, snapshot_of(*POPPING, settings=BROKER, facts=facts)
    ) == ["WARNING"]
    assert "x has 100 messages waiting, which take 75 s at 1500.5 ms each" in one.summary
    assert (one.topic, one.client_id, one.first_ms) == ("T", "x", ms(800))


def test_a_listener_that_is_just_in_time() -> None:
    facts = dumped(20, 2_000)  # 20 s
    assert (
        findings_of(INVISIBLE_TIME_TOO_SHORT, snapshot_of(*POPPING, settings=BROKER, facts=facts))
        == []
    )
    assert (
        findings_of(
            INVISIBLE_TIME_TOO_SHORT, snapshot_of(*POPPING, settings=BROKER, facts=facts[1:])
        )
        == []
    )


def test_what_timed_out_is_reported_with_the_listener_s_time() -> None:
    facts = [timed_out(100, 400, 200), *dumped(100, 1_500)]
    (one,) = findings_of(
        INVISIBLE_TIME_TOO_SHORT, snapshot_of(*POPPING, settings=BROKER, facts=facts)
    )
    assert "which take 75 s" in str(one.evidence["listener"])


MISSING_POP_RETRY_TOPIC = "MISSING_POP_RETRY_TOPIC"
ASKING = topic(), join("x")


def missing(until: float = 900, times: int = 800, name: str = "%RETRY%g_T") -> Row:
    return fact("MISSING_ROUTE", 100, until, times, topic=name, log="app-1", pid="7")


@pytest.mark.parametrize("name", ["%RETRY%g_T", "%RETRY%g+T"])
def test_a_pass_every_second(name: str) -> None:
    group = snapshot_of(*ASKING, settings=BROKER, facts=[missing(name=name)])
    (one,) = findings_of(MISSING_POP_RETRY_TOPIC, group)
    assert severities(MISSING_POP_RETRY_TOPIC, group) == ["WARNING"]
    assert f"{name} did not exist" in one.summary
    assert (one.topic, one.evidence["seen_in"]) == ("T", "app-1")


def test_it_is_there_by_now() -> None:
    facts = [missing(until=500, times=390)]
    group = snapshot_of(
        *ASKING, settings=BROKER, facts=facts, commits=[commit(0, 3, name="%RETRY%g_T")]
    )
    (one,) = findings_of(MISSING_POP_RETRY_TOPIC, group)
    assert (one.last_ms, one.ended_by) == (ms(500), "%RETRY%g_T exists now")
    assert severities(MISSING_POP_RETRY_TOPIC, group) == ["INFO"]
    gone = snapshot_of(*ASKING, leave("x", 950), settings=BROKER, facts=facts)
    assert severities(MISSING_POP_RETRY_TOPIC, gone) == ["INFO"]


def test_short_now_and_then_or_another_topic() -> None:
    for fact_ in (missing(until=130, times=30), missing(times=3), missing(name="%RETRY%g_U")):
        assert (
            findings_of(
                MISSING_POP_RETRY_TOPIC, snapshot_of(*ASKING, settings=BROKER, facts=[fact_])
            )
            == []
        )


def test_clients_before_5_2_do_not_pass_sooner() -> None:
    """Recorded on 5.0.0 and 5.1.4: the topic is asked for every 20 s, as always."""
    old = topic(), join("x", version="5.1.4")
    assert (
        findings_of(MISSING_POP_RETRY_TOPIC, snapshot_of(*old, settings=BROKER, facts=[missing()]))
        == []
    )
    mixed = *old, join("y", version="5.2.0")
    assert (
        len(
            findings_of(
                MISSING_POP_RETRY_TOPIC, snapshot_of(*mixed, settings=BROKER, facts=[missing()])
            )
        )
        == 1
    )


POP_MIXED_WITH_PULL = "POP_MIXED_WITH_PULL"
PULLS = join("z", at=50, rebalance_mode="CLIENT")


def test_both_sides_are_named() -> None:
    group = snapshot_of(topic(), *TWO, mode(), PULLS, settings=BROKER)
    (one,) = findings_of(POP_MIXED_WITH_PULL, group)
    assert severities(POP_MIXED_WITH_PULL, group) == ["ERROR"]
    assert "2 members (x, y) pop T while z pull a share" in one.summary
    assert (one.evidence["pop"], one.evidence["pull"]) == ("x, y", "z")
    assert (one.client_id, one.first_ms, one.last_ms) == ("z", ms(50), None)


def test_a_client_behind_a_proxy_beside_one_that_pulls() -> None:
    members = join("x"), join("y", rebalance_mode="CLIENT")
    (one,) = findings_of(POP_MIXED_WITH_PULL, snapshot_of(topic(), *members, settings=PROXY))
    assert (one.evidence["behind_a_proxy"], one.evidence["pull"]) == ("x", "y")


def test_a_client_behind_a_proxy_and_one_that_asks_the_broker_in_pull_mode() -> None:
    members = join("x"), join("y", rebalance_mode="BROKER")
    assert (
        len(findings_of(POP_MIXED_WITH_PULL, snapshot_of(topic(), *members, settings=PROXY))) == 1
    )
    assert (
        findings_of(POP_MIXED_WITH_PULL, snapshot_of(topic(), mode(at=5), *members, settings=PROXY))
        == []
    )


def test_long_ago() -> None:
    happened = *TWO, mode(), PULLS, leave("y", 300), leave("z", 500)
    group = snapshot_of(topic(), *happened, settings=BROKER)
    (one,) = findings_of(POP_MIXED_WITH_PULL, group)
    assert one.evidence["pop"] == "x, y"
    assert severities(POP_MIXED_WITH_PULL, group) == ["INFO"]
    assert "messages were consumed twice" in one.summary
    assert (one.evidence["pull"], one.last_ms) == ("z", ms(500))


def test_all_the_same_way_for_a_short_time_or_just_now() -> None:
    pop, pull = mode(), join("z", at=50)
    assert (
        findings_of(POP_MIXED_WITH_PULL, snapshot_of(topic(), *TWO, pop, pull, settings=BROKER))
        == []
    )
    assert (
        findings_of(POP_MIXED_WITH_PULL, snapshot_of(topic(), *TWO, pop, PULLS)) == []
    )  # no member pops
    short = snapshot_of(topic(), *TWO, pop, PULLS, leave("z", 100), settings=BROKER)
    assert findings_of(POP_MIXED_WITH_PULL, short) == []
    now = join("z", at=999, rebalance_mode="CLIENT")
    assert (
        findings_of(POP_MIXED_WITH_PULL, snapshot_of(topic(), *TWO, pop, now, settings=BROKER))
        == []
    )


def test_one_who_pulls_another_topic() -> None:
    other = join("z", "U", at=50, rebalance_mode="CLIENT")
    group = snapshot_of(topic(), topic("U"), *TWO, mode(), other, settings=BROKER)
    assert findings_of(POP_MIXED_WITH_PULL, group) == []
