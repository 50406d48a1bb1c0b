"""Rows of input tables, good and bad, for the row checks of both carriers."""

import json

from rebalance_core.model.times import YEAR_2000_MS, YEAR_2201_MS

NOW_MS = 1_700_000_000_000
DEFAULTS: dict[str, dict[str, object]] = {
    "cluster_events": {
        "cluster": "c",
        "event_ms": NOW_MS,
        "event_type": "CONSUMER_JOIN",
        "consumer_group": "g",
        "client_id": "1@1",
    },
    "consumer_groups": {"cluster": "c"},
    "queue_offsets": {
        "cluster": "c",
        "topic": "t",
        "broker_name": "b",
        "queue_id": 0,
        "min_offset": 0,
        "max_offset": 9,
    },
    "committed_offsets": {
        "cluster": "c",
        "consumer_group": "g",
        "topic": "t",
        "broker_name": "b",
        "queue_id": 0,
        "committed_offset": 5,
    },
}
# what makes the key of row n its own
COUNTER = {
    "cluster_events": "sequence",
    "consumer_groups": "consumer_group",
    "queue_offsets": "observed_ms",
    "committed_offsets": "observed_ms",
}
CONFIG: dict[str, object] = {
    "event_type": "TOPIC_CONFIG",
    "topic": "t",
    "broker_name": "b",
    "read_queue_nums": 8,
}
MASTER: dict[str, object] = {"event_type": "MASTER_DOWN", "broker_name": "b"}
NOTICES: dict[str, object] = {"event_type": "NOTICES", "broker_name": "b"}
MODE: dict[str, object] = {"event_type": "REQUEST_MODE", "topic": "t"}
EVENTS, GROUPS, OFFSETS, COMMITS = DEFAULTS

Place = tuple[str, str]  # table, source
Reason = tuple[str, str]  # code, a part of the message

GOOD: list[tuple[str, dict[str, object]]] = [
    (EVENTS, {}),
    (EVENTS, {"detail": "OBSERVED", "strategy": "CONSISTENT_HASH(virtual_nodes=10)"}),
    (EVENTS, {"event_type": "CONSUMER_LOST", "detail": "EXPIRED", "version": "V4_9_7"}),
    (EVENTS, {"event_type": "BROKER_DOWN", "broker_name": "b", "detail": "STOPPED"}),
    (EVENTS, {"event_type": "TOPIC_DELETED", "topic": "t"}),
    (EVENTS, MODE | {"detail": "PULL"}),
    (EVENTS, MODE | {"detail": "POP(share_queue_num=-1)", "client_id": None}),
    (EVENTS, {"rebalance_mode": "BROKER"}),
    (EVENTS, MASTER | {"detail": "SLAVE_READ"}),
    (EVENTS, MASTER),
    (EVENTS, MASTER | {"event_type": "MASTER_UP"}),
    (EVENTS, CONFIG | {"read_queue_nums": 65536, "perm": 0, "write_queue_nums": 0}),
    (GROUPS, {"pull_threshold_for_queue": -1, "broker_version": "5.1", "rebalance_mode": "BROKER"}),
    (OFFSETS, {"queue_id": 65535, "min_offset": 9}),
    (COMMITS, {"committed_offset": 9007199254740993}),
    (COMMITS, {"committed_offset": 2**63 - 1}),
    (OFFSETS, {"min_offset": 2**62, "max_offset": 2**63 - 1}),
    (EVENTS, {"event_ms": YEAR_2000_MS, "sequence": 0}),
    (EVENTS, {"event_ms": YEAR_2201_MS - 1, "sequence": 0}),
    (EVENTS, NOTICES | {"detail": "BATCHED"}),
    (EVENTS, {"wait_interval_ms": 100, "heartbeat_broker_interval_ms": 3_600_000}),
    (GROUPS, {"notified": False, "poll_name_server_interval_ms": 90_000}),
    (GROUPS, {"consume_timestamp_ms": 0}),
    (GROUPS, {"consume_timestamp_ms": 253_402_300_799_000}),  # 99991231235959
]
BAD: list[tuple[str, dict[str, object], str, str]] = [
    (EVENTS, {"cluster": None}, "MISSING_VALUE", "cluster is empty; every row"),
    (EVENTS, {"cluster": " "}, "MISSING_VALUE", "cluster is empty"),
    (EVENTS, {"event_ms": None}, "MISSING_VALUE", "event_ms is empty"),
    (EVENTS, {"event_type": ""}, "MISSING_VALUE", "event_type is empty"),
    (EVENTS, {"client_id": None}, "MISSING_VALUE", "client_id is empty; CONSUMER_JOIN needs"),
    (EVENTS, {"event_type": "CONSUMER_LOST", "consumer_group": ""}, "MISSING_VALUE", "LOST needs"),
    (EVENTS, {"event_type": "SUBSCRIBE"}, "MISSING_VALUE", "topic is empty; SUBSCRIBE"),
    (EVENTS, {"event_type": "BROKER_UP"}, "MISSING_VALUE", "broker_name is empty"),
    (EVENTS, {"event_type": "TOPIC_DELETED"}, "MISSING_VALUE", "topic is empty"),
    (EVENTS, CONFIG | {"read_queue_nums": None}, "MISSING_VALUE", "read_queue_nums is empty"),
    (EVENTS, CONFIG | {"broker_name": None}, "MISSING_VALUE", "broker_name is empty"),
    (EVENTS, {"event_type": "JOIN"}, "UNKNOWN_EVENT_TYPE", "'JOIN'; valid: CONSUMER_JOIN, "),
    (EVENTS, CONFIG | {"read_queue_nums": -1}, "BAD_QUEUE_NUMS", "is -1; valid: 0 to 65536"),
    (EVENTS, CONFIG | {"read_queue_nums": 65537}, "BAD_QUEUE_NUMS", "is 65537"),
    (EVENTS, CONFIG | {"write_queue_nums": -2}, "BAD_QUEUE_NUMS", "write_queue_nums is -2"),
    (EVENTS, CONFIG | {"perm": 16}, "BAD_PERM", "perm is 16; valid: 0 to 15"),
    (EVENTS, CONFIG | {"perm": -1}, "BAD_PERM", "perm is -1"),
    (EVENTS, {"event_ms": -1}, "BAD_TIME", "event_ms is -1, before the year 2000; in seconds?"),
    (EVENTS, {"event_ms": 0}, "BAD_TIME", "event_ms is 0, before the year 2000; in seconds?"),
    (EVENTS, {"event_ms": 1_700_000_000}, "BAD_TIME", "is 1700000000, before the year 2000; in s"),
    (EVENTS, {"event_ms": YEAR_2000_MS - 1}, "BAD_TIME", "valid: 946684800000 to 7289654399999"),
    (EVENTS, {"event_ms": YEAR_2201_MS}, "BAD_TIME", "after the year 2200; in microseconds?"),
    (EVENTS, {"event_ms": NOW_MS * 1000}, "BAD_TIME", "1700000000000000, after the year 2200"),
    (EVENTS, {"detail": "CLOSED"}, "BAD_ENUM", "'CLOSED'; valid for CONSUMER_JOIN: OBSERVED"),
    (EVENTS, {"event_type": "CONSUMER_LEAVE", "detail": "x"}, "BAD_ENUM", "LEAVE: none"),
    (EVENTS, MASTER | {"detail": "CLOSED"}, "BAD_ENUM", "MASTER_DOWN: REFUSED, SLAVE_READ, ACTING"),
    (EVENTS, MASTER | {"broker_name": None}, "MISSING_VALUE", "MASTER_DOWN needs it"),
    (EVENTS, MASTER | {"event_type": "MASTER_UP", "detail": "ACTING"}, "BAD_ENUM", "UP: none"),
    (EVENTS, {"message_model": "clustering"}, "BAD_ENUM", "valid: CLUSTERING, BROADCASTING"),
    (EVENTS, {"consume_from_where": "LAST"}, "BAD_ENUM", "consume_from_where is 'LAST'"),
    (EVENTS, {"language": "GOLANG"}, "BAD_VALUE", "valid: JAVA, CPP"),
    (EVENTS, {"language": "java"}, "BAD_VALUE", "did you mean JAVA?"),
    (EVENTS, {"language": "GO", "version": "two"}, "BAD_VERSION", "expected e.g. 2.1.2"),
    (EVENTS, {"language": "JAVA", "version": "2.1.2"}, "BAD_VERSION", "not modelled"),
    (EVENTS, {"strategy": "AVERAGE"}, "BAD_STRATEGY", "strategy: "),
    (EVENTS, {"rebalance_mode": "POP"}, "BAD_ENUM", "valid: CLIENT, BROKER"),
    (EVENTS, MODE, "MISSING_VALUE", "detail is empty; REQUEST_MODE needs it"),
    (EVENTS, MODE | {"detail": " "}, "MISSING_VALUE", "detail is empty"),
    (EVENTS, MODE | {"detail": "PULL", "topic": ""}, "MISSING_VALUE", "topic is empty"),
    (EVENTS, MODE | {"detail": "PULL", "consumer_group": None}, "MISSING_VALUE", "MODE needs it"),
    (EVENTS, MODE | {"detail": "POP"}, "BAD_REQUEST_MODE", "detail: 'POP' is not a request mode"),
    (EVENTS, MODE | {"detail": "OBSERVED"}, "BAD_REQUEST_MODE", "valid: PULL, POP(share_"),
    (EVENTS, {"version": "3.2"}, "BAD_VERSION", "version: RocketMQ 3.2 is not modelled"),
    (GROUPS, {"consumer_group": None}, "MISSING_VALUE", "consumer_group is empty"),
    (GROUPS, {"consumer_type": "POP"}, "BAD_ENUM", "'POP'; valid: PUSH, LITE_PULL, PULL"),
    (GROUPS, {"rebalance_mode": "POP"}, "BAD_ENUM", "valid: CLIENT, BROKER"),
    (GROUPS, {"strategy": "AVG("}, "BAD_STRATEGY", "strategy: "),
    (GROUPS, {"broker_version": "new"}, "BAD_VERSION", "broker_version: 'new'"),
    (GROUPS, {"pull_threshold_for_queue": 0}, "BAD_THRESHOLD", "is 0; valid: -1 (off), 1"),
    (GROUPS, {"pull_threshold_size_for_topic": -2}, "BAD_THRESHOLD", "is -2"),
    (EVENTS, NOTICES, "MISSING_VALUE", "detail is empty; NOTICES needs it"),
    (EVENTS, NOTICES | {"detail": "false"}, "BAD_ENUM", "'false'; valid for NOTICES: ON, BATCHED"),
    (EVENTS, NOTICES | {"broker_name": None, "detail": "ON"}, "MISSING_VALUE", "NOTICES needs it"),
    (GROUPS, {"wait_interval_ms": 0}, "BAD_INTERVAL", "is 0; valid: 100 to 3600000 (ms)"),
    (GROUPS, {"poll_name_server_interval_ms": 30}, "BAD_INTERVAL", "is 30, in seconds?"),
    (EVENTS, {"min_interval_ms": -5}, "BAD_INTERVAL", "min_interval_ms is -5; valid"),
    (EVENTS, {"persist_consumer_offset_interval_ms": 5_000_000}, "BAD_INTERVAL", "microseconds?"),
    (GROUPS, {"heartbeat_broker_interval_ms": "30s"}, "BAD_TYPE", "interval_ms is '30s'"),
    (GROUPS, {"ordered": "perhaps"}, "BAD_TYPE", "ordered is 'perhaps'"),
    (GROUPS, {"consume_timestamp_ms": -1}, "BAD_TIME", "consume_timestamp_ms is -1, before 1970"),
    (GROUPS, {"consume_timestamp_ms": NOW_MS * 1000}, "BAD_TIME", "9999; in microseconds?"),
    (OFFSETS, {"queue_id": 65536}, "BAD_QUEUE_ID", "is 65536; valid: 0 to 65535"),
    (OFFSETS, {"queue_id": -1}, "BAD_QUEUE_ID", "is -1"),
    (OFFSETS, {"min_offset": -1}, "BAD_OFFSET", "min_offset is -1"),
    (OFFSETS, {"max_offset": -1, "min_offset": -1}, "BAD_OFFSET", "max_offset is -1"),
    (OFFSETS, {"min_offset": 10}, "BAD_OFFSET", "min_offset 10 is above max_offset 9"),
    (OFFSETS, {"observed_ms": -5}, "BAD_TIME", "observed_ms is -5"),
    (OFFSETS, {"observed_ms": 1_700_000_000}, "BAD_TIME", "is 1700000000, before the year 2000"),
    (COMMITS, {"committed_offset": -1}, "BAD_OFFSET", "committed_offset is -1"),
    (COMMITS, {"observed_ms": 1_700_000_000}, "BAD_TIME", "is 1700000000, before the year 2000"),
    (COMMITS, {"committed_offset": 2**63}, "BAD_TYPE", "committed_offset is '9223372036854775808'"),
    (COMMITS, {"committed_offset": None}, "MISSING_VALUE", "committed_offset is empty"),
    (EVENTS, {"event_ms": "abc"}, "BAD_TYPE", "event_ms is 'abc'"),
    (EVENTS, {"subscriptions": "T1"}, "BAD_TYPE", "subscriptions is 'T1'"),
]


def rows_by_table() -> tuple[dict[str, list[str]], dict[Place, Reason | None]]:
    """JSON lines by table; every row has a key of its own, and says which of BAD it is."""
    lines: dict[str, list[str]] = {name: [] for name in DEFAULTS}
    places: dict[Place, Reason | None] = {}
    cases: list[tuple[str, dict[str, object], Reason | None]] = [(*good, None) for good in GOOD]
    cases += [(table, fields, (code, part)) for table, fields, code, part in BAD]
    for number, (table, fields, reason) in enumerate(cases):
        own = f"g{number}" if table == GROUPS else NOW_MS + number
        lines[table].append(json.dumps(DEFAULTS[table] | {COUNTER[table]: own} | fields))
        places[(table, f"{table}.jsonl:{len(lines[table])}")] = reason
    lines[EVENTS].append("torn line {")
    places[(EVENTS, f"{EVENTS}.jsonl:{len(lines[EVENTS])}")] = ("UNPARSABLE", "not a JSON")
    return lines, places
