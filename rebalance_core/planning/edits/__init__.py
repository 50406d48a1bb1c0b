"""What a scenario can change: one kind of edit a file."""

from rebalance_core.planning.edits.add_consumers import AddConsumers
from rebalance_core.planning.edits.lose_broker import LoseBroker
from rebalance_core.planning.edits.lose_room import LoseRoom
from rebalance_core.planning.edits.mixed_subscriptions import MixedSubscriptions
from rebalance_core.planning.edits.new_topic import NewTopic
from rebalance_core.planning.edits.remove_consumers import RemoveConsumers
from rebalance_core.planning.edits.rolling_restart import RollingRestart
from rebalance_core.planning.edits.scale_queues import ScaleQueues
from rebalance_core.planning.edits.spi import Edit
from rebalance_core.planning.edits.switch_strategy import SwitchStrategy

EDIT_KINDS: dict[str, type[Edit]] = {
    edit.KIND: edit
    for edit in (
        AddConsumers,
        RemoveConsumers,
        RollingRestart,
        LoseBroker,
        ScaleQueues,
        NewTopic,
        SwitchStrategy,
        LoseRoom,
        MixedSubscriptions,
    )
}

__all__ = ["EDIT_KINDS", "Edit"]
