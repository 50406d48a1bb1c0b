"""Reasons why a pass does not take over a queue that the allocation gives the client
(``RebalanceImpl.updateProcessQueueTableInRebalance``).
"""

from typing import Final

LOCK_FAILED: Final = "LOCK_FAILED"
"""An orderly member could not lock the queue at its broker."""
NO_OFFSET: Final = "NO_OFFSET"
"""There is no offset to start at."""
OFFSET_FAILED: Final = "OFFSET_FAILED"
"""The query for the start offset failed."""
TOPIC_MISSING: Final = "TOPIC_MISSING"
"""The client knows no route of the topic."""
