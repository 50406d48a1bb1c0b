"""A file without a collection around it: an answer, a store or a log, recognised by its name, the
command line above it, or its content.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath

from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import (
    ADMIN,
    ANSWER_SUFFIX,
    BROKER_LOG,
    CLIENT_LOG,
    EVERYTHING,
    GIVEN_GROUPS,
    LOCK_LOG,
    MEMBERS,
    NAMESRV_LOG,
    POP_LOG,
    PROXIES,
    PROXY_CONFIG,
    PROXY_LOG,
    STORES,
    UNREAD_STORES,
    CollectedFile,
    Collection,
    identify,
    refusal_of_content,
    with_wrapping,
)
from rebalance_core.ingest.collection_settings import CollectionSettings
from rebalance_core.ingest.evidence import group_of_rows
from rebalance_core.ingest.fact import CUT_OFF, STRAY_LINE, Fact, Stated, Unread, Unreadable
from rebalance_core.ingest.fact_subjects import answers
from rebalance_core.ingest.file_reader import ADMIN_PARSERS, STORE_PARSERS
from rebalance_core.ingest.in_process import reader_of
from rebalance_core.ingest.log_block import lines_in
from rebalance_core.ingest.parse.command_output import parse_other
from rebalance_core.ingest.parse.console_tables import console_answers
from rebalance_core.ingest.parse.consumer_status import client_of_output
from rebalance_core.ingest.parse.dashboard_json import dashboard_answer
from rebalance_core.ingest.parse.encodings import decoded
from rebalance_core.ingest.parse.log_blocks import blocks_of
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX, is_retry_topic
from rebalance_core.storage.files_to_read import FolderToRead
from rebalance_core.storage.place import place_of

UNNAMED_CLUSTER, UNNAMED_GROUP = "unnamed-cluster", "unnamed-group"
UNNAMED_TOPIC, UNNAMED_BROKER = "unnamed-topic", "unnamed-broker"
UNNAMED_CLIENT = "unnamed@client"
"""Placeholders for names that neither the file nor its name contains."""

PROGRESS, STATUS = "consumerProgress", "consumerStatus"
_HEAD = 1024**2
"""Number of bytes of a log that identify its kind, more than a process logs during its start."""
_HOMES = {
    CLIENT_LOG: f"clients/{UNNAMED_CLIENT}/rocketmq_client.log",
    BROKER_LOG: f"brokers/{UNNAMED_BROKER}/broker.log",
    NAMESRV_LOG: "namesrv/namesrv.log",
    PROXY_LOG: f"{PROXIES}{UNNAMED_BROKER}/proxy.log",
    LOCK_LOG: f"brokers/{UNNAMED_BROKER}/lock.log",
    POP_LOG: f"brokers/{UNNAMED_BROKER}/pop.log",
    **{kind: f"brokers/{UNNAMED_BROKER}/config/{name}" for name, kind in STORES.items()},
    PROXY_CONFIG: f"{PROXIES}{UNNAMED_BROKER}/rmq-proxy.json",
}
"""The path in a collection for a file whose kind was identified from its content."""
_FOLDERS = ("mqadmin", "namesrv", "brokers", "clients", "proxy")
_BY_CONTENT = (
    MEMBERS,
    PROGRESS,
    STATUS,
    "topicStatus",
    "topicRoute",
    "clusterList",
    "exportMetadata",
    "getBrokerConfig",
)
"""Commands whose answers identify the command. A topicList is a list of arbitrary words."""
_FACT, _OWN_LINES = 3, 2
"""Evidence for a kind of file: each fact, and whether most lines have the head of that log. A
failure counts for less than either, because applications' logs quote the failures of their
requests.
"""
_COMMAND = re.compile(r"mqadmin(?:\.cmd|\.sh)?[\"']? +([A-Za-z]+)([^\n]*)")
_OPTION = re.compile(r"(?<=\s)(--?[A-Za-z]+)[ =]+(\"[^\"]*\"|'[^']*'|[^\s-]\S*)")
_GROUP, _TOPIC, _CLIENT = ("-g", "--groupName"), ("-t", "--topicName"), ("-i", "--clientId")
_HEADER = re.compile(r"\s*#(?:ClientId|Topic\s+#Broker|Broker ?Name|Cluster ?Name|Index)\b")
"""Begins the first table of an answer."""
_RUNNING_INFO = "#Consumer Properties#"
"""Begins a client's description of itself (consumerStatus -i)."""
_SECTION = re.compile(r"\s*#[^#]+#\s*$")
"""The title of a section of such a description; the table below it is part of the description."""
_TIME_ALONE = re.compile(r"\[?\d{1,2}:\d\d:\d\d\b")
_NOT_ONLINE = re.compile(r"consumer group\[([^\]\n]+)\] not online")


class NotRecognised(Exception):
    """Raised for a file that cannot be read; its text is a reason that follows the file's name."""


@dataclass(frozen=True)
class PastedFile(Collection):
    """A collection of one file, which may be anywhere.

    Attributes:
        path: its location.
        shown: its name in messages.
        of_dashboard: whether it is a JSON answer from the dashboard or console.
        undated: whether nothing shows when an answer was given or a store copied, so that the later
            time at which it was written here is used.
        group_unsure: whether nothing shows where the group ends in the name of a member list, which
            has a group or a group and a broker.
        stated: the facts in an answer.
    """

    path: Path = Path()
    shown: str = ""
    of_dashboard: bool = False
    undated: bool = False
    group_unsure: bool = False
    stated: tuple[Fact, ...] = ()

    @property
    def file(self) -> CollectedFile:
        """The only file of the collection."""
        return self.files[0]

    @property
    def is_named_log(self) -> bool:
        """Whether its name is the one that RocketMQ gives to its kind of log."""
        home = _HOMES.get(self.file.kind, "")
        return PurePath(self.shown).name.partition(".")[0] == PurePath(home).stem

    def path_of(self, file: CollectedFile) -> FolderToRead:
        """Return the location of the file."""
        return place_of(self.path)


_COLOUR = re.compile("\x1b\\[[\\d;]*[A-Za-z]")
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*$")
_PROMPT = re.compile(r"\s*(?:\[?[\w.-]+@[\w.-]+[ :].*[#$%](?: .*)?|[#$%>] .*|[#$%>])\s*$")


def undressed(text: str) -> str:
    r"""Return a pasted text without a terminal's colours, the marks of a quote or a code block, and
    the shell's prompts around a JSON document.

    >>> undressed("> #ClientId\n> a@1\n"), undressed("$ cat x.json\n{}\n$ ")
    ('#ClientId\na@1\n', '{}\n')
    """
    lines = _COLOUR.sub("", text).replace("\xa0", " ").splitlines(keepends=True)
    filled = [line for line in lines if line.strip()]
    if filled and all(line.startswith(">") for line in filled):
        lines = [line.removeprefix(">").removeprefix(" ") for line in lines]
    lines = [line for line in lines if not _FENCE.match(line)]
    prompts = [bool(_PROMPT.match(line)) for line in lines]
    begin = prompts.index(False) if False in prompts else 0
    if begin < len(lines) and lines[begin].lstrip().startswith(("{", "[{")):
        lines = [line for line, is_prompt in zip(lines, prompts, strict=True) if not is_prompt]
    return "".join(lines)


def answers_in(text: str) -> list[str]:
    """Return the consecutive mqadmin answers in a text, each with its command line, or the text
    itself if it has at most one answer.

    A console's tables are answers of the dashboard; the text around them is one only if it may be
    an answer or a log.

    >>> len(answers_in("#ClientId  #ClientAddr")), len(answers_in("#ClientId" + chr(10) + "#Index"))
    (1, 2)
    """
    consoles, rest = console_answers(text, UNNAMED_TOPIC)
    if consoles:
        return [*consoles, *(_printed(rest) if _SAYS_MORE.search(rest) else ())]
    return _printed(text)


_SAYS_MORE = re.compile(r"^\s*(?:#|\[?\{|\[?\d{4}[-/]|\S*mqadmin\b)", re.MULTILINE)
"""A line that may begin an answer, a JSON document or a log."""


def _printed(text: str) -> list[str]:
    parts, headed, titled = [""], False, False
    for line in text.splitlines(keepends=True):
        asked = bool(_COMMAND.search(line))
        head = line.strip() == _RUNNING_INFO or (not titled and bool(_HEADER.match(line)))
        titled = bool(_SECTION.match(line))
        if headed and (asked or head):
            parts.append("")
            headed = False
        parts[-1] += line
        headed = headed or head
    return parts


def recognise(
    path: Path, shown: str, written_ms: int, assumed: Assumptions, group: str | None = None
) -> PastedFile:
    """Recognise a file's kind; its name and any command line in it count if its contents confirm
    them.

    Args:
        path: the file's path.
        shown: its name in messages.
        written_ms: when an answer was given, unless the file's name contains the time.
        assumed: the assumptions, whose time zone is that of local times.
        group: the group that the answer is about; None if the file or its name has it.

    Raises:
        NotRecognised: it cannot be opened, is not text, or contains nothing that ingest reads.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as opened:
            head = opened.read(_HEAD)
    except OSError as error:
        raise NotRecognised(f"cannot be opened: {error.strerror or error}") from error
    return _Recognition(
        path=path,
        shown=shown,
        size=size,
        head=head,
        written_ms=written_ms,
        assumed=assumed,
        group=group,
    ).recognised()


@dataclass(frozen=True)
class _Recognition:
    """A file that may be of several kinds."""

    path: Path
    shown: str
    size: int
    head: bytes
    written_ms: int
    assumed: Assumptions
    group: str | None

    def recognised(self) -> PastedFile:
        """Return the file as the kind that fits most of its content."""
        if not self._text.strip():
            raise NotRecognised("is empty")
        name = PurePath(self.shown).name
        if name.removesuffix(".bak") in UNREAD_STORES:
            raise NotRecognised(f"is named {name}, a broker's store that ingest does not read")
        for file in self._asked():
            score, pasted = self._read_as(file)
            if score > 0:
                return pasted
        trials = [self._read_as(file) for file in self._any_kind()]
        score, pasted = max(trials, key=lambda trial: trial[0])
        if score > 0:
            return pasted
        refusal = refusal_of_content(pasted.file, self.head)
        raise NotRecognised(_reason(refusal) if refusal else self._why_not())

    def _asked(self) -> Iterator[CollectedFile]:
        """Yield the file's kind according to its name, then according to the command line copied
        with it.
        """
        yield from self._named()
        yield from self._commanded()

    def _named(self) -> Iterator[CollectedFile]:
        """Yield the file's possible kinds by its path in a collection, or by its own name."""
        parts = PurePath(self.shown).parts
        names = ["/".join(parts[n:]) for n, part in enumerate(parts[:-1]) if part in _FOLDERS]
        for folder in _FOLDERS:
            host = "" if folder == "mqadmin" else f"{UNNAMED_BROKER}/"
            names += [f"{folder}/{host}{parts[-1]}", f"{folder}/{host}config/{parts[-1]}"]
        for name in names:
            file = identify(name, self.size)
            if file is not None and file.kind != GIVEN_GROUPS:
                yield file
        stem = ANSWER_SUFFIX.sub("", parts[-1])
        for command in ADMIN_PARSERS:
            begin, word, end = stem.partition(command)
            if word and not begin[-1:].isalpha() and not end[:1].isalpha():
                yield self._answer(command, end.lstrip("-_. "))

    def _commanded(self) -> Iterator[CollectedFile]:
        """Yield the file's kind according to the command line copied with it."""
        for command, rest in _COMMAND.findall(self._text)[:1]:
            options = {name: value.strip("\"'") for name, value in _OPTION.findall(f" {rest}")}
            group, topic, client = (
                next((options[name] for name in names if name in options), "")
                for names in (_GROUP, _TOPIC, _CLIENT)
            )
            argument = topic if command.startswith("topic") else group
            if command in ADMIN_PARSERS:
                yield self._answer(command, argument, client if command == STATUS else "")

    def _any_kind(self) -> Iterator[CollectedFile]:
        """Yield every kind of file that the content may indicate."""
        gzipped = ".gz" if self.shown.endswith(".gz") else ""
        for kind, home in _HOMES.items():
            file = identify(home + gzipped, self.size) or identify(home, self.size)
            assert file is not None, kind
            yield file
        for command in _BY_CONTENT:
            yield self._answer(command, "")

    @cached_property
    def _text(self) -> str:
        return decoded(self.head)

    def _answer(self, command: str, argument: str, client: str = "") -> CollectedFile:
        name = f"mqadmin/{PurePath(self.shown).name}"
        arguments = (command, argument, client) if client else (command, argument)
        return CollectedFile(name, ADMIN, size=self.size, arguments=arguments)

    def _read_as(self, file: CollectedFile) -> tuple[int, PastedFile]:
        """Return how much more of the file is understood than refused, as a file of this kind."""
        settings = CollectionSettings(UNNAMED_CLUSTER)
        pasted = PastedFile(
            place_of(self.path.parent), settings, (file,), (), path=self.path, shown=self.shown
        )
        if refusal_of_content(file, self.head) is not None:
            return 0, pasted
        if file.is_log:
            return self._read_as_log(pasted)
        if file.kind == ADMIN:
            return self._read_as_answer(pasted)
        results = STORE_PARSERS[file.kind](self._whole, file.name)
        written_ms = file.written_ms or self.written_ms
        empty = not results and PurePath(file.name).name in self.shown
        return _score(results) or int(empty), replace(
            pasted,
            files=(replace(file, written_ms=written_ms, newest=True),),
            undated=not file.written_ms,
        )

    @cached_property
    def _whole(self) -> str:
        return decoded(self.path.read_bytes())

    def _read_as_log(self, pasted: PastedFile) -> tuple[int, PastedFile]:
        try:
            file = with_wrapping(pasted.file, self.head)
        except Unreadable:
            return 0, pasted
        reader = reader_of(pasted, file, self.assumed)
        groups = set[str]()
        try:
            with self.path.open("rb") as opened:
                blocks = iter(
                    blocks_of(
                        opened, file.size, gzipped=file.gzipped, encoding=file.wrapping.encoding
                    )
                )
                for piece in reader.read_lines(lines_in(next(blocks)), 0):
                    if not isinstance(piece, Unread) and (named := piece.values.get("group")):
                        groups.add(str(named))
                is_whole = next(blocks, None) is None
        except (Unreadable, StopIteration):
            return 0, pasted
        stats = reader.stats
        only = next(iter(groups or {UNNAMED_GROUP})) if is_whole and len(groups) < 2 else ""
        pasted = replace(pasted, files=(replace(file, group=self.group or only),))
        return _FACT * stats.facts + _OWN_LINES * (2 * stats.understood > stats.lines), pasted

    def _read_as_answer(self, pasted: PastedFile) -> tuple[int, PastedFile]:
        """Return the answer with the names of the queried objects, if known."""
        file = pasted.file
        command, argument, *client = file.arguments
        undated = not file.written_ms
        file = replace(file, written_ms=file.written_ms or self.written_ms)
        of_dashboard = dashboard_answer(command, self._whole, file.name)
        results = of_dashboard or ADMIN_PARSERS[command](self._whole, file.name)
        group = self.group or ""
        brokers, unsure = tuple[str, ...](), False
        if command == MEMBERS:
            group, broker, unsure = self._member_list(argument, results)
            brokers = (broker,)
            argument = f"{group}-{broker}"
        elif command == PROGRESS:
            file = replace(file, group=group or self._group_of_progress(argument, results))
        elif command == STATUS:
            argument = group or argument or _group_of_client(results) or UNNAMED_GROUP
            client_id = client_of_output(self._whole, results) or (client[0] if client else "")
            client = (
                [client_id if "@" in client_id else UNNAMED_CLIENT]
                if _is_of_client(results)
                else []
            )
        elif command.startswith("topic") and command != "topicList":
            argument = argument or UNNAMED_TOPIC
        file = replace(file, arguments=(command, argument, *client))
        return _score(results), replace(
            pasted,
            files=(file,),
            dumped_brokers=brokers,
            of_dashboard=of_dashboard is not None,
            undated=undated,
            group_unsure=unsure,
            stated=tuple(piece for piece in results if isinstance(piece, Stated)),
        )

    def _member_list(
        self, argument: str, results: Iterable[Fact | Unread]
    ) -> tuple[str, str, bool]:
        """Return the group and broker of a member list, by its name and its retry topic.

        The third value is True if the group's name may end with the broker's.
        """
        lists = (f for f in answers(results) if f.kind in ("member", "group_connection"))
        topics = [topic for fact in lists for topic, _ in fact.values["subscriptions"]]
        retry = [t.removeprefix(RETRY_TOPIC_PREFIX) for t in topics if is_retry_topic(t)]
        denied = _NOT_ONLINE.search(self._whole)
        groups = (self.group, denied and denied[1], *retry)
        group = next((name for name in groups if name and argument.startswith(f"{name}-")), None)
        if group is not None:
            return group, argument.removeprefix(f"{group}-"), False
        group = next((name for name in groups if name), None)
        unsure = group is None and "-" in argument
        return group or argument or UNNAMED_GROUP, UNNAMED_BROKER, unsure

    def _group_of_progress(self, argument: str, results: Iterable[Fact | Unread]) -> str:
        """Return the group of a list of queues, or an empty string if the list has all groups."""
        topics = [
            fact.values["topic"] for fact in answers(results) if fact.kind == "queue_progress"
        ]
        if argument in EVERYTHING:
            return (_group_of_retries(topics) or UNNAMED_GROUP) if topics else ""
        topic = topics[0] if topics else ""
        return group_of_rows(argument, with_clients=True, topic=topic)

    def _why_not(self) -> str:
        try:
            document: object = json.loads(self._text)
        except (ValueError, RecursionError):
            document = None
        answer: dict[str, object] = document if isinstance(document, dict) else {}
        if {"status", "data"} <= answer.keys():
            why = answer.get("errMsg")
            if answer["data"] and not why:
                return "is an answer from the dashboard, of which no entry is understood"
            return (
                f"is a failure of the dashboard: {why}"
                if why
                else "is an answer from the dashboard that lists nothing"
            )
        asked = [file.arguments[0] for file in self._asked() if file.kind == ADMIN]
        if cut := self._cut(asked):
            return cut
        command = next(iter(asked), "")
        if command:
            return f"is an answer from {command}, none of which is read"
        first = next((line.strip() for line in self._text.splitlines() if line.strip()), "")
        if _TIME_ALONE.match(first):
            return (
                "has lines with a time and no date, so that nothing in it is read; put the date "
                f"before each time; it begins {first[:80]!r}"
            )
        return f"is not a file that ingest reads; it begins {first[:80]!r}"

    def _cut(self, asked: Iterable[str]) -> str:
        """Return a description of an answer that ends within its first row; empty for any other."""
        headed = self._text.lstrip().startswith("#")
        for command in (*asked, *(_BY_CONTENT if headed else ())):
            parser = ADMIN_PARSERS.get(command, parse_other)
            refused = [p for p in parser(self._whole, "") if isinstance(p, Unread)]
            if refused and all(piece.message.startswith(CUT_OFF) for piece in refused):
                return f"is an answer from {command} and {refused[0].message}"
        return ""


def _score(results: Iterable[Fact | Unread]) -> int:
    """Return a score: the number of facts minus the refusals; a failure counts a little."""
    results = [piece for piece in results if isinstance(piece, Stated) or piece.code != STRAY_LINE]
    stated = [piece for piece in results if isinstance(piece, Stated) and piece.kind != "no_output"]
    shown = sum(piece.kind != "admin_error" for piece in stated)
    refused = sum(isinstance(piece, Unread) for piece in results)
    return _FACT * (shown - refused) if shown else len(stated) - refused


def _reason(refusal: Unread) -> str:
    return refusal.message.partition("' ")[2] or refusal.message


def _is_of_client(results: Iterable[Fact | Unread]) -> bool:
    return any(fact.kind == "client" for fact in answers(results))


def _group_of_retries(topics: Iterable[str]) -> str:
    """Return the group whose retry topic is in a group's list of queues; empty if it has none, or
    if it also has retry topics of pops, whose names end with a topic's.

    >>> _group_of_retries(["%RETRY%g", "T"]), _group_of_retries(["%RETRY%g_T", "T"])
    ('g', '')
    """
    topics = {*topics}
    retries = {topic for topic in topics if is_retry_topic(topic)}
    if len(retries) != 1:
        return ""
    group = retries.pop().removeprefix(RETRY_TOPIC_PREFIX)
    of_pops = any(group.endswith((f"_{topic}", f"+{topic}")) for topic in topics)
    return "" if of_pops else group


def _group_of_client(results: Iterable[Fact | Unread]) -> str:
    """Return the group of a client's own description, by its retry topic."""
    topics = (
        str(piece.values["topic"])
        for piece in results
        if isinstance(piece, Stated) and piece.kind == "client_subscription"
    )
    return next((t.removeprefix(RETRY_TOPIC_PREFIX) for t in topics if is_retry_topic(t)), "")
