"""The settings of a run: `conf/rebalance.toml`, ``--config`` files and ``--set``, checked.

May import `model`, `strategies`, `synthetic` and, for the section ``[assume]``, `ingest`. Begin
with `settings`.
"""
