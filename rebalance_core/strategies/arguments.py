"""The argument checks all strategies but CONFIG share.

``AbstractAllocateMessageQueueStrategy.check`` (4.9.4 and later; the same checks stand inside each
class before). rocketmq.md §2.1.
"""

from collections.abc import Sequence

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue

# str.isspace() takes these for white space, Character.isWhitespace() does not.
_NOT_JAVA_WHITESPACE = "\x85\xa0\u2007\u202f"


def is_java_blank(text: str) -> bool:
    """``StringUtils.isBlank``."""
    return all(c.isspace() and c not in _NOT_JAVA_WHITESPACE for c in text)


def is_member(
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    *,
    blank_is_empty: bool = False,
) -> bool:
    """True if the client may allocate, False if it is not listed (upstream: an empty list).

    Args:
        client_id: Who asks.
        queues: mqAll.
        client_ids: cidAll.
        blank_is_empty: isBlank instead of isEmpty (MACHINE_ROOM up to 4.9.3, POP).

    Raises:
        AllocationError: An argument is empty; the first of client, queues, members counts.
    """
    if not client_id or (blank_is_empty and is_java_blank(client_id)):
        raise AllocationError("IllegalArgumentException", "currentCID is empty")
    if not queues:
        raise AllocationError("IllegalArgumentException", "mqAll is null or mqAll empty")
    if not client_ids:
        raise AllocationError("IllegalArgumentException", "cidAll is null or cidAll empty")
    return client_id in client_ids


def check_every_member(queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> None:
    """Raises what asking the members one after the other raises first; cost O(members)."""
    if client_ids and not queues:
        is_member(client_ids[0], queues, client_ids)
    if "" in client_ids:
        is_member("", queues, client_ids)
