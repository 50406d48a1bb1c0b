from tests.unit.audit.cases import Row, case_of, commit, fact, findings_of, join, severities, topic

RULE = "OFFSET_ROLLBACK"
TWO = topic(), join("x"), join("y")


def logged(at: float) -> Row:
    return fact("OFFSET_WENT_BACK", at, topic="T", broker_name="a", queue_id=1,
                client_host="1.2.3.4:5", highest_stored=30, lowest_asked=10)  # fmt: skip


def test_a_commit_that_went_back() -> None:
    (one,) = findings_of(RULE, case_of(*TWO, facts=[logged(600)]))
    assert "from 30 to 10" in one.summary
    assert "20 messages are read again" in one.summary
    assert one.evidence["committed_by"] == "1.2.3.4:5"
    assert severities(RULE, case_of(*TWO, facts=[logged(600)])) == ["WARNING"]


def test_after_a_logged_event_it_has_a_cause() -> None:
    assert severities(RULE, case_of(*TWO, facts=[logged(60)])) == ["INFO"]


def test_duplicate_ids_explain_it() -> None:
    duplicate = topic(), join("x"), join("x", channel="x:2")
    (one,) = findings_of(RULE, case_of(*duplicate, facts=[logged(600)]))
    assert "the duplicate client id x" in one.summary
    assert one.severity == "INFO"


def test_looks_at_the_store_that_fall() -> None:
    fell = [commit(0, 30, at=500), commit(0, 10, at=700)]
    assert severities(RULE, case_of(*TWO, commits=fell)) == ["WARNING"]
    assert (
        findings_of(RULE, case_of(*TWO, commits=[commit(0, 10, at=500), commit(0, 30, at=700)]))
        == []
    )


def test_a_store_that_is_older_than_the_log() -> None:
    near = [commit(0, 30, at=500, client="x"), commit(0, 10, at=505)]
    assert findings_of(RULE, case_of(*TWO, commits=near)) == []
