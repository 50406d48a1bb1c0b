"""New, still, gone and not looked at; what makes a finding the same in two runs."""

from typing import Any

import pytest

from rebalance_core.audit.changes import (
    AuditedScope,
    Earlier,
    Files,
    changes_since,
    earlier_findings,
    fingerprint,
    truncated_rules,
)
from rebalance_core.model import verdicts

Row = Any
WHERE = ("topic", "broker_name", "queue_id", "client_id", "first_ms", "last_ms")
STATUS: Row = {
    "kind": "mqadmin",
    "name": "mqadmin/1795233041598-consumerStatus-g/10.0.0.1@7.txt",
    "understood": 9,
}


def finding(rule: str, group: str | None = "g", severity: str = "ERROR", **more: Any) -> Row:
    row = {"cluster": "c", "rule_id": rule, "severity": severity, "consumer_group": group}
    row |= dict.fromkeys(WHERE) | {"summary": "s", "remedy": "r", "accepted": None}
    return row | {"evidence": {}} | more


def verdict(word: str, reason: str = "", group: str = "g", **more: Any) -> Row:
    row = {"cluster": "c", "consumer_group": group, "verdict": word, "reason": reason}
    return row | {"unasked": []} | more


def looked(
    *rows: Row, findings: tuple[Row, ...] = (), files: tuple[Row, ...] = (), **more: Any
) -> AuditedScope:
    given = {"clusters": {"c"}, "incomplete": set()} | more
    return AuditedScope.by(given["clusters"], given["incomplete"], rows, findings, Files(files))


def states(now: list[Row], before: list[Row], at: AuditedScope, files: tuple[Row, ...] = ()) -> Row:
    return changes_since(now, earlier_findings(before, Files(files)), at).counts


def test_new_still_gone_and_what_is_accepted() -> None:
    now = [
        finding("IDLE_MEMBER", "new"),
        finding("IDLE_MEMBER", "old", client_id="one that restarted"),
        finding("IDLE_MEMBER", "known", accepted="on purpose"),
        finding("IDLE_MEMBER", "healed", severity="INFO"),
    ]
    before = [
        finding("IDLE_MEMBER", "old"),
        finding("IDLE_MEMBER", "known"),  # accepted by now: not gone
        finding("IDLE_MEMBER", "gone"),
        finding("IDLE_MEMBER", "healed"),
        finding("IDLE_MEMBER", "accepted", accepted="then"),
        finding("IDLE_MEMBER", "info", severity="INFO"),
    ]
    found = changes_since(now, earlier_findings(before, Files()), looked())
    assert [row["consumer_group"] for row in found.new] == ["new"]
    assert [row["consumer_group"] for row in found.still] == ["old"]
    assert [row["consumer_group"] for row in found.gone] == ["gone", "healed"]
    assert found.not_looked_at == []


@pytest.mark.parametrize(
    ("rule", "at", "gone"),
    [
        ("ORPHAN_QUEUES", looked(verdict("EQUAL")), True),
        ("ORPHAN_QUEUES", looked(verdict("OFFLINE")), True),
        ("ORPHAN_QUEUES", looked(), True),  # the group was deleted
        ("ORPHAN_QUEUES", looked(clusters={"other"}), False),
        ("ORPHAN_QUEUES", looked(verdict("EQUAL"), incomplete={"c"}), False),
        ("TOPIC_GONE", looked(verdict("OFFLINE"), incomplete={"c"}), False),
        ("TOPIC_GONE", looked(verdict("OFFLINE"), incomplete={"other"}), True),
        ("COLLECTION_INCOMPLETE", looked(incomplete={"c"}), True),
        ("INGEST_BROKER_LOG_MISSING", looked(incomplete={"c"}), True),
        ("INGEST_NO_NAMESRV_LOG", looked(incomplete={"c"}), True),
        *(
            (rule, looked(verdict("UNKNOWN", reason)), False)
            for rule in ("TOPIC_GONE", "ORPHAN_QUEUES", "INGEST_LITE_TOPIC")
            for reason in (
                verdicts.NO_DUMP,
                verdicts.STALE_DUMP,
                verdicts.LOG_ENDED,
                verdicts.INCOMPLETE,
                "A_REASON_THAT_CAME_LATER",
            )
        ),
        # nothing is missing; only who should own what is not known
        ("MEMBER_FLAPS", looked(verdict("UNKNOWN", verdicts.STRATEGY)), True),
        ("IDLE_MEMBER", looked(verdict("UNKNOWN", verdicts.STRATEGY)), False),
        ("OWNERSHIP_DIFFERS_STALE_VIEW", looked(verdict("UNKNOWN", verdicts.STRATEGY)), False),
        ("MEMBER_LISTS_DIFFER", looked(verdict("EQUAL", unasked=["broker-a"])), False),
        ("TOPIC_GONE", looked(verdict("EQUAL", unasked=["broker-a"])), True),
    ],
)
def test_what_is_absent_is_gone_only_where_the_run_looked(
    rule: str, at: AuditedScope, gone: bool
) -> None:
    counts = states([], [finding(rule)], at)
    assert (counts["gone"], counts["not_looked_at"]) == (int(gone), int(not gone))


def test_a_rule_that_failed_did_not_look() -> None:
    failed = finding("RULE_FAILED", evidence={"failed": "TOPIC_GONE"})
    at = looked(verdict("EQUAL"), findings=(failed,))
    before = [finding("TOPIC_GONE"), finding("TOPIC_GONE", "other")]
    assert states([failed], before, at) == {
        "new": 1,
        "reopened": 0,
        "still": 0,
        "healed": 0,
        "gone": 1,
        "not_looked_at": 1,
    }


@pytest.mark.parametrize(
    ("there", "gone"),
    [
        ((STATUS,), 1),
        ((STATUS | {"understood": 0},), 0),
        ((STATUS | {"name": "mqadmin/1795233041598-consumerStatus-gg.txt"},), 0),
        ((STATUS | {"name": "mqadmin/1795233041598-consumerProgress-s-g.txt"},), 0),
    ],
)
def test_what_the_rule_read_is_there_again(there: tuple[Row, ...], gone: int) -> None:
    log = {"kind": "broker_log", "name": "brokers/a/broker.log", "understood": 1}
    before, at = [finding("NOT_PULLING")], looked(verdict("EQUAL"), files=(log, *there))
    assert states([], before, at, (STATUS,))["gone"] == gone
    # what was seen without that file is not looked for in it
    assert states([], before, at)["gone"] == 1
    # nobody can be asked where nobody is online; tables tell no files
    assert states([], before, looked(verdict("OFFLINE"), files=(log,)), (STATUS,))["gone"] == 1
    assert states([], before, looked(verdict("EQUAL")), (STATUS,))["gone"] == 1


def test_kinds_of_files_that_a_later_collection_lacks() -> None:
    log: Row = {"kind": "broker_log", "name": "brokers/a/broker.log", "understood": 1}
    unread: Row = {"kind": "client_log", "name": "clients/x/y.log", "understood": 0}
    before = Files((STATUS, log, unread))
    others = STATUS["name"].replace("consumerStatus", "consumerProgress")
    assert before.lost([("brokers/b/broker.log", "broker_log")]) == ("consumerStatus",)
    assert before.lost([(others, "mqadmin"), (log["name"], "broker_log")]) == ("consumerStatus",)
    # one that cannot be read, or of another group, is there
    assert before.lost([(STATUS["name"] + "x", "mqadmin")]) == ("broker_log",)
    assert Files().lost([]) == ()


def test_what_was_not_looked_at_is_compared_with_the_run_that_did() -> None:
    whole, unseen = looked(verdict("EQUAL")), looked(verdict("UNKNOWN", verdicts.NO_DUMP))
    first = [finding("TOPIC_GONE"), finding("MEMBER_FLAPS")]
    second = changes_since([], earlier_findings(first, Files()), unseen)
    carried = earlier_findings([], Files(), second.not_looked_at)
    third = changes_since([finding("TOPIC_GONE"), finding("FROZEN_GROUP")], carried, whole)
    assert third.counts == {
        "new": 1,
        "reopened": 0,
        "still": 1,
        "healed": 0,
        "gone": 1,
        "not_looked_at": 0,
    }
    assert [row["rule_id"] for row in third.new] == ["FROZEN_GROUP"]


def test_a_finding_is_carried_once() -> None:
    row = finding("TOPIC_GONE")
    (one,) = earlier_findings([row], Files(), [Earlier(row | {"summary": "older"})])
    assert one.finding["summary"] == "s"


def test_a_rule_of_which_not_all_was_kept_has_no_new_findings() -> None:
    now = [finding("TOPIC_GONE"), finding("MEMBER_FLAPS")]
    found = changes_since(now, [], looked(), ["TOPIC_GONE"])
    assert [row["rule_id"] for row in found.new] == ["MEMBER_FLAPS"]
    assert truncated_rules({"A": 1}, {"A": {"ERROR": 1, "accepted": 1}}) == ["A"]


def test_the_fingerprint_is_the_same_in_every_version() -> None:
    row = finding("TOPIC_GONE", topic="T", broker_name="a")
    assert fingerprint(row) == "e8666d32f5a02822"
    assert fingerprint(row | {"fingerprint": "kept"}) == "kept"


@pytest.mark.parametrize(
    ("rule", "same", "other"),
    [
        ("LEFTOVER_OFFSETS", {"broker_name": "b", "queue_id": 4}, {"topic": "U"}),
        ("BROKER_FLAPS", {"queue_id": 1, "client_id": "c"}, {"broker_name": "b"}),
        ("INGEST_TOPIC_CHANGE_NOT_LOGGED", {"client_id": "c"}, {"broker_name": "b"}),
        ("STUCK_ORDER_LOCK", {"client_id": "c"}, {"queue_id": 1}),
        ("STUCK_ORDER_LOCK", {"first_ms": 1}, {"broker_name": "b"}),
        ("A_RULE_OF_ANOTHER_VERSION", {"broker_name": "b"}, {"consumer_group": "h"}),
    ],
)
def test_what_makes_it_the_same_finding(rule: str, same: Row, other: Row) -> None:
    row = finding(rule, topic="T", broker_name="a", queue_id=0)
    assert fingerprint(row | same) == fingerprint(row) != fingerprint(row | other)


ENDED: Row = {"severity": "INFO", "evidence": {"ended_by": "LEAVE of x"}}


@pytest.mark.parametrize(
    "at", [looked(verdict("EQUAL")), looked(verdict("EQUAL"), incomplete={"c"})]
)
def test_what_this_run_has_with_its_end_is_healed(at: AuditedScope) -> None:
    """Whatever else is missing; once: it is none of the open findings that the next run has."""
    now = [
        finding("IDLE_MEMBER", **ENDED, summary="s; ended"),
        finding("TOPIC_GONE", **ENDED),  # it is there once more
        finding("TOPIC_GONE"),
        finding("MEMBER_FLAPS", **ENDED),  # no run had it open
    ]
    before = earlier_findings([finding("IDLE_MEMBER"), finding("TOPIC_GONE")], Files())
    found = changes_since(now, before, at)
    assert [row["summary"] for row in found.healed] == ["s; ended"]
    assert found.counts["healed"] == found.counts["still"] == 1
    assert sum(found.counts.values()) == 2
    assert [one["rule"] for one in found.listed()["healed"]] == ["IDLE_MEMBER"]
    assert changes_since(now, earlier_findings(now, Files()), at).healed == []


def test_what_is_not_sure_is_not_healed() -> None:
    unsure: Row = {"severity": "INFO", "evidence": {"not_covered": "LOG_ENDED"}}
    now = [finding("IDLE_MEMBER", **ENDED), finding("IDLE_MEMBER", **unsure)]
    at = looked(verdict("EQUAL"), findings=tuple(now))
    counts = changes_since(now, earlier_findings([finding("IDLE_MEMBER")], Files()), at).counts
    assert (counts["healed"], counts["not_looked_at"]) == (0, 1)


def test_a_finding_that_lacks_evidence_now_is_not_gone() -> None:
    before = [finding("IDLE_MEMBER", "g"), finding("ORPHAN_QUEUES", "g")]
    now = finding("IDLE_MEMBER", "g", severity="INFO") | {"evidence": {"not_covered": "LOG_ENDED"}}
    at = looked(verdict("EQUAL"), findings=(now,))
    counts = states([now], before, at)
    assert (counts["gone"], counts["not_looked_at"]) == (1, 1)
