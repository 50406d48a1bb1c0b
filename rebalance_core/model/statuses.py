"""Words of results: statuses of epochs and of first pulls, severities of findings."""

from typing import Final

# Severities of findings.

INFO: Final = "INFO"
WARNING: Final = "WARNING"
ERROR: Final = "ERROR"
SEVERITIES = (INFO, WARNING, ERROR)
"""From the least to the worst."""
WORST_FIRST = SEVERITIES[::-1]


# Statuses of epochs and of first pulls, as the ledger's columns `status` have them.

SETTLED: Final = "SETTLED"
FROZEN: Final = "FROZEN"
EMPTY: Final = "EMPTY"
EPOCH_STATUSES = (SETTLED, FROZEN, EMPTY)

OK: Final = "OK"
FAILED: Final = "FAILED"
UNKNOWN: Final = "UNKNOWN"
START_STATUSES = (OK, FAILED, UNKNOWN)
