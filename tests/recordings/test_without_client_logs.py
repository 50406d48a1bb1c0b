"""Past owners without the clients' logs: right, or UNKNOWN, or by an assumption that is named."""

import pytest

from tests.degraded.files import Files
from tests.degraded.judge import (
    NOT_IN_TRUTH,
    Audited,
    audit,
    predicted,
    really_held,
    truth_of,
    whole,
)
from tests.recordings.tables import DATA
from tests.recordings.truth import JOIN_LEAVE_REST_MS, NOTIFIED, ROUTE_REST_MS

BEFORE_MS = 1_500
"""Owners are compared so long before a change: a client notes its join after it took effect."""
OF_CLIENTS = "clients/"
RECORDED = sorted(path.parent.name for path in DATA.glob("*/truth"))
SUSPENDED = {("timing", "payment-service")}
"""Only clients' logs show a suspension: without them the cluster's assumption is that none was."""
WITH_ASSUMPTION = {("strategies", "s-config"), ("pop", "pop-switch"), ("pop", "pop-mixed")}


def stripped(name: str) -> Audited:
    files = Files.of(name)
    for path in [path for path in files.kept if path.startswith(OF_CLIENTS)]:
        files.drop(path)
    return audit(files)


def resting(name: str, group: str) -> list[int]:
    """Moments just before a change, at which the one before was long ago, by all the files."""
    truth = truth_of(name)
    assert truth is not None
    found = []
    for row in whole(name).tables["epochs"]:
        rest_ms = JOIN_LEAVE_REST_MS if set(row["causes"]) <= NOTIFIED else ROUTE_REST_MS
        end_ms = (row["to_ms"] or truth.end_ms) - BEFORE_MS
        if row["consumer_group"] == group and end_ms - row["from_ms"] > rest_ms:
            found.append(end_ms)
    return found


def named(audited: Audited, group: str, *, suspended: bool) -> bool:
    """Return whether the audit doubts the group's owners or names what it assumed of them.

    Args:
        audited: the audit.
        group: the group.
        suspended: one of its members was suspended, which another assumption concerns.
    """
    row = audited.verdicts.get(group)
    word = "suspended" if suspended else "strategy"
    assumed = (
        (row["rule_id"] == "INGEST_STRATEGY_UNKNOWN" and not suspended)
        or (row["rule_id"] == "INGEST_ASSUMED" and word in str(row["evidence"]))
        for row in audited.tables["findings"]
        if row["consumer_group"] == group or (suspended and row["consumer_group"] is None)
    )
    return row is None or row["verdict"] == "UNKNOWN" or any(assumed)


@pytest.mark.parametrize("name", RECORDED)
def test_past_owners_are_those_of_the_clients_or_the_doubt_is_named(name: str) -> None:
    audited = stripped(name)
    truth = truth_of(name)
    assert truth is not None
    groups = {group for _, group in truth.lines} - NOT_IN_TRUTH.get(name, set())
    compared, wrong = 0, set()
    for group in groups:
        for at_ms in resting(name, group):
            real = really_held(name, group, at_ms)
            if predicted(whole(name), group, at_ms) != real:
                continue  # not at rest yet, or popped: then its files do not name its queues
            compared += 1
            if predicted(audited, group, at_ms) != real:
                wrong.add((name, group))
    assert all(named(audited, one[1], suspended=one in SUSPENDED) for one in wrong)
    assert wrong <= WITH_ASSUMPTION | SUSPENDED
    assert compared or not groups


def not_suspended(audited: Audited) -> dict[str | None, str]:
    """Return the members that are assumed not to have been suspended, by group."""
    return {
        row["consumer_group"]: dict(row["evidence"]).get("clients", "")
        for row in audited.tables["findings"]
        if row["rule_id"] == "INGEST_ASSUMED" and "suspended" in str(row["evidence"])
    }


def test_of_other_clients_logs_the_members_without_one_are_named() -> None:
    """A group whose members neither came nor left beside a member without a log is not named."""
    suspended = "10.0.8.34@1419#6255077843244"
    files = Files.of("timing")
    dropped = [path for path in files.kept if path.startswith(f"{OF_CLIENTS}c4/")]
    for path in dropped:
        files.drop(path)
    assert dropped
    some, all_kept = not_suspended(audit(files)), not_suspended(whole("timing"))
    assert suspended in some["payment-service"]
    assert suspended not in all_kept["payment-service"]
    assert "10.0.8.77@" not in some["payment-service"]  # its own log was collected
    assert some.keys() == all_kept.keys() == {"payment-service", "ledger-service"}
    assert not_suspended(stripped("timing")) == {None: ""}  # one line for all groups
    assert not not_suspended(whole("nightly"))


def test_members_without_a_log_are_named_where_queues_alone_changed() -> None:
    """A broker of go-java left and returned while its Go members, which write no log, stayed."""
    assert not_suspended(whole("go-java")).keys() == {"g-hash", "g-mix", "g-ord"}
    files = Files.of("shared-later")
    dropped = [path for path in files.kept if path.startswith(f"{OF_CLIENTS}p1/")]
    for path in dropped:
        files.drop(path)
    assert dropped
    assert not_suspended(audit(files)) == {"orders-app": "10.0.0.1@app"}  # its topic got queues
    assert not not_suspended(whole("shared-later"))
