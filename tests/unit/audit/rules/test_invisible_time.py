from tests.unit.audit.cases import (
    Row,
    case_of,
    commit,
    end,
    fact,
    findings_of,
    join,
    ms,
    severities,
    topic,
)
from tests.unit.audit.sharing import BROKER, mode

RULE = "INVISIBLE_TIME_TOO_SHORT"
POPPING = topic(), mode(at=1), join("x")


def timed_out(at: float, until: float, times: int, log: str = "app-1") -> Row:
    return fact("POP_TIMED_OUT", at, until, times, topic="T", invisible_ms=20_000, log=log)


def test_a_listener_that_is_too_slow() -> None:
    waiting = fact("POP_QUEUE", 800, topic="T", broker_name="a", queue_id=-1, client_id="x",
                   wait_ack_count=119, dropped=False)  # fmt: skip
    retry = "%RETRY%g_T"
    case = case_of(
        *POPPING, settings=BROKER,
        facts=[timed_out(100, 400, 200), timed_out(300, 700, 90, "app-2"), waiting],
        ends=[end(0, 6018, name=retry)], commits=[commit(0, 5718, name=retry)],
    )  # fmt: skip
    (one,) = findings_of(RULE, case)
    assert severities(RULE, case) == ["WARNING"]
    assert "in 290 seconds" in one.summary
    assert "invisible time of 20 s" in one.summary
    assert one.evidence["waiting_in_a_client"] == "119"
    assert one.evidence["retries_waiting"] == "300 messages"
    assert (one.first_ms, one.last_ms) == (ms(100), ms(700))


def test_a_pause_of_one_client() -> None:
    case = case_of(*POPPING, settings=BROKER, facts=[timed_out(100, 101, 2)])
    assert severities(RULE, case) == ["INFO"]


def test_nothing_timed_out() -> None:
    assert findings_of(RULE, case_of(*POPPING, settings=BROKER)) == []


def dumped(waiting: int, rt: float, client: str = "x") -> list[Row]:
    """One consumerStatus of a client with 2 threads and 20 s."""
    return [
        fact("POP_SETTINGS", 800, client_id=client, invisible_ms=20_000, threads=2),
        fact("CONSUME_RATE", 800, client_id=client, topic="T", consume_rt_ms=rt),
        *(fact("POP_QUEUE", 800, topic="T", broker_name=broker, queue_id=-1, client_id=client,
               wait_ack_count=waiting // 2, dropped=False) for broker in "ab"),
    ]  # fmt: skip


def test_a_listener_that_cannot_be_in_time() -> None:
    facts = dumped(100, 1_500.5) + dumped(60, 1_500.5, "y")
    (one,) = findings_of(RULE, case_of(*POPPING, settings=BROKER, facts=facts))
    assert severities(RULE, case_of(*POPPING, settings=BROKER, facts=facts)) == ["WARNING"]
    assert "x has 100 messages waiting, which take 75 s at 1500.5 ms each" in one.summary
    assert (one.topic, one.client_id, one.first_ms) == ("T", "x", ms(800))


def test_a_listener_that_is_just_in_time() -> None:
    facts = dumped(20, 2_000)  # 20 s
    assert findings_of(RULE, case_of(*POPPING, settings=BROKER, facts=facts)) == []
    assert findings_of(RULE, case_of(*POPPING, settings=BROKER, facts=facts[1:])) == []


def test_what_timed_out_is_told_with_the_listener_s_time() -> None:
    facts = [timed_out(100, 400, 200), *dumped(100, 1_500)]
    (one,) = findings_of(RULE, case_of(*POPPING, settings=BROKER, facts=facts))
    assert "which take 75 s" in one.evidence["listener"]
