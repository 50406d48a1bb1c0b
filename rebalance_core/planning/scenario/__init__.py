"""Scenarios: named edits of a recorded history, read from TOML, applied to its rows.

``file`` reads, ``scenario`` applies: edits of brokers and topics to a ``cluster``, all others to
one ``group`` after another, each a ``timeline`` of recorded rows. The kinds of edits are in
``edits``. What is left to chance follows from the seed alone.

May import: `contracts`, `model`, `protocol`, `strategies`, `synthetic`, other modules of
`planning`. Begin with `scenario`.
"""
