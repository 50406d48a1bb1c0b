"""Members that answers show and no broker's log: that they came, and that they are still there."""

from dataclasses import replace
from typing import Any

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.member_timeline import MemberTimeline
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.subscription_versions import SubscriptionVersions
from rebalance_core.ingest.events.unlogged_members import unlogged_joins, unlogged_leaves
from rebalance_core.ingest.events.unsubscriptions import Unsubscriptions
from tests.unit.ingest.events.listing_evidence import CONTEXT, connected, listed, said

BARE = replace(CONTEXT, logged={}, starts={}, brokers=("a",))


def answered(second: int, client_id: str) -> Any:
    """A row of the list that ``consumerStatus`` prints: mqadmin asked whom a broker lists."""
    return said(second, "listed_client", "", client_id=client_id, version="V3_2_1")


def nobody(second: int) -> Any:
    """An empty answer to ``consumerConnection``."""
    return said(second, "group_connection", subscriptions=())


def unheld(second: int) -> Any:
    """A queue without a holder in ``consumerProgress -s true``."""
    return said(second, "queue_progress", "", with_clients=True, client_ip=None)


def came_and_went(*pieces: Any) -> list[tuple[str, str]]:
    names = ProcessNames(pieces, BARE)
    joined, _ = unlogged_joins("g", pieces, Presence([]), names, BARE)
    left, _ = unlogged_leaves("g", pieces, Presence(joined), BARE)
    return [(row["event_type"], row["client_id"]) for row in joined + left]


def test_who_answers_consumer_status_is_a_member_where_the_broker_s_list_is_empty() -> None:
    assert came_and_went(answered(500, "1@1"), nobody(501)) == [("CONSUMER_JOIN", "1@1")]
    assert came_and_went(nobody(501)) == []


def test_who_answers_consumer_status_is_not_lost_by_empty_lists_of_that_time() -> None:
    before, gone = listed(300, "1@1", "x:1"), (nobody(501), unheld(502))
    joined, lost = ("CONSUMER_JOIN", "1@1"), ("CONSUMER_LOST", "1@1")
    assert came_and_went(before, *gone) == [joined, lost]
    assert came_and_went(before, answered(350, "1@1"), *gone) == [joined, lost]
    assert came_and_went(before, answered(500, "1@1"), *gone) == [joined]


def logged(context: ClusterContext) -> list[str]:
    """What a broker's log shows of a client whose connection the broker closes at 1:00."""
    line = connected(20, "1@1", "x:1")
    pieces: list[Any] = [
        replace(line, values={**line.values, "version": None, "language": "JAVA", "beat_ms": 0}),
        said(60, "consumer_closed", group="g", client_id="1@1", channel="x:1"),
    ]
    timeline = MemberTimeline(
        "g",
        context,
        SubscriptionVersions(pieces, context),
        Unsubscriptions(pieces, ProcessNames(pieces, context), context),
    )
    timeline.take(pieces)
    return [row["event_type"] for row in timeline.events]


def test_connections_that_a_broker_closes_as_it_shuts_down_are_no_losses() -> None:
    lost = ["CONSUMER_JOIN", "CONSUMER_LOST"]
    assert logged(CONTEXT) == lost
    shut_down = ((60_000, "brokers/a/broker.log:9"),)
    assert logged(replace(CONTEXT, ends={"a": shut_down})) == ["CONSUMER_JOIN"]
    unregistered = ((60_000, "namesrv/namesrv.log:9"),)
    assert logged(replace(CONTEXT, ends={"a": unregistered})) == lost


def lost(*lists: Any) -> list[tuple[str, int, str | None]]:
    """What a broker's log shows of a client of which it has the end alone, at 1:40."""
    pieces: list[Any] = [
        *lists,
        said(100, "consumer_closed", group="g", client_id="1@1", channel="x:1"),
    ]
    versions = SubscriptionVersions(pieces, CONTEXT)
    unsubscriptions = Unsubscriptions(pieces, ProcessNames(pieces, CONTEXT), CONTEXT)
    timeline = MemberTimeline("g", CONTEXT, versions, unsubscriptions)
    timeline.take(pieces)
    of_client = (row for row in timeline.events if row["client_id"] == "1@1")
    return [(row["event_type"], row["event_ms"], row.get("detail")) for row in of_client]


def test_a_member_of_which_only_the_end_is_logged_came_after_the_last_list_without_it() -> None:
    end = ("CONSUMER_LOST", 100_500, None)
    assert lost() == [("CONSUMER_JOIN", 10_000, "OBSERVED"), end]
    other = listed(40, "2@2", "y:1")
    assert lost(other, listed(60, "2@2", "y:1")) == [("CONSUMER_JOIN", 60_000, None), end]
    cut = replace(other, values={**other.values, "partial": True})
    assert lost(cut) == [("CONSUMER_JOIN", 10_000, "OBSERVED"), end]
