"""Statuses of epochs and of first pulls, as the ledger's columns `status` have them."""

from typing import Final

SETTLED: Final = "SETTLED"
FROZEN: Final = "FROZEN"
EMPTY: Final = "EMPTY"
EPOCH_STATUSES = (SETTLED, FROZEN, EMPTY)

OK: Final = "OK"
FAILED: Final = "FAILED"
UNKNOWN: Final = "UNKNOWN"
START_STATUSES = (OK, FAILED, UNKNOWN)
