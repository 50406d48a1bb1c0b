"""What files state has the fields that are declared of its kind, each of the declared type."""

import re
from types import NoneType
from typing import Any

import pytest

from rebalance_core.contracts.document_facts import DOCUMENT_FACTS
from rebalance_core.contracts.fact_declaration import DocumentFact, LogFact
from rebalance_core.contracts.log_facts import LOG_FACTS
from rebalance_core.ingest.collection import identify
from rebalance_core.ingest.fact import Fact, Stated
from rebalance_core.ingest.file_reader import FileReader
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.ingest.parse.config_stores import parse_store_listing
from rebalance_core.ingest.piece import Piece
from tests.recordings.tables import DATA

NIGHTLY = DATA / "nightly" / "collection"
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


def parted(declared: str, mark: str) -> list[str]:
    """The parts between marks that stand in no brackets."""
    parts, depth = [""], 0
    for character in declared:
        depth += (character == "[") - (character == "]")
        if character == mark and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def fits(value: object, declared: str) -> bool:
    return any(fits_one(value, one) for one in parted(declared, "|"))


def fits_one(value: object, declared: str) -> bool:
    name, _, inside = declared.removesuffix("]").partition("[")
    if type(value) is not CLASSES.get(name, dict):
        return False
    of = parted(inside, ",")
    if isinstance(value, tuple) and of[-1] != "...":
        return len(value) == len(of) and all(map(fits, value, of))
    if isinstance(value, list | tuple):
        return all(fits(each, of[0]) for each in value)
    if isinstance(value, dict) and inside:
        return all(fits(key, of[0]) and fits(each, of[1]) for key, each in value.items())
    return True


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
    assert fits([("T", "*")], "list[tuple[str, str]]")
    assert not fits([("T", None)], "list[tuple[str, str]] | None")
    assert not fits({"T": "1"}, "dict[str, int]")
    assert not fits([["topics.json", 5]], "list[int]")
    whole = {"group": "g", "topic": "T", "asked": 5, "given": 0}
    assert faults(Fact("offset_corrected", 0, whole, "f:1")) == []
    wrong = {"group": "g", "topic": "T", "asked": "5", "stored": 7}
    assert faults(Fact("offset_corrected", 0, wrong, "f:1")) == [
        "offset_corrected.asked",
        "offset_corrected.given",
        "offset_corrected.stored",
    ]


def faults_of(name: str, text: str) -> tuple[list[Fact], list[str]]:
    file = identify(name)
    assert file is not None
    pieces = FileReader(file, "UTC", ()).read_document(text)
    facts = [Fact(p.kind, 0, p.values, p.source) for p in pieces if isinstance(p, Piece)]
    return facts, [fault for fact in facts for fault in faults(fact)]


def test_a_start_that_was_cut_is_as_declared() -> None:
    (path, *_) = sorted(NIGHTLY.glob("mqadmin/*-consumerStatus-order-service/*.txt"))
    cut = re.sub(r"(PROP_CONSUMER_START_TIMESTAMP *: \d\d)\d+", r"\1", path.read_text())
    facts, found = faults_of(path.relative_to(NIGHTLY).as_posix(), cut)
    assert (facts[0].kind, facts[0].values["start_ms"], found) == ("client", None, [])


def test_members_of_a_list_without_its_end_are_as_declared() -> None:
    (path, *_) = sorted(NIGHTLY.glob("mqadmin/*-consumerConnection-order-service-*.txt"))
    begin = path.read_text().partition("ConsumeType")[0]
    facts, found = faults_of(path.relative_to(NIGHTLY).as_posix(), begin)
    assert (facts[0].kind, facts[0].values["message_model"], found) == ("member", None, [])


def test_a_member_of_a_language_that_mqadmin_has_no_name_for_is_as_declared() -> None:
    (path, *_) = sorted(NIGHTLY.glob("mqadmin/*-consumerConnection-order-service-*.txt"))
    nameless = path.read_text().replace(" JAVA ", " null ")
    facts, found = faults_of(path.relative_to(NIGHTLY).as_posix(), nameless)
    assert (facts[0].kind, facts[0].values["language"], found) == ("member", None, [])


def test_when_stores_were_written_is_as_declared() -> None:
    (form,) = parse_store_listing("config/topics.json 3937 1795233000\n", "f")
    assert isinstance(form, Stated)
    assert form.values["modified"] == [("topics.json", 1_795_233_000_000)]
    assert faults(form) == []


@pytest.mark.parametrize(
    "recording", ["nightly", "pop", "go-java", "controller", "broker-loss-4.9"]
)
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
