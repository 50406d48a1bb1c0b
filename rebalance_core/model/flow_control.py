"""Reasons why a client stops pulling a queue until it has finished messages in its cache."""

from typing import Final

COUNT: Final = "COUNT"
"""It has pullThresholdForQueue messages of the queue in its cache."""
SIZE: Final = "SIZE"
"""It has pullThresholdSizeForQueue MiB of the queue in its cache."""
SPAN: Final = "SPAN"
"""The offsets in its cache span consumeConcurrentlyMaxSpan: the first message is unfinished."""
