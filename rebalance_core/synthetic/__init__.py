"""Fleets made up from a seed: brokers, topics, consumer groups and their days, as input tables."""
