"""What files state has the fields that are declared of its kind, each of the declared type."""

from types import NoneType
from typing import Any

import pytest

from rebalance_core.contracts.document_facts import DOCUMENT_FACTS
from rebalance_core.contracts.fact_declaration import DocumentFact, LogFact
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.ingest.fact import Fact
from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import DATA

DECLARED: dict[str, LogFact | DocumentFact] = {**LOG_FACTS, **DOCUMENT_FACTS}
CLASSES: dict[str, type] = {
    "None": NoneType,
    "str": str,
    "bool": bool,
    "int": int,
    "float": float,
    "list": list,
    "dict": dict,
    "tuple": tuple,
}
"""By the name in a declaration; any other is a TypedDict."""


def fits(value: object, declared: str) -> bool:
    kinds = {CLASSES.get(one.partition("[")[0], dict) for one in declared.split(" | ")}
    return type(value) in kinds


def faults(fact: Fact) -> list[str]:
    """What a fact has that is not declared of its kind, lacks, or has of another type."""
    declared = DECLARED[fact.kind]
    fields = {field.name: field for field in declared.fields}
    with_pid = isinstance(declared, LogFact) and declared.with_pid
    extra = fact.values.keys() - fields.keys() - ({"pid"} if with_pid else set())
    needed = {name for name, field in fields.items() if not field.optional}
    other = [
        name
        for name in fact.values.keys() & fields.keys()
        if not fits(fact.values[name], fields[name].type)
    ]
    return sorted(
        f"{fact.kind}.{name}" for name in (*extra, *(needed - fact.values.keys()), *other)
    )


def test_a_fault_is_found() -> None:
    whole = {"group": "g", "topic": "T", "asked": 5, "given": 0}
    assert faults(Fact("offset_corrected", 0, whole, "f:1")) == []
    wrong = {"group": "g", "topic": "T", "asked": "5", "stored": 7}
    assert faults(Fact("offset_corrected", 0, wrong, "f:1")) == [
        "offset_corrected.asked",
        "offset_corrected.given",
        "offset_corrected.stored",
    ]


@pytest.mark.parametrize("recording", ["nightly", "pop", "go-java", "controller"])
def test_facts_are_as_declared(recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[str] = set()
    kinds: set[str] = set()
    made = Fact.__init__

    def checked(self: Fact, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **named)
        if self.kind in DECLARED:
            kinds.add(self.kind)
            found.update(faults(self))

    monkeypatch.setattr(Fact, "__init__", checked)
    ingest_collection(DATA / recording / "collection")
    # what a document says of its client, and whose store it is, is added when it is addressed
    addressed = {"local_offset.client_id", "local_offset.consumer_group", "queue_mapping.topic"}
    assert found - addressed <= {"queue_mapping.broker_name", "queue_mapping.mapping"}
    assert len(kinds) > 30
