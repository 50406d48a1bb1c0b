"""Arrays of times, and the periods of the timers of a client."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.options import MS_US, SECOND_US
from rebalance_core.model.timers import HEARTBEAT_MS, LOCK_RENEWAL_MS, ROUTE_POLL_MS

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
SHORTEST_SILENCE_US = 90 * SECOND_US
"""From a host's loss until name servers notice: a registration up to 30 s old expires in 120 s."""
SILENCE_SPREAD_US = 35 * SECOND_US
"""The age of that registration, and up to 5 s until the name server's scan."""
FIRST_LOCK_RENEWAL_US = 1 * SECOND_US
"""ConsumeMessageOrderlyService.start: initial delay of lockMQPeriodically."""
