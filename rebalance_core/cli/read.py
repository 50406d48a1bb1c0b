"""The `read` job: recognise each file, and show what it contains on its own."""

import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.refused_starts import REFUSED_STARTS
from rebalance_core.cli.job_options import ReadOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.settings import assumptions, settings_of
from rebalance_core.cli.terminal import DRY_RUN, ExitCode, joined, utc
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    BROKER_METRICS,
    CLIENT_LOG,
    LOCAL_OFFSETS,
    LOCK_LOG,
    MEMBERS,
    NAMESRV_LOG,
    POP_LOG,
    PROXY_CONFIG,
    PROXY_LOG,
    ROCKSDB_SIGN,
    STORE_LISTING,
    STORES,
)
from rebalance_core.ingest.parse.encodings import decoded
from rebalance_core.ingest.pasted import (
    PROGRESS,
    STATUS,
    UNNAMED_BROKER,
    UNNAMED_CLIENT,
    UNNAMED_GROUP,
    UNNAMED_TOPIC,
    NotRecognised,
    PastedFile,
    answers_in,
    recognise,
    undressed,
)
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.file_statuses import READ
from rebalance_core.model.flow_control import COUNT, SIZE, SPAN
from rebalance_core.model.nouns import counted
from rebalance_core.model.times import PULL_MAX_IDLE_MS, SECOND_MS
from rebalance_core.model.verdicts import INFO, WORST_FIRST
from rebalance_core.process.read import FileShown, read_alone

if TYPE_CHECKING:
    from rebalance_core.audit.single_file import GroupShown
    from rebalance_core.contracts.rows import FindingsBegun
    from rebalance_core.ingest.assumptions import Assumptions

STANDARD_INPUT = "-"
_CODE_TWICE = re.compile(r"CODE (\d+) (?=CODE: \1\b)")
WIDTH = 100
LARGEST_PASTE = 4 * 1024**2
"""The largest file, in bytes, that is searched for more than one answer."""
GROUPS_SHOWN, QUEUES_SHOWN, FINDINGS_SHOWN, BROKERS_SHOWN = 3, 8, 5, 12
COMMITTING_SHOWN = 12
"""Number of groups whose commits are printed if a file has more than `GROUPS_SHOWN`."""
_KINDS = {
    BROKER_LOG: "a broker's log",
    LOCK_LOG: "a broker's lock.log or filter.log",
    POP_LOG: "a broker's pop.log",
    CLIENT_LOG: "a client's log",
    NAMESRV_LOG: "a name server's log",
    PROXY_LOG: "a proxy's log",
    PROXY_CONFIG: "a proxy's rmq-proxy.json",
    LOCAL_OFFSETS: "a BROADCASTING client's offset file",
    STORE_LISTING: "a listing of a broker's store folder",
    ROCKSDB_SIGN: "a file of a broker's RocksDB",
    BROKER_METRICS: "a broker's metrics",
    **{kind: f"a broker's {name}" for name, kind in STORES.items()},
}
READABLE = (
    "answers from mqadmin (consumerConnection, consumerProgress, consumerStatus, topicRoute, "
    "topicStatus, clusterList, exportMetadata), the same answers from the dashboard as JSON or "
    "copied from its page, topics.json, subscriptionGroup.json, consumerOffset.json, "
    "messageRequestMode.json, consumerOrderInfo.json, and logs of brokers, name servers, proxies "
    "and clients"
)
_UNNAMED = {
    UNNAMED_BROKER: "the broker",
    UNNAMED_GROUP: "the group",
    UNNAMED_TOPIC: "the topic",
    UNNAMED_CLIENT: "the client",
}
_FLOW = {
    COUNT: "the cached message count exceeds the threshold",
    SIZE: "the cached message size exceeds the threshold",
    SPAN: "span too long (consumeConcurrentlyMaxSpan), because one message is not finished",
}
_NOT_SHOWN = {
    MEMBERS: (
        "which queues each member holds (consumerProgress -s true), what it subscribes to "
        "(consumerStatus), and which members other brokers list"
    ),
    PROGRESS: "which members are connected (consumerConnection -b) and what each subscribes to "
    "(consumerStatus)",
    STATUS: "the other members (consumerConnection -b) and the ends of the queues "
    "(consumerProgress)",
    CLIENT_LOG: "the group's other members and what brokers answered them (consumerConnection -b, "
    "broker.log)",
    BROKER_LOG: "what other brokers saw, and which queues members hold (consumerProgress -s true)",
}
_NOT_SHOWN_BY_OTHERS = (
    "who the members are (consumerConnection -b), which queues they hold and how many messages are "
    "unread (consumerProgress -s true)"
)


def run(options: ReadOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    assumed = assumptions(settings_of(options))
    if options.dry_run:
        facts = {"job": "read", "dry_run": True, "exit_code": 0, "files": list(options.files)}
        return JobReport(joined([*DRY_RUN, *(f"reads {name}" for name in options.files)]), facts)
    files, texts = list[dict[str, Any]](), list[list[str]]()
    closing = dict[str, None]()
    for name in options.files:
        with _opened(name) as answers:
            for shown_as, path in answers:
                facts, lines, not_shown = _read(name, shown_as, path, assumed, options.group)
                files.append(facts)
                texts.append(lines)
                closing |= dict.fromkeys([not_shown] if not_shown else [])
    unread = [file for file in files if file["reason"] is not None]
    if len(unread) == len(files):
        raise InputRefused(_refusal(unread))
    code = ExitCode.DIFFERENCES if any(file["wrong"] for file in files) else ExitCode.OK
    if unread and code == ExitCode.OK:
        code = ExitCode.INPUT_REFUSED
    last = [_wrapped(f"This file alone does not show {not_shown}.", 0) for not_shown in closing]
    text = joined([line for lines in (*texts, *last) for line in (*lines, "")][:-1])
    results = {"job": "read", "files": files, "not_shown": list(closing)}
    return JobReport(text, results, code)


def _refusal(unread: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"{file['file']} {file['reason']}" for file in unread]
    return "\n".join([*lines, f"readable files: {READABLE}"])


def _read(
    name: str, shown_as: str, path: Path, assumed: "Assumptions", group: str | None
) -> tuple[dict[str, Any], list[str], str]:
    """Return what a file shows, as facts and as text, and what it does not show."""
    try:
        written_ms = int(path.stat().st_mtime * SECOND_MS) if path.exists() else 0
        label = "stdin" if name == STANDARD_INPUT else name
        pasted = recognise(path, label, written_ms, assumed, group)
        shown = read_alone(pasted, assumed)
        if shown.record["status"] != READ and not shown.error:
            raise NotRecognised(shown.record["reason"] or "states nothing")
    except NotRecognised as error:
        reason = str(error)
        facts = {"file": shown_as, "kind": None, "reason": reason, "wrong": False}
        return facts, _wrapped(f"{shown_as} {reason}", 0), ""
    facts = _facts(shown_as, pasted, shown)
    command = pasted.file.arguments[0] if pasted.file.kind == ADMIN else pasted.file.kind
    what = _what(pasted)
    if pasted.file.is_log and not (shown.record["facts"] or pasted.is_named_log):
        command, what = "", "a log"
    lines = _wrapped(f"{shown_as}: {what}{_extent(pasted, shown)}", 0)
    return (
        facts,
        [*lines, *_lines(pasted, shown, shown_as)],
        _NOT_SHOWN.get(command, _NOT_SHOWN_BY_OTHERS),
    )


@contextmanager
def _opened(name: str) -> Iterator[list[tuple[str, Path]]]:
    """Yield the label and path of each answer.

    The path is a copy if the answer comes from standard input, the file has several answers, or
    they are quoted.
    """
    shown_as = "standard input" if name == STANDARD_INPUT else name
    with tempfile.TemporaryDirectory(prefix="rebalance-read-") as folder:
        path = Path(name)
        if name == STANDARD_INPUT:
            path = Path(folder) / "stdin"
            path.write_bytes(sys.stdin.buffer.read() if sys.stdin is not None else b"")
        parts = _parts(path)
        if not parts:
            yield [(shown_as, path)]
            return
        answers = []
        for number, part in enumerate(parts, 1):
            copy = Path(folder) / f"answer-{number}"
            copy.write_text(part, "utf-8", newline="")
            shutil.copystat(path, copy)
            single = len(parts) == 1
            of_several = "" if single else f", answer {number} of {len(parts)}"
            answers.append((f"{shown_as}{of_several}", copy))
        yield answers


def _parts(path: Path) -> list[str]:
    """Return the answers in a file that must be read from copies; empty if the file itself is one
    answer.

    Unreadable and compressed files are left alone.
    """
    try:
        if path.suffix == ".gz" or path.stat().st_size > LARGEST_PASTE:
            return []
        content = path.read_bytes()
    except OSError:
        return []
    text = decoded(content)
    if "\x00" in text:
        return []
    plain = undressed(text)
    parts = answers_in(plain)
    return parts if parts != [text] else []


def _facts(name: str, pasted: PastedFile, shown: FileShown) -> dict[str, Any]:
    file, record = pasted.file, shown.record
    findings = [*shown.findings, *(f for group in shown.groups for f in group.findings)]
    wrong = bool(shown.error) or not shown.online or any(map(_is_wrong, findings))
    wrong = wrong or any(_is_refused(group, record["last_ms"]) for group in shown.groups)
    wrong = wrong or _is_partial(pasted, shown)
    return {
        "file": name,
        "kind": file.kind,
        "command": file.arguments[0] if file.kind == ADMIN else None,
        "of_dashboard": pasted.of_dashboard,
        "reason": None,
        "wrong": wrong,
        "error": shown.error or None,
        "online": shown.online,
        "lines": record["lines"],
        "understood": record["understood"],
        "partial": record["reason"] or None,
        "topics": [asdict(topic) for topic in shown.topics],
        "brokers": [asdict(broker) for broker in shown.brokers],
        "queue_ends": {"queues": shown.queues[0], "messages": shown.queues[1]},
        "stated": [{"kind": fact.kind} | dict(fact.values) for fact in pasted.stated],
        "groups": [
            group.facts() | {"findings": [_dated(finding, pasted) for finding in group.findings]}
            for group in shown.groups
        ],
        "findings": [_dated(finding, pasted) for finding in shown.findings],
    }


def _is_partial(pasted: PastedFile, shown: FileShown) -> bool:
    """Return True if parts of an answer or store are missing or were not understood."""
    return bool(shown.record["rejected"]) and not pasted.file.is_log


def _is_wrong(finding: "FindingsBegun") -> bool:
    return finding["severity"] != INFO


def _is_refused(group: "GroupShown", until_ms: int | None) -> bool:
    """Return True if a server still refuses the group's requests at the end of the log."""
    return any(
        refusal.reason.startswith("CODE ") and refusal.last_ms >= (until_ms or 0) - PULL_MAX_IDLE_MS
        for refusal in group.refusals
    )


def _lines(pasted: PastedFile, shown: FileShown, shown_as: str) -> list[str]:
    texts = []
    if shown.record["rejected"]:
        texts.append(f"parts of it were not understood: {shown.record['reason']}")
    if shown.error:
        texts.append(f"mqadmin failed: {_CODE_TWICE.sub('', shown.error)}")
    if not shown.online:
        texts.append("the answer: no member of the group is online (CODE 206)")
    if len(shown.groups) <= GROUPS_SHOWN:
        whole = not _is_partial(pasted, shown)
        texts += [text for group in shown.groups for text in _group_texts(group, pasted, whole)]
    else:
        texts.append(f"it names {len(shown.groups):,} groups")
        committing = [group for group in shown.groups if group.commits]
        if committing and not pasted.file.is_log:
            texts += map(_commits_text, committing[:COMMITTING_SHOWN])
            more = len(committing) - COMMITTING_SHOWN
            texts += [f"and {more} more groups with commits (--json has all)"] * (more > 0)
    if not shown.record["facts"] and not pasted.file.is_log and shown.online and not shown.error:
        texts.append("it lists nothing")
    of_group = pasted.file.arguments[0:1] == (PROGRESS,) and pasted.file.group
    if of_group and not shown.error and not any(group.queues for group in shown.groups):
        texts.append("it lists no queue")
    texts += _cluster_texts(shown)
    findings = [("", finding) for finding in shown.findings]
    for group in shown.groups:
        about = f"{group.consumer_group}: " if len(shown.groups) > 1 else ""
        findings += [(about, finding) for finding in group.findings]
    if not texts and not findings:
        texts += _stated_texts(pasted)
    words = {pasted.file.name: shown_as, **_UNNAMED, **_unknown_times(pasted)}
    texts = [_renamed(text, words) for text in texts]
    return [
        *(line for text in texts for line in _wrapped(text, 2)),
        *_finding_lines(findings, words),
    ]


def _stated_texts(pasted: PastedFile) -> Iterator[str]:
    """Yield the facts in an answer of which nothing else is shown, as ingest names them."""
    for fact in pasted.stated[:BROKERS_SHOWN]:
        values = ", ".join(f"{name} {value}" for name, value in _flat(fact.values))
        yield f"{fact.kind.replace('_', ' ')}: {values}"
    more = len(pasted.stated) - BROKERS_SHOWN
    if more > 0:
        yield f"and {more:,} more (--json has all)"


def _flat(values: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the names and values of a fact, those inside it under their own names."""
    for name, value in values.items():
        if name.endswith("_truncated"):
            continue
        if isinstance(value, Mapping):
            yield from _flat(value)
        elif isinstance(value, tuple):
            texts = (
                " ".join(map(str, each)) if isinstance(each, tuple) else each for each in value
            )
            yield from [(name, ", ".join(map(str, texts)))] * bool(value)
        elif value is not None:
            yield name, value


def _unknown_times(pasted: PastedFile) -> dict[str, str]:
    """Return the replacement for the time at which an answer was written here, if nothing dates
    it.
    """
    if not pasted.undated:
        return {}
    written = utc(pasted.file.written_ms)
    return {f" (dump of {written})": "", written: "an unknown time"}


def _dated(finding: "FindingsBegun", pasted: PastedFile) -> dict[str, Any]:
    """Return the finding without times that only show when an answer was written here."""
    words = _unknown_times(pasted)
    row: dict[str, Any] = {**finding, "summary": _renamed(finding["summary"], words)}
    row["evidence"] = {name: _renamed(text, words) for name, text in finding["evidence"].items()}
    for name in ("first_ms", "last_ms"):
        if words and row[name] == pasted.file.written_ms:
            row[name] = None
    return row


def _what(pasted: PastedFile) -> str:
    """Return the kind and subject of the file."""
    file = pasted.file
    if file.kind != ADMIN:
        return _KINDS[file.kind]
    command, argument, *client = file.arguments
    asked = "the dashboard's answer as of" if pasted.of_dashboard else "the answer of mqadmin"
    what = f"{asked} {command}"
    if command == MEMBERS:
        argument = argument.removesuffix(f"-{pasted.dumped_brokers[0]}")
    elif command == PROGRESS:
        argument = file.group
    of_client = f" of the client {client[0]}" if client and client[0] != UNNAMED_CLIENT else ""
    if argument in (UNNAMED_GROUP, UNNAMED_TOPIC):
        noun = "topic" if argument == UNNAMED_TOPIC else "group"
        option = " (--group)" if noun == "group" else ""
        return f"{what} of a {noun} that it does not name{option}{of_client}"
    unsure = ", which is the group, or group and broker (--group)" if pasted.group_unsure else ""
    return f"{what} {argument}".rstrip() + unsure + of_client


def _extent(pasted: PastedFile, shown: FileShown) -> str:
    record = shown.record
    if not pasted.file.is_log:
        return ""
    facts = f", {record['facts']:,} of {record['lines']:,} lines concern consumers"
    if not record["facts"]:
        return f", of {record['lines']:,} lines, none of which concerns consumers"
    times = [ms for ms in (record["first_ms"], record["last_ms"]) if ms is not None]
    for group in shown.groups:
        for queues in (*group.held_back, *group.not_taken):
            times += [queues.first_ms, queues.last_ms]
        for refusal in group.refusals:
            times += [refusal.first_ms, refusal.last_ms]
    return (f", {_span(min(times), max(times))}" if times else "") + facts


def _span(first_ms: int, last_ms: int) -> str:
    first, last = utc(first_ms), utc(last_ms)
    return f"at {first}" if first == last else f"from {first} to {last}"


def _cluster_texts(shown: FileShown) -> Iterator[str]:
    """Yield the file's facts about topics and brokers."""
    for broker in shown.brokers[:BROKERS_SHOWN]:
        yield f"{broker.broker_name} {broker.broker_id}: {broker.address}, {broker.version}"
    if len(shown.brokers) > BROKERS_SHOWN:
        yield f"and {len(shown.brokers) - BROKERS_SHOWN} more"
    if len(shown.topics) > BROKERS_SHOWN:
        yield f"it states the queues of {len({topic.topic for topic in shown.topics}):,} topics"
    else:
        for topic in shown.topics:
            read = counted(topic.read_queue_nums or 0, "queue")
            write = f"{topic.write_queue_nums} to write"
            yield f"{topic.topic} on {topic.broker_name}: {read} to read, {write}"
    queues, messages = shown.queues
    if queues:
        yield f"{counted(queues, 'queue')} with {counted(messages, 'message')} stored"


def _group_texts(group: "GroupShown", pasted: PastedFile, whole: bool) -> Iterator[str]:
    if pasted.file.kind != ADMIN:
        yield _commits_text(group)
    if group.connections and pasted.file.arguments[0:1] == (MEMBERS,):
        ids = {connection.client_id for connection in group.connections}
        several = f" of {counted(len(ids), 'client id')}" * (len(ids) < len(group.connections))
        kinds = Counter(
            " ".join(filter(None, (connection.language, connection.version)))
            for connection in group.connections
        )
        named = [f"{count} {kind}" for kind, count in kinds.most_common() if kind]
        clients = f": {', '.join(named)}" * bool(named)
        yield f"{counted(len(group.connections), 'connection')}{several}{clients}"
    if group.subscriptions:
        models = f" ({', '.join(group.message_models)})" if group.message_models else ""
        yield f"subscribed: {', '.join(group.subscriptions)}{models}"
    if group.held is not None:
        pops = f" and pops {counted(group.popped, 'queue')}" if group.popped else ""
        yield f"it holds {counted(group.held, 'queue')}{pops}{'' if whole else ' in the rows read'}"
    for held in group.held_back:
        queues, span = counted(held.queues, "queue"), _span(held.first_ms, held.last_ms)
        yield f"flow control of {queues} {span}: {_FLOW[held.reason]}"
    for start in group.not_taken:
        queues, span = counted(start.queues, "queue"), _span(start.first_ms, start.last_ms)
        yield f"{queues} not taken over {span}: the client {REFUSED_STARTS[start.reason]}"
    if group.cached:
        names = ", ".join(
            f"{each.topic} {each.broker_name}:{each.queue_id} {each.messages:,} "
            f"(commit {each.committed})"
            for each in group.cached[:QUEUES_SHOWN]
        )
        more = len(group.cached) - QUEUES_SHOWN
        also = f" and {more} more" if more > 0 else ""
        yield f"unfinished messages in the client's cache: {names}{also}"
    for refusal in group.refusals[:FINDINGS_SHOWN]:
        refused = "refused" if refusal.reason.startswith("CODE ") else "not answered"
        span = _span(refusal.first_ms, refusal.last_ms)
        minutes = counted(refusal.minutes, "minute")
        yield f"{refusal.request} {refused} in {minutes} {span}: {refusal.reason}"
    if group.queues:
        yield from _queue_texts(group, "" if whole else " in the rows read")


def _commits_text(group: "GroupShown") -> str:
    """Return the group's name, and the last commits of its queues."""
    name = f"group {group.consumer_group}"
    if group.consumer_group == UNNAMED_GROUP:
        name = "a group that it does not name (--group)"
    if not group.commits:
        return name
    texts = [
        f"{each.topic} {each.broker_name}:{each.queue_id} "
        + (f"from {each.first_offset} to " if each.first_offset != each.committed_offset else "at ")
        + str(each.committed_offset)
        for each in group.commits[:QUEUES_SHOWN]
    ]
    more = len(group.commits) - QUEUES_SHOWN
    also = f" and {more} more" if more > 0 else ""
    number = counted(len(group.commits), "queue")
    return f"{name}, commits of {number}: {', '.join(texts)}{also}"


def _queue_texts(group: "GroupShown", where: str) -> Iterator[str]:
    topics = sorted({queue.topic for queue in group.queues})
    holders = Counter(queue.client for queue in group.queues if queue.client)
    held = ", ".join(f"{client} ({count})" for client, count in sorted(holders.items()))
    without = len(group.queues) - holders.total()
    parts = [f"held by {held}"] * bool(held) + [f"{without} without a holder"] * bool(without)
    who = f": {', '.join(parts)}" if group.with_clients else "; no column names holders (-s true)"
    yield f"{counted(len(group.queues), 'queue')} of {', '.join(topics)}{where}{who}"
    unread = [queue for queue in group.queues if queue.unread > 0]
    total = sum(queue.unread for queue in unread)
    if not total:
        yield f"no queue{where} has unread messages"
        return
    unread.sort(key=lambda queue: -queue.unread)
    texts = [f"{o.topic} {o.broker_name}:{o.queue_id} {o.unread:,}" for o in unread[:QUEUES_SHOWN]]
    more = f" and {len(unread) - QUEUES_SHOWN} more" if len(unread) > QUEUES_SHOWN else ""
    yield f"{total:,} messages unread in {counted(len(unread), 'queue')}: {', '.join(texts)}{more}"


def _finding_lines(
    findings: Sequence[tuple[str, "FindingsBegun"]], words: Mapping[str, str]
) -> list[str]:
    """Return the first few findings of each rule, the most severe rules first.

    Args:
        findings: the findings, each with the words that name its group if there are several.
        words: replacements for names assigned by ingest.
    """
    rules: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for about, finding in findings:
        texts = _renamed(about + finding["summary"], words), _renamed(finding["remedy"], words)
        rules.setdefault((finding["severity"], finding["rule_id"]), []).append(texts)
    lines = []
    for (severity, rule_id), of_rule in sorted(
        rules.items(), key=lambda item: WORST_FIRST.index(item[0][0])
    ):
        lines += ["", f"  {severity:<8} {rule_id}"]
        shown = of_rule[:FINDINGS_SHOWN]
        for number, (summary, remedy) in enumerate(shown):
            lines += _wrapped(summary, 11)
            if number + 1 == len(shown) or shown[number + 1][1] != remedy:
                lines += _wrapped(f"-> {remedy}", 11)
        if len(of_rule) > len(shown):
            lines += _wrapped(f"and {len(of_rule) - len(shown)} more", 11)
    return lines


def _renamed(text: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(name, word)
    return text


def _wrapped(text: str, indent: int) -> list[str]:
    return wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
        break_long_words=False,
    )
