"""Scenarios: named edits of a recorded history, read from TOML, applied to its rows.

`file` reads them and `scenario` applies them: edits of brokers and topics to a `ClusterLife`, all
others to each `GroupLife` in turn; both are a `cluster_life.Timeline` of recorded rows. The kinds
of edits are in `cluster_edits`, `member_edits` and `deploys`. All random choices derive from the
seed.

May import: `contracts`, `model`, `protocol`, `strategies`, `synthetic`, other modules of
`planning`. Begin with `scenario`.
"""
