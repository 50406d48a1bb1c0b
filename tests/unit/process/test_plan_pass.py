"""A plan made of parts of the groups, as tasks make it, with what all rows say of the edits."""

from collections.abc import Iterable

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import ArrowTables, read_input_tables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.engine.fan_out import with_empty_events_if_missing
from rebalance_core.engine.routing import Interests, interests_of, routing_of
from rebalance_core.planning.scenario.file import parse_scenario, read_scenarios
from rebalance_core.planning.scenario.scenario import Scenario
from rebalance_core.planning.sweep.plan_edits import EventFacts, interests_in, plan_edits
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.variants import read_strategies, variants_of
from rebalance_core.process.plan_pass import OF_GROUPS, PlanFacts, plan_pass
from tests.recordings.tables import DATA
from tests.tree import TREE

SCENARIOS = sorted(
    file
    for file in (TREE / "rebalance_core/bundled/scenarios").glob("*.toml")
    if file.stem != "restart-proxies"  # refused: the recording has no proxy
)
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
