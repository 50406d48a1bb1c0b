"""No client id, host or address in any column of what is judged; what names topics stays."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from rebalance_core.audit.findings import GroupRules, run_rules
from rebalance_core.audit.group_snapshot import AuditRun, GroupSnapshot
from rebalance_core.audit.redact import Redaction, pseudonym
from tests.unit.audit.group_rows import DUMPED_MS, fact, ledger, progress, snapshot, status
from tests.unit.audit.snapshots import Row

HOST, OTHER, STRANGER = "shop-pod-1", "10.0.0.2", "10.9.9.9"
CLIENTS = f"{HOST}@7#1", f"{OTHER}@worker@unit", f"{STRANGER}@ghost"
SALT = "s"


def renamed(rows: dict[str, list[Row]]) -> Any:
    """The rows of `group_rows` with clients of which one is a host's name."""
    text = json.dumps(rows)
    for old, new in zip(("10.0.0.1@1#1", "10.0.0.2@2#2"), CLIENTS, strict=False):
        text = text.replace(old, new)
    return json.loads(text)


@pytest.fixture
def group() -> GroupSnapshot:
    """Differences, a refused lock and an ingest finding that all tell of clients."""
    written = (
        f"{CLIENTS[0]} at {HOST}:4711, {CLIENTS[1]}, not known here: {CLIENTS[2]} of [fe80::1]:9"
    )
    ingested = {
        "rule_id": "INGEST_CONTRADICTION",
        "severity": "WARNING",
        "summary": written,
        "remedy": written,
        "evidence": {CLIENTS[0]: written, "source": f"clients/{HOST}/client.log:3"},
        "client_id": CLIENTS[0],
        "accepted": None,
        "consumer_group": "g",
    }
    lock = fact(
        "LOCK_REFUSED",
        DUMPED_MS,
        client_id=CLIENTS[1],
        topic="T",
        broker_name="b",
        queue_id=0,
        details={"owner": CLIENTS[2]},
    )
    lock |= {"last_ms": DUMPED_MS + 300_000, "times": 200}
    facts = [
        *status(CLIENTS[0], DUMPED_MS, 0),
        *status(CLIENTS[1], DUMPED_MS, 1, 2, 3),
        lock,
        *progress(DUMPED_MS, STRANGER, HOST, OTHER, OTHER),
    ]
    return snapshot(*facts, **renamed(ledger()), findings=[ingested])


def text_of(made: Mapping[str, Any]) -> str:
    return json.dumps(made)


def test_nothing_judged_of_a_group_names_its_clients(group: GroupSnapshot) -> None:
    runs = {"c": AuditRun(0, 10_000_000)}
    plain = GroupRules(runs)("c", "g", group.tables)
    assert plain == run_rules(group)
    secrets = [*CLIENTS, HOST, OTHER, STRANGER, "fe80"]
    assert [one for one in secrets if one not in text_of(plain)] == []
    hidden = GroupRules(runs, salt=SALT)("c", "g", group.tables)
    assert [one for one in secrets if one in text_of(hidden)] == []
    assert len(hidden["findings"]) == len(plain["findings"])
    assert all(pseudonym(one, SALT) in text_of(hidden) for one in CLIENTS)
    for name in ("rule_id", "severity", "topic", "broker_name", "queue_id", "first_ms"):
        assert [r.get(name) for r in hidden["findings"]] == [r.get(name) for r in plain["findings"]]


def test_every_text_of_a_finding_on_the_cluster_is_redacted() -> None:
    row: Any = dict.fromkeys(("consumer_group", "topic", "broker_name", "client_id"))
    written = "10.0.0.1@7 wrote clients/pod-3/rocketmq_client.log from 10.0.0.1:99"
    row |= {
        "summary": written,
        "remedy": written,
        "accepted": written,
        "evidence": {written: written},
    }
    shown = Redaction(SALT).finding(row)
    clean = f"{pseudonym('10.0.0.1@7', SALT)} wrote clients/(client)/rocketmq_client.log from "
    assert {shown["summary"], shown["remedy"], shown["accepted"]} == {clean + "(address)"}
    assert shown["evidence"] == {clean + "(address)": clean + "(address)"}


def test_what_only_looks_like_a_client_stays() -> None:
    redaction = Redaction(SALT, brokers=["room1@b1"])
    text = "room1@b1:0-3 of T at 2026-11-21 03:47:35Z, version 5.3.3"
    assert redaction.text(text) == text


def test_a_finding_that_is_redacted_already_keeps_its_names() -> None:
    name = pseudonym(CLIENTS[0], SALT)
    row: Any = {
        "client_id": name,
        "summary": f"{name} waits",
        "remedy": "",
        "accepted": None,
        "evidence": None,
    }
    assert Redaction(SALT).finding(row) == row | {"evidence": {}}
