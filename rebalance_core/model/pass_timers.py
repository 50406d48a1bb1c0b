"""Delays one rebalance pass knows; the schedule of passes is the clockwork's."""

# RebalanceImpl.updateProcessQueueTableInRebalance (5.0+): rebalanceLater after a refused lock.
REBALANCE_LATER_MS = 500

# The same method (5.0+): delay of the first pull of every queue just added; 4.9 pulls at once.
FIRST_PULL_DELAY_MS = 500

# RebalanceImpl/RebalancePushImpl.UNLOCK_DELAY_TIME_MILLS (rocketmq.client.unlockDelayTimeMills):
# to 5.1.4 the delay of the unlock while messages are cached, from 5.2 the age of the last lock
# renewal after which a dropped queue is unlocked by force.
UNLOCK_DELAY_MS = 20_000
