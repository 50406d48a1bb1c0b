from tests.unit.audit.cases import case_of, commit, end, findings_of, join, leave, severities, topic

RULE = "ORPHAN_QUEUES"


def test_queues_nobody_holds_by_topic() -> None:
    case = case_of(
        topic("A"), topic("B"), join("x", "A"), join("y", "A", "B"),
        ends=[end(n, 9, name="B") for n in range(4)], commits=[commit(0, 4, name="B")],
    )  # fmt: skip
    (one,) = findings_of(RULE, case)
    assert one.topic == "B"
    assert "2 queues of B (a:0-1)" in one.summary
    assert "14 messages behind" in one.summary
    assert one.evidence["reason"] == "a member that counts does not subscribe the topic"


def test_retry_queues_are_a_warning() -> None:
    duplicate = join("x"), join("x", channel="x:2"), join("y")
    case = case_of(topic(), topic(broker="b"), *duplicate)
    assert sorted(severities(RULE, case)) == ["ERROR", "WARNING"]


def test_a_change_that_has_not_settled() -> None:
    case = case_of(topic("A"), topic("B"), join("x", "A", "B"), join("y", "A", at=998))
    assert findings_of(RULE, case) == []


def test_an_offline_group_has_no_orphans() -> None:
    assert findings_of(RULE, case_of(topic(), join("x"), leave("x", 100))) == []


def test_a_group_back_after_a_long_time_offline() -> None:
    case = case_of(topic(), join("x"), leave("x", 100), join("x", at=900, channel="n"))
    assert findings_of(RULE, case) == []


def test_long_orphaned_and_read_again() -> None:
    case = case_of(topic("A"), topic("B"), join("x", "A"), join("y", "A", "B"), leave("x", 500))
    assert severities(RULE, case) == ["WARNING"]


def test_config_and_machine_room_have_their_own_rules() -> None:
    case = case_of(topic(), join("x", strategy="CONFIG(queues=T/a/0)"))
    assert findings_of(RULE, case) == []
