"""Names of the files in a run's folder other than its tables."""

from __future__ import annotations

STATE = "state"
"""Below a run: the opening state of a later one. Of a simulation the input tables that it used; of
an ingest or audit what the files of its collection stated."""


INGESTED = "ingested"
"""Below an audit of a collection: the input tables that it made."""


STATE_FOLDERS = (STATE, INGESTED)


RUN_NAME = "_run.json"  # written last, by the job: a folder without it is not a result


LOCK_NAME = "_lock.json"
"""A run is writing there; without `RUN_NAME` beside it, a run may have died there."""


ATTEMPTS = "_attempts"
"""Folder in the output for the files of tasks; gone when a run ends."""


STATUS_OK = "OK"


STATUS_FAILED = "FAILED"
