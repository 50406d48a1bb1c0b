"""Reasons why a client stops pulling a queue until it has finished messages in its cache."""

from typing import Final

COUNT: Final = "COUNT"
"""It has pullThresholdForQueue messages of the queue in its cache."""
SIZE: Final = "SIZE"
"""It has pullThresholdSizeForQueue MiB of the queue in its cache."""
SPAN: Final = "SPAN"
"""Offsets in its cache are consumeConcurrentlyMaxSpan apart: the first is not finished."""
FLOW_CONTROLS = (COUNT, SIZE, SPAN)
