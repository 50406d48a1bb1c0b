"""Statuses of a collection's files."""

READ, STATES_NOTHING, NOT_UNDERSTOOD, REFUSED = (
    "READ",
    "STATES_NOTHING",
    "NOT_UNDERSTOOD",
    "REFUSED",
)
FILE_STATUSES = {
    NOT_UNDERSTOOD: "not part of the layout, or nothing in it was understood",
    REFUSED: "not read, for the stated reason",
    READ: "read; only in part if a reason is stated",
    STATES_NOTHING: "known to add nothing",
}
"""The statuses of files, those that need attention first."""
