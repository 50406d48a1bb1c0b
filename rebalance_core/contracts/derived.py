"""Columns derived from other columns of their row: declared once and computed by both engines.

`replay` computes them from the values of a row, `kernels` from Arrow arrays. Declarations are sent
to Spark's tasks, so both are module-level functions. A column whose null has its own meaning is not
derived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Derived:
    """The derivation of a column from others of its row.

    Attributes:
        of: Their names, in the order in which both functions take them.
        value: From their values in one row.
        array: From their Arrow arrays.
    """

    of: tuple[str, ...]
    value: Callable[..., Any]
    array: Callable[..., pa.Array]


def ratio(above: str, below: str) -> Derived:
    """Return the derivation of a quotient, which is null where ``below`` is null or 0.

    >>> ratio("moved", "minimum_moves").value(3, 2), ratio("moved", "minimum_moves").value(3, 0)
    (1.5, None)
    """
    return Derived((above, below), _quotient, _quotients)


def _quotient(above: int | None, below: int | None) -> float | None:
    return above / below if above is not None and below else None


def _quotients(above: pa.Array, below: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pc.if_else(pc.equal(below, 0), None, below)
    return pc.divide(above.cast(pa.float64()), whole.cast(pa.float64()))


def none_of(*counts: str) -> Derived:
    """Return the derivation of a flag that is true if all these counts are 0.

    >>> none_of("queues", "shared_queues").value(0, 1)
    False
    """
    return Derived(counts, _is_zero, _all_zero)


def _is_zero(*counts: int) -> bool:
    return not any(counts)


def _all_zero(*counts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    all_zero = pc.equal(counts[0], 0)
    for count in counts[1:]:
        all_zero = pc.and_(all_zero, pc.equal(count, 0))
    return all_zero
