"""What `explain` answers of a queue that members share: plain values, as in ``explain.answer``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_core.explain.reason import Reason


@dataclass(frozen=True, slots=True)
class Taker:
    """A client that may take messages from the queue, and why."""

    client_id: str
    processes: int
    index: int | None
    """Its first place in cidAll."""
    entries: tuple[str, ...]
    """The rows of pop_reach that say so: the queue, its whole broker (-1), or some of its queues.
    """
    reason: Reason
    pulls: bool
    """It pulls what others pop."""
    from_epoch: int
    from_ms: int
    """Since when it reaches the queue; of several rows the oldest."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How members share a topic, and who may take from one queue of it."""

    since_epoch: int
    since_ms: int
    """Since when members share the topic without a break."""
    pops: bool
    """Members ask a broker, whose mode for the topic is POP."""
    behind_proxy: bool
    """Members behind a proxy reach it."""
    share_queue_num: int | None
    """Worked out again; None: several fit, or nobody pops."""
    share_queue_nums: str | None
    """The share numbers that fit, in words."""
    strategies: tuple[str, ...]
    """Of the members."""
    figures: Mapping[str, int]
    """The row of pop_metrics, without its keys."""
    mq_all_known: bool
    """The ledger's rows leave one list of readable queues possible; else mq_all is empty."""
    mode_known: bool
    """False: the rows of those who ask a broker fit POP and PULL alike, or too much is open."""
    takers_before: tuple[str, ...] | None
    """Who reached or held the queue in the epoch before; None: there is none."""
    takers: tuple[Taker, ...]
    differs: tuple[str, ...]
    """Clients of which the rows are not as worked out again."""
