"""Bodies of the SQL functions: allocations, differences and start offsets for the rows of a batch.

Each function takes Arrow arrays of equal length and returns an array. A row without an answer is
null and does not affect other rows; the array of reasons, or the field ``error``, explains why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels.codes import encode, names_of
from rebalance_core.kernels.function_columns import (
    ALLOCATION,
    DIFFERENCE,
    NUMBER,
    START,
    TEXT,
    TEXTS,
    ClientLists,
    QueueLists,
    elements_of,
    numbers_of,
    texts_of,
)
from rebalance_core.kernels.function_reasons import Reasons, nulls_of, rows_where
from rebalance_core.kernels.ownership.by_place import deal
from rebalance_core.kernels.segments import Bools, Ints, first_of_run, last_of_run, pointers
from rebalance_core.model.errors import AllocationError, StartOffsetError, UsageError
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX, MessageQueue
from rebalance_core.protocol.start_offset import (
    MAX_OFFSET,
    QUERY_FAILED,
    RETRY_MAX,
    STORED,
    TIMESTAMP_SEARCH,
    start_rule,
)
from rebalance_core.strategies.group_allocation import allocate_group
from rebalance_core.strategies.spi import AllocationStrategy
from rebalance_core.strategies.texts import parse_strategy
from rebalance_core.strategies.vectorised import ByPlace, PlaceRule


def rmq_allocate(strategy: pa.Array, queues: pa.Array, client_ids: pa.Array) -> pa.Array:
    """Return `try_rmq_allocate`, unless a strategy is invalid.

    Raises:
        UsageError: A text is not a strategy, or a column has another type.
    """
    made = try_rmq_allocate(strategy, queues, client_ids)
    for text in pc.unique(texts_of("strategy", strategy)).drop_null().to_pylist():
        try:
            parse_strategy(text)
        except UsageError as error:
            raise UsageError(f"strategy: {error}; try_rmq_allocate gives null instead") from error
    return made


def try_rmq_allocate(strategy: pa.Array, queues: pa.Array, client_ids: pa.Array) -> pa.Array:
    """Return `allocate_group` for every row, as `ALLOCATION`.

    A row is null where `rmq_allocate_error` gives a reason.

    Args:
        strategy: Strategy texts.
        queues: Lists of structs with topic, broker_name and queue_id, in any order.
        client_ids: Lists of client ids, in any order; an id with several processes is repeated.

    Raises:
        UsageError: A column has another type.
    """
    asked = _Batch.read(strategy, queues, client_ids)
    dealt = _Dealt.from_batch(asked)
    rows, others = _one_by_one(asked, dealt.rows)
    parts = [dealt.lists, pa.array(others, ALLOCATION), pa.nulls(1, ALLOCATION)]
    if not others and len(dealt.rows) == len(asked.codes):
        return parts[0]
    part_row = np.full(len(asked.codes), len(dealt.rows) + len(others), np.int64)
    part_row[dealt.rows] = np.arange(len(dealt.rows))
    part_row[rows] = len(dealt.rows) + np.arange(len(others))
    return pa.concat_arrays(parts).take(pa.array(part_row))


def rmq_allocate_error(strategy: pa.Array, queues: pa.Array, client_ids: pa.Array) -> pa.Array:
    """Return the reason for each null in `rmq_allocate`; arguments and errors are the same."""
    asked = _Batch.read(strategy, queues, client_ids)
    _one_by_one(asked, _Dealt.from_batch(asked).rows)
    return pa.array(asked.reasons.texts, TEXT)


@dataclass(frozen=True, slots=True)
class _Batch:
    """The rows of a batch: strategies by code, flat lists, and reasons why rows have no answer."""

    strategies: list[AllocationStrategy | None]
    codes: Ints
    queues: QueueLists
    clients: ClientLists
    reasons: Reasons

    @classmethod
    def read(cls, strategy: pa.Array, queues: pa.Array, client_ids: pa.Array) -> _Batch:
        reasons = Reasons(len(strategy))
        texts, (codes,) = encode(texts_of("strategy", strategy))
        reasons.put(np.flatnonzero(codes < 0).tolist(), "strategy is null")
        strategies: list[AllocationStrategy | None] = []
        for code, text in enumerate(texts.to_pylist()):
            try:
                strategies.append(parse_strategy(text))
            except UsageError as error:
                strategies.append(None)
                reasons.put(np.flatnonzero(codes == code).tolist(), str(error))
        return cls(
            strategies,
            codes,
            QueueLists.read("queues", queues, reasons),
            ClientLists.read("client_ids", client_ids, reasons),
            reasons,
        )

    def counts(self) -> tuple[Ints, Ints]:
        """Return the numbers of queues and client ids in each row."""
        queues, clients = (
            np.bincount(each.row, minlength=len(self.codes)) for each in (self.queues, self.clients)
        )
        return queues, clients


@dataclass(frozen=True, slots=True)
class _Dealt:
    """The rows whose strategies allocate all queues by place, and their allocations."""

    rows: Ints
    lists: pa.ListArray

    @classmethod
    def from_batch(cls, asked: _Batch) -> _Dealt:
        """Allocate all rows at once.

        Strategies that throw and lists that repeat a queue are left out.
        """
        rules = [*map(_rule_of, asked.strategies), None]
        dealt = np.array([rule is not None for rule in rules])
        queues, clients = asked.counts()
        chosen = asked.reasons.none & dealt[asked.codes] & (queues > 0) & (clients > 0)
        chosen[asked.clients.row[rows_where(pc.equal(asked.clients.name, ""))]] = False
        flat = asked.queues
        order, twice = _java_order(flat.row, flat.topic, flat.broker_name, flat.queue_id)
        row = flat.row[order]
        chosen[row[twice]] = False
        mine = chosen[row]
        rows, taken = np.flatnonzero(chosen), flat.take(order[mine])
        index = np.empty(len(taken.row), np.int32)
        for rule in dict.fromkeys(filter(None, rules)):
            alike = np.array([rule == each for each in rules])[asked.codes[rows]]
            owner_index = deal(rule, queues[rows[alike]], clients[rows[alike]])
            index[alike.repeat(queues[rows])] = owner_index
        order, again = _java_order(asked.clients.row, asked.clients.name)
        entry = pointers(clients)[taken.row] + index
        owned = ~again[entry]  # the places of a repeated id's other entries belong to no client
        owners = asked.clients.name.take(pa.array(order[entry[owned]]))
        structs = pa.StructArray.from_arrays(
            [
                taken.topic,
                taken.broker_name,
                pa.array(taken.queue_id, pa.int32()),
                pa.ListArray.from_arrays(pa.array(pointers(owned), pa.int32()), owners),
            ],
            fields=list(ALLOCATION.value_type),
        )
        firsts = pa.array(pointers(queues[rows]), pa.int32())
        return cls(rows, pa.ListArray.from_arrays(firsts, structs, type=ALLOCATION))


def _rule_of(strategy: AllocationStrategy | None) -> PlaceRule | None:
    """Return the rule of a strategy that allocates all queues by place."""
    form = strategy and strategy.vectorised()
    return form.rule if isinstance(form, ByPlace) and form.divides is None else None


def _java_order(row: Ints, *columns: pa.StringArray | Ints) -> tuple[Ints, Bools]:
    """Return the positions of each row's elements in Java's order, and a mask of repeats.

    Args:
        row: The row of each element, in ascending order.
        columns: Strings or numbers, the most significant first.
    """
    if all(_bytes_are_java_s(column) for column in columns if isinstance(column, pa.Array)):
        equal = row[1:] == row[:-1]
        rises = ~equal
        for column in columns:
            greater, same = _compared(column)
            rises |= equal & greater
            equal &= same
        if (rises | equal).all():  # most lists are already sorted
            return np.arange(len(row)), np.append(np.zeros(min(1, len(row)), np.bool_), equal)
    keys = [encode(c)[1][0] if isinstance(c, pa.Array) else c for c in reversed(columns)]
    order = np.lexsort((*keys, row))
    return order, ~first_of_run(*(key[order] for key in keys), row[order])


def _bytes_are_java_s(texts: pa.StringArray) -> bool:
    """Return True if UTF-8 sorts the strings as UTF-16 does: no four-byte character, no null."""
    data = texts.buffers()[2]
    four = data is not None and bool((np.frombuffer(data, np.uint8) >= 0xF0).any())
    return texts.null_count == 0 and not four


def _compared(column: pa.StringArray | Ints) -> tuple[Any, Any]:
    """Return, for each pair of neighbours, whether the second is greater and whether they are
    equal.
    """
    if not isinstance(column, pa.Array):
        return column[1:] > column[:-1], column[1:] == column[:-1]
    first, second = column[:-1], column[1:]
    greater, same = pc.greater(second, first), pc.equal(second, first)
    return greater.to_numpy(zero_copy_only=False), same.to_numpy(zero_copy_only=False)


def _one_by_one(asked: _Batch, dealt: Ints) -> tuple[Ints, list[Any]]:
    """Allocate the remaining rows one at a time, with a reason if the strategy throws."""
    left = asked.reasons.none
    left[dealt] = False
    flat = asked.queues.take(np.flatnonzero(left[asked.queues.row]))
    queues = list(
        map(
            MessageQueue,
            flat.topic.to_pylist(),
            flat.broker_name.to_pylist(),
            flat.queue_id.tolist(),
        )
    )
    names = asked.clients.name.filter(pa.array(left[asked.clients.row])).to_pylist()
    rows = np.flatnonzero(left)
    first_queue, first_name = (pointers(counts[rows]).tolist() for counts in asked.counts())
    answered, answers = [], []
    for number, row in enumerate(rows.tolist()):
        strategy = asked.strategies[asked.codes[row]]
        assert strategy is not None  # otherwise, the row has a reason
        try:
            owners = allocate_group(
                strategy,
                queues[first_queue[number] : first_queue[number + 1]],
                names[first_name[number] : first_name[number + 1]],
            )
        except AllocationError as error:
            asked.reasons.put([row], str(error))
            continue
        answered.append(row)
        answers.append([(*queue, clients) for queue, clients in owners.items()])
    return np.array(answered, np.int64), answers


ACTIONS = pa.array(["DROP", "ADD"])


def rmq_assignment_diff(before: pa.Array, after: pa.Array) -> pa.Array:
    """Return which client loses or gains which queue between two allocations, as `DIFFERENCE`.

    Queues are in RocketMQ's order, a queue's DROPs come before its ADDs, and ids are in Java's
    order. A row is null where either allocation is null or contains a null, because the difference
    is then unknown.

    Args:
        before: Lists as returned by `rmq_allocate`.
        after: The same for the next epoch.

    Raises:
        UsageError: A column has another type.
    """
    reasons = Reasons(len(before))
    sides = [
        _holdings(name, column, reasons) for name, column in (("before", before), ("after", after))
    ]
    side = np.repeat([0, 1], [len(queue_id) for *_, queue_id, _, _ in sides])
    (topics, topic), (brokers, broker), (clients, client) = (
        (names, np.concatenate(codes))
        for names, codes in (encode(*(each[field] for each in sides)) for field in (0, 1, 4))
    )
    queue_id, row = (np.concatenate([each[field] for each in sides]) for field in (2, 3))
    keys = (client, queue_id, broker, topic, row)
    order = np.lexsort((side, *keys))
    once = first_of_run(side[order], *(key[order] for key in keys))
    order = order[once]
    pairs = [key[order] for key in keys]
    order = order[first_of_run(*pairs) & last_of_run(*pairs) & reasons.none[row[order]]]
    order = order[np.lexsort([key[order] for key in (client, side, *keys[1:])])]
    structs = pa.StructArray.from_arrays(
        [
            names_of(topics, topic[order]),
            names_of(brokers, broker[order]),
            pa.array(queue_id[order], pa.int32()),
            ACTIONS.take(pa.array(side[order])),
            names_of(clients, client[order]),
        ],
        fields=list(DIFFERENCE.value_type),
    )
    firsts = pointers(np.bincount(row[order], minlength=len(before)))
    return pa.ListArray.from_arrays(
        pa.array(firsts, pa.int32()), structs, type=DIFFERENCE, mask=pa.array(~reasons.none)
    )


def _holdings(name: str, column: pa.Array, reasons: Reasons) -> tuple[Any, ...]:
    """Return the topic, broker name, queue id, row and client id of each holding."""
    queues = QueueLists.read(name, column, reasons, ALLOCATION)
    held = pc.struct_field(queues.structs, "client_ids")
    reasons.put(queues.row[nulls_of(held)].tolist(), f"{name} contains null client_ids")
    _, names, list_index = elements_of(f"client_ids of {name}", held, TEXTS)
    names = texts_of(f"client_ids of {name}", names)
    reasons.put(
        queues.row[list_index[nulls_of(names)]].tolist(), f"{name} contains a null client id"
    )
    topic, broker_name = (
        array.take(pa.array(list_index)) for array in (queues.topic, queues.broker_name)
    )
    return topic, broker_name, queues.queue_id[list_index], queues.row[list_index], names


_WORDS = ("consumer_type", "consume_from_where", "version")
_SOURCES = {STORED: 0, MAX_OFFSET: 1, RETRY_MAX: 1, TIMESTAMP_SEARCH: 2}
"""Rules whose start is one of the offset arguments, each with that argument."""


def rmq_pull_from_where(
    consumer_type: pa.Array,
    consume_from_where: pa.Array,
    topic: pa.Array,
    stored_offset: pa.Array,
    max_offset: pa.Array,
    timestamp_offset: pa.Array,
    version: pa.Array,
) -> pa.Array:
    """Return `compute_pull_from_where` for every row, as `START`.

    ``offset`` is the offset that the function returns, and ``rule`` the rule that applied, as named
    in ``pull_starts``. If the function raises, ``offset`` is null and ``error`` gives the reason;
    ``rule`` is QUERY_FAILED if upstream throws, and null if an argument is invalid.

    Args:
        consumer_type: PUSH, LITE_PULL or PULL.
        consume_from_where: Names of ``ConsumeFromWhere``.
        topic: The queue's topic.
        stored_offset: -1 for none, -2 for an error; null is an error, because unknown is not none.
        max_offset: Null if the look-up fails.
        timestamp_offset: Null if the look-up fails.
        version: The client's version.

    Raises:
        UsageError: A column has another type.
    """
    words = [
        texts_of(name, column)
        for name, column in zip(_WORDS, (consumer_type, consume_from_where, version), strict=True)
    ]
    topic = texts_of("topic", topic)
    offsets = [
        numbers_of(name, column)
        for name, column in (
            ("stored_offset", stored_offset),
            ("max_offset", max_offset),
            ("timestamp_offset", timestamp_offset),
        )
    ]
    retry = pc.starts_with(topic, RETRY_TOPIC_PREFIX).cast(pa.int64()).fill_null(-1).to_numpy()
    keys = [codes for word in words for codes in encode(word)[1]] + [retry]
    keys += [_alike(offset) for offset in offsets]
    _, firsts, case = np.unique(
        np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True
    )
    starts = [
        _start(*row)
        for row in zip(
            *(column.take(pa.array(firsts)).to_pylist() for column in (*words, topic, *offsets)),
            strict=True,
        )
    ]
    rules, fixed, errors = zip(*starts, strict=True) if starts else ((), (), ())
    case = case.reshape(-1)  # numpy 2.0 returns a column
    case_index = pa.array(case)
    source = np.array([_SOURCES.get(rule, len(offsets)) for rule in rules], np.int64)[case]
    offset = pc.choose(pa.array(source), *offsets, pa.array(fixed, NUMBER).take(case_index))
    return pa.StructArray.from_arrays(
        [pa.array(rules, TEXT).take(case_index), offset, pa.array(errors, TEXT).take(case_index)],
        fields=list(START),
    )


def _alike(offsets: pa.Int64Array) -> Ints:
    """Return keys that are equal if a rule gives two rows the same answer.

    Null, none and error each form a class, and all offsets from 0 on form another; other negative
    values stand for themselves, because messages quote them.
    """
    values = offsets.fill_null(0).to_numpy()
    keys: Ints = np.where(values >= 0, 0, values)
    keys[nulls_of(offsets)] = 1
    return keys


def _start(
    consumer_type: str | None,
    consume_from_where: str | None,
    version: str | None,
    topic: str | None,
    stored_offset: int | None,
    max_offset: int | None,
    timestamp_offset: int | None,
) -> tuple[str | None, int | None, str | None]:
    """Return the rule, the offset and the error for a row."""
    needed: dict[str, Any] = {
        "consumer_type": consumer_type,
        "consume_from_where": consume_from_where,
        "topic": topic,
        "stored_offset": stored_offset,
        "version": version,
    }
    for name, value in needed.items():
        if value is None:
            hint = ", which means unknown; pass -1 for none" if name == "stored_offset" else ""
            return None, None, f"{name} is null{hint}"
    try:
        rule, offset = start_rule(
            **needed, max_offset=max_offset, timestamp_offset=timestamp_offset
        )
    except StartOffsetError as error:
        return QUERY_FAILED, None, str(error)
    except UsageError as error:
        return None, None, str(error)
    return rule, offset, None
