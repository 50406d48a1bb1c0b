"""The bodies of the SQL functions against the plain functions, row by row."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.kernels import functions
from rebalance_core.kernels.function_columns import ALLOCATION, NUMBER, QUEUES, TEXT, TEXTS
from rebalance_core.model.errors import RebalanceError, StartOffsetError, UsageError
from rebalance_core.model.group_settings import CONSUMER_TYPES
from rebalance_core.model.queue import MessageQueue, java_string_key, queue_sort_key
from rebalance_core.protocol.start_offset import (
    CURRENT_MODES,
    DEPRECATED_MODES,
    compute_pull_from_where,
)
from rebalance_core.strategies import allocate_group, make_strategy, parse_strategy
from tests.conformance.allocation import COLUMNS
from tests.conformance.start_offset import COLUMNS as START_COLUMNS
from tests.conformance.start_offset import TOPICS
from tests.tree import TREE

VECTORS = TREE / "tests" / "vectors"
ROWS = 2_000
STRATEGIES = (
    "AVG", "AVG", "AVG_BY_CIRCLE", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM",
    "CONSISTENT_HASH(virtual_nodes=3)", "MACHINE_ROOM(consumer_idcs=b|\U0001f600)",
    "CONFIG(queues=T/b-1/0|not there/b/7)", "CONFIG", "MACHINE_ROOM_NEARBY-AVG",
    "AVERAGE", "CONSISTENT_HASH(virtual_nodes=-1)", "POP", "", None,
)  # fmt: skip
NAMES = ("T", "b", "b-1", "b-10", "b@1", "\uffee", "\U0001f600", "é", "10.0.0.1@1", "10.0.0.10@1")
ASKED = tuple[str | None, list[Any] | None, list[Any] | None]


def batch(rows: list[ASKED]) -> list[pa.Array]:
    return [
        pa.array(column, kind)
        for column, kind in zip(zip(*rows, strict=True), (TEXT, QUEUES, TEXTS), strict=True)
    ]


def random_rows(seed: int) -> Iterator[ASKED]:
    """Lists of both kinds, sorted and not, empty, with repeats and, some, with what is wrong."""
    draw = random.Random(seed)

    def queue() -> Any:
        if draw.random() < 0.02:
            return draw.choice([None, (None, "b", 1), ("T", None, 1), ("T", "b", None),
                                ("T", "b", -1), ("T", "b", 2**31)])  # fmt: skip
        return draw.choice(NAMES[:2]), draw.choice(NAMES[1:7]), draw.randrange(4)

    def client() -> Any:
        return draw.choice([None, ""]) if draw.random() < 0.02 else draw.choice(NAMES)

    for _ in range(ROWS):
        queues = [queue() for _ in range(draw.randrange(9))]
        clients = [client() for _ in range(draw.randrange(6))]
        if draw.random() < 0.5 and None not in clients:
            clients.sort(key=java_string_key)
        yield (
            draw.choice(STRATEGIES),
            None if draw.random() < 0.03 else queues,
            None if draw.random() < 0.03 else clients,
        )


def answer(strategy: str | None, queues: Any, client_ids: Any) -> tuple[Any, str | None]:
    """What the plain function says of a row: the allocation, or a word of the reason."""
    if strategy is None:
        return None, "strategy is null"
    try:
        asked = parse_strategy(strategy)
    except UsageError as error:
        return None, str(error)
    for name, values in (("queues", queues), ("client_ids", client_ids)):
        if values is None:
            return None, f"{name} is null"
        if any(value is None or None in value for value in values if not isinstance(value, str)):
            return None, f"{name} contains a null"
        if name == "queues" and any(not 0 <= queue_id < 2**31 for *_, queue_id in values):
            return None, "has queue_id"
    try:
        owners = allocate_group(asked, [MessageQueue(*queue) for queue in queues], client_ids)
    except RebalanceError as error:
        return None, str(error)
    return [(*queue, list(clients)) for queue, clients in owners.items()], None


def plain(rows: pa.Array) -> list[Any]:
    return [
        None if row is None else [tuple(item.values()) for item in row] for row in rows.to_pylist()
    ]


def test_random_rows_are_allocated_as_a_group_is(seed: int) -> None:
    rows = list(random_rows(seed))
    found = plain(functions.try_rmq_allocate(*batch(rows)))
    reasons = functions.rmq_allocate_error(*batch(rows)).to_pylist()
    answered = 0
    for row, allocation, reason in zip(rows, found, reasons, strict=True):
        expected, word = answer(*row)
        assert allocation == expected, row
        assert (reason is None) == (allocation is not None), row
        assert word is None or word in reason, row
        answered += allocation is not None
    assert ROWS / 4 < answered < ROWS * 3 / 4


def test_a_text_that_is_no_strategy_is_refused(seed: int) -> None:
    """Rows that are wrong otherwise, and strategies that throw or are null, are null."""
    rows = list(random_rows(seed))
    with pytest.raises(UsageError, match=r"^strategy: .*; try_rmq_allocate gives null instead"):
        functions.rmq_allocate(*batch(rows))
    valid = [row for row in rows if row[0] is None or is_strategy(row[0])]
    assert len(valid) < len(rows)
    found = functions.rmq_allocate(*batch(valid))
    assert found == functions.try_rmq_allocate(*batch(valid))
    assert found.null_count > 0


def is_strategy(text: str) -> bool:
    try:
        parse_strategy(text)
    except UsageError:
        return False
    return True


def test_a_row_does_not_depend_on_its_batch(seed: int) -> None:
    rows = list(random_rows(seed))[:200]
    whole = functions.try_rmq_allocate(*batch(rows))
    alone = [functions.try_rmq_allocate(*batch([row]))[0].as_py() for row in rows]
    assert whole.to_pylist() == alone
    cut = [column.slice(50, 100) for column in batch(rows)]
    assert functions.try_rmq_allocate(*cut).to_pylist() == alone[50:150]
    assert functions.try_rmq_allocate(*(column.slice(0, 0) for column in cut)).type == ALLOCATION


def vectors() -> Iterator[tuple[dict[str, str], str]]:
    for name in ("allocation-vectors-dev.tsv", "allocation-vectors-charset.tsv"):
        lines = (VECTORS / name).read_text("utf-8").rstrip("\n").split("\n")[1:]
        for line in lines:
            row = dict(zip(COLUMNS, line.split("\t"), strict=True))
            if row["strategy"] == "POP":
                continue  # the broker's, no strategy of a client
            try:
                strategy = make_strategy(row["strategy"], json.loads(row["params"]), row["version"])
            except RebalanceError:
                continue  # upstream's constructor throws: tests/conformance
            if parse_strategy(str(strategy)) == strategy:  # else it is one of 4.9 alone
                yield row, str(strategy)


def vector_rows() -> list[ASKED]:
    """The arguments of every vector, as rows."""
    found = list(vectors())
    split = [
        text.split(",") if text else []
        for row, _ in found
        for text in (row["mqAll"], row["cidAll"])
    ]
    return [
        (text, [(*queue.rsplit("|", 2)[:2], int(queue.rsplit("|", 2)[2])) for queue in queues], ids)
        for (_, text), queues, ids in zip(found, split[::2], split[1::2], strict=True)
    ]


def test_vectors_of_the_released_classes() -> None:
    """The share of the client that asked is what its class returned, whoever else was asked."""
    found = list(vectors())
    assert len(found) > 5_000
    rows = vector_rows()
    allocations = plain(functions.try_rmq_allocate(*batch(rows)))
    reasons = functions.rmq_allocate_error(*batch(rows)).to_pylist()
    shares = 0
    for (row, text), asked, allocation, reason in zip(
        found, rows, allocations, reasons, strict=True
    ):
        queues = [MessageQueue(*queue) for queue in asked[1] or ()]
        strategy = parse_strategy(text)
        if allocation is None:
            with pytest.raises(RebalanceError, match=r".") as raised:
                allocate_group(strategy, queues, asked[2] or ())
            assert str(raised.value) == reason
            continue
        owners = allocate_group(strategy, queues, asked[2] or ())
        assert allocation == [(*queue, list(ids)) for queue, ids in owners.items()], row
        sorted_already = queues == sorted(set(queues), key=queue_sort_key)
        if sorted_already and row["currentCID"] in (asked[2] or ()) and row["result"] != "null":
            share = [f"{t}|{b}|{n}" for t, b, n, ids in allocation if row["currentCID"] in ids]
            assert sorted(share) == sorted(set(filter(None, row["result"].split(",")))), row
            shares += 1
    assert shares > 4_000


def test_differences_are_those_of_the_sets(seed: int) -> None:
    rows = list(random_rows(seed))
    allocations = functions.try_rmq_allocate(*batch(rows))
    before, after = allocations.slice(0, ROWS - 1), allocations.slice(1)
    found = plain(functions.rmq_assignment_diff(before, after))
    compared = 0
    for old, new, difference in zip(plain(before), plain(after), found, strict=True):
        if old is None or new is None:
            assert difference is None
            continue
        held, holds = ({(*q, c) for *q, clients in side for c in clients} for side in (old, new))
        expected = [(*q, "DROP", c) for *q, c in held - holds]
        expected += [(*q, "ADD", c) for *q, c in holds - held]
        expected.sort(
            key=lambda d: (
                queue_sort_key(MessageQueue(*d[:3])),
                d[3] == "ADD",
                java_string_key(d[4]),
            )
        )
        assert difference == expected
        compared += bool(expected)
    assert compared > ROWS / 20


def test_what_is_not_known_of_an_allocation_is_no_difference() -> None:
    queue = {"topic": "T", "broker_name": "b", "queue_id": 0}
    wrong = [None, [None], [queue | {"client_ids": None}], [queue | {"client_ids": [None]}]]
    before = pa.array([*wrong, []], ALLOCATION)
    after = pa.array([[queue | {"client_ids": ["x"]}]] * 5, ALLOCATION)
    assert functions.rmq_assignment_diff(before, after).to_pylist() == [
        *[None] * 4,
        [queue | {"action": "ADD", "client_id": "x"}],
    ]


START_TYPES = (TEXT, TEXT, TEXT, NUMBER, NUMBER, NUMBER, TEXT)
ARGUMENTS = ("consumer_type", "consume_from_where", "topic", "stored_offset", "max_offset",
             "timestamp_offset", "version")  # fmt: skip


def starts(rows: list[Any]) -> list[dict[str, Any]]:
    columns = list(map(pa.array, zip(*rows, strict=True), START_TYPES))
    found: list[dict[str, Any]] = functions.rmq_pull_from_where(*columns).to_pylist()
    return found


def check_starts(rows: list[Any]) -> int:
    """How many of them start; all are what the plain function says."""
    started = 0
    for row, found in zip(rows, starts(rows), strict=True):
        asked = dict(zip(ARGUMENTS, row, strict=True))
        missing = [n for n in ARGUMENTS if asked[n] is None and n not in ARGUMENTS[4:6]]
        if missing:
            assert (found["rule"], found["offset"]) == (None, None)
            assert found["error"].startswith(f"{missing[0]} is null") or len(missing) > 1
            continue
        thrown: RebalanceError | None = None
        offset = None
        try:
            offset = compute_pull_from_where(**asked)
        except RebalanceError as error:
            thrown = error
        message = None if thrown is None else str(thrown)
        assert (found["offset"], found["error"]) == (offset, message), row
        failed = isinstance(thrown, StartOffsetError) or (offset is not None and offset < 0)
        assert (found["rule"] == "QUERY_FAILED") == failed, row
        started += not failed and thrown is None
    return started


def test_random_starts(seed: int) -> None:
    draw = random.Random(seed)
    offsets = (None, -1, -2, -7, 0, 5, 2**53 + 1, 2**63 - 1)
    choices = (
        (*CONSUMER_TYPES, "POP", None), (*CURRENT_MODES, *DEPRECATED_MODES, "", None),
        ("T", "%RETRY%g", "\U0001f600", None), (*offsets, -1, -1, -1), offsets, offsets,
        ("5.3", "4.9.7", "5.1.0", "3.2", "new", None),
    )  # fmt: skip
    rows = [tuple(draw.choice(column) for column in choices) for _ in range(5_000)]
    assert check_starts(rows) > 500


def test_start_vectors_of_the_released_classes() -> None:
    lines = (VECTORS / "start-offset-vectors.tsv").read_text("utf-8").rstrip("\n").split("\n")
    assert tuple(lines[0].split("\t")) == START_COLUMNS
    rows, results = [], []
    for line in lines[1:]:
        version, consumer, mode, topic, stored, *ends, result, _ = line.split("\t")
        looked_up = [None if end == "error" else int(end) for end in ends]
        rows.append((consumer.upper(), mode, TOPICS[topic], int(stored), *looked_up, version))
        results.append(result)
    assert check_starts(rows) > 500
    for found, result in zip(starts(rows), results, strict=True):
        assert (found["error"] is not None) == result.startswith("!")
        assert found["error"] is not None or str(found["offset"]) == result


@pytest.mark.parametrize(
    ("rule", "row"),
    [
        ("STORED", ("PUSH", "CONSUME_FROM_FIRST_OFFSET", "T", 7, 9, None, "5.3")),
        ("MAX_OFFSET", ("PUSH", "CONSUME_FROM_MIN_OFFSET", "T", -1, 9, None, "5.3")),
        ("FIRST_ZERO", ("LITE_PULL", "CONSUME_FROM_FIRST_OFFSET", "T", -1, 9, None, "5.3")),
        ("TIMESTAMP_SEARCH", ("PUSH", "CONSUME_FROM_TIMESTAMP", "T", -1, 9, 4, "5.3")),
        ("RETRY_ZERO", ("PUSH", "CONSUME_FROM_LAST_OFFSET", "%RETRY%g", -1, 9, None, "5.3")),
        ("RETRY_MAX", ("PUSH", "CONSUME_FROM_TIMESTAMP", "%RETRY%g", -1, 9, 4, "5.3")),
        ("QUERY_FAILED", ("PUSH", "CONSUME_FROM_LAST_OFFSET", "T", -2, 9, None, "4.9.7")),
        ("PULL_ALWAYS_ZERO", ("PULL", "CONSUME_FROM_LAST_OFFSET", "T", 7, 9, None, "5.3")),
    ],
)
def test_the_rule_that_decided(rule: str, row: tuple[Any, ...]) -> None:
    assert starts([row])[0]["rule"] == rule


GOOD = batch([("AVG", [("T", "b", 0)], ["x"])])


@pytest.mark.parametrize(
    ("at", "column", "message"),
    [
        (0, pa.array([5]), "strategy must be STRING, but its Arrow type is int64"),
        (1, pa.array([["T"]]), "queues must be ARRAY<STRUCT<topic STRING"),
        (1, pa.array([[{"topic": "T", "queue_id": 1}]]), "queues must be ARRAY<STRUCT<topic"),
        (1, pa.array([[{"topic": "T", "broker_name": "b", "queue_id": "1"}]]),
         "queue_id of queues must be BIGINT, but its Arrow type is string"),
        (1, pa.array(["T"]), "queues must be"),
        (2, pa.array([[1]]), "client_ids must be STRING, but its Arrow type is int64"),
        (2, pa.array(["x"]), "client_ids must be ARRAY<STRING>, but its Arrow type is string"),
    ],
)  # fmt: skip
def test_a_column_of_another_type_is_refused(at: int, column: pa.Array, message: str) -> None:
    columns = [column if place == at else good for place, good in enumerate(GOOD)]
    with pytest.raises(UsageError, match=message):
        functions.try_rmq_allocate(*columns)


def test_fields_are_found_by_name() -> None:
    """Whatever their order, further ones and the width of numbers and texts."""
    fields = [("queue_id", pa.int64()), ("perm", pa.int32()), ("broker_name", pa.large_string()),
              ("topic", TEXT)]  # fmt: skip
    queues = pa.array([[(3, 6, "b", "T")]], pa.large_list(pa.struct(fields)))
    ids = pa.array([["x"]], pa.large_list(pa.large_string()))
    found = functions.try_rmq_allocate(GOOD[0], queues, ids)
    assert plain(found) == [[("T", "b", 3, ["x"])]]
    nothing = functions.try_rmq_allocate(GOOD[0], pa.nulls(1), ids)  # as Spark has lit(None)
    assert nothing.to_pylist() == [None]
