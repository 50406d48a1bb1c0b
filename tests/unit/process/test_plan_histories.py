"""The input tables of each history, and which rows of them a plan does without."""

from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.model import events
from rebalance_core.planning.sweep.plan_edits import EditPlan, EventFacts, is_type, plan_edits
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from rebalance_core.process.plan_histories import Histories, first_groups
from tests.unit.planning.scenario.edited_history import edit_history
from tests.unit.planning.scenario.groups import CLUSTER, END_MS, dump, join, numbered, scenario

Row = dict[str, Any]
GROW = scenario('kind = "add_consumers"; at = "+10m"; group = "*"; count = 1')
BREAK = scenario('kind = "lose_broker"; at = "+10m"; broker = "b"; cluster = "c"')
NOWHERE = scenario('kind = "lose_broker"; at = "+10m"; broker = "none"; cluster = "d*"')


def tables_of(**rows: list[Row]) -> dict[str, pa.Table]:
    tables = {}
    for name, some in rows.items():
        table = pa.Table.from_pylist(some, INPUT_TABLES[name].arrow_schema())
        for column in (SOURCE, RAW):
            table = table.append_column(column, pa.nulls(len(table), pa.string()))
        tables[name] = table
    return tables


def histories_variants(*scenarios: Any) -> Variants:
    return variants_of(scenarios, read_strategies(["AVG"], []), (0,))


def edits_of(tables: dict[str, pa.Table], *scenarios: Any) -> EditPlan:
    return plan_edits(EventFacts.of_tables(tables), histories_variants(*scenarios))


def plain(table: pa.Table) -> list[str]:
    rows = table.to_pylist()
    return sorted(str(sorted((k, v) for k, v in row.items() if v is not None)) for row in rows)


@pytest.mark.parametrize("edit", [GROW, BREAK])
def test_a_history_is_the_edited_one(edit: Any) -> None:
    groups = numbered([*dump(), join(END_MS, 8) | {"consumer_group": "h", "detail": "OBSERVED"}])
    settings = [{"cluster": CLUSTER, "consumer_group": "h", "strategy": "AVG_BY_CIRCLE"}]
    given = tables_of(cluster_events=groups, consumer_groups=settings)
    histories = Histories(given, edits_of(given, edit))
    assert histories.history(0).tables["cluster_events"] is given["cluster_events"]
    edited = edit_history(edit, groups, settings)
    expected = tables_of(cluster_events=list(edited.rows))["cluster_events"]
    found = histories.history(1)
    assert len(expected) > len(groups)
    assert found.tables["cluster_events"].schema.equals(expected.schema)
    assert plain(found.tables["cluster_events"]) == plain(expected)
    assert plain(found.tables["consumer_groups"]) == plain(given["consumer_groups"])
    assert (found.first_ms, histories.history(0).first_ms) == ({CLUSTER: END_MS + 600_000}, {})
    assert edits_of(given, edit).all_warnings(histories.warnings()) == ()


def test_what_matches_nothing_and_cannot_be_done_is_reported() -> None:
    remove = scenario('kind = "remove_consumers"; at = "+1m"; group = "g"; count = 9')
    given = tables_of(cluster_events=dump())
    edits = edits_of(given, remove, NOWHERE)
    unmatched, warning = edits.all_warnings(Histories(given, edits).warnings())
    assert 'cluster = "d*" matches no cluster' in unmatched
    assert "9" in warning


def commit(queue_id: int, observed_ms: int, client_id: str | None = None) -> Row:
    return {
        "cluster": CLUSTER,
        "consumer_group": "g",
        "topic": "T",
        "broker_name": "a",
        "queue_id": queue_id,
        "client_id": client_id,
        "observed_ms": END_MS + observed_ms,
        "committed_offset": observed_ms,
    }


def test_of_commits_before_the_first_edit_the_last_one_of_each_queue_stays() -> None:
    before = [commit(0, 1), commit(0, 9), commit(0, 5), commit(1, 3), commit(1, 4, "x")]
    later = [commit(0, 600_000), commit(0, 700_000), commit(2, 600_001)]
    elsewhere = [row | {"cluster": "other"} for row in before]
    events = [*dump(), dump()[0] | {"cluster": "other"}]
    edit = scenario('kind = "add_consumers"; at = "+10m"; group = "*"; count = 1; cluster = "c"')
    given = tables_of(cluster_events=events, committed_offsets=[*before, *later, *elsewhere])
    histories = Histories(given, edits_of(given, edit))
    found = histories.history(1).tables["committed_offsets"].to_pylist()
    kept = {
        cluster: sorted(
            (row["queue_id"], row["committed_offset"]) for row in found if row["cluster"] == cluster
        )
        for cluster in (CLUSTER, "other")
    }
    last = [(0, 9), (1, 3), (1, 4)]
    assert kept[CLUSTER] == sorted([*last, (0, 600_000), (0, 700_000), (2, 600_001)])
    assert kept["other"] == last  # no edit at all comes later than every commit
    assert histories.history(0).tables["committed_offsets"].num_rows == len(before) * 2 + len(later)


def test_the_first_groups_are_those_with_consumers() -> None:
    names = ("m", "b", "z")
    joins = numbered([join(END_MS, i) | {"consumer_group": name} for i, name in enumerate(names)])
    mode = {"cluster": CLUSTER, "event_ms": 1, "sequence": 9, "event_type": "REQUEST_MODE"}
    mode |= {"consumer_group": "a", "topic": "T", "detail": "PULL"}
    rows = tables_of(cluster_events=[*joins, mode])["cluster_events"]
    given = rows.filter(is_type(rows, events.CONSUMER_EVENTS))
    assert first_groups(given, 2) == {(CLUSTER, "b"), (CLUSTER, "m")}
    assert first_groups(given, 0) == frozenset()
