"""Request modes of consumers that query the broker: PULL or POP.

See rocketmq.md §2.8, §14.
"""

import re
from dataclasses import dataclass

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import is_retry_topic

DEFAULT_SHARE_QUEUE_NUM = -1  # BrokerConfig.defaultPopShareQueueNum
_POP = re.compile(r"POP\(share_queue_num=(-?[0-9]{1,10})\)")
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True)
class RequestMode:
    """The mode of a (group, topic), as in ``messageRequestMode.json``.

    Attributes:
        share_queue_num: For POP, how many other members' shares each member also pops; 0 or less
            means all. None for PULL.
    """

    share_queue_num: int | None = None

    @property
    def is_pop(self) -> bool:
        """True for POP, False for PULL."""
        return self.share_queue_num is not None

    def __str__(self) -> str:
        """Return the text that `parse_request_mode` reads."""
        return f"POP(share_queue_num={self.share_queue_num})" if self.is_pop else "PULL"


PULL_MODE = RequestMode()


def parse_request_mode(text: str) -> RequestMode:
    """Parse ``PULL`` or ``POP(share_queue_num=N)``, the detail of a REQUEST_MODE.

    Raises:
        UsageError: The text is neither, or N does not fit into a Java int.

    >>> str(parse_request_mode("POP(share_queue_num=2)")), parse_request_mode("PULL").is_pop
    ('POP(share_queue_num=2)', False)
    """
    if text == "PULL":
        return PULL_MODE
    match = _POP.fullmatch(text)
    if match is None or not _INT_MIN <= int(match[1]) <= _INT_MAX:
        raise UsageError(f"{text!r} is not a request mode; valid: PULL, POP(share_queue_num=N)")
    return RequestMode(int(match[1]))


def can_be_popped(topic: str) -> bool:
    """Return False for retry topics, which clients always pull and for which brokers refuse another
    mode.
    """
    return not is_retry_topic(topic)
