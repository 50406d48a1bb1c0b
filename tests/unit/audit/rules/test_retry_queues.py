from tests.unit.audit.cases import Row, case_of, end, fact, findings_of, join, topic

IMBALANCE, UNREAD = "RETRY_IMBALANCE", "RETRY_QUEUES_UNREAD"
RETRY = "%RETRY%g"
TWO = topic(), join("x"), join("y")


def test_more_members_than_retry_queues() -> None:
    (one,) = findings_of(IMBALANCE, case_of(*TWO, ends=[end(0, 3, name=RETRY)]))
    assert "2 members share 1 retry queue" in one.summary
    assert "3 messages waiting" in one.summary


def test_no_retry_waits_or_enough_queues() -> None:
    assert findings_of(IMBALANCE, case_of(*TWO, ends=[end(0, 0, name=RETRY)])) == []
    assert findings_of(IMBALANCE, case_of(*TWO, topic(broker="b"))) == []


def config(queues: int) -> Row:
    return fact("GROUP_CONFIG", 0, 1000, broker_name="a", retry_queue_nums=queues)


def test_retries_go_to_queues_nobody_reads() -> None:
    retry = topic(RETRY, read=1)
    (one,) = findings_of(
        UNREAD, case_of(*TWO, retry, facts=[config(4)], ends=[end(2, 6, name=RETRY)])
    )
    assert "4 queues (retryQueueNums)" in one.summary
    assert "6 messages in the rest" in one.summary
    assert findings_of(UNREAD, case_of(*TWO, retry, facts=[config(1)])) == []
    assert findings_of(UNREAD, case_of(*TWO, facts=[config(4)])) == []
