"""``_run.json`` as its readers know it; `storage.run_folder` checks the fields that they use."""

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
    night_ms: NotRequired[int]
    logged_ms: NotRequired[int]
    groups: dict[str, int]
    by_dumps: int
    progress: dict[str, int]
    findings: dict[str, dict[str, int]]
    causes: dict[str, int]
    clusters: NotRequired[dict[str, "AuditRecord"]]
    only: NotRequired[Mapping[str, object]]


class TableRecord(TypedDict):
    """A table that the run wrote."""

    rows: int
    digest: str


class ReadInput(TypedDict):
    """A table or folder that the run read."""

    table: str
    path: str
    rows: NotRequired[int | None]


class ReadFile(TypedDict):
    """A file of the collection that the run read."""

    name: str
    kind: str
    understood: int


class StoredLimits(TypedDict, total=False):
    """The limits in a run's settings."""

    max_queue_nums: int


class StoredSettings(TypedDict, total=False):
    """A run's settings, by section."""

    limits: StoredLimits


class StoredRun(TypedDict):
    """The record of a run; only an audit has ``audit``, and only a failed run ``error``."""

    job: str
    status: str
    library_version: str
    contract_version: int
    run_id: NotRequired[str | None]
    exit_code: NotRequired[int]
    started_at: NotRequired[str]
    clusters: NotRequired[list[str]]
    period_from_ms: NotRequired[int | None]
    period_to_ms: NotRequired[int | None]
    config: NotRequired[StoredSettings]
    inputs: NotRequired[list[ReadInput]]
    outputs: NotRequired[dict[str, TableRecord]]
    files: NotRequired[list[ReadFile]]
    audit: NotRequired[AuditRecord | None]
    error: NotRequired[str | None]
    run_on: NotRequired[str | None]
