"""The vocabulary everything else speaks: queues, orderings, versions, timers, settings, errors. Standard library only."""
