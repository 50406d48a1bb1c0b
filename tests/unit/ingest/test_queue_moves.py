"""``queue_moves``: what clients logged of the queues that their passes took and gave up."""

from pathlib import Path

from rebalance_core.ingest.in_process import ingest_collection

HEAD = "2026-11-21 04:30:{:02}.{:03} INFO  [{}] [RebalanceService] [o.a.r.c.X#?:?] - "
QUEUE = "MessageQueue [topic=T, brokerName=b, queueId={}]"
BEAT = (
    "HeartbeatData [clientID={}, producerDataSet=[], consumerDataSet=[ConsumerData [groupName=g, "
    "consumeType=CONSUME_PASSIVELY, messageModel=CLUSTERING, "
    "consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, subscriptionDataSet="
    "[SubscriptionData [classFilterMode=false, topic=T, subString=*, tagsSet=[], codeSet=[], "
    "subVersion=1, expressionType=TAG]]]]]"
)


def moves(folder: Path, *lines: str) -> list[tuple[object, ...]]:
    log = folder / "clients" / "c" / "rocketmq_client.log"
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"{line}\n" for line in lines))
    (folder / "collection.toml").write_text('cluster = "C"\n')
    rows = ingest_collection(folder).tables["queue_moves"]
    names = ("client_id", "at_ms", "queue_id", "action", "source")
    return [tuple(row[name] for name in names) for row in rows]  # type: ignore[literal-required]


def test_a_queue_taken_and_given_up_is_a_row_each(tmp_path: Path) -> None:
    assert moves(
        tmp_path,
        HEAD.format(0, 0, 7) + BEAT.format("1@7#9"),
        HEAD.format(1, 250, 7) + f"doRebalance, g, add a new mq, {QUEUE.format(3)}",
        HEAD.format(2, 500, 7) + f"doRebalance, g, remove unnecessary mq, {QUEUE.format(3)}",
        HEAD.format(3, 0, 7) + f"doRebalance, g, add a new mq failed, {QUEUE.format(4)}, because",
        HEAD.format(3, 0, 7) + "doRebalance, g, remove unnecessary mq, MessageQueue [topi",
    ) == [
        ("1@7#9", 1795206601250, 3, "ADD", "clients/c/rocketmq_client.log:2"),
        ("1@7#9", 1795206602500, 3, "DROP", "clients/c/rocketmq_client.log:3"),
    ]


def test_of_two_members_in_a_process_none_is_named(tmp_path: Path) -> None:
    ((client_id, *_),) = moves(
        tmp_path,
        HEAD.format(0, 0, 7) + BEAT.format("1@7#9"),
        HEAD.format(0, 1, 7) + BEAT.format("1@7#10"),
        HEAD.format(1, 0, 7) + f"doRebalance, g, add a new mq, {QUEUE.format(3)}",
    )
    assert client_id is None
