"""Windows of changes that dumps alone show begin at the look before."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.coverage import Coverage, LogSpan
from rebalance_core.audit.group_snapshot import AuditRun
from rebalance_core.contracts import INGESTED_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.model.timeline import Timeline
from rebalance_core.process.undated_moves import EVER_BEFORE_MS, UndatedMoves
from tests.unit.audit.snapshots import broker_logs

BEGIN_MS, DUMPED_MS = 100_000, 900_000
NO_LOG = Coverage({}, known=True)


def row_of(table: str, **fields: Any) -> Any:
    columns = (INGESTED_TABLES | SIMULATED_TABLES)[table].column_names
    return dict.fromkeys(columns) | {"cluster": "c", "consumer_group": "g"} | fields


def event(at_ms: int, source: str, kind: str = "CONSUMER_LOST", detail: str | None = None) -> Any:
    return row_of(
        "cluster_events",
        event_ms=at_ms,
        sequence=0,
        event_type=kind,
        client_id="x",
        source=source,
        detail=detail,
    )


def looks(*times_ms: int) -> list[Any]:
    return [row_of("observed_members", observed_ms=ms, source="s") for ms in times_ms]


def undated(
    events: list[Any],
    members: list[Any],
    coverage: Coverage = NO_LOG,
    findings: Iterable[Any] = (),
    of_topics: Mapping[str, tuple[tuple[int, int], ...]] | None = None,
    groups: Iterable[Any] = (),
) -> UndatedMoves:
    tables = {
        name: pa.Table.from_batches([batch_of_rows(INGESTED_TABLES[name], rows)])
        for name, rows in (
            ("cluster_events", events),
            ("observed_members", members),
            ("findings", list(findings)),
            ("consumer_groups", list(groups)),
        )
    }
    run = AuditRun(
        BEGIN_MS,
        1_000_000,
        members_since_ms=BEGIN_MS,
        coverage=coverage,
        changed_unseen=of_topics or {},
    )
    return UndatedMoves({"c": run}, tables)


def window(moves: UndatedMoves, at_ms: int, group: str = "g", topic: str = "T") -> tuple[int, int]:
    """The window of a move at this time, which lasts 20 s where its time is known."""
    move = row_of(
        "diffs",
        consumer_group=group,
        epoch=1,
        change_ms=at_ms,
        earliest_ms=at_ms,
        latest_ms=at_ms + 20_000,
        topic=topic,
        broker_name="a",
        queue_id=0,
        action="ADD",
        client_id="y",
        kind="FORCED",
        cause="CONSUMER_LOST",
    )
    (made,) = moves.diffs(batch_of_rows(SIMULATED_TABLES["diffs"], [move])).to_pylist()
    unchanged = {"earliest_ms": at_ms, "latest_ms": at_ms + 20_000}
    assert {**made, **unchanged} == move
    return made["earliest_ms"], made["latest_ms"]


def transient(moves: UndatedMoves, from_ms: int, to_ms: int | None) -> bool:
    epoch = row_of(
        "epochs",
        epoch=1,
        from_ms=from_ms,
        to_ms=to_ms,
        causes=["CONSUMER_JOIN"],
        status="SETTLED",
        transient=False,
    )
    counts = ("members", "distinct_members", "queues", "added", "dropped", "orphaned", "shared")
    epoch |= dict.fromkeys((*counts, "pop_queues", "masterless_queues"), 0)
    (made,) = moves.epochs(batch_of_rows(SIMULATED_TABLES["epochs"], [epoch])).to_pylist()
    return bool(made["transient"])


def begun(
    events: list[Any], members: list[Any], coverage: Coverage = NO_LOG, group: str = "g"
) -> int:
    """When the window of a move of the dump's time begins."""
    low_ms, high_ms = window(undated(events, members, coverage), DUMPED_MS, group)
    assert high_ms == DUMPED_MS + 20_000
    return low_ms


SHOWN = event(DUMPED_MS, "mqadmin/900000-consumerConnection-g-a.txt:2")


def test_it_came_since_the_lists_of_the_round_before() -> None:
    assert begun([SHOWN], looks(300_000, 500_000, 899_000, DUMPED_MS)) == 500_000


def test_or_since_the_logs_ended() -> None:
    ended = Coverage(broker_logs(a=[LogSpan(0, 700_000, from_start=True)]), known=True)
    assert begun([SHOWN], looks(500_000, DUMPED_MS), ended) == 700_000


def test_but_not_since_logs_ended_that_lack_a_join() -> None:
    ended = Coverage(broker_logs(a=[LogSpan(0, 700_000, from_start=True)]), known=True)
    joined = event(600_000, "mqadmin/650000-consumerConnection-g-a.txt:3", "CONSUMER_JOIN")
    assert begun([SHOWN, joined], looks(650_000, DUMPED_MS), ended) == 650_000
    later = joined | {"event_ms": 800_000}
    assert begun([SHOWN, later], looks(650_000, DUMPED_MS), ended) == 700_000
    before = joined | {"detail": "OBSERVED"}
    assert begun([SHOWN, before], looks(650_000, DUMPED_MS), ended) == 700_000


@pytest.mark.parametrize("broker", ["a-s", "empty"])
def test_a_loss_by_a_list_without_a_known_member_came_since_the_round_before(broker: str) -> None:
    """The list of a slave, or an empty one, is in no row of observed_members."""
    lost = event(DUMPED_MS, f"mqadmin/900000-consumerConnection-g-{broker}.txt:4")
    assert begun([lost], looks(300_000, 500_000, 890_000)) == 500_000


def test_and_after_it_came() -> None:
    came = event(400_000, "brokers/a/broker.log:7", "CONSUMER_JOIN")
    back = event(950_000, "brokers/a/broker.log:9", "CONSUMER_JOIN")
    assert begun([came, SHOWN, back], looks(DUMPED_MS)) == 400_000
    assert begun([came, SHOWN], looks(500_000, DUMPED_MS)) == 500_000
    # what it subscribes it may have subscribed before the first that is known of it
    known = event(400_000, "brokers/a/broker.log:7", "CONSUMER_JOIN", "OBSERVED")
    shown = event(DUMPED_MS, SHOWN["source"], "SUBSCRIBE")
    assert begun([known, shown], looks(DUMPED_MS)) == EVER_BEFORE_MS


@pytest.mark.parametrize(("torn", "latest_ms"), [(True, 700_000), (False, BEGIN_MS + 20_000)])
def test_it_came_until_a_line_states_that_it_is_gone_where_lines_were_refused(
    torn: bool, latest_ms: int
) -> None:
    line = "brokers/a/broker.log:30"
    known = event(BEGIN_MS, line, "CONSUMER_JOIN", "OBSERVED")
    span = LogSpan(0, 1_000_000, from_start=True, torn=torn)
    logs = Coverage(broker_logs(a=[span]), known=True)
    moves = undated([known, event(700_000, line)], [], logs)
    assert window(moves, BEGIN_MS)[0] == BEGIN_MS
    assert window(moves, BEGIN_MS)[1] == latest_ms + 20_000 * torn


def test_or_since_the_collection_begins() -> None:
    whole = Coverage(broker_logs(a=[LogSpan(0, 950_000, from_start=True)]), known=True)
    assert begun([SHOWN], looks(899_000, DUMPED_MS), whole) == BEGIN_MS


def test_or_at_any_time_before_where_no_log_has_the_time_before_the_first_look() -> None:
    """Recorded: a collection of dumps begins with the first of them."""
    assert begun([SHOWN], looks(899_000, DUMPED_MS)) == EVER_BEFORE_MS


def test_by_as_much_earlier_as_clocks_may_be_off() -> None:
    off = Coverage({}, known=True, clocks={"brokers/a": Timeline.always(1_500)})
    assert begun([SHOWN], looks(500_000, DUMPED_MS), off) == 498_500


@pytest.mark.parametrize(
    "row",
    [
        event(DUMPED_MS, "brokers/a/broker.log:7"),
        event(DUMPED_MS, "mqadmin/1-consumerConnection-g.txt:2", detail="OBSERVED"),
        event(DUMPED_MS - 60_000, "mqadmin/900000-consumerStatus-g/x.txt:3", "CONSUMER_JOIN"),
    ],
)
def test_what_a_line_or_the_client_dates_keeps_its_window(row: Any) -> None:
    assert begun([row], looks(500_000, DUMPED_MS)) == DUMPED_MS


def test_other_groups_keep_theirs() -> None:
    assert begun([SHOWN], looks(500_000, DUMPED_MS), group="other") == DUMPED_MS


def test_tables_without_coverage_stay_as_they_are() -> None:
    assert begun([SHOWN], looks(500_000, DUMPED_MS), Coverage()) == DUMPED_MS


LISTED = looks(300_000, DUMPED_MS)
LISTED[-1]["source"] = "mqadmin/900000-consumerConnection-g-a.txt:2"


def joined(at_ms: int, detail: str | None = None) -> Any:
    source = "mqadmin/900000-consumerConnection-g-a.txt:2"
    return event(at_ms, source, "CONSUMER_JOIN", detail)


@pytest.mark.parametrize("detail", [None, "OBSERVED"])
def test_a_member_of_which_no_log_has_the_join_came_until_the_dump_that_lists_it(
    detail: str | None,
) -> None:
    """Recorded: a topic that was created meanwhile is divided among members of later."""
    moves = undated([joined(BEGIN_MS, detail)], LISTED)
    assert window(moves, BEGIN_MS) == (BEGIN_MS, DUMPED_MS + 20_000)
    assert window(moves, 500_000) == (BEGIN_MS, DUMPED_MS + 20_000)
    assert window(moves, DUMPED_MS + 1) == (DUMPED_MS + 1, DUMPED_MS + 20_001)


def test_a_member_that_was_there_before_whole_logs_begin_did_not_come_later() -> None:
    whole = Coverage(broker_logs(a=[LogSpan(0, 950_000, from_start=True)]), known=True)
    assert window(undated([joined(BEGIN_MS, "OBSERVED")], LISTED, whole), 500_000)[0] == 500_000
    assert window(undated([joined(BEGIN_MS)], LISTED, whole), 500_000)[0] == BEGIN_MS


def test_an_epoch_inside_such_a_time_may_never_have_been() -> None:
    moves = undated([joined(BEGIN_MS)], LISTED)
    assert transient(moves, 200_000, 300_000)
    assert not transient(moves, 200_000, DUMPED_MS + 1)
    assert not transient(moves, 200_000, None)
    assert not transient(undated([], LISTED), 200_000, 300_000)


def mode_changed(source: str) -> Any:
    return row_of(
        "findings",
        rule_id="INGEST_REQUEST_MODE_CHANGED",
        topic="T",
        severity="INFO",
        first_ms=200_000,
        last_ms=400_000,
        summary="s",
        evidence={"source": source},
        remedy="r",
    )


def test_a_request_mode_that_a_store_shows_changed_since_the_store_before() -> None:
    moves = undated([], [], findings=[mode_changed("brokers/a/config/messageRequestMode.json")])
    assert window(moves, 200_001) == (200_001, 420_000)
    assert window(moves, 400_000) == (200_001, 420_000)
    assert window(moves, 400_000, "other") == (400_000, 420_000)


def test_what_a_client_is_answered_has_the_time_of_the_answer() -> None:
    moves = undated([], [], findings=[mode_changed("clients/x/rocketmq_client.log:7")])
    assert window(moves, 300_000) == (300_000, 320_000)


def test_what_was_lost_with_a_master_has_the_time_of_the_change_of_masters() -> None:
    moves = undated([], [], findings=[mode_changed("brokers/a/config/topics.json")])
    assert window(moves, 200_000) == (200_000, 220_000)


def test_a_topic_that_a_document_shows_changed_moves_queues_of_every_group() -> None:
    moves = undated([], [], of_topics={"T": ((200_000, 400_000),)})
    assert window(moves, 400_000) == window(moves, 400_000, "other") == (200_000, 420_000)
    moves = undated([], [], of_topics={"U": ((200_000, 400_000),)})
    assert window(moves, 400_000) == (400_000, 420_000)


def test_a_topic_whose_earlier_state_is_from_before_the_logs_may_have_changed_before_them() -> None:
    moves = undated([], [], of_topics={"T": ((BEGIN_MS + 1, 400_000),)})
    assert window(moves, 400_000) == (EVER_BEFORE_MS, 420_000)


def test_and_its_groups_epochs_inside_that_time_may_never_have_been() -> None:
    spans = {"T": ((200_000, 400_000),)}
    subscribes = event(150_000, "brokers/a/broker.log:7", "CONSUMER_JOIN") | {
        "subscriptions": ["T"]
    }
    moves = undated([subscribes], [], of_topics=spans)
    assert transient(moves, 250_000, 400_000)
    assert not transient(moves, 250_000, 400_001)
    assert not transient(undated([], [], of_topics=spans), 250_000, 400_000)
    stated = row_of("consumer_groups", subscriptions=["T"])
    assert transient(undated([], [], of_topics=spans, groups=[stated]), 250_000, 400_000)


@pytest.mark.parametrize("kind", ["TOPIC_CONFIG", "BROKER_DOWN"])
def test_a_clock_that_dates_a_topic_s_event_is_of_no_other_topic(kind: str) -> None:
    """Whatever groups a task has: the rows of a group do not depend on the others'."""
    of = {"consumer_group": None, "client_id": None, "broker_name": "b"}
    config = event(100_000, "brokers/a/broker.log:1", "TOPIC_CONFIG") | of | {"topic": "T"}
    off = event(500_000, "brokers/b/broker.log:2", kind) | of
    off |= {"topic": "T" if kind == "TOPIC_CONFIG" else None}
    clocks = {"brokers/b": Timeline.always(60_000)}
    moves = undated([config, off], [], Coverage({}, known=True, clocks=clocks))
    assert window(moves, 500_000) == (440_000, 580_000)
    assert window(moves, 500_000, topic="U") == (500_000, 520_000)


def test_a_member_dated_by_the_list_that_lacks_it_came_until_the_list_that_has_it() -> None:
    came = event(300_000, "mqadmin/900000-consumerConnection-g-a.txt:2", "CONSUMER_JOIN")
    seen = [row_of("observed_members", observed_ms=DUMPED_MS, source=came["source"])]
    moves = undated([came], [*looks(300_000), *seen])
    assert window(moves, 300_000) == (300_000, DUMPED_MS + 20_000)
