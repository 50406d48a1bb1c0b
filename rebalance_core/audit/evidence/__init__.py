"""What several rules derive from a group's rows: backlog, duplicate ids, persistence, causes.

May import: what `audit` may, and `audit.case`; never `audit.rules` or `audit.comparison`.
Begin with `persistence`, which says what counts as lasting, and `causes`, which says what explains
it.
"""
