"""Why figures of a plan mean nothing, in words."""

FROZEN_CAVEAT = "frozen: members keep what they hold"
UNEVEN_CAVEAT = "members broadcast or subscribe differently"
ORPHANED_CAVEAT = "queues without an owner"

LEFT_OUT = "amplification leaves out %d of %d groups (per variant), the means %d of %d steps: %s"
"""Of the league: groups left out, of how many; steps left out, of how many; the caveats."""
BETWEEN_CAVEATS = "; "
