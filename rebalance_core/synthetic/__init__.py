"""Generates synthetic fleets from a seed: brokers, topics and consumer groups over days, as input
tables.

Begin with `fleet`, then `table_parts`; docs/trace-format.md explains what is random and how. May
import `model`, `contracts`, `strategies`, `protocol` and `client`; numpy and pyarrow.
"""
