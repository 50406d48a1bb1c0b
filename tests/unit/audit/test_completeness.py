"""What is missing of an audit run: incomplete is never green."""

from typing import Any

import pytest

from rebalance_core.audit.changes import fingerprint
from rebalance_core.audit.cluster_snapshot import cluster_snapshot
from rebalance_core.audit.completeness import (
    _IF_SET_APART,
    COLLECTION_INCOMPLETE,
    find_incomplete,
    in_one_line,
    lost_kinds,
    unsure_findings,
)
from rebalance_core.audit.finding_rows import finding_row
from rebalance_core.audit.group_snapshot import AuditRun, Finding, facts_by_kind
from rebalance_core.audit.incomplete_groups import by_reason, missing_of_groups, missing_reason
from rebalance_core.ingest.fact import SET_APART
from rebalance_core.model.times import utc
from tests.unit.audit.group_rows import fact
from tests.unit.audit.snapshots import judge_cluster

HOUR = 3_600_000
END = 100 * HOUR


def test_each_code_of_a_file_set_apart_has_a_remedy() -> None:
    assert _IF_SET_APART.keys() == SET_APART


def broker_files(name: str, at_ms: int = END) -> list[Any]:
    kinds = {"log": "broker.log", "store": "topics.json"}
    return [
        fact("BROKER_FILE", at_ms, broker_name=name, details={"file": kind, "name": file})
        for kind, file in kinds.items()
    ]


def dump(command: str, at_ms: int = END, broker: str | None = None) -> Any:
    return {
        "cluster": "c",
        "broker_name": broker,
        "command": command,
        "first_ms": at_ms,
        "last_ms": at_ms,
    }


WHOLE = [
    fact("COLLECTED", END),
    fact("EXPECTED_BROKER", END, broker_name="a"),
    fact("EXPECTED_BROKER", END, broker_name="b"),
    fact("EXPECTED_NAME_SERVER", END, details={"name": "n1"}),
    fact("NAME_SERVER_FILE", END, details={"name": "n1"}),
    *broker_files("a"),
    *broker_files("b"),
]
DUMPS = [dump("consumerStatus"), dump("consumerConnection", broker="a")]


def incomplete(
    facts: list[Any], dumps: list[Any], down: str = ""
) -> tuple[AuditRun, list[Finding]]:
    """The run, and what is missing of the collection; ``down``: brokers that are."""
    event = {"event_ms": 0, "sequence": 0, "event_type": "BROKER_DOWN", "detail": "CLOSED"}
    gone: list[Any] = [event | {"broker_name": name} for name in down]
    group = cluster_snapshot(facts_by_kind(facts), dumps, gone, [], stale_hours=6.0)
    return group.run, list(find_incomplete(group))


def summaries(facts: list[Any], dumps: list[Any], down: str = "") -> list[str]:
    return [one.summary for one in incomplete(facts, dumps, down)[1]]


def test_a_whole_collection_has_nothing_missing() -> None:
    run, findings = incomplete(WHOLE, DUMPS)
    assert findings == []
    assert (run.end_ms, run.missing) == (END, frozenset())


def not_collected(what: str, why: str, broker: str | None = None) -> Any:
    return fact("NOT_COLLECTED", END, broker_name=broker, details={"what": what, "why": why})


def test_what_the_collector_missed_is_incomplete_once_for_each_place() -> None:
    missed = [
        not_collected("brokers/a", "mq1:/logs not every folder below it could be read", "a"),
        not_collected("mqadmin/1-consumerStatus-g/x.txt", "No space left on device"),
        not_collected("mqadmin/2-consumerStatus-h/y.txt", "No space left on device"),
    ]
    first, second = summaries([*WHOLE, *missed], DUMPS)
    assert first == (
        "The collection of mqadmin (mqadmin/1-consumerStatus-g/x.txt, "
        "mqadmin/2-consumerStatus-h/y.txt) is incomplete: the first: No space left on device."
    )
    assert second.startswith("The collection of brokers/a is incomplete: mq1:/logs not")


def test_an_expected_broker_without_files_is_missing() -> None:
    facts = [row for row in WHOLE if row["kind"] != "BROKER_FILE" or row["broker_name"] != "b"]
    run, (findings,) = incomplete(facts, DUMPS)
    assert (findings.broker_name, run.missing) == ("b", frozenset("b"))
    assert "expects" in findings.summary


def test_a_broker_that_only_the_cluster_lists_is_missing_too() -> None:
    (text,) = summaries([*WHOLE, fact("BROKER_IN_CLUSTER", END, broker_name="c")], DUMPS)
    assert "clusterList lists it" in text


def test_a_collection_without_anything_of_brokers_has_one_finding_for_all() -> None:
    facts = [row for row in WHOLE if row["kind"] != "BROKER_FILE"]
    run, (finding,) = incomplete(facts, DUMPS)
    assert finding.summary.startswith(
        "The collection has no log and no store from any of the 2 brok"
    )
    assert finding.evidence["brokers"] == "a, b"
    assert run.missing == frozenset("ab")


def test_dumps_alone_have_one_line_for_the_missing_logs() -> None:
    """The brokers', the name servers', and what is uncertain without them."""
    servers = ("BROKER_FILE", "NAME_SERVER_FILE")
    facts = [row for row in WHOLE if row["kind"] not in servers]
    _, (one,) = incomplete(facts, DUMPS)
    assert "any of the 2 brokers, and no log from a name server: only dumps" in one.summary
    _, (alone,) = incomplete([row for row in facts if row["broker_name"] != "b"], DUMPS)
    assert alone.summary.startswith("The collection has no log and no store from a, and no log")
    with_name_server = [row for row in WHOLE if row["kind"] != "BROKER_FILE"]
    expected = fact("EXPECTED_NAME_SERVER", END, details={"name": "n2"})
    texts = summaries([*with_name_server, expected], DUMPS)
    assert [text[:34] for text in texts] == [
        "The collection has no log and no s",
        "The logs of only 1 of the 2 expect",
    ]

    of_cluster: Any = {"cluster": "c", "accepted": None, "consumer_group": None}
    row: Any = {**finding_row(COLLECTION_INCOMPLETE, one), **of_cluster}
    other: Any = {**of_cluster, "rule_id": "BROKER_DOWN", "severity": "ERROR", "evidence": {}}
    unlogged = other | {"rule_id": "INGEST_NO_NAMESRV_LOG"}
    of_broker = other | {"rule_id": "INGEST_BROKER_LOG_MISSING"}
    of_groups = [
        unsure("ORPHAN_QUEUES", "g1", "the broker.log of a was not collected"),
        unsure("IDLE_MEMBER", "g2", "the broker.log of b was not collected"),
        unsure("TOPIC_GONE", "g3", "another"),
    ]
    kept = in_one_line([row, unlogged, of_broker, other], of_groups)
    assert [one["rule_id"] for one in kept] == ["COLLECTION_INCOMPLETE", "BROKER_DOWN"]
    assert kept[0]["summary"].endswith(
        "; 2 findings above INFO are uncertain without the logs: g1 (ORPHAN_QUEUES), "
        "g2 (IDLE_MEMBER)."
    )
    (left,) = unsure_findings([*kept, *of_groups])
    assert "because another" in left.summary
    logged = [unlogged, other]
    assert in_one_line(logged, of_groups) == logged


def test_a_store_without_the_log_is_not_enough() -> None:
    facts = [
        r for r in WHOLE if not (r["broker_name"] == "b" and r["details"].get("file") == "log")
    ]
    (text,) = summaries(facts, DUMPS)
    assert "broker.log of b" in text


def test_the_log_of_locks_does_not_stand_for_the_broker_s() -> None:
    details = {"file": "log", "name": "lock.log"}
    facts = [
        r for r in WHOLE if not (r["broker_name"] == "b" and r["details"].get("file") == "log")
    ]
    (text,) = summaries([*facts, fact("BROKER_FILE", END, broker_name="b", details=details)], DUMPS)
    assert "broker.log of b" in text


@pytest.mark.parametrize(("down", "missing"), [("", 1), ("b", 0)])
def test_stale_files_of_a_broker_count_unless_it_is_down(down: str, missing: int) -> None:
    facts = [row for row in WHOLE if row["broker_name"] != "b" or row["kind"] != "BROKER_FILE"]
    findings = summaries([*facts, *broker_files("b", END - 24 * HOUR)], DUMPS, down)
    assert len(findings) == missing


def log_of(name: str, end_ms: int, unreadable: int = 0) -> Any:
    details = {"file": "log", "name": "broker.log", "until_ms": str(end_ms)}
    details["unreadable"] = str(unreadable)
    return fact("BROKER_FILE", END, broker_name=name, details=details)


def test_a_log_that_ends_long_before_the_dumps_is_named() -> None:
    facts = [*WHOLE, log_of("a", END - 660_000), log_of("b", END - 590_000)]
    run, (one,) = incomplete(facts, DUMPS)
    assert "broker.log of a ends 11 min before the newest dump" in one.summary
    assert run.missing == frozenset(), "what is equal still proves something"
    assert summaries(facts, DUMPS, down="a") == []
    other = [dump("consumerStatus", END - 700_000), dump("clusterList")]
    assert "consumerConnection" in summaries(facts, other)[0], "of members, not of the cluster"


def test_a_log_that_cannot_be_read_to_its_end_is_named() -> None:
    (text,) = summaries([*WHOLE, log_of("a", END, unreadable=2)], DUMPS)
    assert "2 files of the broker.log of a cannot be read" in text


def test_a_master_by_turns_without_its_log_is_named() -> None:
    log = log_of("a", END)
    log["details"] |= {"folders": "a-1, a-2", "unlogged": "a-1"}
    (summary,) = summaries([*WHOLE, log], DUMPS)
    assert "broker.log of a-1, which was master of a at times, was not collected" in summary


def test_a_name_server_without_its_log_is_named() -> None:
    (text,) = summaries([*WHOLE, fact("EXPECTED_NAME_SERVER", END, details={"name": "n2"})], DUMPS)
    assert "n2 missing" in text


def test_dumps_that_were_not_made_and_dumps_of_yesterday() -> None:
    none = summaries(WHOLE, [])
    assert len(none) == 2
    assert all("no dump" in text.lower() for text in none)
    old = [dump("consumerProgress", END - 25 * HOUR), dump("consumerConnection")]
    (text,) = summaries(WHOLE, old)
    assert "25 h old" in text


@pytest.mark.parametrize(
    ("kinds", "named"),
    [
        ((), None),
        (("topicRoute",), "topicRoute"),
        (("client_log", "consumerProgress"), "client_log and no consumerProgress"),
        (("consumerConnection", "topicRoute"), "topicRoute"),
        (("consumerConnection", "consumerProgress", "consumerStatus"), None),  # no dump of either
    ],
)
def test_kinds_that_the_previous_run_read(kinds: tuple[str, ...], named: str | None) -> None:
    found = [finding.summary for finding in lost_kinds(kinds)]
    said = f"The collection has no {named}, which the previous run read."
    assert found == ([] if named is None else [said])


def test_what_is_missing_tells_the_findings_of_a_cluster_and_a_broker_apart() -> None:
    def night(later_ms: int) -> list[str]:
        until = str(END - 2 * HOUR + later_ms)
        facts = [
            *WHOLE[:5],
            *(not_read(name, f"mqadmin/{name}") for name in ("topicRoute", "topicList")),
            not_collected("mqadmin/clusterList", "timeout"),
            not_collected("brokers/a/store", "denied", "a"),
            fact(
                "BROKER_FILE",
                END,
                broker_name="a",
                details={
                    "file": "log",
                    "name": "broker.log",
                    "until_ms": until,
                    "unlogged": "a-1",
                    "unreadable": "2",
                },
            ),
        ]
        rows = [
            finding_row(COLLECTION_INCOMPLETE, finding)
            for finding in [
                *incomplete(facts, [dump("consumerStatus", END + later_ms)])[1],
                *unsure_findings(
                    [
                        unsure("IDLE_MEMBER", "g1", f"a log ends at {utc(END + later_ms)}"),
                        unsure("IDLE_MEMBER", "g1", "one log"),
                    ]
                ),
            ]
        ]
        rows += missing_of_groups({"NO_DUMP": (1, ["g"]), "LOG_ENDED": (1, ["g"])}, 3)
        return [fingerprint({**row, "cluster": "c"}) for row in rows]  # type: ignore[typeddict-item]

    first = night(0)
    assert len(first) == len(set(first)) == 13
    assert night(HOUR) == first


def test_a_collection_that_is_old_as_a_whole() -> None:
    _, rows = judge_cluster(WHOLE, DUMPS, [], 6.0, END + HOUR)
    assert [row["rule_id"] for row in rows] == ["COLLECTION_INCOMPLETE", "COVERAGE_UNKNOWN"]
    assert [row["severity"] for row in rows] == ["ERROR", "INFO"]
    (row,) = judge_cluster(WHOLE, DUMPS, [], 6.0, END - HOUR)[1]
    assert row["rule_id"] == "COVERAGE_UNKNOWN"


def test_groups_without_what_others_have_are_counted_in_one_finding() -> None:
    unknown: Any = {"verdict": "UNKNOWN", "reason": "NO_DUMP", "unasked": []}
    assert missing_reason(unknown) == "NO_DUMP"
    assert missing_reason({"verdict": "EQUAL", "reason": "", "unasked": []}) is None
    assert missing_reason({"verdict": "EQUAL", "reason": "", "unasked": ["b"]}) == "UNASKED"
    (row,) = missing_of_groups({"NO_DUMP": (30, ["g1", "g2"])}, compared=5)
    assert "30 online groups, each without a dump" in row["summary"]
    assert "and 28 more" in row["summary"]
    verdict: Any = {"verdict": "UNKNOWN", "reason": "LOG_ENDED", "unasked": []}
    (row,) = missing_of_groups({str(missing_reason(verdict)): (1, ["g1"])}, compared=0)
    assert "1 online group whose live owners differ" in row["summary"]
    assert missing_of_groups({"NO_DUMP": (30, ["g1"])}, compared=0) == []


def test_groups_that_a_broker_was_not_asked_about_have_its_name() -> None:
    of_broker: Any = {"verdict": "EQUAL", "reason": "", "unasked": ["broker-c"], "dumps": 1}
    rows: Any = [of_broker | {"groups": 2, "names": ["g1", "g2"]}]
    (row,) = missing_of_groups(by_reason(rows), compared=2)
    assert row["summary"].endswith("(consumerConnection -b): g1 (broker-c), g2 (broker-c).")


def test_online_groups_without_a_dump_are_named_where_nothing_else_is_missing() -> None:
    unknown = {"NO_DUMP": (2, ["g1", "g2"])}
    (row,) = missing_of_groups(unknown, compared=0, reported=False)
    assert row["severity"] == "ERROR"


NAMES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json")


def store(form: str, *ages_h: int | None) -> Any:
    """The fact on the broker a; None: not exported, or nobody knows when."""
    dates = ["" if age is None else str(END - age * HOUR) for age in ages_h or (0, 0, 0)]
    details = {"form": form} | dict(zip(NAMES, dates, strict=True))
    return fact("BROKER_STORE", END, broker_name="a", details=details)


@pytest.mark.parametrize("form", ["ROCKSDB", "SINGLE_ROCKSDB", "ROCKSDB or SINGLE_ROCKSDB"])
@pytest.mark.parametrize(
    ("ages", "text"),
    [
        ((0, 5, 0), None),
        ((0, 0, None), "consumerOffset.json not exported, or at an unknown time"),
        ((0, 7, 0), "subscriptionGroup.json exported more than 6 h ago"),
        ((None, 0, 7), "topics.json not exported, or at an unknown time; consumerOffset.json"),
    ],
)
def test_what_a_rocksdb_holds_has_to_be_exported(
    form: str, ages: tuple[int | None, ...], text: str | None
) -> None:
    address = {"version": "5.5.0", "broker_id": "0", "addr": "10.0.0.7:10911"}
    listed = fact("BROKER_IN_CLUSTER", END, broker_name="a", details=address)
    _, findings = incomplete([*WHOLE, store(form, *ages), listed], DUMPS)
    assert [one.broker_name for one in findings] == ([] if text is None else ["a"])
    if text is not None:
        assert text in findings[0].summary
        assert "rocksDBConfigToJson -b 10.0.0.7:10911" in str(findings[0].remedy)


@pytest.mark.parametrize(("age_h", "missing"), [(None, 1), (0, 0), (7, 1)])
def test_offsets_of_a_v2_broker_come_from_consumer_progress_alone(
    age_h: int | None, missing: int
) -> None:
    progress = [] if age_h is None else [dump("consumerProgress", END - age_h * HOUR)]
    found = summaries([*WHOLE, store("ROCKSDB_V2", None, None, None)], [*DUMPS, *progress])
    assert len(found) == missing
    assert all("config/rdb" in text for text in found)


def test_what_brokers_dropped_and_when_is_known_of_the_run() -> None:
    dropped = [
        fact("CHANNEL_EVENTS_DROPPED", at, broker_name="a", details={"type": "CLOSE"})
        for at in (HOUR, 2 * HOUR)
    ]
    run, _ = incomplete([*WHOLE, *dropped], DUMPS)
    assert run.overloads == {"a": ((HOUR, HOUR), (2 * HOUR, 2 * HOUR))}


def not_read(what: str, source: str, broker: str | None = None, **more: str) -> Any:
    details = {
        "what": what,
        "lines": "9",
        "understood": "0",
        "code": "UNPARSABLE_LINE",
        "why": "'{' is no line of it",
        "first_line": "{",
        "looks_like": "",
    } | more
    return {**fact("NOT_READ", END, broker_name=broker, details=details), "source": source}


def test_dumps_that_state_nothing_are_named_once_a_command() -> None:
    json = {"looks_like": "a dashboard's JSON, not mqadmin's output"}
    rows = [not_read("consumerStatus", f"mqadmin/{n}", **json) for n in range(5)]
    assert summaries([*WHOLE, *rows], DUMPS) == [
        "5 files of consumerStatus (mqadmin/0, mqadmin/1, mqadmin/2 and 2 more) cannot be read; "
        "the first begins '{', like a dashboard's JSON, not mqadmin's output."
    ]


def test_several_answers_that_were_partly_read() -> None:
    rows = [not_read("clusterList", f"mqadmin/{n}", understood="8") for n in range(2)]
    (text,) = summaries([*WHOLE, *rows], DUMPS)
    assert text.startswith("2 files of clusterList (mqadmin/0, mqadmin/1) were partly read (8 of 9")


def test_a_broker_whose_log_is_not_understood_is_missing() -> None:
    log = not_read("broker.log", "brokers/b/broker.log", "b", understood="2")
    run, (one,) = incomplete([*WHOLE, log], DUMPS)
    assert (one.broker_name, run.missing) == ("b", frozenset("b"))
    assert one.summary.startswith(
        "The broker.log of b (brokers/b/broker.log) is mostly unreadable (2 of 9 lines)"
    )


def test_a_rotated_file_that_cannot_be_read_does_not_hide_the_rest() -> None:
    part = not_read("broker.log", "brokers/b/broker.1.log", "b", lines="0", why="is UTF-16")
    run, (one,) = incomplete([*WHOLE, part], DUMPS)
    assert run.missing == frozenset()
    assert "is UTF-16" in one.summary


def test_a_kind_of_dump_that_cannot_be_read_was_collected() -> None:
    rows = [not_read("consumerStatus", "mqadmin/1"), not_read("consumerConnection", "mqadmin/2")]
    assert not [text for text in summaries([*WHOLE, *rows], []) if "was collected" in text]


def unsure(rule_id: str, group: str, why: str, **more: Any) -> Any:
    evidence = {"not_covered": "NOT_COVERED", "why": why}
    row = {"rule_id": rule_id, "consumer_group": group, "broker_name": None, "severity": "INFO"}
    return row | {"evidence": evidence, "remedy": f"Collect {why}.", "accepted": None} | more


def test_what_is_info_for_want_of_evidence_is_incomplete_once_a_reason() -> None:
    rows = [
        unsure("IDLE_MEMBER", "g2", "one log"),
        unsure("ORPHAN_QUEUES", "g1", "one log"),
        unsure("IDLE_MEMBER", "g1", "one log"),
        unsure("TOPIC_GONE", "g3", "another"),
        unsure("TOPIC_GONE", "g4", "another", accepted="known"),
        unsure("BROKER_FLAPS", "g5", "", evidence={}),
    ]
    another, one = unsure_findings(rows)
    assert "because one log: g1 (IDLE_MEMBER, ORPHAN_QUEUES), g2 (IDLE_MEMBER)" in one.summary
    assert (one.evidence["findings"], one.remedy) == (3, "Collect one log.")
    assert another.evidence["groups"] == "g3"
    assert list(unsure_findings([])) == []
    several = [unsure("R", f"g{n}", "w", remedy=f"Copy {n}.") for n in range(5)]
    (together,) = unsure_findings(several)
    assert together.remedy == "Copy 0. Copy 1. Copy 2. And 2 more."
