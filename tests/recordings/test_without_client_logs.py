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
"""Only clients' logs show a suspension: without them none is known."""
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


def named(audited: Audited, group: str) -> bool:
    """Return whether the audit doubts the group's owners or names what it assumed of them."""
    row = audited.verdicts.get(group)
    assumed = (
        row["rule_id"] == "INGEST_STRATEGY_UNKNOWN"
        or (row["rule_id"] == "INGEST_ASSUMED" and "strategy" in str(row["evidence"]))
        for row in audited.tables["findings"]
        if row["consumer_group"] == group
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
    assert {one for one in wrong if not named(audited, one[1])} <= SUSPENDED
    assert wrong <= WITH_ASSUMPTION | SUSPENDED
    assert compared or not groups
