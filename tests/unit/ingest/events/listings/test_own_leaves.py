from typing import Any

from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.listings import dated_by_dumps
from rebalance_core.ingest.rows import event
from tests.unit.ingest.events.listings.pieces import CONTEXT, said

BEAT = said(20, "heartbeat", "c", client_id="1@1", topics=["T"])
LEFT = said(150, "left_broker", "c", group="g")


def told(*joins_ms: int, left: bool = True) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What is left to the dumps, and the row on the member's end."""
    joins = [event("CONSUMER_JOIN", ms, "a:1", client_id="1@1") for ms in joins_ms]
    lost = event("CONSUMER_LOST", 300_000, "mqadmin/d:1", client_id="1@1")
    pieces = [BEAT, LEFT] if left else [BEAT]
    names = ProcessNames(pieces, CONTEXT)
    return dated_by_dumps([lost], [*joins, lost], pieces, names, CONTEXT), lost


def test_a_loss_that_the_client_s_own_log_tells_is_a_leave() -> None:
    rest, row = told(20_000)
    assert (rest, row["event_type"], row["event_ms"]) == ([], "CONSUMER_LEAVE", 150_000)
    assert row["source"] == LEFT.source


def test_one_that_it_does_not_tell_is_left_to_the_dump() -> None:
    for rest, row in (told(20_000, left=False), told(160_000), told(20_000, 30_000)):
        assert (rest, row["event_ms"]) == ([row], 300_000)
