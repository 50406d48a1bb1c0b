"""The ``audit`` entry in ``_run.json``, which only the record of an audit has."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from rebalance_core.model.verdicts import RunVerdict


class AuditRecord(TypedDict):
    """The verdict, and the counts of findings by rule and severity, with accepted ones separate.

    ``night_ms``: when the audited night began; ``logged_ms``: when the brokers' logs end.
    """

    verdict: RunVerdict
    fails: bool
    fail_on: str
    start_ms: int
    end_ms: int
    night_ms: int
    logged_ms: int
    groups: dict[str, int]
    by_dumps: int
    progress: dict[str, int]
    findings: dict[str, dict[str, int]]
    causes: dict[str, int]
    clusters: NotRequired[dict[str, "AuditRecord"]]
    only: NotRequired[Mapping[str, object]]
