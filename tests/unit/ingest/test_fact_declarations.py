"""A log fact is declared once; everything else follows from its declaration."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.contracts.fact_declaration import (
    CLUSTER,
    COMMIT,
    GROUP,
    ONE_A_SECOND,
    TOPIC,
    FactKind,
    fact_kinds,
    log_facts,
)
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.ingest.evidence import thinning_of
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.ingest.log_rows import READERS
from rebalance_core.ingest.observed_facts import DOCUMENT_READERS
from rebalance_core.ingest.parse import broker_log, client_log, lock_and_pop_logs, server_logs
from tests.unit.ingest import made_up_fact
from tests.unit.ingest.made_up_fact import DECLARATION

TEMPLATES = (
    *broker_log.TEMPLATES,
    *lock_and_pop_logs.LOCK_TEMPLATES,
    *lock_and_pop_logs.POP_TEMPLATES,
    *server_logs.NAMESRV_TEMPLATES,
    *client_log.TEMPLATES,
    *server_logs.PROXY_TEMPLATES,
)
WITHOUT_TEMPLATE = {
    "heartbeat",
    "unsubscribed",
    "queue_taken",
    "queue_given_up",
    "no_member_list",
    "broadcast_refused",
    "broker_known",
    "pull_refused",
    "offset_reset",
    "start_refused",
    "topic_missing",
    "heartbeat_refused",
    "message_expired",
    "message_of_any_expired",
    "pop_forbidden",
    "proxy_mode",
    "proxy_alive",
}
"""What their lines begin with does not tell them from others, or one line states several."""


def test_a_declaration_and_a_template_make_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made_up_fact.declare(monkeypatch)
    folder = made_up_fact.write_collection(tmp_path)
    tables = ingest_collection(folder).tables
    rows = [row for row in tables["observed_facts"] if row["kind"] == "PULL_HELD_BACK"]
    assert {(r["consumer_group"], r["topic"], r["broker_name"]) for r in rows} == {("g", "T", "b")}
    assert {
        (r["details"]["reason"], r["first_ms"], r["last_ms"], r["times"]) for r in rows
    } == made_up_fact.ROWS
    assert tables.get("consumer_groups", []) == []
    assert thinning_of(GROUP)["pull_held_back"] == ONE_A_SECOND
    assert "pull_held_back" not in thinning_of(CLUSTER)


def test_without_its_declaration_there_is_none(tmp_path: Path) -> None:
    tables = ingest_collection(made_up_fact.write_collection(tmp_path)).tables
    assert "PULL_HELD_BACK" not in {row["kind"] for row in tables["observed_facts"]}


def test_every_template_is_of_a_fact_declared() -> None:
    assert {kind for kind, _, _ in TEMPLATES} | WITHOUT_TEMPLATE == LOG_FACTS.keys()


def test_what_one_declaration_cannot_say_has_a_reader() -> None:
    with_rows = {kind for kind, fact in LOG_FACTS.items() if fact.rows}
    several = {kind for kind in with_rows if len(LOG_FACTS[kind].rows) > 1}
    assert several <= READERS.keys() <= with_rows
    for kind in with_rows - READERS.keys():
        fact = LOG_FACTS[kind]
        details = {field.name for field in fact.rows[0].details}
        assert details <= {field.name for field in fact.fields} | {"log", "pid"}, kind


@pytest.mark.parametrize(("kind", "reader"), [*READERS.items(), *DOCUMENT_READERS.items()])
def test_a_reader_is_listed_for_the_kind_that_it_takes(kind: str, reader: Any) -> None:
    """The dicts of readers are untyped: mypy does not compare the two."""
    taken = reader.__annotations__["piece"].split(" | ")
    assert "".join(map(str.title, kind.split("_"))) + "Piece" in taken


def test_every_kind_of_a_log_is_of_the_contract() -> None:
    assert {kind.name for fact in LOG_FACTS.values() for kind in fact.rows} < FACT_KINDS.keys()


def test_a_kind_is_declared_once() -> None:
    with pytest.raises(ValueError, match="pull_held_back is declared twice"):
        log_facts((DECLARATION, DECLARATION))
    other = FactKind("PULL_HELD_BACK", "something else")
    with pytest.raises(ValueError, match="PULL_HELD_BACK is declared twice"):
        fact_kinds((other,), (DECLARATION,))
    assert set(fact_kinds((), (DECLARATION, replace(DECLARATION, kind="b")))) == {"PULL_HELD_BACK"}


@pytest.mark.parametrize("part", [TOPIC, COMMIT])
def test_rows_are_on_groups_and_the_cluster(part: str) -> None:
    with pytest.raises(ValueError, match="on groups and the cluster only"):
        replace(DECLARATION, part=part)


def test_a_declaration_states_where_its_fact_belongs() -> None:
    with pytest.raises(ValueError, match="no kind of observed_facts"):
        replace(DECLARATION, rows=())
    assert DECLARATION.key == "group"
    assert replace(DECLARATION, part=CLUSTER).key == ""
