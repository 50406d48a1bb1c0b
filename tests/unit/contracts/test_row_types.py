"""The types of rows and evidence: made from the declarations, and no cost of a run."""

import subprocess
import sys
from typing import get_args, get_type_hints

from rebalance_core.contracts import ALL_TABLES, rows
from rebalance_core.contracts.document_facts import FACT_SUBJECTS
from rebalance_core.contracts.observed import FACT_KINDS
from rebalance_core.contracts.snapshot_tables import GROUP_TABLES
from rebalance_core.ingest import evidence_types
from tests.tree import TREE

USERS = ("audit.findings", "process.audit", "history.fold", "ingest.in_process", "cli.audit")


def test_a_run_does_not_load_them() -> None:
    """For whom mypy checks, they are imported under TYPE_CHECKING: making them takes 10 ms."""
    modules = ", ".join(f"rebalance_core.{name}" for name in USERS)
    made = "{'rebalance_core.contracts.rows', 'rebalance_core.ingest.evidence_types'}"
    asked = f"import sys, {modules}; print({made} & sys.modules.keys())"
    printed = subprocess.run(
        [sys.executable, "-c", asked], cwd=TREE, stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    assert printed == "set()\n"


def test_each_table_and_each_kind_of_fact_has_one() -> None:
    for table in ALL_TABLES.values():
        made = getattr(rows, "".join(map(str.title, table.name.split("_"))) + "Row")
        assert set(get_type_hints(made)) == set(table.column_names), table.name
    assert set(get_type_hints(rows.SnapshotRows)) == GROUP_TABLES.keys()
    assert set(get_type_hints(rows.FactsByKind)) == FACT_KINDS.keys()
    assert ALL_TABLES.keys() <= get_type_hints(rows.RowsByTable).keys()


def test_facts_that_are_read_before_they_are_addressed_have_the_values_of_their_kinds() -> None:
    unions = {"dating": evidence_types.DatingFact, "answer": evidence_types.AnswerFact}
    assert unions.keys() == FACT_SUBJECTS.keys()
    for subject, union in unions.items():
        kinds = [get_args(stated) for stated in get_args(union)]
        assert [get_args(kind) for kind, _ in kinds] == [(k,) for k in FACT_SUBJECTS[subject]]
        names = ["".join(map(str.title, k.split("_"))) + "Values" for k in FACT_SUBJECTS[subject]]
        assert [values.__name__ for _, values in kinds] == names


def test_null_and_allowed_words_are_part_of_a_type() -> None:
    hints = get_type_hints(rows.PullStartsRow)
    assert str(hints["status"]) == "typing.Literal['OK', 'FAILED', 'UNKNOWN']"
    assert hints["start_offset"] == int | None
    assert hints["client_id"] is str


def test_what_no_row_of_a_kind_lacks_is_not_null() -> None:
    refused = get_type_hints(rows.LockRefusedFact)
    assert (refused["topic"], refused["queue_id"], refused["client_id"]) == (str, int, str)
    assert get_type_hints(rows.NotifiedFact)["broker_name"] == str | None
    assert set(get_type_hints(rows.BrokerStoreDetails)) == {
        "form",
        "topics.json",
        "subscriptionGroup.json",
        "consumerOffset.json",
    }
