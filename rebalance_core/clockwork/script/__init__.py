"""What happens to one group, free of any random number: lives, routes, brokers, changes.

Begin with `parts`; `script_of` makes a `Script` of a group's history.
"""

from rebalance_core.clockwork.script.parts import (
    BrokerLife,
    Change,
    Known,
    Life,
    Lockless,
    Moment,
    RouteVersion,
    Script,
    Sighting,
    Stop,
)
from rebalance_core.clockwork.script.script_of import script_of

__all__ = [
    "BrokerLife",
    "Change",
    "Known",
    "Life",
    "Lockless",
    "Moment",
    "RouteVersion",
    "Script",
    "Sighting",
    "Stop",
    "script_of",
]
