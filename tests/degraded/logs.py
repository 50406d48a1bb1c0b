"""Logs of a collection: which of them a damage takes, and the heads of their lines."""

import re

from tests.degraded.files import Draw, Files, host_of

HEAD = re.compile(rb"(?m)^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
FORMAT = "%Y-%m-%d %H:%M:%S"
MESSAGE = re.compile(rb"^[^A-Za-z]*(?:INFO|WARN|ERROR|DEBUG)\S* .*? - ")


def some_logs(files: Files, rng: Draw) -> list[str]:
    """One log, those of one host, of one role, or all."""
    logs = sorted(files.logs())
    if not logs:
        return []
    one = rng.choice(logs)
    how = rng.choice(("file", "host", "role", "all"))
    if how == "file":
        return [one]
    if how == "host":
        return [path for path in logs if host_of(path) == host_of(one)]
    role = one.split("/")[0]
    return [path for path in logs if how == "all" or path.split("/")[0] == role]


def named(paths: list[str]) -> str:
    return ", ".join(paths[:2]) + (f" and {len(paths) - 2} more" if len(paths) > 2 else "")


def events(text: bytes) -> list[bytes]:
    """The lines of a log, each with the lines without a head that follow it."""
    found: list[bytes] = []
    for line in text.splitlines(keepends=True):
        if found and not HEAD.match(line):
            found[-1] += line
        else:
            found.append(line)
    return found
