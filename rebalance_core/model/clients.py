"""Clients by version and by language, and which rules each follows.

Every client divides queues itself, and not all do it as Java does. What changed between versions
of Java's client stands beside the rule that changed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from rebalance_core.model import times
from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import (
    BROKER_REBALANCE,
    CPP,
    DOTNET,
    GO,
    JAVA,
    LANGUAGES,
    LAST_OFFSET,
    NODE,
    NODE_JS,
    PROXY_REBALANCE,
    PYTHON,
    RUST,
    GroupSettings,
    Intervals,
)

# RocketMQ versions: parsing and order. What changed when stands beside the rule that changed.

LAST_PATCH = {
    (4, 9): 8, (5, 0): 0, (5, 1): 4, (5, 2): 0, (5, 3): 3, (5, 4): 0, (5, 5): 0,
}  # fmt: skip
"""The last release of each known line that has a client: of 5.3.4 and 5.5.1 none was published."""
OLDEST = (4, 9)
HIGHER_TEXT = "HIGHER.VERSION"
"""``HIGHER_VERSION`` without its underscore: a version after the last one that RocketMQ knows."""

_NUMBERS = r"[Vv]?(\d{1,9})[._](\d{1,9})(?:[._](\d{1,9}))?"
_PATTERN = re.compile(_NUMBERS + "(?:[-_.]SNAPSHOT)?")
_STATED = re.compile(_NUMBERS + r"(?:[-_.]\w+)?")


class Version(NamedTuple):
    """A released version; compares numerically, also with plain tuples such as ``(5, 1, 1)``."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def is_v4(self) -> bool:
        """True for the classic client line 4.9.x."""
        return self.major == 4


def is_known_line(version: Version) -> bool:
    """True if the rules of its line were read; later lines are taken as the newest known one.

    >>> is_known_line(Version(5, 5, 1)), is_known_line(Version(5, 6, 0))
    (True, False)
    """
    return version[:2] in LAST_PATCH


def parse_version(text: str) -> Version:
    """``"5.3.3"``, ``"5.3"`` (its last patch) or ``"V4_9_7"`` as a `Version`.

    Versions after the newest known line behave as that line. Raises `UsageError` for text that is
    no version and for lines before 4.9, whose rules are not modelled.

    >>> parse_version("4.9")
    Version(major=4, minor=9, patch=8)
    """
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a RocketMQ version; expected e.g. 4.9.7 or 5.3")
    major, minor = int(match[1]), int(match[2])
    if (major, minor) < OLDEST:
        raise UsageError(f"RocketMQ {text} is not modelled; the oldest line is 4.9")
    patch = int(match[3]) if match[3] is not None else LAST_PATCH.get((major, minor), 0)
    return Version(major, minor, patch)


def nearest_version(text: str) -> Version | None:
    """The version whose rules stand for one that a file states; None if the text is no version.

    A snapshot has the rules of its release. One before the oldest known line has those of that
    line's first release, and ``HIGHER_VERSION`` those of the newest line.

    >>> nearest_version("5.3.4.SNAPSHOT"), nearest_version("4.8.0")
    (Version(major=5, minor=3, patch=4), Version(major=4, minor=9, patch=0))
    >>> nearest_version("HIGHER.VERSION"), nearest_version("-")
    (Version(major=5, minor=5, patch=0), None)
    """
    text = text.strip()
    if text.replace("_", ".") == HIGHER_TEXT:
        newest = max(LAST_PATCH)
        return Version(*newest, LAST_PATCH[newest])
    if is_before_known(text):
        return Version(*OLDEST, 0)
    return parse_version(text) if _PATTERN.fullmatch(text) else None


def is_before_known(text: str) -> bool:
    """True for a version before the oldest line whose rules are known.

    >>> is_before_known("V3_0_0_BETA5"), is_before_known("4.9.0"), is_before_known("-")
    (True, False, False)
    """
    match = _STATED.fullmatch(text.strip())
    return match is not None and (int(match[1]), int(match[2])) < OLDEST


# How clients of each language behave where it is not as Java's do: one profile for each language
# and range of versions.
#
# Every remoting client divides by itself. A group divides as planned only while all of its
# members divide alike. Begin with `profile_of`. (rocketmq.md §16; what was run and what was only
# read is in docs/fidelity.md.)


def parse_language(text: str) -> str:
    """A language text as it stands. Raises `UsageError` for one that is none.

    >>> parse_language("GO")
    'GO'
    """
    if text not in LANGUAGES:
        known, given = ", ".join(LANGUAGES), text.upper()
        begun = max((one for one in LANGUAGES if given.startswith(one)), key=len, default="")
        near = f"; did you mean {begun}?" if begun else did_you_mean(given, LANGUAGES)
        raise UsageError(f"{text!r} is no language; valid: {known}{near}")
    return text


# What a profile says.

JAVA_FAMILY, GO_FAMILY, AVG_ONLY = "JAVA", "GO", "AVG_ONLY"
"""Which strategies a client has: Java's, Go's own of the same names, or none but AVG."""
UTF16, BYTES, CULTURE = "UTF16", "BYTES", "CULTURE"
"""How a client sorts ids and queues: as Java, by the bytes of UTF-8, by its host's culture."""
KEEP, DROP, FREEZE = "KEEP", "DROP", "FREEZE"
UNLOCKED, KEPT, NO_LOCKS = "UNLOCKED", "KEPT", "NONE"

AS_JAVA = "AS_JAVA"
"""Start: without a commit the mode decides; without an answer the queue is not taken."""
NEVER_WITHOUT_COMMIT = "NEVER_WITHOUT_COMMIT"
"""Start: a queue without a commit is not taken, and asked for again in each pass."""
NO_ANSWER_IS_NO_COMMIT = "NO_ANSWER_IS_NO_COMMIT"
"""Start: any failure of the question counts as no commit, so the mode decides."""
ANOTHER = "ANOTHER"
"""Start: by rules of its own, or of nobody knows which release."""

KEPT_LOCK_MS = (times.BROKER_LOCK_LIFE_MS - times.LOCK_RENEWAL_MS, times.BROKER_LOCK_LIFE_MS)
"""How long a lock lives on that its holder keeps while it gives the queue up, at least and at
most: 60 s after its last lockAll, which came every 20 s."""


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """How the clients of one library and range of releases behave; by default as Java's.

    Attributes:
        language: `JAVA`, or the language whose client it is (of Python's, which is C++: `CPP`).
        releases: The first and the last one of it, both included; None: no end, or not known.
        strategies: `JAVA_FAMILY`, `GO_FAMILY`, `AVG_ONLY`; see `strategies.texts.own_strategy`.
        strategies_run: Names of those that were run; None: all. Which queues a member takes by
            another one is not known.
        order: `UTF16`, `BYTES` or `CULTURE`; of ids and queues.
        empty_list: What it does with its queues when a broker answers that the group has no
            consumer: `KEEP` or `DROP`. Without an answer all keep them.
        no_queue: What it does with those of a topic without a readable queue: `FREEZE` (keep
            them) or `DROP`.
        ends_pass: A topic without an answer ends its pass, so that it keeps what it has of those
            after it, by name.
        each_topic: False: it divides the queues of all of its topics as one list.
        retry: It subscribes the retry topic.
        locks: Order locks of queues that it gives up while it lives: `UNLOCKED`, `KEPT`
            (see `KEPT_LOCK_MS`) or `NO_LOCKS`.
        pass_ms: Between two passes of its own.
        notified: It runs a pass at once when a broker tells it that members changed.
        start: `AS_JAVA`, `NEVER_WITHOUT_COMMIT`, `NO_ANSWER_IS_NO_COMMIT` or `ANOTHER`.
        starts_run: Start modes of which the start without a commit was run; None: all.
        version_told: The version that brokers print is the client's release. Else it is one of
            RocketMQ's, the same in each release.
        read: Attributes that are known from its source alone. They give bounds, or nothing is
            known; all others were run.
    """

    language: str = JAVA
    releases: tuple[str | None, str | None] = (None, None)
    strategies: str = JAVA_FAMILY
    strategies_run: tuple[str, ...] | None = None
    order: str = UTF16
    empty_list: str = KEEP
    no_queue: str = FREEZE
    ends_pass: bool = False
    each_topic: bool = True
    retry: bool = True
    locks: str = UNLOCKED
    pass_ms: int = times.REBALANCE_WAIT_MS
    notified: bool = True
    start: str = AS_JAVA
    starts_run: tuple[str, ...] | None = None
    version_told: bool = True
    read: frozenset[str] = frozenset()

    def share_known(self, strategy: str) -> bool:
        """False if nobody knows which queues such a member takes by a strategy text.

        Its order is its host's, or nobody ran it with the strategy.

        >>> profile_of("NODE").share_known("AVG"), profile_of("NODE").share_known("AVG_BY_CIRCLE")
        (True, False)
        """
        run = self.strategies_run
        return self.order != CULTURE and (run is None or _name(strategy) in run)

    @property
    def may_be_doubtful(self) -> bool:
        """Rules that were only read may decide which queues such a member holds."""
        return not self.read.isdisjoint(("order", "no_queue", "locks"))

    @property
    def notice_run(self) -> bool:
        """It was seen that a notice makes it run a pass."""
        return self.notified and "notified" not in self.read

    def start_known(self, mode: str) -> bool:
        """True if it is known where such a member starts without a commit under a mode."""
        if "start" in self.read or self.start == ANOTHER:
            return False
        return self.starts_run is None or mode in self.starts_run


# The profiles: one a language and range of releases (reference: behaviour.tsv of the clients that
# were run; tests hold each row to it).

JAVA_PROFILE = ClientProfile()

_NOTHING_RUN = frozenset({
    "strategies", "order", "empty_list", "no_queue", "ends_pass", "each_topic", "retry", "locks",
    "pass_ms", "notified", "start",
})  # fmt: skip
_GO = ClientProfile(
    GO, strategies=GO_FAMILY, order=BYTES, empty_list=DROP, no_queue=DROP, locks=KEPT,
    version_told=False,
)  # fmt: skip
_CPP = ClientProfile(
    CPP, strategies=AVG_ONLY, order=BYTES, ends_pass=True, pass_ms=10_000,
    starts_run=(LAST_OFFSET,), start=NO_ANSWER_IS_NO_COMMIT, version_told=False,
    read=frozenset({"empty_list", "no_queue", "ends_pass", "locks"}),
)  # fmt: skip
_NODE = ClientProfile(
    NODE, strategies_run=("AVG",), locks=NO_LOCKS, pass_ms=10_000, notified=False, start=ANOTHER,
    version_told=False,
    read=frozenset({"empty_list", "no_queue", "locks", "notified", "start"}),
)  # fmt: skip
_RUST = ClientProfile(
    RUST, order=BYTES, start=ANOTHER, version_told=False,
    read=frozenset({"order", "empty_list", "no_queue", "locks", "pass_ms", "notified", "start"}),
)  # fmt: skip
_DOTNET = ClientProfile(
    DOTNET, strategies_run=(), order=CULTURE, retry=False, pass_ms=60_000, start=ANOTHER,
    version_told=False, read=_NOTHING_RUN,
)  # fmt: skip

PROFILES: Mapping[str, tuple[ClientProfile, ...]] = {
    GO: (
        ClientProfile(
            GO, (None, "1.999"), strategies_run=(), start=ANOTHER, version_told=False,
            read=_NOTHING_RUN,
        ),
        replace(
            _GO, releases=("2.0.0", "2.1.0"), start=NO_ANSWER_IS_NO_COMMIT,
            read=frozenset({"start"}),
        ),
        replace(_GO, releases=("2.1.1", "2.1.1"), start=NEVER_WITHOUT_COMMIT),
        replace(_GO, releases=("2.1.2", None), starts_run=(LAST_OFFSET,)),
        replace(_GO, start=ANOTHER),
    ),
    CPP: (_CPP,),
    NODE: (_NODE,),
    RUST: (
        replace(_RUST, releases=(None, "0.999"), strategies_run=(), read=_NOTHING_RUN),
        _RUST,
    ),
    DOTNET: (
        replace(_DOTNET, releases=(None, "2.999")),
        replace(_DOTNET, releases=("3.0", None), each_topic=False),
        _DOTNET,
    ),
}  # fmt: skip
"""By language, the releases in order; the last one stands for a release that is not known."""

SAME_CLIENT = {PYTHON: CPP, NODE_JS: NODE}
"""Languages whose client is that of another one."""

ROCKETMQ_MAJOR = 4
"""From here on a version is one of RocketMQ's, which a client sends in each of its releases (Go
4.5.2, C++ 4.6.0, .NET 4.8.0 or 4.9.7): it says nothing of the client."""


@cache
def profile_of(language: str | None, version: str | None = None) -> ClientProfile:
    """The profile of a member by its ``language`` and ``version``.

    Args:
        language: One of `LANGUAGES`; None: not known. Those that nobody ran or read divide as
            Java (`is_modelled` tells them).
        version: The release of the client; None, or one of RocketMQ's: not known.

    >>> profile_of("GO", "2.1.1").start, profile_of("GO", "4.5.2").start, profile_of("ERLANG").order
    ('NEVER_WITHOUT_COMMIT', 'ANOTHER', 'UTF16')
    """
    language = SAME_CLIENT.get(language or JAVA, language or JAVA)
    profiles = PROFILES.get(language, (JAVA_PROFILE,))
    release = release_of(version)
    if release is None:
        return profiles[-1]
    within = (each for each in profiles[:-1] if _is_within(release, each.releases))
    return next(within, profiles[-1])


_GO_RELEASES = {"v2.0.0": "2.0.0", "v2.1.1": "2.1.2"}
"""Go's release by the version that it tells: 2.1.2 and later still say v2.1.1; v2.1.0 is that of
2.1.0 and of 2.1.1, which start otherwise."""


def told_release(language: str, text: str | None) -> str | None:
    """The release of a client by its PROP_CLIENT_VERSION; None: that does not tell it.

    >>> told_release("GO", "v2.1.1"), told_release("GO", "v2.1.0"), told_release("CPP", "V3_1_8")
    ('2.1.2', None, None)
    """
    return _GO_RELEASES.get(text or "") if language == GO else None


def is_modelled(language: str | None) -> bool:
    """False for a language of which no client was run or read: it is taken as Java.

    >>> is_modelled("GO"), is_modelled(None), is_modelled("PHP")
    (True, True, False)
    """
    language = SAME_CLIENT.get(language or JAVA, language or JAVA)
    return language == JAVA or language in PROFILES


def is_java(language: str | None) -> bool:
    """True if a member is taken as a Java client: its language says so, or is not known."""
    return profile_of(language) is JAVA_PROFILE


def member_profile(language: str | None, version: str, rebalance_mode: str) -> ClientProfile:
    """`profile_of` a member; a proxy divides for those behind it, whatever their language.

    >>> member_profile("GO", "5.0.0", "PROXY").language
    'JAVA'
    """
    return JAVA_PROFILE if rebalance_mode == PROXY_REBALANCE else profile_of(language, version)


def profile_of_row(member: Mapping[str, Any]) -> ClientProfile:
    """`member_profile` of a row of memberships."""
    mode = member["rebalance_mode"] or BROKER_REBALANCE
    return member_profile(member["language"], str(member["version"]), mode)


def client_intervals(settings: GroupSettings, join: Event) -> Intervals:
    """Intervals of the timers of the client that a CONSUMER_JOIN is about.

    The group's settings of passes are Java's; a client of another language has its own.
    """
    intervals = settings.intervals_of(join)
    profile = profile_at(settings, join)
    if profile is JAVA_PROFILE or join.wait_interval_ms is not None:
        return intervals
    return replace(intervals, wait_interval_ms=profile.pass_ms)


def window_intervals(settings: GroupSettings, join: Event) -> Intervals:
    """The intervals by which windows are bounded: `client_intervals`, or longer.

    A client that no notice wakes, as far as anybody saw, acts on what others are told of with its
    next pass.
    """
    intervals = client_intervals(settings, join)
    if profile_at(settings, join).notice_run:
        return intervals
    return replace(intervals, wait_interval_ms=0, min_interval_ms=intervals.wait_interval_ms)


def profile_at(settings: GroupSettings, join: Event) -> ClientProfile:
    """The profile of the client that a CONSUMER_JOIN is about."""
    version = join.version or settings.client_version
    return member_profile(join.language, version, join.rebalance_mode or settings.rebalance_mode)


OTHER_RULES = "4.9"
"""What clients of other languages were written after: where nothing is said of them they follow
the classic client (no question to brokers for their share, no interval between two passes)."""


def rules_version(language: str | None, version: str) -> str:
    """The RocketMQ version whose rules a member follows where its profile says nothing else.

    >>> rules_version("JAVA", "5.3.3"), rules_version("GO", "2.1.2")
    ('5.3.3', '4.9')
    """
    return version if language in (None, JAVA) else OTHER_RULES


_RELEASE = re.compile(r"[vV]?(\d{1,9}(?:\.\d{1,9}){1,3})(?:[-_.+].*)?")


def release_of(version: str | None) -> tuple[int, ...] | None:
    """The release of a client that is not Java's; None: the version does not tell it.

    >>> release_of("v2.1.3-0.20251226070945"), release_of("4.5.2")
    ((2, 1, 3), None)
    """
    found = _RELEASE.fullmatch((version or "").strip())
    release = () if found is None else tuple(map(int, found[1].split(".")))
    return release if release and release[0] < ROCKETMQ_MAJOR else None


def parse_release(text: str) -> str:
    """The release of a client of another language as it stands. Raises `UsageError`.

    >>> parse_release("2.1.2")
    '2.1.2'
    """
    if not _RELEASE.fullmatch(text.strip()):
        raise UsageError(f"{text!r} is no release of a client; expected e.g. 2.1.2")
    return text


def _name(strategy: str) -> str:
    return strategy.strip().partition("(")[0]


def _is_within(release: tuple[int, ...], bounds: tuple[str | None, str | None]) -> bool:
    first, last = (None if b is None else tuple(map(int, b.split("."))) for b in bounds)
    return (first is None or release >= first) and (last is None or release <= last)
