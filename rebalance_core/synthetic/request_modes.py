"""Groups that share topics: those that pop through the brokers, and those behind proxies."""

from dataclasses import replace

from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    PROXY_REBALANCE,
    PUSH,
    GroupSettings,
)
from rebalance_core.model.request_mode import PULL_MODE, RequestMode
from rebalance_core.model.times import DAY_MS, HOUR_MS
from rebalance_core.synthetic.draws import Draws, Mix

PROXY_CHANCE = 0.03  # share of push groups on 5.x
POP_CHANCE = 0.5  # share of groups that ask the brokers
SHARE_QUEUE_NUM: Mix[int] = ((-1, 6), (0, 1), (1, 2), (2, 1))
SWITCH_CHANCE = 0.4  # share of groups that pop; their mode is set during the trace
BACK_CHANCE = 0.3  # share of those; it is reset some hours later
FIRST_DAYS_MS = 3 * DAY_MS

QueueModes = tuple[tuple[int, RequestMode], ...]
"""The times in milliseconds from the start at which request modes are set for all topics of a
group.
"""


def behind_proxy(draws: Draws, settings: GroupSettings) -> GroupSettings:
    """Return the settings, changed for groups behind a proxy."""
    chosen = draws.chance(PROXY_CHANCE)
    fits = settings.consumer_type == PUSH and settings.message_model != BROADCASTING
    if chosen and fits and not settings.client_version.startswith("4"):
        return replace(settings, rebalance_mode=PROXY_REBALANCE, strategy="AVG")
    return settings


def request_modes(draws: Draws, settings: GroupSettings) -> QueueModes:
    """Return the modes of a group that pops; empty for all others."""
    pops, share = draws.chance(POP_CHANCE), draws.mixed(SHARE_QUEUE_NUM)
    switched, back = draws.chance(SWITCH_CHANCE), draws.chance(BACK_CHANCE)
    at_ms = draws.between(1, FIRST_DAYS_MS)
    back_ms = at_ms + draws.between(1, 12) * HOUR_MS
    if not pops or settings.rebalance_mode != BROKER_REBALANCE:
        return ()
    if not switched:
        return ((0, RequestMode(share)),)
    set_to_pop = (at_ms, RequestMode(share))
    return (set_to_pop, (back_ms, PULL_MODE)) if back else (set_to_pop,)
