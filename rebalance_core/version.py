"""The version of the code; the version of the tables is in `rebalance_core.contracts`."""

LIBRARY_VERSION = "0.1.0"
