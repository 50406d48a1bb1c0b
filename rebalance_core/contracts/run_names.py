"""Names of the files in a run's folder other than its tables."""

from __future__ import annotations

STATE = "state"
"""Folder in a run with the opening state of a later run: the input tables that a simulation used,
or the facts that an ingest's or audit's files stated."""


INGESTED = "ingested"
"""Folder with the input tables that an audit made from its collection."""


STATE_FOLDERS = (STATE, INGESTED)


RUN_NAME = "_run.json"  # written last, by the job: a folder without it is not a result


LOCK_NAME = "_lock.json"
"""Marks a run in progress; if `RUN_NAME` is missing beside it, a run may have died there."""


ATTEMPTS = "_attempts"
"""Folder in the output for the files of tasks, removed when a run ends."""


STATUS_OK = "OK"


STATUS_FAILED = "FAILED"
