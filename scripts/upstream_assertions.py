"""Print the assertions of RocketMQ's own unit tests as data: inputs and expected values, loops
unrolled.

    python scripts/upstream_assertions.py > tests/vectors/upstream-assertions.jsonl

The format is described in tests/conformance/upstream_assertions.py. Nothing here depends on this
package: the values are those of the tests of 4.9.7 and 5.3.3. Where a test draws its sizes at
random, all sizes of its range are taken (consistent hash) or a seeded draw of them (rooms).
"""

import json
import random
import sys
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

FORMAT = {"format": "upstream-assertions", "format_version": 1}
BOTH, V4, V5 = ["4.9.7", "5.3.3"], ["4.9.7"], ["5.3.3"]
PUSH_AND_LITE = {"RebalancePushImplTest": "PUSH", "RebalanceLitePullImplTest": "LITE_PULL"}
LAST, FIRST, TIMESTAMP = (f"CONSUME_FROM_{w}" for w in ("LAST_OFFSET", "FIRST_OFFSET", "TIMESTAMP"))
NOT_MODELLED = {
    "RebalanceLockManagerTest#testIsLockAllExpired*, #testTryLockButExpired": "expiry of order "
    "locks is a time (61 s in the windows), no state of a pass",
    "*OffsetStoreTest: increaseOnly, #testUpdateAndFreezeOffset*; ControllableOffsetTest": (
        "offsets inside a living client go where consumption goes; only what it sends is modelled"
    ),
    "*OffsetStoreTest#testPersistAll, #testCloneOffset, persistAll steps": "the 5 s timer's "
    "commits come as observations (committed_offsets), not from the model",
    "ConsumerOffsetManagerTest, ConsumerOffsetManagerV2Test: removals, resets, pull offsets, "
    "restarts": "the broker's tables come as observations",
    "ConsumerManageProcessorTest: static topics, updates, member lists, response codes": (
        "static topics (logical queues) are not modelled; the rest is protocol, not a rule"
    ),
    "QueryAssignmentProcessorTest#testSetMessageRequestMode*, #testDoLoadBalance": (
        "request modes have no table yet, LMQ topics are not modelled"
    ),
    "ProcessQueueTest, ConsumeMessage*ServiceTest": "messages inside a client are not modelled",
    "DefaultMQPushConsumerTest, DefaultLitePullConsumerTest, DefaultMQPushConsumerImplTest": (
        "ranges of settings and mocked pulls; the default strategy is translated"
    ),
    "BroadcastOffset*Test": "broadcast offsets on the proxy are not modelled",
    "ConsumerManagerTest": "registration is the broker's; members come as events",
    "BatchConsumeQueueTest, ConsumeQueueTest": "store files; only the search by time is translated",
}


def line(test: str, versions: list[str], rule: str, **fields: Any) -> Json:
    return {"test": test, "versions": versions, "rule": rule, **fields}


def allocations() -> Iterator[Json]:
    """Yield the tests of the simple strategies."""
    clients, queues = [["CID_PREFIX", 4]], [["topic", "brokerName", 0, 10]]
    test = "AllocateMessageQueueAveragelyTest#testAllocateMessageQueueAveragely"
    shares: Any = {f"CID_PREFIX{i}": {"size": size} for i, size in enumerate((3, 3, 2, 2))}
    yield allocation(test, "AVG", {}, queues, clients, shares)
    test = "AllocateMessageQueueAveragelyByCircleTest#testAllocateMessageQueueAveragelyByCircle"
    ids = ([0, 4, 8], [1, 5, 9], [2, 6], [3, 7])
    shares = {"CID_PREFIX": {"size": 0}} | by_id(*ids)
    yield allocation(test, "AVG_BY_CIRCLE", {}, queues, clients, shares)
    clients, queues = [["CID_PREFIX", 2]], [["topic", "brokerName", 0, 4]]
    test = "AllocateMessageQueueByConfigTest#testAllocateMessageQueueByConfig"
    params: Json = {"config": [f"topic|brokerName|{i}" for i in range(4)]}
    yield allocation(test, "CONFIG", params, queues, clients, by_id([0, 1, 2, 3], [0, 1, 2, 3]))
    test = "AllocateMessageQueueByMachineRoomTest#testAllocateMessageQueueByMachineRoom"
    queues = [["topic", "room1@broker-a", 0, 5], ["topic", "room2@broker-b", 5, 10]]
    params = {"consumer_idcs": ["room1"]}
    empty = {"error": ["IllegalArgumentException", "mqAll is null or mqAll empty"]}
    yield allocation(test, "MACHINE_ROOM", params, [], clients, {"CID_PREFIX0": empty})
    yield allocation(test, "MACHINE_ROOM", params, queues, clients, by_id([0, 1, 4], [2, 3]))
    yield allocation(
        "QueryAssignmentProcessorTest#testQueryAssignment",
        "AVG",
        {},
        [["FooBar", "broker-1", 0, 1], ["FooBar", "broker-2", 1, 2]],
        ["127.0.0.1"],
        {"127.0.0.1": {"size": 2}},
        V5,
    )


def by_id(*ids: list[int]) -> Json:
    return {f"CID_PREFIX{i}": {"queue_ids": queue_ids} for i, queue_ids in enumerate(ids)}


def allocation(
    test: str,
    strategy: str,
    params: Json,
    queues: list[Any],
    clients: list[Any],
    shares: Json,
    versions: list[str] = BOTH,
) -> Json:
    inputs = {"strategy": strategy, "params": params, "queues": queues, "clients": clients}
    return line(test, versions, "allocate", **inputs, shares=shares)


def rings() -> Iterator[Json]:
    """Yield the tests of CONSISTENT_HASH."""
    name = "AllocateMessageQueueConsitentHashTest"
    queues, clients = [["topic_test", "brokerName", 0, 6]], [["CID-", 2]]
    refused = {"error": ["IllegalArgumentException", None]}
    for test, asks, mq_all, cid_all, share in (
        ("testCurrentCIDNotExists", "2147483647", queues, clients, {"size": 0}),
        ("testCurrentCIDIllegalArgument", "", queues, clients, refused),
        ("testMessageQueueIllegalArgument", "0", [], clients, refused),
        ("testConsumerIdIllegalArgument", "0", queues, [], refused),
    ):
        strategy = "CONSISTENT_HASH"
        yield allocation(f"{name}#{test}", strategy, {}, mq_all, cid_all, {asks: share})
    for count in range(1, 21):
        for members in range(1, 21):
            fixed = {(20, 10): "#testAllocate1", (10, 20): "#testAllocate2"}
            yield line(
                name + fixed.get((count, members), "#testRun100RandomCase"),
                BOTH,
                "ring",
                virtual_nodes=3,
                queues=[["topic_test", "brokerName", 0, count]],
                clients=[["CID-", members]],
                removed="CID-0",
                added="CID-NEW",
            )


def rooms() -> Iterator[Json]:
    """Yield the tests of MACHINE_ROOM_NEARBY."""
    sizes = [("test1", 5, 5, 20, members) for members in (10, 20, 30, 0)]
    sizes += [("test2", 5, 6, 10, members) for members in (10, 5, 20, 0)]
    sizes += [("test3", 5, 3, 10, members) for members in (10, 5, 20, 0)]
    rng = random.Random(0)
    for _ in range(10):
        shape = (rng.randint(1, 10), rng.randint(1, 10), rng.randint(1, 100), rng.randint(1, 200))
        sizes.append(("testRun10RandomCase", *shape))
    for test, broker_rooms, client_rooms, count, members in sizes:
        yield line(
            f"AllocateMachineRoomNearByTest#{test}",
            BOTH,
            "rooms",
            strategy="AVG",
            queues=[
                ["topic_test", f"IDC{i}-brokerName", 0, count] for i in range(1, broker_rooms + 1)
            ],
            clients=[[f"IDC{i}-CID-", members] for i in range(1, client_rooms + 1)],
            own_room_only=client_rooms >= broker_rooms,
        )


def pop_shares() -> Iterator[Json]:
    """Yield QueryAssignmentProcessorTest#testAllocate4Pop: 1 to 16 queues and clients, shares 0
    to 15.
    """
    for strategy in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        for queues in range(1, 17):
            for clients in range(1, 17):
                yield line(
                    "QueryAssignmentProcessorTest#testAllocate4Pop",
                    V5,
                    "pop_share",
                    strategy=strategy,
                    queues=[["FooBar", "defaultBroker", 0, queues]],
                    clients=[["", clients]],
                    asks=str(clients - 1),
                    sizes=[pop_sizes(strategy, queues, clients, share) for share in range(16)],
                )


def pop_sizes(strategy: str, queues: int, clients: int, share: int) -> list[int]:
    """Return the least and most queues that the test lets a client get."""
    if share == 0 or share >= clients - 1:
        return [queues, queues]
    if queues < clients:
        return [1, 1]
    if strategy == "CONSISTENT_HASH":
        return [1, queues]
    least, surplus = divmod(queues, clients)
    most = least + (surplus > 0)
    return [least * (share + 1), min(queues, most * (share + 1))]


def start_offsets() -> Iterator[Json]:
    """Yield RebalancePushImplTest and RebalanceLitePullImplTest."""
    for name, consumer in PUSH_AND_LITE.items():
        head = f"{name}#testComputePullFromWhereWithException"
        for where in (LAST, FIRST, TIMESTAMP):
            yield start(f"{head}_ne_minus1", BOTH, consumer, where, 0, 0)
            unreadable = V4 if consumer == "PUSH" else BOTH
            yield start(f"{head}_ne_minus1", unreadable, consumer, where, -2, -1)
        yield start(f"{head}_eq_minus1_last", BOTH, consumer, LAST, -1, 12345, max_offset=12345)
        yield start(
            f"{head}_eq_minus1_last", BOTH, consumer, LAST, -1, 0, max_offset=12345, retry=True
        )
        yield start(f"{head}_eq_minus1_first", BOTH, consumer, FIRST, -1, 0)
        found: Json = {"max_offset": 23456, "timestamp_offset": 12345}
        test = f"{head}_eq_minus1_timestamp"
        yield start(test, BOTH, consumer, TIMESTAMP, -1, 12345, **found)
        yield start(test, BOTH, consumer, TIMESTAMP, -1, 23456, **found, retry=True)


def start(
    test: str,
    versions: list[str],
    consumer: str,
    where: str,
    stored: int,
    expected: int,
    max_offset: int = 0,
    timestamp_offset: int = 0,
    retry: bool = False,
) -> Json:
    looked_up = {"max_offset": max_offset, "timestamp_offset": timestamp_offset}
    topic = "%RETRY%group" if retry else "topic1"
    asked = {"consumer_type": consumer, "consume_from_where": where, "topic": topic}
    return line(
        test, versions, "start_offset", **asked, stored_offset=stored, **looked_up, offset=expected
    )


def thresholds() -> Iterator[Json]:
    """Yield RebalancePushImplTest#testMessageQueueChanged_*: [for topic, queues] in turn."""
    for part in ("CountThreshold", "SizeThreshold", "ConsumerRuntimeInfo", "ConsumerRuntimeInfo"):
        yield line(
            f"RebalancePushImplTest#testMessageQueueChanged_{part}",
            BOTH,
            "threshold",
            for_queue=1024,
            steps=[[-1, 2], [1024, 2], [1024, 3]],
            expected=[1024, 512, 341],
        )


def timestamp_searches() -> Iterator[Json]:
    """Yield DefaultMessageStoreTest#testGetOffsetInQueueByTime*: ten messages, 10 ms apart."""
    times = [1_700_000_000_000 + 10 * i for i in range(10)]
    name = "DefaultMessageStoreTest#testGetOffsetInQueueByTime"
    for test, skews in (("", [0]), ("_TimestampIsSkewing", [2, -2])):
        for skew in skews:
            found = [[at + skew, offset] for offset, at in enumerate(times)]
            versions = V4 if skew > 0 else BOTH
            yield line(name + test, versions, "timestamp_search", stored_ms=times, found=found)
    test = f"{name}_TimestampSkewingIsLarge"
    late, early = (
        [[at + skew, offset] for at in times] for skew, offset in ((20000, 9), (-20000, 0))
    )
    yield line(test, V4, "timestamp_search", stored_ms=times, found=late)
    yield line(test, BOTH, "timestamp_search", stored_ms=times, found=early)


def offset_stores() -> Iterator[Json]:
    """Yield LocalFileOffsetStoreTest, RemoteBrokerOffsetStoreTest: steps with the result of a
    read.
    """
    local, remote = "LocalFileOffsetStoreTest", "RemoteBrokerOffsetStoreTest"
    updates = [["update", 1024], ["read_memory", 1024], ["update", 1023], ["read_memory", 1023]]
    removal = [["update", 1024], ["read_memory", 1024], ["remove"], ["read_memory", -1]]
    yield line(f"{local}#testUpdateOffset", BOTH, "offset_store", store="local", steps=updates)
    yield line(f"{remote}#testUpdateOffset", BOTH, "offset_store", store="remote", steps=updates)
    yield line(f"{local}#testRemoveOffset", V5, "offset_store", store="local", steps=removal)
    yield line(f"{remote}#testRemoveOffset", BOTH, "offset_store", store="remote", steps=removal)
    yield line(
        f"{local}#testReadOffset_FromStore",
        BOTH,
        "offset_store",
        store="local",
        steps=[["update", 1024], ["read_store", -1]],
    )
    yield line(
        f"{local}#testPersist",
        V5,
        "offset_store",
        store="local",
        steps=[["update", 1024], ["persist"], ["read_store", 1024]],
    )
    yield line(
        f"{local}#testPersist", V5, "offset_store", store="local", steps=[["read_store", -1]]
    )
    for versions, refused in ((V4, -1), (V5, -2)):
        answers = [["not_found", -1], ["refused", refused], ["unreachable", -2]]
        steps: list[list[Any]] = []
        for kind, read in answers:
            steps += [["broker", kind], ["read_store", read]]
        yield line(
            f"{remote}#testReadOffset_WithException",
            versions,
            "offset_store",
            store="remote",
            steps=[["update", 1024], *(steps if versions == V5 else steps[2:])],
        )
    steps = []
    for n in (1024, 1023):
        steps += [["update", n], ["persist"], ["read_store", n]]
    yield line(
        f"{remote}#testReadOffset_Success", BOTH, "offset_store", store="remote", steps=steps
    )
    yield line(
        "ConsumerOffsetManagerV2Test#testCommitOffset_Standard",
        V5,
        "broker_offsets",
        commits=[["T1", 1, 100]],
        queries=[["T1", 1, 100]],
    )
    yield line(
        "LmqConsumerOffsetManagerTest#testOffsetManage",
        BOTH,
        "broker_offsets",
        commits=[["%LMQ%1111", 0, 10]],
        queries=[["%LMQ%1111", 0, 10], ["%LMQ%1111test", 0, None]],
    )


def broker_replies() -> Iterator[Json]:
    """Yield ConsumerManageProcessorTest#testQueryConsumerOffset, ordinary topics."""
    test = "ConsumerManageProcessorTest#testQueryConsumerOffset"
    for committed, minimum, cached, reply in (
        (None, 0, False, None),
        (0, 0, False, 0),
        (None, -1, True, 0),
    ):
        yield line(
            test,
            V5,
            "broker_reply",
            committed_offset=committed,
            min_offset=minimum,
            max_offset=1,
            head_cached=cached,
            set_zero_if_not_found=True,
            reply=reply,
        )


def order_locks() -> Iterator[Json]:
    """Yield RebalanceLockManagerTest, as far as no lock expires: ids of locked queues by client."""
    me, other = "defaultClientId", "otherClientId"
    both_mine, both_others = {"0": me, "1": me}, {"0": other, "1": other}
    for test, held, asked, granted in (
        ("testTryLockNotLocked", {}, [0], [0]),
        ("testTryLockSameClient", both_mine, [0], [0]),
        ("testTryLockDifferentClient", both_others, [0], []),
        ("testTryLockBatchAllLocked", {}, [0, 1], [0, 1]),
        ("testTryLockBatchNoneLocked", both_others, [0, 1], []),
        ("testTryLockBatchSomeLocked", {"0": other, "1": me}, [0, 1], [1]),
    ):
        yield line(
            f"RebalanceLockManagerTest#{test}",
            V5,
            "order_lock",
            held=held,
            lock=asked,
            client_id=me,
            granted=granted,
        )
    for test, held, left in (
        ("testUnlockBatch", both_mine, 1),
        ("testUnlockBatchByOtherClient", both_others, 2),
    ):
        yield line(
            f"RebalanceLockManagerTest#{test}",
            V5,
            "order_lock",
            held=held,
            unlock=[0],
            client_id=me,
            left=left,
        )


def defaults() -> Iterator[Json]:
    yield line(
        "DefaultMQPushConsumerTest#assertCreatePushConsumer", V5, "default_strategy", name="AVG"
    )


SECTIONS = (
    allocations, rings, rooms, pop_shares, start_offsets, thresholds, timestamp_searches,
    offset_stores, broker_replies, order_locks, defaults,
)  # fmt: skip


def lines() -> Iterator[str]:
    """Yield the file: its head, then a line per assertion or loop of assertions."""
    head: Json = FORMAT | {"source": "apache/rocketmq, unit tests of 4.9.7 and 5.3.3"}
    yield json.dumps(head | {"not_modelled": NOT_MODELLED})
    for section in SECTIONS:
        yield from (json.dumps(row, separators=(",", ":")) for row in section())


if __name__ == "__main__":
    sys.stdout.writelines(f"{text}\n" for text in lines())
