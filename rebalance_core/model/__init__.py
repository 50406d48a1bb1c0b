"""The vocabulary of everything else: queues, orderings, versions, events, settings, errors."""
