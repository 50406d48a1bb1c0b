"""Where each new owner starts to read: the rows of `pull_starts`, with bounds."""
