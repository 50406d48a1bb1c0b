"""Statuses of a collection's files."""

READ, STATES_NOTHING, NOT_UNDERSTOOD, REFUSED = (
    "READ",
    "STATES_NOTHING",
    "NOT_UNDERSTOOD",
    "REFUSED",
)
FILE_STATUSES = {
    NOT_UNDERSTOOD: "no file of the layout, or nothing in it was understood",
    REFUSED: "not read, for the reason beside it",
    READ: "read; in part where a reason stands beside it",
    STATES_NOTHING: "known to add nothing",
}
"""Each file has a status; those to look at come first."""
