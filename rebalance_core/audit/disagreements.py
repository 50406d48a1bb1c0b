"""Finds disagreements between observations and the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rebalance_core.audit.difference import Difference
from rebalance_core.audit.observations import ClientObservation, Observation, address_of
from rebalance_core.audit.prediction import Prediction


def disagreements(
    observation: Observation, prediction: Prediction, views: Sequence[int] = ()
) -> Iterator[Difference]:
    """Yield the queues whose holder fits no state of the ledger that is possible at that time.

    Queues that the ledger does not know are included.

    Args:
        observation: the observation of a client or a queue.
        prediction: the ledger.
        views: moments whose members and routes a member may believe current at that time
            (`Prediction.views`). Each member allocates by its own view, and a queue has no holder
            while it changes hands.
    """
    if isinstance(observation, ClientObservation):
        yield from _of_client(observation, prediction, views)
        return
    queue, at_ms = observation.queue, observation.at_ms
    owners = prediction.owners(queue, at_ms)
    if not observation.address and not owners:
        return
    if prediction.is_deleted(queue.topic, at_ms):
        return
    if _is_held_by(observation.address, owners):
        return
    by_view = [prediction.owners(queue, ms) for ms in views]
    others = [prediction.owners(queue, ms) for ms in prediction.before_freeze(queue.topic, at_ms)]
    if any(_is_held_by(observation.address, right) for right in (*by_view, *others)):
        return
    if not observation.address and len(set(by_view)) > 1:
        return
    asked = min(owners, default=None)
    yield Difference(
        queue,
        owners,
        observation.address or None,
        asked,
        at_ms,
        observation.source,
        unheld=not observation.address,
    )


def _is_held_by(address: str, owners: frozenset[str]) -> bool:
    """Return True if the address is an owner's, or if both address and owner are missing."""
    return address in {address_of(owner) for owner in owners} or not (address or owners)


def _of_client(
    client: ClientObservation, prediction: Prediction, views: Sequence[int]
) -> Iterator[Difference]:
    """Yield the queues that the client wrongly holds or pops, or wrongly fails to."""
    wrong = prediction.held(client.client_id, client.at_ms) ^ client.held
    shared = prediction.popped(client.client_id, client.at_ms) ^ client.popped
    by_view = [
        (prediction.held(client.client_id, ms), prediction.popped(client.client_id, ms))
        for ms in views
    ]
    for queue in sorted(wrong | shared):
        holds, pops = queue in client.held, queue in client.popped
        if any(holds == (queue in held) and pops == (queue in popped) for held, popped in by_view):
            continue
        moments = prediction.before_freeze(queue.topic, client.at_ms)
        if any(holds == (queue in prediction.held(client.client_id, ms)) for ms in moments):
            continue
        if prediction.is_deleted(queue.topic, client.at_ms):
            continue
        owners = prediction.owners(queue, client.at_ms) | prediction.takers(queue, client.at_ms)
        holder = client.client_id if queue in client.held | client.popped else None
        note = ""
        if queue in wrong and queue in shared:
            note = (
                "it is pulled, not popped" if queue in client.held else "it is popped, not pulled"
            )
        yield Difference(
            queue, owners, holder, client.client_id, client.at_ms, client.source, note=note
        )


def is_certain(observation: Observation, prediction: Prediction, views: Sequence[int]) -> bool:
    """Return whether all views agree on the owners of the observed queues."""
    if isinstance(observation, ClientObservation):
        client_id = observation.client_id
        held = {(prediction.held(client_id, ms), prediction.popped(client_id, ms)) for ms in views}
        return len(held) < 2
    queue = observation.queue
    return len({(prediction.owners(queue, ms), prediction.takers(queue, ms)) for ms in views}) < 2


def let_go(difference: Difference, unreadable: Mapping[str, int], go: set[str]) -> bool:
    """Return True if only Go clients should hold the queue, whose topic has no readable queue; they
    give it up, whereas the ledger, following Java clients, keeps it.
    """
    since_ms = unreadable.get(difference.queue.topic)
    late = since_ms is not None and since_ms <= difference.at_ms
    return (
        late
        and difference.live is None
        and bool(difference.predicted)
        and difference.predicted <= go
    )
