"""AVG, AVG_BY_CIRCLE and CONFIG as plain Spark expressions, which are preferred to pandas UDFs.

The results equal those of `kernels.functions.rmq_allocate`. Names are sorted by UTF-16 code units
as in Java, while Spark itself orders strings by UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as sf

from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.averagely_by_circle import AveragelyByCircle
from rebalance_core.strategies.config import Config
from rebalance_core.strategies.parameters import JAVA_INT_MAX
from rebalance_core.strategies.spi import AllocationStrategy

_NAMES = "array<string>"
Number = Column
Rule = Callable[[Number, Number, Number], Number]
"""Maps the index of a queue, the number of queues and the number of members to the index of the
member.
"""


def allocation_column(
    strategy: AllocationStrategy, queues: Column, client_ids: Column
) -> Column | None:
    """Return the owners of every queue, or None if the strategy has no plain expression.

    Args:
        strategy: The strategy of all rows.
        queues: As in `functions.rmq_allocate`.
        client_ids: As in `functions.rmq_allocate`.
    """
    known = _known(queues, client_ids)
    if isinstance(strategy, Config):
        listed = strategy.queues or ()
        if any(not 0 <= queue.queue_id <= JAVA_INT_MAX for queue in listed):
            return None
        group = sf.struct(
            sf.array_distinct(_sorted(queues)).alias("queues"),
            sf.array_distinct(_in_order(client_ids)).alias("ids"),
        )
        owners = sf.transform(sf.array(group), lambda group: _of_list(group, listed))
    elif isinstance(strategy, Averagely | AveragelyByCircle):
        rule = _average_index if isinstance(strategy, Averagely) else _circle_index
        # upstream throws for an empty id and without queues
        known &= (sf.size(client_ids) == 0) | (
            (sf.size(queues) > 0) & ~sf.array_contains(client_ids, "")
        )
        group = sf.struct(
            _sorted(queues).alias("queues"),
            _first_entries(_in_order(client_ids)).alias("ids"),
            sf.size(queues).alias("count"),
            # at least 1, because a division by 0 fails even if its result is not used
            sf.greatest(sf.size(client_ids), sf.lit(1)).alias("members"),
        )
        owners = sf.transform(sf.array(group), lambda group: _by_place(group, rule))
    else:
        return None
    return sf.when(known, sf.get(owners, sf.lit(0))).alias("rmq_allocate")


def _known(queues: Column, client_ids: Column) -> Column:
    """Return whether both lists are complete: neither is null, contains a null, or has a queue id
    beyond Java's int.
    """

    def valid(queue: Column) -> Column:
        number = queue["queue_id"]
        return (
            queue["topic"].isNotNull()
            & queue["broker_name"].isNotNull()
            & sf.coalesce((number >= 0) & (number <= JAVA_INT_MAX), sf.lit(False))
        )

    all_known = sf.forall(queues, valid) & sf.forall(client_ids, lambda name: name.isNotNull())
    return sf.coalesce(all_known, sf.lit(False))


def _key(name: Column) -> Column:
    return sf.encode(name, "UTF-16BE")


def _sorted(queues: Column) -> Column:
    """Return the queues in RocketMQ's order."""
    keyed = sf.transform(
        queues,
        lambda queue: sf.struct(
            _key(queue["topic"]),
            _key(queue["broker_name"]),
            # rows with other numbers get no result, whatever is computed for them
            sf.when(queue["queue_id"] <= JAVA_INT_MAX, queue["queue_id"])
            .cast("int")
            .alias("queue_id"),
            queue["topic"].alias("topic"),
            queue["broker_name"].alias("broker_name"),
        ),
    )
    return sf.transform(
        sf.sort_array(keyed),
        lambda queue: sf.struct(queue["topic"], queue["broker_name"], queue["queue_id"]),
    )


def _in_order(client_ids: Column) -> Column:
    """Return the ids as Java sorts them."""
    keyed = sf.transform(client_ids, lambda name: sf.struct(_key(name), name.alias("name")))
    return sf.transform(sf.sort_array(keyed), lambda entry: entry["name"])


def _first_entries(ids: Column) -> Column:
    """Return sorted ids with null for each repeat, whose share belongs to no member."""
    return sf.transform(
        sf.array(ids),
        lambda ids: sf.transform(
            ids,
            lambda name, place: sf.when((place == 0) | (sf.get(ids, place - 1) != name), name),
        ),
    )[0]


def _owned(queue: Column, owners: Column) -> Column:
    return sf.struct(
        queue["topic"].alias("topic"),
        queue["broker_name"].alias("broker_name"),
        queue["queue_id"].alias("queue_id"),
        owners.alias("client_ids"),
    )


def _nobody() -> Column:
    return sf.array().cast(_NAMES)


def _whole(number: Column, divisor: Column) -> Column:
    return sf.floor(number / divisor).cast("int")


def _average_index(place: Number, queues: Number, members: Number) -> Number:
    """`strategies.averagely.average_index`, of columns."""
    size, longer = _whole(queues, members), queues % members
    of_longer = longer * (size + 1)
    beyond = longer + _whole(place - of_longer, sf.greatest(size, sf.lit(1)))
    return sf.when(place < of_longer, _whole(place, size + 1)).otherwise(beyond)


def _circle_index(place: Number, queues: Number, members: Number) -> Number:
    """`strategies.averagely_by_circle.circle_index`, of columns."""
    return place % members


def _by_place(group: Column, rule: Rule) -> Column:
    queues, ids, count = group["queues"], group["ids"], group["count"]

    def owner(place: Number) -> Column:
        return sf.get(ids, rule(place, count, group["members"]))

    def of_place(queue: Column, place: Number) -> Column:
        return _owned(queue, sf.array_compact(sf.array(owner(place))))

    def of_repeated(queue: Column) -> Column:
        places = sf.filter(
            sf.sequence(sf.lit(0), count - 1), lambda place: sf.get(queues, place) == queue
        )
        holders = sf.transform(places, owner)
        return _owned(queue, sf.filter(ids, lambda name: sf.array_contains(holders, name)))

    distinct = sf.array_distinct(queues)
    return sf.when(sf.size(distinct) == count, sf.transform(queues, of_place)).otherwise(
        sf.transform(distinct, of_repeated)
    )


def _of_list(group: Column, listed: tuple[MessageQueue, ...]) -> Column:
    """Return CONFIG's allocation, in which every member holds the whole list, including entries
    that are not among the queues.
    """
    distinct, everybody = group["queues"], group["ids"]

    def literal(queue: MessageQueue) -> Column:
        return sf.struct(
            sf.lit(queue.topic).alias("topic"),
            sf.lit(queue.broker_name).alias("broker_name"),
            sf.lit(queue.queue_id).alias("queue_id"),
        )

    if not listed:
        return sf.transform(distinct, lambda queue: _owned(queue, _nobody()))
    of_list = sf.array(*map(literal, sort_queues({*listed})))
    own = sf.transform(
        distinct,
        lambda queue: _owned(
            queue, sf.when(sf.array_contains(of_list, queue), everybody).otherwise(_nobody())
        ),
    )
    others = sf.transform(
        sf.filter(of_list, lambda queue: ~sf.array_contains(distinct, queue)),
        lambda queue: _owned(queue, everybody),
    )
    return sf.when(sf.size(everybody) == 0, own).otherwise(sf.concat(own, others))
