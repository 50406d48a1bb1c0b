"""The offset at which a group's first pop of a queue starts (rocketmq.md §2.8).

Upstream: ``PopMessageProcessor.getPopOffset`` and ``getInitOffset`` in the broker. The client sends
``ConsumeInitMode`` MIN for CONSUME_FROM_FIRST_OFFSET and MAX otherwise (``RebalancePushImpl``); a
proxy always sends MAX (``ReceiveMessageActivity``).
"""

from rebalance_core.model.group_settings import PROXY_REBALANCE
from rebalance_core.model.versions import Version, parse_version
from rebalance_core.protocol.start_offset import FIRST_OFFSET, STORED

POP_MIN = "POP_MIN"
POP_ZERO = "POP_ZERO"
POP_LAST = "POP_LAST"
POP_RULES = (STORED, POP_MIN, POP_ZERO, POP_LAST)
"""What determines a start: the values of ``pop_starts.rule``."""

POPS_FROM_MEMORY = (5, 1, 4)
"""ISSUE #7117: with MAX, a queue whose entry 0 is in memory starts at 0."""


def pops_from_min(rebalance_mode: str, consume_from_where: str) -> bool:
    """Return whether a member's pops carry ``ConsumeInitMode.MIN``.

    >>> pops_from_min("BROKER", FIRST_OFFSET), pops_from_min("PROXY", FIRST_OFFSET)
    (True, False)
    """
    return rebalance_mode != PROXY_REBALANCE and consume_from_where == FIRST_OFFSET


def first_pop_offset(
    *,
    from_min: bool,
    min_offset: int,
    max_offset: int,
    head_cached: bool | None,
    version: str | Version,
) -> tuple[str, int]:
    """Return the rule and the offset of the first pop of a queue without a commit.

    Args:
        from_min: whether the pop carries ``ConsumeInitMode.MIN``.
        min_offset: the minimum offset of the queue.
        max_offset: the maximum offset of the queue, one past its last message.
        head_cached: whether entry 0 is in memory; None means unknown and is taken as True.
        version: the broker's version; its ``initPopOffsetByCheckMsgInMem`` is assumed to be true,
            which is the default.

    >>> queue = dict(from_min=False, min_offset=0, max_offset=9, head_cached=None)
    >>> first_pop_offset(**queue, version="5.1.3"), first_pop_offset(**queue, version="5.1.4")
    (('POP_LAST', 8), ('POP_ZERO', 0))
    """
    if from_min:
        return POP_MIN, min_offset
    in_memory = min_offset <= 0 < max_offset and head_cached is not False
    if in_memory and parse_version(str(version)) >= POPS_FROM_MEMORY:
        return POP_ZERO, 0
    return POP_LAST, last_message(max_offset)


def last_message(max_offset: int) -> int:
    """Return the offset of the last message in a queue; 0 if it has none."""
    return max(0, max_offset - 1)
