"""Synthetic fleets from a seed: brokers, topics, consumer groups and their days, as input tables.

Begin with `fleet`, then `table_parts`; docs/trace-format.md explains what is random, and how. May
import `model`, `contracts`, `strategies`, `protocol` and `client`; numpy and pyarrow.
"""
