"""Which times the files of each host cover; dumps that are cut off."""

from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts.observed import FROM_START, LINES_REFUSED, STEADY
from rebalance_core.ingest.coverage import was_away
from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import ingested_recording
from tests.unit.ingest.skewed_clocks import ingested
from tests.unit.ingest.timed_lines import BEGIN_MS, LINE, PROGRESS, SECOND_MS, lines

MEMBERS = (
    f"{'#ClientId':36} {'#ClientAddr':22} {'#Language':10} #Version\n"
    f"{'10.0.0.1@1':36} {'10.0.0.1:4000':22} {'JAVA':10} V5_3_3\n"
    "\nBelow is subscription:\n"
    f"{'#Topic':20} #SubExpression\n"
    f"{'T':20} *\n\n"
    "ConsumeType: CONSUME_PASSIVELY\nMessageModel: CLUSTERING\n"
    "ConsumeFromWhere: CONSUME_FROM_LAST_OFFSET\n"
)
STATUS = (
    "#Consumer Properties#\n"
    f"{'consumeTimestamp':40}: 20261121031738\n"
    f"{'consumerGroup':40}: g\n\n\n#Consumer Subscription#\n\n\n#Consumer Offset#\n\n\n"
    "#Consumer MQ Detail#\n\n\n#Consumer Pop Detail#\n\n\n#Consumer RT&TPS#\n\n\n"
    "#User Consume Info#\n"
)


def rows(tables: Any, kind: str) -> list[tuple[int | None, int | None, bool]]:
    return [
        (
            None if row["from_ms"] is None else (row["from_ms"] - BEGIN_MS) // SECOND_MS,
            None if row["to_ms"] is None else (row["to_ms"] - BEGIN_MS) // SECOND_MS,
            row["complete"],
        )
        for row in tables["coverage"]
        if row["kind"] == kind
    ]


def test_a_log_covers_from_its_first_to_its_last_line(tmp_path: Path) -> None:
    tables = ingested(tmp_path, {"brokers/a/broker.log": lines(*range(5))})
    assert rows(tables, "broker_log") == [(0, 270, True)]
    (row,) = (row for row in tables["coverage"] if row["kind"] == "broker_log")
    shown = row["host"], row["role"], row["lines"], row["time_zone"], row["note"]
    assert shown == ("a", "BROKER", 10, "GMT+8", None)


def test_a_log_whose_line_of_a_join_was_cut_is_not_whole(tmp_path: Path) -> None:
    join = (
        "2026-11-21 11:00:10 INFO t - new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING"
        " channel: ClientChannelInfo [channel=[id: 0x1, L:/1.1.1.1:1 - R:/1.1.1.2:2], clientId=1.1"
    )
    tables = ingested(tmp_path, {"brokers/a/broker.log": f"{lines(0)}{join}\n{lines(1)}"})
    assert [row["note"] for row in tables["coverage"]] == [LINES_REFUSED]


def test_a_rotated_file_that_is_missing_leaves_a_pause(tmp_path: Path) -> None:
    files = {
        "brokers/a/broker.log": lines(*range(20, 30)),
        "brokers/a/otherdays/broker.2.log": lines(*range(5)),
    }
    assert rows(ingested(tmp_path, files), "broker_log") == [(0, 279, True), (1200, 1770, True)]


def test_a_log_that_goes_on_with_warnings_alone_lacks_what_is_routine(tmp_path: Path) -> None:
    """Its level was raised, so joins and leaves since then stand nowhere."""
    warning = "2026-11-21 11:{}:00 WARN t - [PCBUSY_CLEAN_QUEUE]broker busy\n"
    warned = "".join(warning.format(minute) for minute in range(11, 16))
    raised = ingested(tmp_path / "raised", {"brokers/a/broker.log": lines(*range(10)) + warned})
    assert rows(raised, "broker_log") == [(0, 579, True), (900, 900, True)]
    among = ingested(tmp_path / "among", {"brokers/a/broker.log": lines(*range(16)) + warned})
    assert rows(among, "broker_log") == [(0, 930, True)]


def test_a_log_of_warnings_alone_lacks_what_is_routine_from_its_first_line(tmp_path: Path) -> None:
    warning = "2026-11-21 11:{}:00 WARN t - [PCBUSY_CLEAN_QUEUE]broker busy\n"
    warned = "".join(warning.format(f"{minute:02}") for minute in range(5))
    tables = ingested(tmp_path, {"brokers/a/broker.log": warned})
    assert rows(tables, "broker_log") == [(0, 0, True), (240, 240, True)]


def test_how_seldom_a_log_is_written_does_not_explain_that_only_warnings_follow(
    tmp_path: Path,
) -> None:
    warning = "2026-11-21 11:08:20 WARN t - [PCBUSY_CLEAN_QUEUE]broker busy\n"
    seldom = lines(0, 6)
    whole = ingested(tmp_path / "whole", {"brokers/a/broker.log": seldom})
    assert rows(whole, "broker_log") == [(0, 390, True)]
    raised = ingested(tmp_path / "raised", {"brokers/a/broker.log": seldom + warning})
    assert rows(raised, "broker_log") == [(0, 399, True), (500, 500, True)]


def test_the_order_of_lines_changes_nothing(tmp_path: Path) -> None:
    text = "".join(reversed(lines(*range(30)).splitlines(keepends=True)))
    assert rows(ingested(tmp_path, {"brokers/a/broker.log": text}), "broker_log") == [
        (0, 1770, True)
    ]


def test_a_broker_that_starts_begins_its_own_coverage() -> None:
    tables = ingested_recording("join-leave").tables
    logs = [row for row in tables["coverage"] if row["kind"] == "broker_log"]
    assert [row["note"] for row in logs] == [FROM_START] * 2


def test_dumps_cover_their_moment_if_they_are_whole(tmp_path: Path) -> None:
    at = BEGIN_MS + 60_000
    for name, text in (
        (f"mqadmin/{at}-consumerProgress-s-g.txt", PROGRESS + "\nConsume TPS: 0\nDiff Total: 0\n"),
        (f"mqadmin/{at}-consumerConnection-g-a.txt", MEMBERS),
        (f"mqadmin/{at}-consumerStatus-g/10.0.0.1@1.txt", STATUS),
    ):
        for cut in (False, True):
            body = "".join(text.splitlines(keepends=True)[:-1]) if cut else text
            folder = tmp_path / f"{name.count('/')}{name[-12]}{cut}"
            files = {"brokers/a/broker.log": lines(*range(5)), name: body}
            tables = ingested(folder, files)
            assert rows(tables, "mqadmin") == [(60, 60, not cut)], name
            codes = [issue["code"] for row in tables["rejected"] for issue in row["issues"]]
            assert codes == ["UNPARSABLE_DOCUMENT"] * cut, name
            lacking = [r for r in tables["observed_facts"] if r["kind"] == "NOT_READ"]
            assert len(lacking) == cut, name


def test_a_list_of_members_that_is_cut_off_is_no_evidence_of_absence(tmp_path: Path) -> None:
    at = BEGIN_MS + 60_000
    whole = MEMBERS.splitlines(keepends=True)
    files = {
        "brokers/a/broker.log": lines(*range(5)),
        f"mqadmin/{at}-consumerConnection-g-a.txt": "".join(whole[:2]),
    }
    tables = ingested(tmp_path, files)
    kinds = {row["kind"] for row in tables["observed_facts"]}
    assert "CONNECTION" in kinds
    assert "GROUP_AT_BROKER" not in kinds
    (dump,) = (row for row in tables["observed_facts"] if row["kind"] == "DUMP")
    assert dump["details"]["cut_off"] == "true"


def test_a_client_commits_every_5_s_so_a_shorter_pause_is_one(tmp_path: Path) -> None:
    line = (
        "2026-11-21 11:{:02}:{:02}.000 INFO [1] [t] [o.a.r#?:?] - [persistAll] Group: g ClientId: "
        "10.0.0.1@1#1 updateConsumeOffsetToBroker MessageQueue [topic=T, brokerName=a, queueId=0] 1"
    )
    at = [second for second in range(0, 400, 5) if not 100 < second < 170]
    text = "\n".join(line.format(*divmod(second, 60)) for second in at) + "\n"
    tables = ingested(tmp_path, {"clients/c/rocketmq_client.log": text})
    assert rows(tables, "client_log") == [(0, 109, True), (170, 395, True)]


def test_a_pause_of_a_name_server_is_one_if_it_logs_all_the_time(tmp_path: Path) -> None:
    line = "2026-11-21 11:{:02}:{:02} INFO NSScanScheduledThread - start scanNotActiveBroker\n"
    steady = [second for second in range(0, 600, 5) if not 200 < second < 240]
    text = "".join(line.format(*divmod(second, 60)) for second in steady)
    tables = ingested(tmp_path / "5", {"namesrv/namesrv.log": text})
    assert rows(tables, "namesrv_log") == [(0, 209, True), (240, 595, True)]
    assert [row["note"] for row in tables["coverage"]] == [None, STEADY]
    seldom = "".join(line.format(minute, 0) for minute in range(0, 60, 10))
    tables = ingested(tmp_path / "4", {"namesrv/namesrv.log": seldom})
    assert rows(tables, "namesrv_log") == [(0, 3000, True)]
    assert [row["note"] for row in tables["coverage"]] == [None]


def test_three_registrations_that_are_missing_are_a_pause(tmp_path: Path) -> None:
    text = "".join(
        LINE.format(f"11:{m:02}:{s}")
        for m in range(12)
        for s in ("00", "30")
        if (m, s) not in ((5, "00"), (5, "30"), (6, "00"))
    )
    tables = ingested(tmp_path, {"brokers/a/broker.log": text})
    assert rows(tables, "broker_log") == [(0, 279, True), (390, 690, True)]


@pytest.mark.parametrize(
    ("starts", "ends", "away"),
    [
        ([880_000], [], True),
        # it has been back for minutes
        ([420_000], [], False),
        # expired after 400 s: it was there until two minutes before
        ([880_000], [400_000], False),
        ([], [140_000], True),
        ([], [], False),
    ],
)
def test_a_broker_that_was_away_for_a_part_of_a_pause_lacks_the_rest(
    starts: list[int], ends: list[int], away: bool
) -> None:
    assert was_away(0, 900_000, starts, ends, 90_000) is away


def test_a_collection_of_refusals_alone_lies_in_the_time_of_their_log(tmp_path: Path) -> None:
    """No line in it begins the period of a log, and the brokers are those of collection.toml."""
    folder = tmp_path / "clients" / "mail-1"
    folder.mkdir(parents=True)
    (tmp_path / "collection.toml").write_text('cluster = "C"\n[expected]\nbrokers = ["b"]\n')
    at = "2026-11-21 11:{}:00.000 WARN  [1] [T] [o.a.r.X#?:?] - execute the pull request exception"
    refused = (
        "org.apache.rocketmq.client.exception.MQBrokerException: CODE: 16  DESC: subscription "
        "group no permission, g BROKER: 10.0.0.1:10911"
    )
    lines = [line for minute in (28, 40) for line in (at.format(minute), refused)]
    (folder / "rocketmq_client.log").write_text("\n".join([*lines, ""]))
    tables = ingest_collection(tmp_path).tables
    (up,) = tables["cluster_events"]
    first_ms = 1_795_231_680_000  # 11:28:00 GMT+8
    assert (up["event_type"], up["event_ms"]) == ("BROKER_UP", first_ms)
    failed = [
        row["first_ms"] for row in tables["observed_facts"] if row["kind"] == "REQUEST_FAILED"
    ]
    assert failed == [first_ms, first_ms + 12 * 60_000]
