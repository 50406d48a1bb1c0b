"""From a topic's route to the queues that producers and consumers see (rocketmq.md §6.3)."""
