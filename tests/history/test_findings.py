"""What becomes of findings, against a rule of thumb worked out night by night."""

import random
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.changes import AuditedScope, Files
from rebalance_core.contracts.history import subject_of
from rebalance_core.history.fold import FindingLives
from rebalance_core.history.night import Night
from rebalance_core.history.owners import Owner

RULES = ("IDLE_MEMBER", "ORPHAN_QUEUES", "TOPIC_GONE")
GROUPS = ("g-1", "g-2", "g-3")


def finding(rule_id: str, group: str, accepted: str | None = None) -> Any:
    return {
        "cluster": "c",
        "rule_id": rule_id,
        "severity": "WARNING",
        "consumer_group": group,
        "topic": None,
        "broker_name": None,
        "queue_id": None,
        "client_id": None,
        "first_ms": None,
        "last_ms": None,
        "summary": f"{rule_id} of {group}",
        "evidence": {},
        "remedy": "",
        "accepted": accepted,
        "fingerprint": f"{rule_id}/{group}",
    }


def night(
    at: int,
    findings: list[Any],
    *,
    unknown: set[str] | frozenset[str] = frozenset(),
    incomplete: bool = False,
    truncated: tuple[str, ...] = (),
) -> Night:
    verdicts: list[Any] = [
        {
            "cluster": "c",
            "consumer_group": group,
            "verdict": "UNKNOWN" if group in unknown else "EQUAL",
            "reason": "NO_DUMP" if group in unknown else "",
            "unasked": [],
        }
        for group in GROUPS
    ]
    looked = AuditedScope.by(["c"], ["c"] if incomplete else [], verdicts, findings, Files())
    empty = pa.table({})
    row: Any = {"end_ms": at}
    return Night(row, empty, empty, {}, findings, looked, Files(), truncated)


def states(lives: FindingLives) -> dict[str, str]:
    return {row["fingerprint"]: row["state"] for row in lives.rows()}


def test_an_open_finding_names_its_broker() -> None:
    lives = FindingLives()
    lives.add(night(0, [finding("BROKER_DOWN", "") | {"consumer_group": None, "broker_name": "b"}]))
    (row,) = lives.rows()
    assert (row["broker_name"], subject_of(row)) == ("b", "b")


def test_random_nights() -> None:
    """Gone only after a night that was whole and judged the group; new only at first."""
    for seed in range(200):
        draw = random.Random(seed)
        lives, expected = FindingLives(), dict[str, str]()
        counts: dict[str, list[int]] = {}
        for at in range(12):
            unknown = {group for group in GROUPS if draw.random() < 0.3}
            incomplete = draw.random() < 0.2
            there = [(rule, g) for rule in RULES for g in GROUPS if draw.random() < 0.5]
            found = [finding(*one) for one in there]
            lives.add(night(at, found, unknown=unknown, incomplete=incomplete))
            for rule in RULES:
                for group in GROUPS:
                    name, before = f"{rule}/{group}", expected.get(f"{rule}/{group}")
                    if (rule, group) in there:
                        seen = counts.setdefault(name, [0, 0, 0])
                        counts[name] = [seen[0] + 1, 0, seen[2] + (before == "GONE")]
                        expected[name] = {None: "NEW", "GONE": "REOPENED"}.get(before, "OPEN")
                    elif before is not None and before != "GONE":
                        blind = incomplete or group in unknown
                        expected[name] = "NOT_LOOKED_AT" if blind else "GONE"
                        counts[name][1] += blind
        rows = {row["fingerprint"]: row for row in lives.rows()}
        assert {name: row["state"] for name, row in rows.items()} == expected
        told = {
            name: [row["nights_seen"], row["nights_unseen"], row["reopened"]]
            for name, row in rows.items()
        }
        for name, row in rows.items():
            if row["state"] == "GONE":  # how often it was not looked at before does not count
                told[name][1] = counts[name][1]
        assert told == counts


def test_a_rule_that_was_not_kept_whole_is_not_gone() -> None:
    lives = FindingLives()
    lives.add(night(1, [finding("IDLE_MEMBER", "g-1")]))
    lives.add(night(2, [], truncated=("IDLE_MEMBER",)))
    assert states(lives) == {"IDLE_MEMBER/g-1": "NOT_LOOKED_AT"}
    lives.add(night(3, [finding("IDLE_MEMBER", "g-2")]))
    assert states(lives) == {"IDLE_MEMBER/g-1": "GONE", "IDLE_MEMBER/g-2": "OPEN"}


def ended(rule_id: str, group: str) -> Any:
    shown = {"severity": "INFO", "evidence": {"ended_by": "CONSUMER_LEAVE of x"}}
    return finding(rule_id, group) | shown


def test_healed_where_a_night_has_its_end() -> None:
    """It stays healed when the line that shows it is away, and may come back."""
    lives = FindingLives()
    name = "IDLE_MEMBER/g-1"
    lives.add(night(1, [finding("IDLE_MEMBER", "g-1")]))
    lives.add(night(2, [], unknown={"g-1"}))
    assert states(lives) == {name: "NOT_LOOKED_AT"}
    lives.add(night(3, [ended("IDLE_MEMBER", "g-1"), ended("TOPIC_GONE", "g-1")], incomplete=True))
    for at in (4, 5):
        (row,) = lives.rows()
        assert (row["fingerprint"], row["state"], row["over_night_ms"]) == (name, "HEALED", 3)
        lives.add(night(at, []))
    lives.add(night(6, [finding("IDLE_MEMBER", "g-1")]))
    (row,) = lives.rows()
    assert (row["state"], row["reopened"], row["over_night_ms"]) == ("REOPENED", 1, None)
    lives.add(night(7, [finding("IDLE_MEMBER", "g-1")]))
    assert states(lives) == {name: "OPEN"}


def test_what_is_not_sure_is_not_healed() -> None:
    lives = FindingLives()
    lives.add(night(1, [finding("IDLE_MEMBER", "g-1")]))
    unsure = {"severity": "INFO", "evidence": {"not_covered": "LOG_ENDED"}}
    lives.add(night(2, [ended("IDLE_MEMBER", "g-1"), finding("IDLE_MEMBER", "g-1") | unsure]))
    assert states(lives) == {"IDLE_MEMBER/g-1": "NOT_LOOKED_AT"}


def test_accepted_and_snoozed() -> None:
    lives = FindingLives()
    snoozed = "snoozed until 2026-12-01: wait for the release (OPS-7)"
    lives.add(
        night(
            1, [finding("IDLE_MEMBER", "g-1", "on purpose"), finding("TOPIC_GONE", "g-1", snoozed)]
        )
    )
    assert states(lives) == {"IDLE_MEMBER/g-1": "ACCEPTED", "TOPIC_GONE/g-1": "SNOOZED"}
    lives.add(night(2, [finding("IDLE_MEMBER", "g-1")]))
    assert states(lives) == {"IDLE_MEMBER/g-1": "OPEN", "TOPIC_GONE/g-1": "GONE"}


def test_owners() -> None:
    lives = FindingLives()
    lives.add(night(1, [finding("IDLE_MEMBER", group) for group in GROUPS]))
    owners = (Owner("g-1", "*", "first"), Owner("g-*", "other", "never"), Owner("g-[12]", "*", "b"))
    found = [row["owner"] for row in lives.rows(owners)]
    assert found == ["first", "b", None]


@pytest.mark.parametrize("severity", ["INFO"])
def test_hints_are_not_followed(severity: str) -> None:
    lives = FindingLives()
    lives.add(night(1, [finding("IDLE_MEMBER", "g-1") | {"severity": severity}]))
    assert lives.rows() == []
