"""What an audit says of a damaged collection, against what was really so.

What clients of a recording did is known (its truth), and what is to be found in it was reviewed
(`audit_expected.tsv`): both count, whatever the audit of the whole collection says. Of a case, that
audit is all there is.
"""

import contextlib
import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rebalance_core.audit.registry import RULE_FAILED
from rebalance_core.cli.main import main
from rebalance_core.ingest.parse.log_lines import SERVER_ZONE, Clock
from rebalance_core.ingest.parse.zones import zone_named
from rebalance_core.model.system_groups import is_system_group
from tests.degraded.files import SETTINGS, Files, dump_ms, dumps_group, subjects
from tests.recordings.tables import DATA, Row
from tests.recordings.truth import (
    TOLERANCE_MS,
    Move,
    Truth,
    check_starts,
    covers,
    moments,
    net_moves,
    read_truth,
    within,
)

SEVERITIES = ("", "INFO", "WARNING", "ERROR")
JUDGED = ("UNSTABLE", "EQUAL", "SHARED", "DIFFERS")
"""Verdicts on groups of which a dump was compared."""
ROUND_MS = 20_000
"""Dumps that lie closer together belong to one round."""
HEAD = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")

Named = dict[str, int]
"""Severity by rule."""


@dataclass
class Audited:
    """What `rebalance audit` wrote and how it ended."""

    exit_code: int
    tables: dict[str, list[Row]]

    @cached_property
    def verdicts(self) -> dict[str, Row]:
        """Row of group_verdicts by group."""
        return {row["consumer_group"]: row for row in self.tables["group_verdicts"]}

    @cached_property
    def findings(self) -> dict[str, Named]:
        """What is found of each group, of the cluster under no name; what is of files left out."""
        found: dict[str, Named] = {}
        for row in self.tables["findings"]:
            rule = row["rule_id"]
            if rule == INCOMPLETE or rule.startswith("INGEST_"):
                continue
            of_group = found.setdefault(row["consumer_group"] or "", {})
            of_group[rule] = max(of_group.get(rule, 0), SEVERITIES.index(row["severity"]))
        return found

    @cached_property
    def incomplete(self) -> set[str]:
        """Groups that a COLLECTION_INCOMPLETE above INFO names; with any, the cluster ("") too."""
        named: set[str] = set()
        for row in self.tables["findings"]:
            if row["rule_id"] == INCOMPLETE and row["severity"] != "INFO":
                listed = dict(row["evidence"]).get("groups", "").split(", ")
                named |= {"", row["consumer_group"] or "", *listed}
        return named

    @property
    def green(self) -> bool:
        """Whether it ended with 0 and says nothing above INFO."""
        loud = any(row["severity"] != "INFO" for row in self.tables["findings"])
        return self.exit_code == 0 and not loud


READ = ("findings", "group_verdicts", "ownership", "pull_starts", "memberships", "epochs", "diffs")
EXPECTED = Path(__file__).parents[1] / "recordings" / "audit_expected.tsv"
INCOMPLETE = "COLLECTION_INCOMPLETE"
NOT_IN_TRUTH = {"go-java": {"g-hash", "g-mix", "g-ord"}, "shared-later": {"clicks-app"}}
"""Groups with members whose clients wrote no truth: Go's, and one that cluster.json leaves out."""
LOOKED_BACK_MS = 60_000
"""For so long before the end of the evidence a group must have had a member to be online."""


def audit(files: Files) -> Audited:
    """Run the command in this process."""
    scratch = Path(tempfile.mkdtemp(prefix="degraded-"))
    try:
        folder = files.written(scratch / "collection")
        folder.mkdir(exist_ok=True)
        words = ["--collection", str(folder), "--output", str(scratch / "output")]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main("audit", words)
        if code not in (0, 3):
            return Audited(
                code, {name: [] for name in READ} | {"said": [{"text": said.getvalue()}]}
            )
        read = {name: pq.read_table(scratch / "output" / name).to_pylist() for name in READ}
        for row in (row for rows in read.values() for row in rows if files.addresses):
            for column in ("client_id", "other_client_id"):
                if row.get(column):
                    head, at, rest = row[column].partition("@")
                    row[column] = files.addresses.get(head, head) + at + rest
        for row in read["findings"]:
            row["consumer_group"] = files.renamed.get(row["consumer_group"], row["consumer_group"])
        return Audited(code, read)
    finally:
        shutil.rmtree(scratch)


@cache
def whole(name: str) -> Audited:
    """The audit of the collection as it is."""
    audited = audit(Files.of(name))
    assert audited.exit_code in (0, 3), audited.tables["said"]
    return audited


@cache
def _until(name: str, at_ms: int, logs_too: bool) -> Audited:
    """That of the collection as it was at a moment; the logs go on or end there, too."""
    files = Files.of(name)
    for path in [path for path in files.kept if (dump_ms(path) or 0) > at_ms]:
        files.drop(path)
    if logs_too:
        for path in files.logs():
            _end(files, path, at_ms)
    return audit(files)


def _end(files: Files, path: str, at_ms: int) -> None:
    zone = _zones(files.name).get(path.split("/")[0] + "/" + path.split("/")[1])
    server, local = Clock(SERVER_ZONE), Clock(zone_named(zone)) if zone else Clock(SERVER_ZONE)
    there = True

    def kept(_: int, line: bytes) -> bool:
        nonlocal there
        if there and (head := HEAD.match(line)):
            clock = local if line[19:20] == b"," else server
            there = (clock.second_ms(head[0].decode()) or 0) <= at_ms + 1_000
        return there

    files.keep_lines(path, kept)


@cache
def _zones(name: str) -> dict[str, str]:
    """Time zone by folder, of what collection.toml tells."""
    path = subjects()[name] / "collection.toml"
    found = re.findall(
        r'(?m)^"([^"]+)/\*" *= *"([^"]+)"', path.read_text() if path.exists() else ""
    )
    return dict(found)


def newest_dump(files: Files, group: str) -> int | None:
    """The end of the round in which the group was dumped last, of what is left."""
    own = [
        ms
        for path in files.dumps()
        if dumps_group(files.origin.get(path, path), group)
        and (ms := files.asked_ms(path))
        and (files.kept[path] or not _whole_text(files, path))
    ]
    if not own:
        return None
    end = max(own)
    for ms in sorted(ms for p in Files.of(files.name).dumps() if (ms := dump_ms(p))):
        if end < ms <= end + ROUND_MS:
            end = ms
    return end


def _whole_text(files: Files, path: str) -> bytes:
    """What the file says in the whole collection."""
    return Files.of(files.name).kept.get(files.origin.get(path, path), b"")


@cache
def reviewed(name: str) -> dict[str, Named]:
    """What is to be found in the whole collection by group."""
    found: dict[str, Named] = {}
    for line in EXPECTED.read_text().splitlines():
        recording, severity, rule, group = line.split("\t")
        if recording == name and rule != INCOMPLETE:
            of_group = found.setdefault(group, {})
            of_group[rule] = max(of_group.get(rule, 0), SEVERITIES.index(severity))
    return found or whole(name).findings  # a case, or a recording that other tests review


def deserved(files: Files, group: str) -> Named:
    """What stands against a group: by the whole collection, or as it was at its newest dump."""
    found = dict(reviewed(files.name).get(group, {}))
    for audited in _at_newest_dump(files, group):
        for rule, severity in audited.findings.get(group, {}).items():
            found[rule] = max(found.get(rule, 0), severity)
    return found


def differed(files: Files, group: str) -> bool:
    """Whether live ownership differed at the newest dump, by all that tells of that time.

    In no recording did it: wherever a group was settled, its members held what RocketMQ's rule
    gives them.
    """
    if truth_of(files.name) is not None:
        return False
    known = _at_newest_dump(files, group) or [whole(files.name)]
    return any(a.verdicts.get(group, {}).get("verdict") == "DIFFERS" for a in known)


def _at_newest_dump(files: Files, group: str) -> list[Audited]:
    """What all files say of the time of the group's newest dump that is left.

    Empty: it is that of the whole collection, or there is none.
    """
    at_ms = newest_dump(files, group)
    if at_ms is None or at_ms == newest_dump(Files.of(files.name), group):
        return []
    return [_until(files.name, at_ms, logs_too) for logs_too in (False, True)]


@cache
def truth_of(name: str) -> Truth | None:
    """What the clients of a recording did; None: of a case."""
    return read_truth(name) if (DATA / name / "truth").exists() else None


Held = dict[str, set[tuple[str, str, int]]]


def really_held(name: str, group: str, at_ms: int) -> Held | None:
    """Queues by client id, those of retry topics left out; None: no truth tells."""
    truth = truth_of(name)
    if truth is None:
        return None
    cluster = json.loads((DATA / name / "cluster.json").read_text())
    held: Held = {}
    for client in cluster["clients"]:
        for run in client["runs"]:
            ids = run.get("client_ids") or _ids(truth, client["name"], at_ms)
            began_ms, ended_ms = run.get("started_t", 0), run.get("stopped_t")
            there = began_ms is not None and began_ms <= at_ms  # it may never have begun
            if group not in ids or not there or (ended_ms is not None and ended_ms <= at_ms):
                continue
            for topic, queues in truth.owned(client["name"], group, at_ms).items():
                if not topic.startswith("%"):
                    held.setdefault(ids[group], set()).update(queues)
    return {client: queues for client, queues in held.items() if queues}


def _ids(truth: Truth, file: str, at_ms: int) -> dict[str, str]:
    """The client id of each group, as a client of which cluster.json has no more than one wrote."""
    return {
        group: line["client_id"]
        for of_file, group in truth.lines
        for line in (truth.lines[of_file, group] if of_file == file else ())
        if line["kind"] == "started" and line["t"] <= at_ms
    }


def predicted(audited: Audited, group: str, at_ms: int) -> Held:
    """The same by the ledger."""
    held: Held = {}
    for row in audited.tables["ownership"]:
        mine = row["consumer_group"] == group and row["client_id"] and covers(row, at_ms)
        if mine and not row["topic"].startswith("%"):
            queue = (row["topic"], row["broker_name"], row["queue_id"])
            held.setdefault(row["client_id"], set()).add(queue)
    return held


def falsely_equal(files: Files, audited: Audited) -> Iterator[str]:
    """Groups that are said to hold what the ledger says, and held something else."""
    for group, row in audited.verdicts.items():
        if row["verdict"] != "EQUAL":
            continue
        if differed(files, group):
            yield f"EQUAL {group}: it differed"
        elif not files.ids_lost and not _as_really_held(files, audited, row):
            yield f"EQUAL {group}: its members held other queues at {row['dumped_ms']}"


def falsely_differing(files: Files, audited: Audited) -> Iterator[str]:
    """Groups that are said to differ, and do not by all that tells of that time."""
    for group, row in audited.verdicts.items():
        if row["verdict"] == "DIFFERS" and not differed(files, group):
            yield f"DIFFERS {group}"


def _as_really_held(files: Files, audited: Audited, row: Row) -> bool:
    at_ms, group = row["dumped_ms"], row["consumer_group"]
    if at_ms is None:
        return True
    steps = (-10_000, -3_000, 0, 3_000, 10_000)
    offs = {files.admin_ms}.union(*files.clocks)
    moments = [at_ms - off + step for off in offs for step in steps]
    real = [really_held(files.name, group, moment) for moment in moments]
    held = predicted(audited, group, at_ms)
    if group in NOT_IN_TRUTH.get(files.name, ()):  # no more is known than what others held
        return any(each is None or each.items() <= held.items() for each in real)
    return real[0] is None or held in real


def falsely_offline(files: Files, audited: Audited) -> Iterator[str]:
    """Groups that are said to have no member, and had."""
    for group, row in audited.verdicts.items():
        if row["verdict"] != "OFFLINE" or group in files.strangers:
            continue
        alive = _had_members(files, group)
        if alive is None:
            known = (whole(files.name), *_at_newest_dump(files, group))
            alive = all(one.verdicts.get(group, {}).get("verdict") != "OFFLINE" for one in known)
        if alive:
            yield f"OFFLINE {group}"


def _had_members(files: Files, group: str) -> bool | None:
    """Whether the group had a member all through the last minute that files tell of.

    None: no run of a client is known that belongs to the group.
    """
    runs = _runs(files.name).get(group)
    if runs is None:
        return None
    end_ms = _evidence_ms(files)
    return all(
        any(began <= at_ms and (ended is None or at_ms < ended) for began, ended in runs)
        for at_ms in range(end_ms - LOOKED_BACK_MS, end_ms + 1, 5_000)
    )


@cache
def _runs(name: str) -> dict[str, list[tuple[int, int | None]]]:
    """When processes with a member ran, by group."""
    path, runs = DATA / name / "cluster.json", dict[str, list[tuple[int, int | None]]]()
    for client in json.loads(path.read_text())["clients"] if path.exists() else ():
        for run in client["runs"]:
            for group in run.get("client_ids", {}):
                if run.get("started_t") is not None:
                    runs.setdefault(group, []).append((run["started_t"], run.get("stopped_t")))
    return runs


def _evidence_ms(files: Files) -> int:
    """The newest moment that a dump or the log of a broker tells of, by a clock that is right."""
    clock, before = Clock(SERVER_ZONE), Files.of(files.name)
    known = [ms for path in files.dumps() if (ms := files.asked_ms(path))]
    for path in before.logs():
        heads = HEAD.findall(before.text(path))
        if path.startswith("brokers/") and path in files.kept and heads:
            left = len(HEAD.findall(files.text(path)))
            known.append(clock.second_ms(heads[min(max(left, 1), len(heads)) - 1].decode()) or 0)
    return max(known, default=0)


def invented(files: Files, audited: Audited) -> Iterator[str]:
    """Groups that are in no file of the whole collection."""
    known = {*whole(files.name).verdicts, *files.strangers}
    yield from (f"group {group}" for group in audited.verdicts if group not in known)


def _overlap(move: Move, other: Move, offs: Iterable[int]) -> bool:
    """Whether the windows meet, one of them shifted by any of the milliseconds."""
    low, high = move.earliest_ms - TOLERANCE_MS, move.latest_ms + TOLERANCE_MS
    return any(low <= other.latest_ms + off and other.earliest_ms + off <= high for off in offs)


@cache
def _recorded_moves(name: str) -> dict[tuple[Any, ...], list[Move]]:
    """The diffs of the whole collection's ledger by what they move."""
    moves: dict[tuple[Any, ...], list[Move]] = {}
    for row in whole(name).tables["diffs"]:
        queue = (row["topic"], row["broker_name"], row["queue_id"])
        move = Move(
            row["consumer_group"],
            row["action"],
            row["client_id"],
            queue,
            row["earliest_ms"],
            row["latest_ms"],
        )
        moves.setdefault(move[:4], []).append(move)
    return moves


def moves_outside(files: Files, audited: Audited) -> Iterator[str]:
    """Moves of groups with a verdict that no client made within their windows."""
    for move in _false_moves(files, audited):
        if audited.verdicts.get(move.group, {}).get("verdict") != "UNKNOWN":
            yield " ".join(map(str, move))


def moves_unsure(files: Files, audited: Audited) -> Iterator[str]:
    """The same of groups that are UNKNOWN: the ledger states what the audit does not stand by."""
    for move in _false_moves(files, audited):
        if audited.verdicts.get(move.group, {}).get("verdict") == "UNKNOWN":
            yield " ".join(map(str, move))


def _false_moves(files: Files, audited: Audited) -> Iterator[Move]:
    """Moves that neither a client made within their windows, nor the whole ledger has there.

    Those of a group are told by one clock. Of a group that is said to differ the ledger has what
    should move, as with a strategy that someone named: the audit denies that it did. A false
    DIFFERS fails by itself.
    """
    if files.ids_lost:
        return
    truth = truth_of(files.name)

    def is_false(move: Move, offs: Iterable[int]) -> bool:
        recorded = _recorded_moves(files.name).get(move[:4], ())
        real = [ms + off for ms in (moments(truth, move) if truth else ()) for off in offs]
        return not (within(move, real) or any(_overlap(move, one, offs) for one in recorded))

    of_groups: dict[str, list[Move]] = {}
    denied = {group for group, row in audited.verdicts.items() if row["verdict"] == "DIFFERS"}
    for move in net_moves(audited.tables):
        if move.group not in files.strangers | denied:
            of_groups.setdefault(move.group, []).append(move)
    for moves in of_groups.values():
        by_clock = ([one for one in moves if is_false(one, offs)] for offs in files.clocks)
        yield from min(by_clock, key=len)


def starts_outside(files: Files, audited: Audited) -> Iterator[str]:
    """First starts that the truth has and that lie outside of their bounds."""
    yield from () if files.ids_lost else _starts(files.name, audited)


def _starts(name: str, audited: Audited) -> list[str]:
    truth = truth_of(name)
    if truth is None:
        return []
    starts = audited.tables["pull_starts"]
    known = [row for row in starts if row["start_offset_low"] is not None]
    return check_starts(truth, audited.tables | {"pull_starts": known}, []).mismatches


def undeserved(files: Files, audited: Audited) -> Iterator[tuple[str, str]]:
    """(kind, text) of findings above INFO that a group does not deserve.

    Kind ``other rule``: the group deserves one of that severity, but not this; nothing deserves
    that a rule fails.
    """
    for group, named in audited.findings.items():
        before = reviewed(files.name).get(group, {})
        loud = {r: s for r, s in named.items() if s > 1 and s > before.get(r, 0)}
        if not loud:
            continue
        right = deserved(files, group)
        worst = max(right.values(), default=0)
        for rule, severity in loud.items():
            if severity > right.get(rule, 0) and not _said_otherwise(files, audited, group, rule):
                other = severity <= worst and rule != RULE_FAILED.rule_id
                kind = "other rule" if other else f"false {SEVERITIES[severity]}"
                yield kind, f"{SEVERITIES[severity]} {rule} {group or 'of the cluster'}"


def _said_otherwise(files: Files, audited: Audited, group: str, rule: str) -> bool:
    """Whether all that a rule states of a group is true, and said by a rule that knows more.

    The statements are compared, not the names of the rules alone.
    """
    says = OTHERWISE.get(rule)
    whole_rows = [
        row
        for one in (whole(files.name), *_at_newest_dump(files, group))
        for row in one.tables["findings"]
        if row["consumer_group"] == group
    ]
    stated = [
        row
        for row in audited.tables["findings"]
        if row["consumer_group"] == group and row["rule_id"] == rule and row["severity"] != "INFO"
    ]
    return says is not None and all(
        any(_as_loud(known, row) and says(files.name, known, row) for known in whole_rows)
        for row in stated
    )


def _as_loud(known: Row, row: Row) -> bool:
    return SEVERITIES.index(known["severity"]) >= SEVERITIES.index(row["severity"])


def _expired(name: str, known: Row, row: Row) -> bool:
    """What its rare heartbeats lead to was seen of the same client."""
    same = [(one["client_id"], dict(one["evidence"]).get("interval_ms")) for one in (known, row)]
    return known["rule_id"] == "EXPIRED_WHILE_ALIVE" and same[0] == same[1]


def _unsubscribed(name: str, known: Row, row: Row) -> bool:
    """One unsubscribed, and the statement leaves open since when they differ."""
    return known["rule_id"] == "UNSUBSCRIBED_SHARE" and row["first_ms"] is None


def _nobodys(name: str, known: Row, row: Row) -> bool:
    """By the strategy nobody is to have these queues, as was so when they were dumped."""
    stated = dict(row["evidence"])
    at_ms = dump_ms(stated["source"]) or 0
    owners = {
        (one["broker_name"], one["queue_id"]): one["client_id"]
        for one in whole(name).tables["ownership"]
        if one["consumer_group"] == row["consumer_group"]
        and one["topic"] == row["topic"]
        and covers(one, at_ms)
    }
    queues = list(queues_named(stated["queues"]))
    rules = ("CONFIG_GAP", "ORPHAN_QUEUES")
    nobodys = bool(queues) and all(owners.get(queue, "?") is None for queue in queues)
    return known["rule_id"] in rules and known["topic"] == row["topic"] and nobodys


def _differs(name: str, known: Row, row: Row) -> bool:
    """Owners of the topic differed, and the statement leaves open why."""
    differs = known["rule_id"].startswith("OWNERSHIP_DIFFERS_")
    return differs and known["topic"] == row["topic"]


def _left(name: str, known: Row, row: Row) -> bool:
    """The group was deleted: nobody is a member, and so many messages of its topics are left."""
    stated = re.findall(r"(\S+) (\d+)(?:, |$)", dict(row["evidence"])["behind"])
    behind = {topic: int(count) for topic, count in stated}
    topics = set(dict(known["evidence"]).get("topics", "").split(", "))
    verdict = whole(name).verdicts[row["consumer_group"]]
    offline = verdict["verdict"] == "OFFLINE" and sum(behind.values()) <= verdict["behind"]
    return known["rule_id"] == "LEFTOVER_OFFSETS" and behind.keys() <= topics and offline


def queues_named(text: str) -> Iterator[tuple[str, int]]:
    """Brokers and queues of a list as findings have it."""
    for broker, numbers in re.findall(r"([^\s,:]+):(\d[\d,-]*)", text):
        for part in filter(None, numbers.split(",")):
            first, _, last = part.partition("-")
            yield from ((broker, number) for number in range(int(first), int(last or first) + 1))


OTHERWISE = {
    "INCONSISTENT_SUBSCRIPTION": _unsubscribed,
    "OFFLINE_WITH_LAG": _left,
    "OWNERSHIP_DIFFERS_UNEXPLAINED": _differs,
    "QUEUES_NOT_READ": _nobodys,
    "RARE_HEARTBEATS": _expired,
}
"""By rule that gives way to one that knows more: whether a finding of that says as much."""


def incomplete_and_green(files: Files, audited: Audited) -> Iterator[str]:
    """What the collection lacks though the run ended with 0."""
    if audited.exit_code != 0:
        return
    before = Files.of(files.name)
    logs = [path for path in before.kept if path.startswith("brokers/") and "broker.log" in path]
    expected = before.kept.get(SETTINGS, b"")
    for folder in sorted({"/".join(path.split("/")[:2]) for path in logs}):
        is_expected = f'"{folder.partition("/")[2]}"'.encode() in expected
        if is_expected and not any(f"{folder}/" in p and "broker.log" in p for p in files.kept):
            yield f"exit 0 without a log of {folder}"
    for role in ("namesrv", "mqadmin"):
        if any(p.startswith(role) for p in before.kept) and not any(
            p.startswith(role) for p in files.kept
        ):
            yield f"exit 0 without {role}"
    for group, row in whole(files.name).verdicts.items():
        if row["verdict"] in JUDGED and newest_dump(files, group) is None:
            yield f"exit 0 without a dump of {group}"


def blind(files: Files, audited: Audited) -> Iterator[str]:
    """That the run is green though the whole collection has what is not.

    A fault that was not there yet at the newest dump that is left is none. A run that has nothing
    above INFO must not be unsure of a fault.
    """
    if audited.exit_code != 0:
        return
    true = [*true_findings(files.name)]
    errors = [(group, rule) for group, rule, severity in true if SEVERITIES[severity] == "ERROR"]
    there = [f"{rule} {group}" for group, rule in errors if _was_there(files, group, rule)]
    if whole(files.name).exit_code == 3 and (there or not errors):
        yield f"exit 0, not 3: {', '.join(there) or INCOMPLETE}"
    now = audited.findings
    unsure = [f"{rule} {group}" for group, rule, _ in true if now.get(group, {}).get(rule) == 1]
    if audited.green and unsure:
        yield f"nothing above INFO, and not sure of {', '.join(unsure)}"


def _was_there(files: Files, group: str, rule: str) -> bool:
    """Whether the group's fault was there at its newest dump that is left."""
    then = _at_newest_dump(files, group)
    return not then or any(one.findings.get(group, {}).get(rule, 0) > 1 for one in then)


def true_findings(name: str) -> Iterator[tuple[str, str, int]]:
    """(group, rule, severity) of what is above INFO in the whole collection, and is true."""
    for group, named in whole(name).findings.items():
        for rule, severity in named.items():
            if 1 < severity <= reviewed(name).get(group, {}).get(rule, 0):
                yield group, rule, severity


def loudness(files: Files, audited: Audited) -> tuple[int, int]:
    """How many true findings above INFO there are, and how many of these survive.

    They do if they are still above INFO, or a COLLECTION_INCOMPLETE names the group.
    """
    true = [*true_findings(files.name)]
    survive = [
        group
        for group, rule, _ in true
        if audited.findings.get(group, {}).get(rule, 0) > 1 or group in audited.incomplete
    ]
    return len(true), len(survive)


def mute(files: Files, audited: Audited) -> Iterator[str]:
    """Groups of which nothing was touched, and whose verdict or findings are others; RocketMQ's
    own are not judged.
    """
    before = whole(files.name)
    paths = {path for path, _ in files.taken}
    logs = [path for path in Files.of(files.name).logs() if "broker.log" in path]
    for group, row in before.verdicts.items():
        # that no log names it is what shows that nobody is online: all of them tell of the group
        by_silence = row["verdict"] == "OFFLINE" and paths.issuperset(logs)
        if not (by_silence or touched(files, group) or is_system_group(group)):
            yield from _changed(group, before, audited)


def changed(files: Files, audited: Audited) -> Iterator[str]:
    """Any group, or the cluster, of which something else is said."""
    before = whole(files.name)
    if before.exit_code != audited.exit_code:
        yield f"exit code {before.exit_code} -> {audited.exit_code}"
    for group in sorted({*before.verdicts, *audited.verdicts, ""}):
        yield from _changed(group, before, audited)


def _changed(group: str, before: Audited, after: Audited) -> Iterator[str]:
    was, now = (_verdict(one, group) for one in (before, after))
    if was != now:
        yield f"{group}: {was} -> {now}"
    was_found, now_found = (one.findings.get(group, {}) for one in (before, after))
    for rule in sorted(was_found.keys() | now_found.keys()):
        a, b = was_found.get(rule, 0), now_found.get(rule, 0)
        if a != b:
            yield f"{group}: {rule} {SEVERITIES[a] or 'none'} -> {SEVERITIES[b] or 'none'}"


def _verdict(audited: Audited, group: str) -> str:
    row = audited.verdicts.get(group, {})
    return f"{row.get('verdict', 'none')} {row.get('reason', '')}".strip()


@cache
def _words(name: str) -> dict[str, frozenset[bytes]]:
    """Group, topics and client ids of each group, as lines have them."""
    words: dict[str, set[bytes]] = {group: {group.encode()} for group in whole(name).verdicts}
    for row in whole(name).tables["memberships"]:
        named = words.setdefault(row["consumer_group"], {row["consumer_group"].encode()})
        named |= {text.encode() for text in (row["client_id"], *(row["subscriptions"] or ()))}
    return {group: frozenset(named) for group, named in words.items()}


def touched(files: Files, group: str) -> bool:
    """Whether a damage took something that tells of the group, its topics or members, or of all."""
    words = _words(files.name)
    everyones = [one for named in words.values() for one in named]
    for path, text in files.taken:
        said = path.encode() + b" " + text
        if any(word in said for word in words[group]):
            return True
        if not any(word in said for word in everyones):
            return True
    return False


def planted(files: Files, audited: Audited, faults: dict[str, str]) -> Iterator[tuple[str, bool]]:
    """(group, whether its fault is named at its severity) of those whose own evidence is left.

    That is every line of a log that names the group or a member, and every dump and store that
    names them or its topics.
    """
    before = whole(files.name).findings
    for group, rule in faults.items():
        words = _words(files.name)[group]
        named = {word for word in words if word == group.encode() or b"@" in word}
        if not any(
            word in text
            for path, text in files.taken
            for word in (named if ".log" in path else words)
        ):
            severity = audited.findings.get(group, {}).get(rule, 0)
            yield group, severity >= before[group][rule]
