"""What the rows may look like: missing columns, dictionaries, no row at all."""

from dataclasses import replace

import pyarrow as pa

from rebalance_core.contracts import SIMULATED_TABLES
from tests.unit.kernels.fleets import (
    SCHEMA,
    TABLE,
    assert_equal,
    build,
    fleet_table,
    kernel_rows,
    reasons_of,
    replay_rows,
)
from tests.unit.replay.histories import commit, event, history, join, seen, topic

FLEET = (
    history(
        topic(0, 4),
        join(0, "y", channel_id="1"),
        join(9_000, "x"),
        event(99_000, "CONSUMER_LOST", "y", channel_id="1", detail="EXPIRED"),
        offsets=[seen("a0", 0, 0, 5), seen("a3", 9_000, 2, 7)],
        commits=[commit("a0", 9_500, 3, "y"), commit("a3", 50_000, 4)],
    ),
)
EMPTY_TABLE = pa.Table.from_pylist([], SCHEMA)


def test_a_column_without_values_may_be_missing() -> None:
    table = fleet_table(FLEET, sparse=True)
    needless = [name for name in SCHEMA.names if table[name].null_count == table.num_rows]
    assert {"perm", "message_model", "client_version", "head_cached"} <= set(needless)
    prepared = build(FLEET, rows=table.drop_columns(needless))
    assert_equal(kernel_rows(prepared), replay_rows(FLEET))


def test_names_may_be_dictionaries() -> None:
    table = fleet_table(FLEET)
    for number, field in enumerate(SCHEMA):
        if field.type == pa.string() and field.name != TABLE:
            table = table.set_column(number, field.name, table[field.name].dictionary_encode())
    assert_equal(kernel_rows(build(FLEET, rows=table)), replay_rows(FLEET))


def test_groups_are_numbered_by_kind_then_by_name() -> None:
    strategies = ("AVG_BY_CIRCLE", "AVG", "CONFIG", "AVG_BY_CIRCLE")
    groups = [
        replace(history(join(0, "x"), strategy=strategy), consumer_group=name)
        for name, strategy in zip(("\uff5e", "b", "a", "😀"), strategies, strict=True)
    ]
    names = build(groups).encoded.names.groups
    assert names.to_pylist() == ["b", "😀", "\uff5e", "a"]


def test_no_row_is_no_group() -> None:
    prepared = build(FLEET, rows=EMPTY_TABLE)
    assert reasons_of(prepared) == {}
    assert kernel_rows(prepared) == {table: [] for table in SIMULATED_TABLES}


def test_rows_of_a_group_that_no_table_observes() -> None:
    """Queues of a topic that the group does not read are nobody's business."""
    foreign = history(
        topic(0, 1),
        topic(0, 2, "U"),
        join(0, "x"),
        offsets=[seen("U/a0", 0, 0, 5)],
        commits=[commit("U/a1", 0, 3, "x")],
    )
    assert_equal(kernel_rows(build([foreign])), replay_rows([foreign]))
