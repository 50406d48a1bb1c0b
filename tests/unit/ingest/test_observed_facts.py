"""`observed_facts` of a small collection as a whole."""

from pathlib import Path
from typing import Any

from rebalance_core.contracts.fact_declaration import EPISODE_MS
from rebalance_core.contracts.observed import OBSERVED_FACTS
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.ingest.log_rows import FactRows

GROUPS = '{"subscriptionGroupTable":{%s}}'
GROUP_ENTRY = (
    '"%s":{"groupName":"%s","consumeEnable":true,"retryQueueNums":1,"consumeBroadcastEnable":false}'
)
KNOWN = (
    "2026-11-21 11:28:35 INFO t - cluster [c] brokerName [{0}] master address change from {1} "
    "to {1}"
)
REMOVED = "2026-11-21 11:28:3{} INFO t - unregisterBroker, remove name from brokerAddrTable OK, {}"


def facts(folder: Path, files: dict[str, str], kind: str) -> list[dict[str, Any]]:
    expected = 'brokers = ["a", "b"]\nname_servers = ["n1"]'
    files = {"collection.toml": f'cluster = "c"\n[expected]\n{expected}\n'} | files
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    tables: Any = ingest_collection(folder).tables
    assert {row["cluster"] for row in tables["observed_facts"]} == {"c"}
    return [row for row in tables["observed_facts"] if row["kind"] == kind]


def test_any_line_of_a_start_shows_that_the_broker_started_and_each_start_is_one(
    tmp_path: Path,
) -> None:
    def start(minute: int, *, up: bool) -> str:
        at = f"2026-11-21 11:{minute:02}:0"
        head = f"{at}0 INFO main - brokerRole=ASYNC_MASTER\n{at}1 INFO main - brokerPermission=6\n"
        return head + up * f"{at}4 INFO main - The broker[a, 127.0.0.1:1] boot success. x\n"

    changed = "2026-11-21 11:50:00 INFO t - Replace, key: realTimeNotifyConsumerChange, value: "
    log = "".join(start(at, up=up) for at, up in ((1, True), (20, False), (40, False), (45, True)))
    log += changed + "true -> false\n"
    rows = facts(tmp_path, {"brokers/a/broker.log": log}, "BROKER_STARTED")
    assert sorted(row["first_ms"] // 60_000 % 60 for row in rows) == [1, 20, 40, 45]


def test_pop_log_shows_offsets_that_the_broker_moved(tmp_path: Path) -> None:
    line = "2026-11-21 11:30:0{} WARN PopMessageThread_1 - Pop initial offset, because store is no "
    log = "".join(f"{line.format(second)}correct, T@g@{second}, 120->7\n" for second in range(2))
    (moved,) = facts(tmp_path, {"brokers/a/pop.log": log}, "OFFSET_CORRECTED")
    assert (moved["consumer_group"], moved["topic"], moved["broker_name"]) == ("g", "T", "a")
    assert (moved["times"], dict(moved["details"])["asked"]) == (2, "120")


def test_flow_control_has_the_first_message_in_the_cache_and_since_when_it_is_the_first(
    tmp_path: Path,
) -> None:
    request = "PullRequest [consumerGroup=g, messageQueue=MessageQueue [topic=T, brokerName=a, "
    request += "queueId=3], nextOffset=9]"
    log = "".join(
        f"2026-11-21 11:{minute}:00,000 WARN RocketmqClient - the queue's messages, span too long, "
        f"so do flow control, minOffset={first}, maxOffset=2070, maxSpan=2002, "
        f"pullRequest={request}, flowControlTimes=1\n"
        for minute, first in ((30, 67), (31, 68), (32, 68), (33, 68))
    )
    (row,) = facts(tmp_path, {"clients/c/rocketmq_client.log": log}, "FLOW_CONTROLLED")
    details = dict(row["details"])
    assert (details["reason"], details["log"], details["min_offset"]) == ("SPAN", "c", "68")
    assert int(details["min_since_ms"]) - row["first_ms"] == 60_000
    assert (row["last_ms"] - row["first_ms"], row["times"]) == (180_000, 4)


def test_metrics_and_dumps_show_how_late_the_revive_queues_are(tmp_path: Path) -> None:
    row = "rmq_sys_REVIVE_LOG_c  b  {}  {}  {}  N/A  {}  2026-11-29 17:49:18\n"
    head = (
        "#Topic  #Broker Name  #QID  #Broker Offset  #Consumer Offset  #Client IP  #Diff  #LastTime"
    )
    files = {
        "brokers/a/metrics-1795974572015.txt": (
            'rocketmq_pop_revive_latency_milliseconds{queue_id="2"} 31000.0\n'
        ),
        "mqadmin/1795974568665-consumerProgress-s-CID_RMQ_SYS_REVIVE_GROUP.txt": (
            f"{head}\n{row.format(0, 9, 7, 2)}\nConsume TPS: 0.00\nDiff Total: 2\n"
        ),
    }
    (late,) = facts(tmp_path, files, "REVIVE_METRICS")
    assert (late["broker_name"], late["first_ms"]) == ("a", 1795974572015)
    assert dict(late["details"]) == {"revive_queue": "2", "late_ms": "31000", "waiting": ""}
    (read,) = facts(tmp_path, {}, "REVIVE_PROGRESS")
    assert (read["broker_name"], read["first_ms"]) == ("b", 1795974568665)
    assert dict(read["details"]) == {"revive_queue": "0", "offset": "7", "end": "9"}


def test_metrics_belong_to_the_broker_that_their_labels_name(tmp_path: Path) -> None:
    of_b = 'consumer_group="g",node_id="b",put_status="PUT_OK",topic="%RETRY%g_T"'
    text = (
        f'rocketmq_pop_revive_in_message_total{{{of_b},revive_message_type="ACK"}} 7.0\n'
        'rocketmq_pop_revive_latency{node_id="b",queue_id="2"} 0.0\n'
    )
    files = {"brokers/a/metrics-1795974572015.txt": text}
    (counted,) = facts(tmp_path, files, "POP_COUNTS")
    assert [counted[name] for name in ("consumer_group", "topic", "broker_name")] == ["g", "T", "b"]
    assert counted["first_ms"] == 1795974572015
    details = dict(counted["details"])
    assert (details["acknowledgements"], details["checkpoints"]) == ("7", "0")
    assert details["put_back"] == details["given"] == ""
    (late,) = facts(tmp_path, {}, "REVIVE_METRICS")
    assert late["broker_name"] == "b"


def test_a_scrape_that_is_cut_off_is_stated(tmp_path: Path) -> None:
    text = 'rocketmq_pop_revive_latency{queue_id="1"} 0.0\nrocketmq_pop_revive_latency{queue_id="2"'
    (cut,) = facts(tmp_path, {"brokers/a/metrics-1795974572015.txt": text}, "NOT_READ")
    details = dict(cut["details"])
    assert (cut["broker_name"], details["what"]) == ("a", "scrape")
    assert "is cut off: it ends before the end of its last line" in details["why"]
    (late,) = facts(tmp_path, {}, "REVIVE_METRICS")
    assert late["details"]["revive_queue"] == "1"


def store(*groups: str) -> str:
    return GROUPS % ",".join(GROUP_ENTRY % (group, group) for group in groups)


def test_only_the_newest_store_shows_which_groups_there_are(tmp_path: Path) -> None:
    files = {
        "brokers/a/config-1795232000000/subscriptionGroup.json": store("old", "g"),
        "brokers/a/config-1795233000000/subscriptionGroup.json": store("g"),
        "brokers/b/config-1795233000000/subscriptionGroup.json": store("old"),
        "brokers/b/config/subscriptionGroup.json": store("g", "h"),
    }
    found = facts(tmp_path, files, "GROUP_CONFIG")
    assert {(r["consumer_group"], r["broker_name"]) for r in found} == {
        ("g", "a"),
        ("g", "b"),
        ("h", "b"),
    }
    assert found[0]["details"]["consume_broadcast_enable"] == "false"
    assert found[0]["details"]["consume_timeout_minute"] == ""
    counts = facts(tmp_path, {}, "GROUP_CONFIGS")
    assert [(r["broker_name"], r["details"]) for r in counts] == [
        ("a", {"groups": "1", "rejected": "0"}),
        ("b", {"groups": "2", "rejected": "0"}),
    ]
    tables = ingest_collection(tmp_path).tables
    assert tables.get("consumer_groups", []) == []
    assert {row["event_type"] for row in tables["cluster_events"]} == {"BROKER_UP"}


def test_a_store_that_cannot_be_read_shows_nothing(tmp_path: Path) -> None:
    files = {"brokers/a/config-1795233000000/subscriptionGroup.json": '{"subscriptionGroupTable'}
    assert facts(tmp_path, files, "GROUP_CONFIGS") == []


def test_what_was_expected_and_what_was_collected(tmp_path: Path) -> None:
    files = {
        "brokers/a/config-1795232000000/topics.json": '{"topicConfigTable":{}}',
        "brokers/a/config-1795233000000/topics.json": '{"topicConfigTable":{}}',
        "brokers/a/broker.log": "2026-11-21 11:28:35 INFO main - nothing of ours\n",
    }
    found = facts(tmp_path, files, "BROKER_FILE")
    assert [
        (r["broker_name"], r["details"]["name"], r["first_ms"], r["last_ms"]) for r in found
    ] == [
        ("a", "broker.log", 1795233000000, 1795233000000),
        ("a", "topics.json", 1795232000000, 1795233000000),
    ]
    assert found[0]["details"]["facts"] == "0"
    assert found[0]["details"]["until_ms"] == "1795231715000"
    assert found[0]["details"]["unreadable"] == "0"
    assert found[1]["details"] | {"facts": ""} == {
        "file": "store",
        "name": "topics.json",
        "files": "2",
        "facts": "",
    }
    empty = {"brokers/a/broker.log": "", "brokers/b/broker.log": "", "namesrv/n1/namesrv.log": ""}
    logs = [r["details"]["name"] for r in facts(tmp_path, empty, "BROKER_FILE")]
    assert logs == ["topics.json"]
    assert len(facts(tmp_path, {}, "NAME_SERVER_FILE")) == 1
    assert [r["broker_name"] for r in facts(tmp_path, {}, "EXPECTED_BROKER")] == ["a", "b"]
    (server,) = facts(tmp_path, {}, "EXPECTED_NAME_SERVER")
    assert server["details"] == {"name": "n1"}
    (whole,) = facts(tmp_path, {}, "COLLECTED")
    assert whole["details"] == {
        "start_ms": str(whole["first_ms"]),
        "end_ms": str(whole["last_ms"]),
    }


def test_what_the_collector_missed_is_a_fact_and_a_part_is_no_evidence(tmp_path: Path) -> None:
    failed = (("brokers/b", "mq2:/logs gave nothing"), ("b", "expected"), ("mqadmin/1-x.txt", "?"))
    tables = "".join(f'[[failed]]\nwhat = "{what}"\nwhy = "{why}"\n' for what, why in failed)
    files = {
        "collection.toml": f'cluster = "c"\n[expected]\nbrokers = ["a", "b"]\n{tables}',
        "namesrv/namesrv.log": KNOWN.format("a", "1.1.1.a:1"),
        "brokers/a/broker.log.part": "cut",
        "brokers/b/broker.log.part": "cut",  # named already
        "mqadmin/1795232000000-consumerStatus-g.txt.part": "cut",
    }
    found = facts(tmp_path, files, "NOT_COLLECTED")
    assert {(row["details"]["what"], row["broker_name"]) for row in found} == {
        ("brokers/a/broker.log", "a"),
        ("brokers/b", "b"),
        ("b", "b"),
        ("mqadmin/1-x.txt", None),
        ("mqadmin/1795232000000-consumerStatus-g.txt", None),
    }
    assert facts(tmp_path, files, "NOT_READ") == []


def test_a_broker_is_registered_as_each_name_server_said_last(tmp_path: Path) -> None:
    log = [KNOWN.format(b, f"1.1.1.{b}:1") for b in ("a", "b")] + [REMOVED.format(6, "a")]
    found = facts(tmp_path, {"namesrv/namesrv.log": "\n".join(log)}, "BROKER_REGISTERED")
    stated = [(r["broker_name"], *r["details"].values()) for r in found]
    assert stated == [("a", "n1", "false"), ("b", "n1", "true")]
    (file,) = facts(tmp_path, {}, "NAME_SERVER_FILE")
    assert file["details"]["name"] == "n1", "the only one expected"
    other = {"namesrv/n2/namesrv.log": KNOWN.format("a", "1.1.1.a:1")}
    found = facts(tmp_path, other, "BROKER_REGISTERED")
    assert [(r["broker_name"], *r["details"].values()) for r in found] == [
        ("a", "n2", "true"),
        ("a", "namesrv", "false"),
        ("b", "namesrv", "true"),
    ]


def test_a_name_server_that_starts_knows_the_brokers_that_register_with_it(tmp_path: Path) -> None:
    log = [KNOWN.format(b, f"1.1.1.{b}:1") for b in ("a", "b")]
    log.append("2026-11-21 11:28:40 INFO main - kvConfigPath=/root/namesrv/kvConfig.json")
    log.append(
        "2026-11-21 11:28:50 INFO t - cluster [c] brokerName [b] master address change from null "
        "to 1.1.1.b:1"
    )
    later = {"brokers/a/config-1795233000000/topics.json": '{"topicConfigTable":{}}'}
    found = facts(tmp_path, {"namesrv/namesrv.log": "\n".join(log), **later}, "BROKER_REGISTERED")
    stated = {r["broker_name"]: r["details"]["registered"] for r in found}
    assert stated == {"a": "false", "b": "true"}


def test_failures_of_clients_without_a_group(tmp_path: Path) -> None:
    head = "2026-11-21 11:47:37.769 WARN  [32265] [t] [o.a.r#?:?] - "
    log = [
        "send heart beat to broker[a 0 1.1.1.1:1] failed",
        "send heart beat to broker[a 0 1.1.1.1:1] success",
        "allocate message queue exception. strategy name: CONFIG, ex: {}",
    ]
    files = {"clients/app/rocketmq_client.log": "\n".join(head + line for line in log)}
    (beat,) = facts(tmp_path, files, "HEARTBEAT_FAILED")
    assert beat["broker_name"] == "a"
    assert beat["details"] == {"address": "1.1.1.1:1", "log": "app", "pid": "32265"}
    (threw,) = facts(tmp_path, {}, "ALLOCATION_FAILED")
    assert threw["consumer_group"] is None
    assert threw["details"]["strategy"] == "CONFIG"


def test_queues_that_a_client_holds_dropped_ones_too_and_those_that_are_stuck(
    tmp_path: Path,
) -> None:
    queue = (
        "ProcessQueueInfo [commitOffset=5, cachedMsgMinOffset=0, cachedMsgMaxOffset=0, "
        "cachedMsgCount=0, cachedMsgSizeInMiB=0, transactionMsgMinOffset=0, "
        "transactionMsgMaxOffset=0, transactionMsgCount=0, locked=true, tryUnlockTimes=3, "
        "lastLockTimestamp=20261121034731000, droped=true, lastPullTimestamp=20261121034731000, "
        "lastConsumeTimestamp=20261121034731000]"
    )
    row = f"{'T':<32}  {'a':<32}  {'0':<4}  {queue}"
    stuck = "c@1 MessageQueue [topic=T, brokerName=a, queueId=0] unlock 3 times, still failed"
    asked = f"{'1':<10} {'c@1':<40} {'V5_3_3':<20} 1795232851000/c@1"
    files = {
        "mqadmin/1795232851000-consumerStatus-g.txt": (
            f"#Index     #ClientId  #Version  #ConsumerRunningInfoFile\n{asked}\n\n{stuck}\n"
        ),
        "mqadmin/1795232851000-consumerStatus-g/c@1.txt": (
            f"#Consumer Properties#\n{'PROP_CONSUMEORDERLY':<40}: true\n"
            f"#Consumer MQ Detail#\n{row}\n"
        ),
    }
    (held,) = facts(tmp_path, files, "HELD_QUEUE")
    assert (held["client_id"], held["topic"], held["queue_id"]) == ("c@1", "T", 0)
    assert held["details"]["dropped"] == "true"
    assert held["details"]["try_unlock_times"] == "3"
    (warned,) = facts(tmp_path, {}, "STUCK_QUEUE")
    assert warned["client_id"] == "c@1"
    assert warned["details"] == {"trouble": "unlock", "count": "3"}
    dumps = {r["client_id"]: r["details"]["rows"] for r in facts(tmp_path, {}, "DUMP")}
    assert set(dumps) == {None, "c@1"}


def spans(rows: FactRows) -> list[tuple[int, int, int]]:
    return [(row["first_ms"], row["last_ms"], row["times"]) for row in rows.rows]


def test_who_asks_for_a_lock_no_more_for_as_long_as_a_lock_lives_waits_no_longer() -> None:
    rows = FactRows("g")
    for at_ms in (0, 20_000, 80_000, 140_001):
        rows.add("LOCK_REFUSED", at_ms, "x", {"owner": "o"}, queue_id=0)
    assert spans(rows) == [(0, 80_000, 3), (140_001, 140_001, 1)]


def test_refusals_are_one_row_an_episode_and_seconds_are_counted() -> None:
    rows = FactRows("g")
    for at_ms in (1_000, 1_900, 2_100, 2_100 + EPISODE_MS, 2_101 + 2 * EPISODE_MS):
        rows.add("NO_SUBSCRIPTION", at_ms, f"f:{at_ms}", topic="T", broker_name="b")
    late = 2_101 + 2 * EPISODE_MS
    assert spans(rows) == [(1_000, 2_100 + EPISODE_MS, 3), (late, late, 1)]
    assert rows.rows[0]["source"] == "f:1000"
    assert set(rows.rows[0]) == set(OBSERVED_FACTS.column_names) - {"cluster"}


def test_what_distinguishes_two_things_makes_two_rows() -> None:
    rows = FactRows("g")
    for owner, queue in (("a", 0), ("b", 0), ("a", 1), ("a", 0)):
        rows.add("LOCK_REFUSED", 7, "f:1", {"owner": owner}, queue_id=queue, client_id="c")
    assert [(r["details"]["owner"], r["queue_id"]) for r in rows.rows] == [
        ("a", 0),
        ("b", 0),
        ("a", 1),
    ]


def test_states_are_merged_however_far_apart_and_dumps_never() -> None:
    rows = FactRows("g")
    for at_ms in (0, 10 * EPISODE_MS):
        rows.add("CLIENT_TOPIC", at_ms, "f:1", {"expression": "*"}, topic="T", client_id="c")
        rows.add("CONNECTION", at_ms, "d:1", {"client_addr": "a:1"}, client_id="c")
        rows.add("CONNECTION", at_ms, "d:2", {"client_addr": "a:1"}, client_id="c")
    late = 10 * EPISODE_MS
    assert spans(rows) == [(0, late, 2), (0, 0, 2), (late, late, 2)]


def test_failures_without_a_group_are_counted_in_minutes() -> None:
    rows = FactRows()
    for at_ms in (0, 1_000, 59_000, 61_000):
        rows.add("HEARTBEAT_FAILED", at_ms, "f:1", {"log": "c"}, broker_name="b")
    assert spans(rows) == [(0, 61_000, 2)]
