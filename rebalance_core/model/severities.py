"""Severities of findings."""

from typing import Final

INFO: Final = "INFO"
WARNING: Final = "WARNING"
ERROR: Final = "ERROR"
SEVERITIES = (INFO, WARNING, ERROR)
"""From the least to the worst."""
WORST_FIRST = SEVERITIES[::-1]
