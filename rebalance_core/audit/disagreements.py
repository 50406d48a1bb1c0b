"""Where an observation disagrees with the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rebalance_core.audit.difference import Difference
from rebalance_core.audit.observations import ClientObservation, Observation, address_of
from rebalance_core.audit.prediction import Prediction


def disagreements(observation: Observation, prediction: Prediction) -> Iterator[Difference]:
    """Where the observation disagrees with the ledger; queues unknown to the ledger included."""
    if isinstance(observation, ClientObservation):
        yield from _of_client(observation, prediction)
        return
    owners = prediction.owners(observation.queue, observation.at_ms)
    if not observation.address and not owners:
        return
    if prediction.is_deleted(observation.queue.topic, observation.at_ms):
        return
    topic, at_ms = observation.queue.topic, observation.at_ms
    others = (
        prediction.owners(observation.queue, ms) for ms in prediction.other_moments(topic, at_ms)
    )
    if any(_is_held_by(observation.address, right) for right in (owners, *others)):
        return
    asked = min(owners, default=None)
    yield Difference(
        observation.queue,
        owners,
        observation.address or None,
        asked,
        observation.at_ms,
        observation.source,
        unheld=not observation.address,
    )


def _is_held_by(address: str, owners: frozenset[str]) -> bool:
    """True if the address is that of an owner; none is that of a queue without an owner."""
    return address in {address_of(owner) for owner in owners} or not (address or owners)


def _of_client(one: ClientObservation, prediction: Prediction) -> Iterator[Difference]:
    """Queues that the client holds or pops and should not, or the other way round."""
    wrong = prediction.held(one.client_id, one.at_ms) ^ one.held
    shared = prediction.popped(one.client_id, one.at_ms) ^ one.popped
    for queue in sorted(wrong | shared):
        moments = prediction.other_moments(queue.topic, one.at_ms)
        if any(
            (queue in one.held) == (queue in prediction.held(one.client_id, ms)) for ms in moments
        ):
            continue
        if prediction.is_deleted(queue.topic, one.at_ms):
            continue
        owners = prediction.owners(queue, one.at_ms) | prediction.takers(queue, one.at_ms)
        holder = one.client_id if queue in one.held | one.popped else None
        note = ""
        if queue in wrong and queue in shared:
            note = "it is pulled, not popped" if queue in one.held else "it is popped, not pulled"
        yield Difference(queue, owners, holder, one.client_id, one.at_ms, one.source, note=note)


def let_go(one: Difference, unreadable: Mapping[str, int], go: set[str]) -> bool:
    """Return whether Go clients alone should hold the queue, of a topic without a readable queue:
    they give it up, the ledger follows Java's.
    """
    since_ms = unreadable.get(one.queue.topic)
    late = since_ms is not None and since_ms <= one.at_ms
    return late and one.live is None and bool(one.predicted) and one.predicted <= go
