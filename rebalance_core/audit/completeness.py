"""Checks which files were collected for an audit run; an incomplete collection is never green."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from rebalance_core.audit.group_snapshot import (
    BROKER,
    ClusterSnapshot,
    Finding,
    Rule,
    grouped,
    listed,
    plural,
)
from rebalance_core.audit.unknowns import NO_LOG
from rebalance_core.contracts.ledger import LACKS
from rebalance_core.ingest.collection import UNDATED
from rebalance_core.ingest.fact import (
    CUT_OFF,
    OLD_ANSWER,
    OTHER_BROKER,
    OTHER_CLUSTER,
    OTHER_SUBJECT,
    SEVERAL_BROKERS,
    shown,
)
from rebalance_core.ingest.parse.config_stores import ROCKSDB_V2
from rebalance_core.model import verdicts
from rebalance_core.model.times import HOUR_MS, MINUTE_MS, UTC_TEXT, utc

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        FactsByKind,
        FindingsBegun,
        FindingsRow,
        GroupRenamedFact,
        NotCollectedFact,
        NotReadFact,
    )

ALL_BROKERS = "files of all brokers"
"""What a collection of dumps alone lacks."""
_AND_CLIENTS = "only dumps and clients' logs show the cluster"
_NOW = "only dumps show the cluster, and only its present state"
NO_SERVER_LOGS = frozenset({"INGEST_NO_NAMESRV_LOG", "INGEST_BROKER_LOG_MISSING"})
"""Rules of ingest about logs that a collection of dumps alone lacks."""
LIVE_COMMANDS = ("consumerStatus", "consumerProgress")
MEMBER_COMMANDS = ("consumerConnection",)
PROGRESS = "consumerProgress"
BROKER_LOG = "broker.log"
_ASKED = {
    LIVE_COMMANDS: "who holds which queue",
    MEMBER_COMMANDS: "which members each broker lists",
}
REMEDIES = 3
"""The maximum number of remedies listed in a finding about uncertain findings."""
LOG_GAP_MS = 10 * MINUTE_MS
"""Logs that are copied right before a round of dumps end at most this long before its last dump."""
EXPORTED: tuple[Literal["topics.json", "subscriptionGroup.json", "consumerOffset.json"], ...] = (
    "topics.json",
    "subscriptionGroup.json",
    "consumerOffset.json",
)


def find_incomplete(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield findings about missing parts of a cluster's collection."""
    without_files = dumps_alone(group)
    if without_files is not None:
        yield without_files
    else:
        yield from filter(None, missing_brokers(group).values())
    if without_files is None or group.facts["NAME_SERVER_FILE"]:
        yield from missing_name_servers(group.facts)
    yield from files_not_read(group.facts["NOT_READ"])
    yield from not_collected(group.facts["NOT_COLLECTED"])
    yield from renamed_groups(group.facts["GROUP_RENAMED"])
    yield from missing_dumps(group)
    yield from missing_exports(group)
    yield from lost_kinds(group.lost_kinds)
    yield from ended_logs(group)
    yield from old_collection(group)


def find_no_coverage(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding if the collection's tables have no coverage."""
    if not group.run.coverage.known and group.facts["BROKER_FILE"]:
        yield Finding(
            "The tables have no coverage, so the audit cannot know which times the files cover "
            "and treats all times as covered."
        )


def dumps_alone(group: ClusterSnapshot) -> Finding | None:
    """Return the finding about a collection without a file of any broker, or None if it has one."""
    missing, newest = missing_brokers(group), _newest_of_brokers(group)
    bare = [broker for broker in missing if not newest.get(broker, {}).keys() - {"dump"}]
    known = {row["broker_name"] for row in group.facts["EXPECTED_BROKER"]}
    known |= {row["broker_name"] for row in group.facts["BROKER_IN_CLUSTER"]}
    if not bare or known != set(bare) or None in missing.values():
        return None
    whom = bare[0] if len(bare) == 1 else f"any of the {len(bare)} brokers"
    return _incomplete(
        f"the collection has no log and no store from {whom}"
        f"{'' if group.facts['NAME_SERVER_FILE'] else ', and no log from a name server'}: "
        + (_AND_CLIENTS if group.run.coverage.clients else _NOW),
        ALL_BROKERS,
        {"brokers": ", ".join(bare)},
        remedy="Copy the logs and stores of every broker and name server too, as `rebalance "
        "collect` does for the folders in its sources.",
    )


def missing_brokers(group: ClusterSnapshot) -> dict[str, Finding | None]:
    """Return the brokers without collected files, or without recent ones, each with its finding.

    The finding is None if there is an unreadable broker.log, which `files_not_read` reports.
    """
    facts, run = group.facts, group.run
    unread = {
        row["broker_name"]: row["details"]["lines"] != "0"
        for row in facts["NOT_READ"]
        if row["details"]["what"] == BROKER_LOG
    }
    newest = _newest_of_brokers(group)
    expected = {row["broker_name"] for row in facts["EXPECTED_BROKER"]}
    listed = {row["broker_name"] for row in facts["BROKER_IN_CLUSTER"]}
    missing: dict[str, Finding | None] = {}
    for broker in sorted(expected | listed):
        files = newest.get(broker, {})
        if broker in unread and (unread[broker] or "log" not in files):
            missing[broker] = None
            continue
        who = "collection.toml expects it" if broker in expected else "clusterList lists it"
        if not files.keys() - {"dump"}:
            lacks = "all files"
            what = f"the collection has no log and no store from {broker}, though {who}"
        elif "log" not in files:
            lacks = BROKER_LOG
            what = (
                f"no line of the broker.log of {broker} was collected: joins and departures of its "
                "members are unknown"
            )
        elif broker not in run.down and max(files.values()) < run.end_ms - run.stale_ms:
            age = _hours(run.end_ms - max(files.values()))
            lacks = "recent files"
            what = (
                f"the newest file of {broker} is {age} older than the newest file of the collection"
            )
        else:
            continue
        evidence = {"broker": broker} | {kind: utc(ms) for kind, ms in files.items()}
        missing[broker] = _incomplete(what, lacks, evidence, broker_name=broker)
    return missing


def ended_logs(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield findings about logs that end long before the dumps or are cut off, and about missing
    logs of alternating masters.
    """
    commands = (*LIVE_COMMANDS, *MEMBER_COMMANDS)
    asked = [row["last_ms"] for row in group.dumps if row["command"] in commands]
    newest = max(asked, default=0)
    for broker, until_ms in sorted(_log_ends(group).items()):
        if newest > until_ms + LOG_GAP_MS:
            yield _incomplete(
                f"the broker.log of {broker} ends {_minutes(newest - until_ms)} before the newest "
                "dump: only dumps show which members joined or left since then",
                "end of broker.log",
                {"broker": broker, "log_end": utc(until_ms), "newest_dump": utc(newest)},
                broker_name=broker,
                remedy="Copy the logs after the dumps, up to their last line.",
            )
    for row in group.facts["BROKER_FILE"]:
        unlogged = row["details"].get("unlogged")
        if unlogged:
            yield _incomplete(
                f"the broker.log of {unlogged}, which was master of {row['broker_name']} at "
                "times, was not collected: members that joined or left during those times are "
                "unknown",
                f"broker.log of {unlogged}",
                {"broker": row["broker_name"], "folders": unlogged},
                broker_name=row["broker_name"],
            )
        count = int(row["details"].get("unreadable") or 0)
        if count:
            yield _incomplete(
                f"{plural(count, 'file')} of the broker.log of {row['broker_name']} cannot be "
                "read to the end: what members did during that time is unknown",
                "part of broker.log",
                {"broker": row["broker_name"], "file": row["source"]},
                broker_name=row["broker_name"],
                remedy="Copy the file again. The table rejected names the file and the reason.",
            )


def missing_name_servers(facts: FactsByKind) -> Iterator[Finding]:
    """Yield a finding if logs of expected name servers are missing."""
    expected = {row["details"]["name"] for row in facts["EXPECTED_NAME_SERVER"]}
    collected = {row["details"]["name"] for row in facts["NAME_SERVER_FILE"]}
    if len(collected) < len(expected):
        names = listed(sorted(expected - collected or expected))
        yield _incomplete(
            f"the logs of only {len(collected)} of the {len(expected)} expected name servers were "
            f"collected ({names} missing): whether their routes differ is unknown",
            "logs of name servers",
            {"expected": listed(sorted(expected)), "collected": listed(sorted(collected))},
        )


def missing_dumps(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield findings about the kinds of dumps that are missing or old.

    A dump that cannot be read counts as present.
    """
    run = group.run
    made = [(row["command"], row["last_ms"]) for row in group.dumps]
    made += [(row["details"]["what"], row["last_ms"]) for row in group.facts["NOT_READ"]]
    newest: dict[str, int] = {}
    for command, last_ms in made:
        newest[command] = max(newest.get(command, 0), last_ms)
    for commands, what in _ASKED.items():
        names = " or ".join(commands)
        last = max((newest[c] for c in commands if c in newest), default=None)
        if last is None:
            yield _incomplete(f"the collection has no dump of {names}: {what} is unknown", names)
        elif last < run.end_ms - run.stale_ms:
            age = _hours(run.end_ms - last)
            yield _incomplete(
                f"the newest dump of {names} is {age} old: {what} now is unknown",
                f"recent {names}",
                {"newest": utc(last), "end": utc(run.end_ms)},
            )


COLLECT_AGAIN = (
    "Collect it again, in UTF-8, exactly as mqadmin prints it or RocketMQ writes it; the table "
    "rejected lists the refused lines."
)
WITH_TIME = "Put the epoch milliseconds at which the command began, and -, before its name."
_ASK_AGAIN = "Run the command again, and keep each answer under the name of its subject and time."
_IF_SET_APART = {
    OTHER_SUBJECT: _ASK_AGAIN,
    OLD_ANSWER: _ASK_AGAIN,
    OTHER_CLUSTER: "Collect each cluster into its own folder, with its own collection.toml.",
    SEVERAL_BROKERS: "Replace it with the log of the folder's own broker; each broker's has its "
    "own folder.",
    OTHER_BROKER: "Move it to its own broker's folder, and copy the file that belongs here.",
}
"""The remedy for each code of `ingest.fact.SET_APART`."""


def files_not_read(rows: Iterable[NotReadFact]) -> Iterator[Finding]:
    """Yield a finding for each group of similar files that could not be read."""
    alike: dict[tuple[str, ...], list[NotReadFact]] = {}
    for row in rows:
        details = row["details"]
        place = row["broker_name"] or details.get("name", "")
        cut = CUT_OFF in details["why"]
        code = details["code"]
        set_apart = code in _IF_SET_APART
        read = "cut" if cut else "" if set_apart or details["lines"] == "0" else "read"
        kind = "" if cut else details["looks_like"], read, code if set_apart else ""
        alike.setdefault((details["what"], place, *kind), []).append(row)
    for (what, place, looks_like, read, set_apart_as), files in sorted(alike.items()):
        details = files[0]["details"]
        names = listed((row["source"] for row in files), 3)
        if place:
            subject = f"the {what} of {place} ({names})"
        else:
            subject = f"{plural(len(files), 'file')} of {what} ({names})"
        single = bool(place) or len(files) == 1
        how = "cannot be read"
        if read == "cut":
            how = "is cut off" if single else "are cut off"
        elif set_apart_as:
            how = "was left out" if single else "were left out"
        elif details["understood"] != "0":
            part = f"({details['understood']} of {details['lines']} lines)"
            most = 2 * int(details["understood"]) > int(details["lines"])
            partly = "was partly read" if single else "were partly read"
            unreadable = "is mostly unreadable" if single else "are mostly unreadable"
            how = f"{partly if most else unreadable} {part}"
        it = "it" if len(files) == 1 else "the first"
        why = f"; {it} begins {shown(details['first_line'])}" if read else f": {details['why']}"
        if read == "cut":
            why = f": {it} {details['why'].removeprefix(CUT_OFF.partition(': ')[0] + ': it ')}"
        like = f", like {looks_like}" if looks_like else ""
        evidence = {"files": listed(row["source"] for row in files), "why": details["why"]}
        yield _incomplete(
            f"{subject} {how}{why}{like}",
            ", ".join(filter(None, (what, place, looks_like, read, set_apart_as))),
            evidence,
            broker_name=files[0]["broker_name"],
            remedy=_IF_SET_APART.get(set_apart_as) or _if_unread(details["why"]),
        )


def _if_unread(why: str) -> str:
    """Return what to do about a file that cannot be read."""
    return WITH_TIME if f" {UNDATED} " in why else COLLECT_AGAIN


def not_collected(rows: Iterable[NotCollectedFact]) -> Iterator[Finding]:
    """Yield findings about files and answers that the collector failed to get, by server or client
    folder.

    All of the cluster's answers share one finding.
    """
    alike: dict[tuple[str, ...], list[NotCollectedFact]] = {}
    for row in rows:
        place = row["details"]["what"].split("/")
        broker = row["broker_name"] or ""
        alike.setdefault((broker, *place[: 1 if place[0] == "mqadmin" else 2]), []).append(row)
    for (broker, *place), failed in sorted(alike.items()):
        names = listed((row["details"]["what"] for row in failed), 3)
        what = names if len(failed) == 1 else f"{'/'.join(place)} ({names})"
        why = failed[0]["details"]["why"].rstrip(".")
        first = "" if len(failed) == 1 else "the first: "
        yield _incomplete(
            f"the collection of {what} is incomplete: {first}{why}",
            "/".join(place),
            {"what": listed(row["details"]["what"] for row in failed), "why": why},
            broker_name=broker or None,
        )


def renamed_groups(rows: Iterable[GroupRenamedFact]) -> Iterator[Finding]:
    """Yield a finding if groups have different names in logs and dumps."""
    named = [
        f"{row['details']['in_logs']} ({row['details']['log']} and other logs) has the client ids "
        f"of {row['details']['group']} ({row['details']['dump']})"
        if row["details"]["dump"].startswith("mqadmin/")
        else f"{row['details']['log']} creates {row['details']['in_logs']}, and the later "
        f"{row['details']['dump']} has {row['details']['group']} instead"
        for row in rows
    ]
    if named:
        yield _incomplete(
            f"logs and other files give groups different names: {listed(named)}; the audit reads "
            "the logs under the other files' names",
            "names of groups",
            {
                "groups": listed(row["details"]["group"] for row in rows),
                "in_logs": listed(row["details"]["in_logs"] for row in rows),
            },
            remedy="Redact logs, stores and dumps in one go, as `rebalance collect --redact` does.",
        )


def missing_exports(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield findings about stores that brokers keep in RocksDB and that were not exported
    recently.
    """
    facts, run = group.facts, group.run
    made = (row["last_ms"] for row in group.dumps if row["command"] == PROGRESS)
    progress = max(made, default=0)
    addresses = {
        row["broker_name"]: row["details"]["addr"]
        for row in facts["BROKER_IN_CLUSTER"]
        if row["details"].get("broker_id") == "0"
    }
    for row in facts["BROKER_STORE"]:
        broker, form = row["broker_name"], row["details"]["form"]
        if ROCKSDB_V2 in form:
            if progress >= run.end_ms - run.stale_ms and progress:
                continue
            yield _incomplete(
                f"{broker} keeps its offsets in config/rdb, which no command exports, and no "
                "recent consumerProgress was collected: what its groups have committed is unknown",
                PROGRESS,
                {"broker": broker, "form": form, "store": row["source"]},
                broker_name=broker,
                remedy="Collect consumerProgress, topicStatus and exportMetadata; with "
                "configManagerVersion=v2 there is no other source.",
            )
            continue
        missing = [name for name in EXPORTED if not row["details"][name]]
        old = [
            name
            for name in EXPORTED
            if row["details"][name] and int(row["details"][name]) < run.end_ms - run.stale_ms
        ]
        if missing or old:
            address = addresses.get(broker, "<address of the broker>")
            what = [f"{listed(missing)} not exported, or at an unknown time"] if missing else []
            what += [f"{listed(old)} exported more than {_hours(run.stale_ms)} ago"] if old else []
            yield _incomplete(
                f"the configurations of {broker} are in RocksDB: {'; '.join(what)}",
                "exports of RocksDB",
                {"broker": broker, "form": form, "store": row["source"]},
                broker_name=broker,
                remedy=f"mqadmin rocksDBConfigToJson -b {address}, right before config/*.json is "
                "copied; `rebalance collect` does it.",
            )


def lost_kinds(kinds: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding if this run lacks kinds of files that the previous run read.

    `missing_dumps` reports the remaining kinds.
    """
    kinds = [kind for kind in kinds if not any({kind} <= {*some} <= {*kinds} for some in _ASKED)]
    if kinds:
        yield _incomplete(
            f"the collection has no {' and no '.join(kinds)}, which the previous run read",
            listed(kinds),
            {"lost": listed(kinds)},
            remedy="Find out why it was not collected. If the source no longer exists, do "
            "nothing: the next run is compared with this one.",
        )


def old_collection(group: ClusterSnapshot) -> Iterator[Finding]:
    """Yield a finding if the collection ends earlier than allowed."""
    run, not_before_ms = group.run, group.not_before_ms
    if not_before_ms is not None and run.end_ms < not_before_ms:
        late = _hours(not_before_ms - run.end_ms)
        yield _incomplete(
            f"the newest file of the collection is {late} older than allowed",
            "recent files",
            {"end": utc(run.end_ms), "not_before": utc(not_before_ms)},
        )


def in_one_line(rows: list[FindingsRow], of_groups: Sequence[FindingsRow]) -> list[FindingsRow]:
    """Return the findings about a cluster, a single one for all missing logs if it has only dumps.

    That one names the findings that are uncertain without the logs, which `unsure_findings` then
    leaves out, and replaces those of `NO_SERVER_LOGS`.

    Args:
        rows: the findings about the cluster.
        of_groups: those about its groups.
    """
    alone = [row for row in rows if row["evidence"].get(LACKS) == ALL_BROKERS]
    if not alone:
        return rows
    (bare,) = alone
    unsure = [row for row in (*rows, *of_groups) if _lacks_log(row)]
    if unsure:
        be = "is" if len(unsure) == 1 else "are"
        groups = grouped(unsure, lambda row: row["consumer_group"] or row["broker_name"] or "")
        bare = bare.copy()
        bare["summary"] = (
            f"{bare['summary'].removesuffix('.')}; {plural(len(unsure), 'finding')} above INFO "
            f"{be} uncertain without the logs: {listed(_with_rules(groups))}."
        )
    kept = [row for row in rows if row["rule_id"] not in NO_SERVER_LOGS]
    return [bare if row is alone[0] else row for row in kept]


def _lacks_log(row: FindingsRow) -> bool:
    return (
        is_unsure(row) and row["accepted"] is None and row["evidence"]["why"].endswith(f" {NO_LOG}")
    )


def _with_rules(groups: Mapping[str, Sequence[FindingsRow]]) -> list[str]:
    """Return the subjects of findings, each with its rules."""
    return [
        f"{name} ({', '.join(sorted({row['rule_id'] for row in of_one}))})".lstrip()
        for name, of_one in sorted(groups.items())
    ]


def unsure_findings(rows: Iterable[FindingsRow]) -> Iterator[Finding]:
    """Yield a finding for each reason that lowers other findings to INFO.

    Args:
        rows: the rows of ``findings`` of one cluster, after `in_one_line`.
    """
    rows = list(rows)
    alone = any(row["evidence"].get(LACKS) == ALL_BROKERS for row in rows)
    unsure = [
        row
        for row in rows
        if is_unsure(row) and row["accepted"] is None and not (alone and _lacks_log(row))
    ]
    by_reason = grouped(unsure, lambda row: UTC_TEXT.sub("", row["evidence"]["why"]))
    for lacks, of_reason in sorted(by_reason.items()):
        why = listed(sorted({row["evidence"]["why"] for row in of_reason}))
        groups = grouped(of_reason, lambda row: row["consumer_group"] or row["broker_name"] or "")
        remedies = sorted({row["remedy"] for row in of_reason})
        be = "is" if len(of_reason) == 1 else "are"
        yield _incomplete(
            f"{plural(len(of_reason), 'finding')} above INFO {be} uncertain because {why}: "
            f"{listed(_with_rules(groups))}",
            lacks,
            {"groups": listed(groups), "findings": len(of_reason), "why": why},
            remedy=_sentences(remedies),
        )


def _sentences(texts: Sequence[str]) -> str:
    """Return the first texts, each a sentence, and the number of remaining ones."""
    more = len(texts) - REMEDIES
    return " ".join([*texts[:REMEDIES], *([f"And {more} more."] if more > 0 else [])])


def is_unsure(finding: FindingsBegun) -> bool:
    """Return True if a finding is INFO only because evidence is missing."""
    return finding["severity"] == verdicts.INFO and "not_covered" in finding["evidence"]


def _minutes(span_ms: int) -> str:
    return f"{span_ms // MINUTE_MS} min" if span_ms < 2 * HOUR_MS else _hours(span_ms)


def _hours(span_ms: int) -> str:
    return f"{span_ms / HOUR_MS:.0f} h"


def _incomplete(
    what: str, lacks: str, evidence: Mapping[str, object] = MappingProxyType({}), **where: Any
) -> Finding:
    """Return a finding; ``lacks`` distinguishes it from others about the same broker."""
    return Finding(what[0].upper() + what[1:] + ".", {**evidence, LACKS: lacks}, **where)


def _newest_of_brokers(group: ClusterSnapshot) -> dict[str, dict[str, int]]:
    """Return the latest time of each kind of file by broker; dumps have the kind ``dump``."""
    newest: dict[str, dict[str, int]] = {}
    for row in group.facts["BROKER_FILE"]:
        kinds = newest.setdefault(row["broker_name"], {})
        kind = row["details"]["file"]
        if kind == "log" and row["details"]["name"] != BROKER_LOG:
            kind = row["details"]["name"]  # lock.log has no lines about members
        kinds[kind] = max(kinds.get(kind, 0), row["last_ms"])
    for dump in group.dumps:
        if dump["broker_name"]:
            kinds = newest.setdefault(dump["broker_name"], {})
            kinds["dump"] = max(kinds.get("dump", 0), dump["last_ms"])
    return newest


def _log_ends(group: ClusterSnapshot) -> dict[str, int]:
    """Return when the broker.log of each running broker ends, if its last line has a time."""
    return {
        row["broker_name"]: int(row["details"]["until_ms"])
        for row in group.facts["BROKER_FILE"]
        if row["details"].get("until_ms") and row["broker_name"] not in group.run.down
    }


COLLECTION_INCOMPLETE = Rule(
    "COLLECTION_INCOMPLETE",
    verdicts.ERROR,
    "A broker, name server, dump or RocksDB export is missing, stale or empty, a kind of file that "
    "the previous run read is missing, a broker.log ends long before the dumps, the collector "
    "could not copy or query everything, logs and dumps give a group different names, or a finding "
    "is INFO only because evidence is missing. Results that depend on it are UNKNOWN, and the run "
    "is not green.",
    "EXPECTED_BROKER, EXPECTED_NAME_SERVER, BROKER_FILE, BROKER_STORE, NAME_SERVER_FILE, "
    "BROKER_IN_CLUSTER, DUMP, NOT_READ, NOT_COLLECTED, GROUP_RENAMED",
    "Find out why the file was not copied or why the command failed, and collect again.",
    about=BROKER,
    find_in_cluster=find_incomplete,
)


COVERAGE_UNKNOWN = Rule(
    "COVERAGE_UNKNOWN",
    verdicts.INFO,
    "The tables have no coverage because ingest did not write it, so the audit treats all times "
    "as covered.",
    "coverage",
    "Audit the collection, or the tables that ingest wrote from it.",
    find_in_cluster=find_no_coverage,
)
