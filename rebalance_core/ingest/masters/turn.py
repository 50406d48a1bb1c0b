"""One turn of a broker's master."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MasterTurn:
    """A master went, or is back.

    Attributes:
        broker_name: its broker.
        at_ms: when, epoch ms UTC.
        is_down: it went.
        source: ``file:line`` that tells it.
        mode: of a loss: what the slaves do, one of `MASTER_MODES`; None: not known.
    """

    broker_name: str
    at_ms: int
    is_down: bool
    source: str
    mode: str | None = None
