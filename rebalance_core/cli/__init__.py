"""The command line: options, settings, the session, the lock, the record of a run."""
