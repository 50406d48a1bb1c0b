"""Arrays of times, and the periods of the timers of a client."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.options import MS_US, SECOND_US
from rebalance_core.model.times import HEARTBEAT_MS, LOCK_RENEWAL_MS, ROUTE_POLL_MS

Times = NDArray[np.int64]

NEVER = np.iinfo(np.int64).max // 2
"""Later than everything."""
BEFORE_ALL = -NEVER
"""From before the log."""

POLL_US = ROUTE_POLL_MS * MS_US
HEARTBEAT_US = HEARTBEAT_MS * MS_US
LOCK_RENEWAL_US = LOCK_RENEWAL_MS * MS_US
FIRST_POLL_US = 10 * MS_US
"""MQClientInstance.startScheduledTask: initial delay of the route poll."""
FIRST_HEARTBEAT_US = 1 * SECOND_US
"""MQClientInstance.startScheduledTask: initial delay of the heartbeat."""
FIRST_LOCK_RENEWAL_US = 1 * SECOND_US
"""ConsumeMessageOrderlyService.start: initial delay of lockMQPeriodically."""
