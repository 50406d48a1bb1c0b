"""Files that are not what their place says: of another cluster, another broker, another year."""

import json
import re

from tests.degraded.files import GROUPS, NOTHING, SETTINGS, Draw, Files, subjects
from tests.degraded.logs import named
from tests.recordings.tables import DATA

CLIENT = re.compile(rb"\b\d{1,3}\.\d{1,3}\.(\d{1,3}\.\d{1,3}@)")
ROUND_MS = 60_000
"""Lists that lie closer together belong to one round."""
EXPECTED = re.compile(rb"(?m)^\[expected\]\n(?:(?!\[).*\n?)*")


def foreign_file(files: Files, rng: Draw) -> str:
    """A log, the dumps of a command or a store of another cluster lies among the files."""
    others = [name for name in subjects() if name != files.name and (DATA / name).exists()]
    other = Files.of(rng.choice(sorted(others)))
    what = rng.choice(("broker.log", "rocketmq_client.log", "consumerConnection", "config/"))
    theirs = sorted(path for path in other.kept if what in path)
    ours = sorted(path for path in files.kept if what in path)
    if not theirs or not ours:
        return NOTHING
    files.strangers |= _groups(other)
    files.taken.append((what, b""))  # what a stranger says may be of anyone
    if what == "consumerConnection":
        for path in theirs:
            files.kept.setdefault(path, other.kept[path])
        return f"{what} of {other.name}"
    path, place = rng.choice(theirs), rng.choice(ours)
    if what == "config/":
        files.change(place, other.text(path))
    else:
        packed = ".gz" if path.endswith(".gz") else ""
        rotated = f"{place[: place.index('.log')]}.{rng.choice('19')}.log{packed}"
        files.kept[rotated] = other.kept[path]
    return f"{path} of {other.name} at {place}"


def lists_of_others(files: Files, rng: Draw) -> str:
    """The newest lists of members are of another environment, with the same groups and brokers."""
    lists = [path for path in files.dumps() if "-consumerConnection-" in path]
    times = {path: at_ms for path in lists if (at_ms := files.asked_ms(path))}
    newest = [path for path in times if times[path] >= max(times.values()) - ROUND_MS]
    network = f"172.{rng.randrange(16, 32)}.".encode()
    changed = []
    for path in newest:
        before = files.text(path)
        files.change(path, CLIENT.sub(lambda found: network + found[1], before))
        changed += [path] if files.text(path) != before else []
    return named(changed) if changed else NOTHING


def _groups(other: Files) -> set[str]:
    found = set()
    for path in other.kept:
        if path.endswith(("consumerOffset.json", "subscriptionGroup.json")):
            text = other.text(path).decode("utf-8", "replace")
            found |= set(re.findall(r'"groupName" ?: ?"([^"]+)"', text))
            found |= set(re.findall(r'"[^"@]+@([^"]+)" ?:', text))
        elif ".log" in path:
            said = re.findall(rb"group(?:Name)?[=:] ?([\w%.-]+)", other.text(path))
            found |= {group.decode() for group in said}
    return found


def folders_swapped(files: Files, rng: Draw) -> str:
    """The folders of two brokers have each other's names."""
    brokers = sorted({path.split("/")[1] for path in files.kept if path.startswith("brokers/")})
    if len(brokers) < 2:
        return NOTHING
    one, other = rng.sample(brokers, 2)
    swapped = {}
    for path in [path for path in files.kept if path.startswith("brokers/")]:
        _, broker, rest = path.split("/", 2)
        if broker in (one, other):
            files.taken.append((path, files.text(path)))
            swapped[f"brokers/{other if broker == one else one}/{rest}"] = files.kept.pop(path)
    files.kept |= swapped
    return f"{one}, {other}"


def no_expected(files: Files, rng: Draw) -> str:
    """No ``[expected]`` in collection.toml; at times no settings at all."""
    text = files.kept.get(SETTINGS, b"")
    if rng.random() < 0.2 and text:
        files.drop(SETTINGS)
        return "no collection.toml"
    files.change(SETTINGS, EXPECTED.sub(b"", text)) if text else None
    return "no [expected]" if EXPECTED.search(text) else NOTHING


def old_groups(files: Files, rng: Draw) -> str:
    """consumer_groups.jsonl of last year: other strategies, other settings, groups missing."""
    rows = [json.loads(line) for line in files.kept.get(GROUPS, b"").splitlines()]
    if not rows:
        return NOTHING
    for row in rows:
        if rng.random() < 0.5:
            row["strategy"] = rng.choice(("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"))
        if rng.random() < 0.3:
            row["consume_from_where"] = "CONSUME_FROM_LAST_OFFSET"
        if rng.random() < 0.3:
            row["client_version"] = row["broker_version"] = "4.9.7"
    rows = [row for row in rows if rng.random() < 0.8]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    files.change(GROUPS, text.encode())
    return f"{len(rows)} rows"
