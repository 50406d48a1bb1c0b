"""What one line of a file states, addressed; what connections show besides."""

import pyarrow as pa

from rebalance_core.contracts.fact_declaration import CLUSTER, GROUP, TOPIC
from rebalance_core.ingest.cluster_context import ClusterContext, cluster_context
from rebalance_core.ingest.collection import BROKER_LOG, CollectedFile
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.file_reader import FileReader

CONNECTED = (
    "2026-11-20 08:00:{second:02d} INFO main - new consumer connected, group: {group} "
    "CONSUME_PASSIVELY CLUSTERING channel: ClientChannelInfo [channel=[id: 0x1, "
    "L:/{broker} - R:/10.0.0.1:4000{second}], clientId=c@{second}, language=JAVA, version=479, "
    "lastUpdateTimestamp=1795132800000]"
)


def shown(*lines: str) -> list[tuple[str, str, int]]:
    """Part, group or topic or address, and line of all that broker.log states."""
    reader = FileReader(CollectedFile("broker.log", BROKER_LOG, "b"), "UTC", ("b",))
    found = []
    for piece in reader.read_lines(pa.array(lines), 0):
        assert not isinstance(piece, Unread)
        line = int(piece.source.rpartition(":")[2])
        found.append((piece.part, piece.key or str(piece.values["address"]), line))
    return found


def test_what_a_connection_shows_of_the_cluster_and_a_topic_counts_once() -> None:
    first = CONNECTED.format(second=1, group="g", broker="1.1.1.1:1")
    again = CONNECTED.format(second=2, group="g", broker="1.1.1.1:1")
    other = CONNECTED.format(second=3, group="h", broker="2.2.2.2:2")
    assert shown(first, again, other) == [
        (GROUP, "g", 1),
        (TOPIC, "%RETRY%g", 1),
        (CLUSTER, "1.1.1.1:1", 1),
        (GROUP, "g", 2),
        (GROUP, "h", 3),
        (TOPIC, "%RETRY%h", 3),
        (CLUSTER, "2.2.2.2:2", 3),
    ]


def test_the_same_at_an_earlier_time_counts_again() -> None:
    """A clock was set back: which time is right is not known yet."""
    later = CONNECTED.format(second=9, group="g", broker="1.1.1.1:1")
    earlier = CONNECTED.format(second=1, group="g", broker="1.1.1.1:1")
    assert [part for part, _, line in shown(later, earlier) if line == 2] == [GROUP, TOPIC, CLUSTER]


def test_a_connection_to_a_proxy_hides_none_to_the_broker() -> None:
    own = CONNECTED.format(second=2, group="g", broker="1.1.1.1:1")
    proxied = CONNECTED.format(second=1, group="g", broker="").replace(
        "[id: 0x1, L:/ - R:/10.0.0.1:40001]",
        "GrpcClientChannel{clientId=c@1, remoteAddress=10.0.0.1:40001, localAddress=3.3.3.3:3}",
    )
    of_proxy = [(part, line) for part, _, line in shown(proxied, own)]
    assert of_proxy == [(GROUP, 1), (GROUP, 2), (TOPIC, 2), (CLUSTER, 2)]


def test_lines_since_which_members_divide_other_queues_are_about_the_cluster_too() -> None:
    def config(topic: str, queues: int, perm: str = "RW-") -> str:
        return (
            f"TopicConfig [topicName={topic}, readQueueNums={queues}, writeQueueNums={queues}, "
            f"perm={perm}, topicFilterType=SINGLE_TAG, topicSysFlag=0, order=false]"
        )

    def updated(topic: str, old: str, new: str) -> str:
        return f"2026-11-20 08:00:01 INFO main - update topic config, old:[{old}] new:[{new}]"

    lines = (
        updated("t", config("t", 4), config("t", 8)),
        updated("t", config("t", 8), config("t", 8, "R--")),
        updated("t", config("t", 8), config("t", 8, "-W-")),
        updated("%RETRY%g", config("%RETRY%g", 1), config("%RETRY%g", 2)),
    )
    reader = FileReader(CollectedFile("broker.log", BROKER_LOG, "b"), "UTC", ("b",))
    pieces = list(reader.read_lines(pa.array(lines), 0))
    found = [p for p in pieces if not isinstance(p, Unread)]
    assert len(found) == len(pieces)
    assert [p.source for p in found if p.part == TOPIC] == [f"broker.log:{n}" for n in (1, 2, 3, 4)]
    of_cluster = [p for p in found if p.part == CLUSTER]
    assert [(p.source, p.values) for p in of_cluster] == [
        (f"broker.log:{n}", {"topic": "t"}) for n in (1, 3)
    ]
    context = cluster_context(of_cluster, ClusterContext("c", 0, 9), (), {}, {})
    assert context.queue_turns(["t"]) == {of_cluster[0].at_ms}
    assert not context.queue_turns(["others"])
