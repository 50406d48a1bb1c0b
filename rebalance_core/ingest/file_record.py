"""The entry of each file of a collection in a run's record."""

from typing import TypedDict


class FileOutcome(TypedDict):
    """The outcome of a file, one of `model.file_statuses.FILE_STATUSES`, and the reason."""

    name: str
    kind: str
    status: str
    reason: str


class FileRecord(FileOutcome):
    """An entry of ``files`` in ``_run.json``: a file's result, with counts of `FileStats`."""

    lines: int
    understood: int
    facts: int
    rejected: int
    first_ms: int | None
    last_ms: int | None
    jumps_back: int
    worst_jump_ms: int
    last_line: str
    unreadable: str
    local_times: int
    codes: dict[str, int]
    rejected_rows: int
    share_understood: float | None
