"""Names of the files in a run's folder other than its tables."""

from __future__ import annotations

STATE = "state"
"""Folder in a run's output with the opening state for a later run: the input tables that a
simulation used, or the facts in the files of an ingest or audit.
"""


INGESTED = "ingested"
"""Folder with the input tables made by an audit from its collection."""


STATE_FOLDERS = (STATE, INGESTED)


RUN_NAME = "_run.json"  # written last, by the job: a folder without it is not a result


LOCK_NAME = "_lock.json"
"""Marks a run in progress; without `RUN_NAME` beside it, the run may have died."""


ATTEMPTS = "_attempts"
"""Folder in the output for the tasks' files, removed when a run ends."""


STATUS_OK = "OK"


STATUS_FAILED = "FAILED"
