"""Scenarios: named edits of a recorded history, read from TOML, applied to its rows.

`file` reads them, `scenario` applies them: edits of brokers and topics to a `ClusterLife`, all
others to one `GroupLife` after another; each is a `cluster_life.Timeline` of recorded
rows. The kinds of edits are in `cluster_edits`, `member_edits` and `deploys`. What is left to
chance follows from the seed alone.

May import: `contracts`, `model`, `protocol`, `strategies`, `synthetic`, other modules of
`planning`. Begin with `scenario`.
"""
