"""Start offsets of new owners: the rows of `pull_starts`, with bounds."""
