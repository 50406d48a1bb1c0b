"""Invariants among an epoch's rows about topics that members share."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from rebalance_core.model.verdicts import SETTLED
from rebalance_core.replay.epoch_invariants import Instant, Row
from rebalance_core.strategies.pop import WHOLE_BROKER


def sharing_errors(instant: Instant) -> Iterator[str]:
    """Yield one sentence for each contradiction about this epoch's shared topics."""
    for check in (
        _topic_errors,
        _reach_errors,
        _pop_metric_errors,
        _exact_errors,
        _shared_load_errors,
    ):
        yield from check(instant)


def _topic_errors(instant: Instant) -> Iterator[str]:
    """Check that a topic is either shared, with rows in pop_metrics, or has owners."""
    shared = {row["topic"] for row in instant.pop_metrics}
    owned = {queue.topic for queue in instant.holders}
    measured = {row["topic"] for row in instant.metrics}
    reached = {row["topic"] for row in instant.reach}
    for topic in sorted(shared & (owned | measured)):
        yield f"topic {topic!r} is shared, but ownership or group_metrics has rows for it"
    for topic in sorted(reached - shared):
        yield f"pop_reach has topic {topic!r}, which is not shared"
    queues = sum(row["queues"] for row in instant.pop_metrics)
    if instant.epoch["pop_queues"] != queues:
        yield f"pop_queues is {instant.epoch['pop_queues']}; pop_metrics has {queues}"


def _reach_errors(instant: Instant) -> Iterator[str]:
    """Check that the clients in pop_reach are members, and reach either all queues of a broker or
    individual ones.
    """
    ids: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for row in instant.reach:
        ids[row["client_id"], row["topic"], row["broker_name"]].add(row["queue_id"])
        if row["client_id"] not in instant.processes:
            yield f"pop_reach: {row['client_id']!r} is not a member"
    for (client_id, topic, broker), of_broker in ids.items():
        if WHOLE_BROKER in of_broker and len(of_broker) > 1:
            yield (
                f"pop_reach: {client_id!r} has both all and single queues of {topic!r} on "
                f"{broker!r}"
            )


def _pop_metric_errors(instant: Instant) -> Iterator[str]:
    """Check the figures of a topic that do not depend on which queues are readable."""
    for row in instant.pop_metrics:
        subscribers = {
            m["client_id"] for m in instant.members if row["topic"] in (m["subscriptions"] or ())
        }
        clients = [row[f"{end}_clients_per_queue"] for end in ("min", "max")]
        queues = [row[f"{end}_queues_per_client"] for end in ("min", "max")]
        if row["clients"] != len(subscribers):
            yield f"pop_metrics: {len(subscribers)} clients subscribe, unlike {dict(row)}"
        if not 0 <= clients[0] <= clients[1] <= len(instant.processes):
            yield f"pop_metrics: clients per queue out of range in {dict(row)}"
        if not 0 <= queues[0] <= queues[1] <= row["queues"]:
            yield f"pop_metrics: queues per client out of range in {dict(row)}"
        if not 0 <= row["unreached"] <= row["queues"] or (
            row["queues"] > 0
            and ((row["unreached"] > 0) != (clients[0] == 0))
            | ((row["unreached"] == row["queues"]) != (clients[1] == 0))
        ):
            yield f"pop_metrics: unreached contradicts the clients per queue in {dict(row)}"


def _exact_errors(instant: Instant) -> Iterator[str]:
    """Check the figures of topics whose entries are all readable queues against those entries."""
    if instant.epoch["status"] != SETTLED or any(
        row["suspended"] or row["strategy"].startswith("CONFIG") for row in instant.members
    ):
        return
    for row in instant.pop_metrics:
        reach = [entry for entry in instant.reach if entry["topic"] == row["topic"]]
        if any(entry["queue_id"] == WHOLE_BROKER for entry in reach):
            continue
        clients = Counter((entry["broker_name"], entry["queue_id"]) for entry in reach)
        queues = Counter(entry["client_id"] for entry in reach)
        expected = {
            "max_clients_per_queue": max(clients.values(), default=0),
            "max_queues_per_client": max(queues.values(), default=0),
            "unreached": row["queues"] - len(clients),
        }
        for column, value in expected.items():
            if row[column] != value:
                yield f"pop_metrics: {column} should be {value} by pop_reach in {dict(row)}"


def _shared_load_errors(instant: Instant) -> Iterator[str]:
    """Check that a load has no more shared queues than its client's entries represent."""
    readable: Counter[str] = Counter({row["topic"]: row["queues"] for row in instant.pop_metrics})
    entries: dict[str, list[Row]] = defaultdict(list)
    for row in instant.reach:
        entries[row["client_id"]].append(row)
    for row in instant.loads:
        mine = entries[row["client_id"]]
        whole = {entry["topic"] for entry in mine if entry["queue_id"] == WHOLE_BROKER}
        single = Counter(entry["topic"] for entry in mine if entry["topic"] not in whole)
        most = sum(readable[topic] for topic in whole) + single.total()
        if not 0 <= row["shared_queues"] <= most:
            shared = row["shared_queues"]
            yield f"load of {row['client_id']!r}: {shared} shared queues; pop_reach has {most}"
