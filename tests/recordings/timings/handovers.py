"""Owners of a queue one after the other, as ``handover.csv`` of `timing` pairs them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.recordings.timings.actions import Action
from tests.recordings.truth import Queue


@dataclass(frozen=True)
class HandOver:
    """One owner gives a queue up, another takes it.

    Attributes:
        queue: (topic, broker, queue id).
        from_client: None if nobody owned it before.
        to_client: None if nobody took it before the window ended.
        drop_ms: when it was given up; None without `from_client`, or if both still own it.
        add_ms: when it was taken; None without `to_client`.
    """

    queue: Queue
    from_client: str | None
    to_client: str | None
    drop_ms: int | None
    add_ms: int | None

    @property
    def gap_ms(self) -> int | None:
        """Time without an owner; negative: with two."""
        if self.drop_ms is None or self.add_ms is None:
            return None
        return self.add_ms - self.drop_ms


def hand_overs(actions: Iterable[Action], begin_ms: int, until_ms: int) -> Iterator[HandOver]:
    """The hand-overs of one queue in a window.

    Where several own it, who gives it up hands over to the owner who took it last, and they both
    owned it from the later one's taking on.

    Args:
        actions: on that queue in order of time, from before the window on.
        begin_ms: of the window.
        until_ms: its end, exclusive.
    """
    owners: dict[str, int] = {}
    ownerless: list[tuple[int, str]] = []
    doubled: dict[str, int] = {}
    queue: Queue = ("", "", 0)
    for one in actions:
        if one.at_ms >= until_ms:
            break
        queue, inside = one.queue, one.at_ms >= begin_ms
        if one.added:
            if ownerless:
                drop_ms, client = ownerless.pop(0)
                yield HandOver(queue, client, one.client, drop_ms, one.at_ms)
            elif owners and inside:
                doubled[one.client] = one.at_ms
            elif inside:
                yield HandOver(queue, None, one.client, None, one.at_ms)
            owners[one.client] = one.at_ms
            continue
        since = owners.pop(one.client)
        if owners:
            heir = max(owners, key=owners.__getitem__)
            doubled.pop(one.client, None)
            doubled.pop(heir, None)
            if inside:
                add_ms = max(since, owners[heir])
                yield HandOver(queue, one.client, heir, one.at_ms, add_ms)
        elif inside:
            ownerless.append((one.at_ms, one.client))
    for drop_ms, client in ownerless:
        yield HandOver(queue, client, None, drop_ms, None)
    for client, add_ms in doubled.items():
        others = [name for name in owners if name != client]
        yield HandOver(queue, others[0] if others else None, client, None, add_ms)
