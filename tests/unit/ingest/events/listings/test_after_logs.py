from rebalance_core.ingest.events.listings import after_logs
from rebalance_core.ingest.rows import event
from tests.unit.ingest.events.listings.pieces import CONTEXT


def test_the_finding_names_the_events_and_since_when_they_may_have_happened() -> None:
    rows = [
        event("CONSUMER_JOIN", 300_000, "mqadmin/d:1", client_id="1@1"),
        event("SUBSCRIBE", 400_000, "mqadmin/e:1", client_id="1@1", topic="T"),
    ]
    (found,) = after_logs("g", rows, CONTEXT)
    assert (found["first_ms"], found["last_ms"]) == (100_000, 400_000)
    assert found["evidence"] == {
        "CONSUMER_JOIN 1@1": "mqadmin/d:1", "SUBSCRIBE T 1@1": "mqadmin/e:1",
    }  # fmt: skip
    assert "a at 1970-01-01 00:01:40Z" in found["summary"]


def test_without_such_events_there_is_none() -> None:
    assert after_logs("g", [], CONTEXT) == []
