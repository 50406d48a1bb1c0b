"""Columns common to rows of several tables, for functions that accept rows of any of them."""

from typing import TypedDict


class NamesQueue(TypedDict):
    """The queue that a row concerns."""

    topic: str
    broker_name: str
    queue_id: int


class Covers(TypedDict):
    """The epochs to which a row applies."""

    from_epoch: int
    to_epoch: int | None


class Stretch(Covers):
    """The same, with the time."""

    from_ms: int
    to_ms: int | None


class Holding(NamesQueue):
    """A period in which a client held a queue, from the ledger or from dumps."""

    client_id: str | None
    holders: int
    from_ms: int
    to_ms: int | None


class Dumped(TypedDict):
    """The moment at which a dump showed something."""

    observed_ms: int
