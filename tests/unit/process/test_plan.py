"""A plan in one process: its histories, in parts of any size, of odd inputs."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import ArrowTables, read_input_tables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import INPUT_TABLES, PLAN_OUTPUT_TABLES
from rebalance_core.contracts.planning import LOSSES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.ledger_pass import with_empty_events_if_missing
from rebalance_core.engine.routing import Interests, interests_of, routing_of
from rebalance_core.model import events
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.planning.expectations import Expectation
from rebalance_core.planning.scenario.file import parse_scenario, read_scenarios
from rebalance_core.planning.scenario.scenario import Scenario, edit_history
from rebalance_core.planning.sweep.plan_edits import (
    EditPlan,
    EventFacts,
    interests_in,
    is_type,
    plan_edits,
)
from rebalance_core.planning.sweep.plan_options import PlanConfig, SweepOptions
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from rebalance_core.process.plan import plan_forecast, run_plan
from rebalance_core.process.plan_histories import Histories, first_groups
from rebalance_core.process.plan_pass import OF_GROUPS, PlanFacts, plan_pass, swept_groups
from tests.plans import differing, rows_of
from tests.recordings.tables import DATA
from tests.tree import TREE
from tests.unit.planning.scenario.groups import CLUSTER, END_MS, dump, join, numbered, scenario

# A plan of odd inputs, and in parts of any size.


@pytest.fixture(scope="module")
def inputs() -> ArrowTables:
    return read_input_tables(str(DATA / "nightly" / "tables"))


@pytest.fixture(scope="module")
def variants() -> Variants:
    scenarios = read_scenarios([TREE / "rebalance_core/bundled/scenarios/add-consumers.toml"])
    strategies = read_strategies(["AVG", "STICKY_BALANCED"], [])
    return variants_of(scenarios, strategies, (0,))


def without(inputs: ArrowTables, *types: str) -> ArrowTables:
    table = inputs.tables["cluster_events"]
    kept = [kind not in types for kind in table["event_type"].to_pylist()]
    tables = {**inputs.tables, "cluster_events": table.filter(pa.array(kept))}
    return replace(inputs, tables=tables)


def test_parts_of_any_size_give_the_same_tables(
    inputs: ArrowTables,
    variants: Variants,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, told = tmp_path / "whole", []
    baseline, growing = variants.histories
    assert growing.scenario is not None
    expecting = replace(growing.scenario, expectations=(Expectation(1, "", moved=5),))
    variants = replace(variants, histories=(baseline, replace(growing, scenario=expecting)))
    config = PlanConfig(holder_futures=2)
    result = run_plan(inputs, variants, whole, config)
    monkeypatch.setattr(
        "rebalance_core.process.plan_pass.swept_groups",
        lambda *given, **named: swept_groups(*given, **named, rows_per_chunk=1),
    )
    parts = run_plan(
        inputs, variants, tmp_path / "parts", config, progress=lambda *done: told.append(done)
    )
    for name in PLAN_OUTPUT_TABLES:
        found, expected = rows_of(tmp_path / "parts", name), rows_of(whole, name)
        assert (len(found) > 0) == (name != LOSSES.name)  # nothing is lost
        assert differing(found, expected) == [], name
    assert parts.rejected == result.rejected
    groups = 11
    done = {tuple(counts) for *counts, group in told if group is None}
    assert sorted(done) == [(number, 2 * groups) for number in range(1, 2 * groups + 1)]
    named = [(number, group) for number, _, group in told if group is not None]
    assert [number for number, _ in named] == list(range(2 * groups))
    assert len({group for _, group in named}) == groups


def test_the_groups_that_have_owners(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    run_plan(inputs, variants, tmp_path / "first", PlanConfig(ownership_groups=2))
    run_plan(inputs, variants, tmp_path / "chosen", PlanConfig(group="*", ownership_groups=2))
    named = {
        folder: {row["consumer_group"] for row in rows_of(tmp_path / folder, "plan_ownership")}
        for folder in ("first", "chosen")
    }
    assert sorted(named["chosen"])[:2] == sorted(named["first"])
    assert len(named["chosen"]) > 2


def test_a_pattern_that_fits_no_group_is_refused(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    with pytest.raises(InputRefused, match=r"--group notifi matches no group .* mean notify"):
        run_plan(inputs, variants, tmp_path / "plan", PlanConfig(group="notifi"))


def test_without_a_group_the_tables_are_empty(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    given = without(inputs, *events.GROUP_EVENTS)
    result = run_plan(given, variants, tmp_path / "plan")
    assert {name: table.rows for name, table in result.tables.items()} == dict.fromkeys(
        (*PLAN_OUTPUT_TABLES, "rejected"), 0
    )
    assert (result.scenarios, result.league) == ([], [])
    assert [rows_of(tmp_path / "plan", name) for name in PLAN_OUTPUT_TABLES] == [
        [] for _ in PLAN_OUTPUT_TABLES
    ]


def test_rows_that_are_all_bad_plan_nothing(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    table = inputs.tables["cluster_events"]
    place = table.column_names.index("event_type")
    bad = table.set_column(place, "event_type", pa.array(["?"] * len(table)))
    given = replace(inputs, tables={**inputs.tables, "cluster_events": bad})
    with pytest.raises(InputRefused, match="42 of 42 rows are bad"):
        run_plan(given, variants, tmp_path / "plan")
    assert not (tmp_path / "plan").exists()
    config = PlanConfig(bad_rows=BadRowLimits(max_bad_share=1.0))
    result = run_plan(given, variants, tmp_path / "plan", config)
    assert result.rejected == {"UNKNOWN_EVENT_TYPE": 42}
    assert result.tables["rejected"].rows == 42
    assert result.tables["plan_steps"].rows == 0
    forecast, warnings = plan_forecast(given, variants, config)
    assert (forecast.refusal, forecast.counts["cluster_events"].bad) == (None, 42)
    assert len(warnings) == 1  # the pattern * matches none of 0 groups


def test_a_table_that_is_there_stays(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    (tmp_path / "plan_steps").mkdir()
    with pytest.raises(OutputExists, match="plan_steps"):
        run_plan(inputs, variants, tmp_path)
    assert list((tmp_path / "plan_steps").iterdir()) == []


# A plan made of parts of the groups, as tasks make it: with what all rows say of the edits.

SCENARIOS = sorted((TREE / "rebalance_core/bundled/scenarios").glob("*.toml"))
ADDED = {
    "extra": 'kind = "mixed_subscriptions"\ngroup = "*"\npercent = 50\nextra = "stock"',
    "topic": 'kind = "new_topic"\nname = "fresh"\nqueues = 3\nsubscribed_by = "*"',
    "first": 'kind = "add_consumers"\ngroup = "nobody-yet"\ncount = 2',
    "gone": 'kind = "remove_consumers"\ngroup = "*"\ncount = 90',
    "wider": 'kind = "scale_queues"\ntopic = "*"\nbroker = "*"\nfactor = 2',
}
SETTINGS = {"consumer_group": "nobody-yet", "strategy": "AVG", "subscriptions": ["stock"]}


def scenarios() -> list[Scenario]:
    mistakes: list[str] = []
    made = [
        parse_scenario(
            f'name = "{name}"\ndescription = "d"\n[[edit]]\nat = "+1m"\n{edit}\n', name, mistakes
        )
        for name, edit in ADDED.items()
    ]
    assert mistakes == []
    return [*made, *read_scenarios(SCENARIOS)]


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    """The used rows of a recording, and settings of a group that has no member."""
    found = dict(read_input_tables(str(DATA / "nightly" / "tables")).tables)
    settings = found["consumer_groups"]
    new = {"cluster": settings["cluster"][0].as_py(), **SETTINGS}
    more = pa.Table.from_pylist([new], settings.schema)
    found["consumer_groups"] = pa.concat_tables([settings, more])
    checked = check_tables(ArrowTables(found))
    assert checked.rejected.num_rows == 0
    return dict(checked.tables)


def of_rows(rows: Iterable[tuple[str, pa.RecordBatch]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table, batch in rows:
        found.setdefault(table, []).extend(map(repr, batch.to_pylist()))
    return {table: sorted(texts) for table, texts in found.items()}


def test_parts_give_the_rows_of_the_whole(tables: dict[str, pa.Table]) -> None:
    variants = variants_of(scenarios(), read_strategies(["AVG"], []), (0,))
    halves = [
        {name: rows.slice(begin, length) for name, rows in tables.items()}
        for begin, length in ((0, 20), (20, None))
    ]
    facts = EventFacts.merged(map(EventFacts.of_tables, halves))
    edits = plan_edits(facts, variants)
    interests = (interests_of(name, rows) for half in halves for name, rows in half.items())
    recorded = Interests.merged(found for found in interests if found)
    options = SweepOptions(futures=2, holder_futures=1, group="*")
    planned = plan_pass(variants, edits, recorded.groups, tables, options, None)
    whole, numbers = PlanFacts(), range(len(variants.histories))
    expected = of_rows(planned.rows(tables, whole, numbers))
    assert set(expected) == set(OF_GROUPS)
    assert any("nobody-yet" in text for text in whole.warnings)

    of_edited = interests_in(recorded, facts, edits)
    assert "fresh" in of_edited.queues["topic"].to_pylist()
    routing = routing_of(of_edited, 40, giant_cells=1 << 62)
    buckets: dict[int, dict[str, pa.Table]] = {}
    for name, rows in tables.items():
        for bucket, part in routing.split(name, rows):
            buckets.setdefault(bucket, {})[name] = part
    assert len(buckets) > 5  # a group each
    parts, made = PlanFacts(), list[tuple[str, pa.RecordBatch]]()
    for part in buckets.values():
        for copy in range(2):
            of_part = PlanFacts()
            made += planned.rows(with_empty_events_if_missing(part), of_part, numbers[copy::2])
            parts.merge(of_part)
    assert of_rows(made) == expected
    assert parts.warnings == whole.warnings
    means, of_whole = parts.sound.means("AVG"), whole.sound.means("AVG")
    assert means == pytest.approx(of_whole)


# The input tables of each history, and which rows of them a plan does without.

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


def test_what_matches_nothing_and_cannot_be_done_is_told() -> None:
    remove = scenario('kind = "remove_consumers"; at = "+1m"; group = "g"; count = 9')
    given = tables_of(cluster_events=dump())
    edits = edits_of(given, remove, NOWHERE)
    unmatched, warning = edits.all_warnings(Histories(given, edits).warnings())
    assert 'cluster = "d*" matches no cluster' in unmatched
    assert "9" in warning


def commit(queue_id: int, observed_ms: int, client_id: str | None = None) -> Row:
    return {
        "cluster": CLUSTER, "consumer_group": "g", "topic": "T", "broker_name": "a",
        "queue_id": queue_id, "client_id": client_id, "observed_ms": END_MS + observed_ms,
        "committed_offset": observed_ms,
    }  # fmt: skip


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
