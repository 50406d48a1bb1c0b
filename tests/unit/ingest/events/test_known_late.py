"""Clients that subscribed long before a broker knew them."""

from pathlib import Path

import pytest

from rebalance_core.ingest.in_process import ingest_collection

# Lines of 5.1.4, shortened.
SUBSCRIBED_MS = 1795451123832
"""16:25:23 UTC, 00:25:23 in the log."""
CONNECTED_MS = 1795451263973
BOOTED = (
    "2026-11-24 00:25:18 INFO main - The broker[mq2, 127.0.0.1:24120] boot success. "
    "serializeType=JSON and name server is 127.0.0.1:24000\n"
)
START = f"2026-11-24 00:25:17 INFO main - brokerPermission=6\n{BOOTED}"
LATE_START = "2026-11-24 00:26:17 INFO main - brokerPermission=6\n"
JOIN = (
    "2026-11-24 00:27:43 INFO HeartbeatThread_1 - new consumer connected, group: late "
    "CONSUME_PASSIVELY CLUSTERING channel: ClientChannelInfo [channel=[id: 0x6d37f43d, "
    "L:/127.0.0.1:24120 - R:/127.0.0.1:37360], clientId=10.0.2.9@1#2, language=JAVA, version=441, "
    f"lastUpdateTimestamp={CONNECTED_MS}]\n"
    "2026-11-24 00:27:43 INFO HeartbeatThread_1 - ClientManageProcessor: registerConsumer info "
    "changed, SDK address=127.0.0.1:37360, consumerData=ConsumerData [groupName=late, "
    "consumeType=CONSUME_PASSIVELY, messageModel=CLUSTERING, "
    "consumeFromWhere=CONSUME_FROM_FIRST_OFFSET, unitMode=false, subscriptionDataSet=["
    "SubscriptionData [classFilterMode=false, topic=Late, subString=*, tagsSet=[], codeSet=[], "
    f"subVersion={CONNECTED_MS}, expressionType=TAG], SubscriptionData [classFilterMode=false, "
    "topic=%RETRY%late, subString=*, tagsSet=[], codeSet=[], "
    f"subVersion={SUBSCRIBED_MS}, expressionType=TAG]]]\n"
)
NEW_BROKER = (
    "2026-11-24 00:34:40 INFO main - brokerPermission=6\n"
    "2026-11-24 00:34:45 INFO main - The broker[mq3, 127.0.0.1:24140] boot success. "
    "serializeType=JSON and name server is 127.0.0.1:24000\n"
)


def registered(at: str, port: int) -> str:
    return (
        f"2026-11-24 {at} INFO RemotingExecutorThread_4 - new broker registered, "
        f"BrokerIdentityInfo [clusterName=c, brokerAddr=127.0.0.1:{port}] "
        f"HAService: 127.0.0.1:{port + 2}\n"
    )


NAMES = registered("00:25:28", 24120)


def join(folder: Path, expected: str = "", **logs: str) -> tuple[int, str | None]:
    """Time and detail of the client's join; logs by broker, and of the name server."""
    (folder / "collection.toml").write_text(f'cluster = "c"\n[expected]\nbrokers = [{expected}]\n')
    for name, text in logs.items():
        path = "namesrv/n/namesrv.log" if name == "n" else f"brokers/{name}/broker.log"
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    events = ingest_collection(folder).tables["cluster_events"]
    (row,) = [row for row in events if row["event_type"] == "CONSUMER_JOIN"]
    return row["event_ms"], row.get("detail")


def test_a_client_that_no_broker_knew_was_no_member(tmp_path: Path) -> None:
    """None of its topics existed: without a route it had no broker to send heartbeats to."""
    assert join(tmp_path, mq2=START + JOIN, n=NAMES) == (CONNECTED_MS, None)


def test_a_broker_that_is_new_did_not_know_it_either(tmp_path: Path) -> None:
    names = NAMES + registered("00:34:45", 24140)
    assert join(tmp_path, mq2=START + JOIN, mq3=NEW_BROKER, n=names) == (CONNECTED_MS, None)


def test_a_broker_that_came_back_with_a_new_log_may_have_known_it(tmp_path: Path) -> None:
    names = registered("00:25:20", 24140) + NAMES
    found = join(tmp_path, mq2=START + JOIN, mq3=NEW_BROKER, n=names)
    assert found == (SUBSCRIBED_MS, None)


@pytest.mark.parametrize(
    ("log", "expected", "at_ms", "detail"),
    [
        (LATE_START, "", 1795451177000, "OBSERVED"),  # as old as the log itself
        (START, '"mq2", "mq1"', SUBSCRIBED_MS, None),  # mq1's log was not collected
    ],
)
def test_what_no_log_shows_may_have_been_before(
    log: str, expected: str, at_ms: int, detail: str | None, tmp_path: Path
) -> None:
    assert join(tmp_path, expected, mq2=log + JOIN) == (at_ms, detail)
