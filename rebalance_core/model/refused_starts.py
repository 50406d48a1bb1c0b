"""Reasons why a pass does not take a queue that is allocated to the client
(``RebalanceImpl.updateProcessQueueTableInRebalance``).
"""

from typing import Final

LOCK_FAILED: Final = "LOCK_FAILED"
"""An orderly member could not lock the queue at its broker."""
NO_OFFSET: Final = "NO_OFFSET"
"""There is no start offset; a Go client logs the same if the query for it failed."""
OFFSET_FAILED: Final = "OFFSET_FAILED"
"""The query for the start offset failed."""
TOPIC_MISSING: Final = "TOPIC_MISSING"
"""The client has no route for the topic."""
