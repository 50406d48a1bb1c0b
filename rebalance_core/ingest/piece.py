"""A statement from a file, addressed to the module that combines it with others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

Kind = TypeVar("Kind", covariant=True)
Values = TypeVar("Values", covariant=True)


@dataclass(slots=True)
class Piece(Generic[Kind, Values]):
    """An addressed statement; a plain value, so that it can be sent between machines.

    It is never changed, but not frozen: a frozen one takes four times as long to make.

    Attributes:
        part: CLUSTER, GROUP, TOPIC or COMMIT, which determines where it is combined with others.
        key: the group or topic; empty for the cluster.
        kind: the kind of the fact.
        at_ms: when it was true; None for an unknown time, taken as the end of the collection.
        place: the broker, client or name server whose file states it.
        position: increases with the place in a file and from one file of a log to the next; orders
            pieces with the same time.
        source: ``file:line``.
        values: the fact's fields.
    """

    part: str
    key: str
    kind: Kind
    at_ms: int | None
    place: str
    position: int
    source: str
    values: Values


AnyPiece = TypeVar("AnyPiece", bound="Piece[str, Mapping[str, object]]")


def with_values(piece: AnyPiece, values: Mapping[str, object]) -> AnyPiece:
    """Return the piece with some of its fields replaced."""
    return replace(piece, values=cast("Any", {**piece.values, **values}))


def moved(piece: AnyPiece, fields: Iterable[str], by_ms: int) -> AnyPiece:
    """Return the piece with the times in these fields shifted; missing times stay missing."""
    times = ((name, piece.values.get(name)) for name in fields)
    return with_values(piece, {n: ms + by_ms for n, ms in times if isinstance(ms, int) and ms})
