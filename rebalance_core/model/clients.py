"""How clients in other languages differ from Java's, in a profile per language and range of
versions.

Every remoting client allocates queues itself, so a group's allocation is as planned only while all
its members allocate identically. Begin with `profile_of`. (See rocketmq.md §16; docs/fidelity.md
states what was tested and what was only read.) Tests hold the profiles to behaviour.tsv, which
records the clients that were run.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from rebalance_core.model.client_profile import (
    ANOTHER,
    AVG_ONLY,
    BYTES,
    CULTURE,
    DROP,
    GO_FAMILY,
    KEPT,
    NEVER_WITHOUT_COMMIT,
    NO_ANSWER_IS_NO_COMMIT,
    NO_LOCKS,
    ClientProfile,
)
from rebalance_core.model.client_releases import release_of
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import (
    BROKER_REBALANCE,
    LAST_OFFSET,
    PROXY_REBALANCE,
    GroupSettings,
)
from rebalance_core.model.intervals import Intervals
from rebalance_core.model.languages import (
    CPP,
    DOTNET,
    GO,
    JAVA,
    NODE,
    NODE_JS,
    PYTHON,
    RUST,
)

JAVA_PROFILE = ClientProfile()

_NOTHING_RUN = frozenset({
    "strategies", "order", "empty_list", "no_queue", "ends_pass", "each_topic", "retry", "locks",
    "pass_ms", "notified", "start",
})  # fmt: skip
_GO = ClientProfile(
    GO,
    strategies=GO_FAMILY,
    order=BYTES,
    empty_list=DROP,
    no_queue=DROP,
    locks=KEPT,
    reports_version=False,
)
_CPP = ClientProfile(
    CPP, strategies=AVG_ONLY, order=BYTES, ends_pass=True, pass_ms=10_000,
    starts_run=(LAST_OFFSET,), start=NO_ANSWER_IS_NO_COMMIT, reports_version=False,
    read=frozenset({"empty_list", "no_queue", "ends_pass", "locks"}),
)  # fmt: skip
_NODE = ClientProfile(
    NODE, strategies_run=("AVG",), locks=NO_LOCKS, pass_ms=10_000, notified=False, start=ANOTHER,
    reports_version=False,
    read=frozenset({"empty_list", "no_queue", "locks", "notified", "start"}),
)  # fmt: skip
_RUST = ClientProfile(
    RUST, order=BYTES, start=ANOTHER, reports_version=False,
    read=frozenset({"order", "empty_list", "no_queue", "locks", "pass_ms", "notified", "start"}),
)  # fmt: skip
_DOTNET = ClientProfile(
    DOTNET,
    strategies_run=(),
    order=CULTURE,
    retry=False,
    pass_ms=60_000,
    start=ANOTHER,
    reports_version=False,
    read=_NOTHING_RUN,
)

PROFILES: Mapping[str, tuple[ClientProfile, ...]] = {
    GO: (
        ClientProfile(
            GO, (None, "1.999"), strategies_run=(), start=ANOTHER, reports_version=False,
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
"""The profiles of each language in order of releases; the last is used for an unknown release."""

SAME_CLIENT = {PYTHON: CPP, NODE_JS: NODE}
"""Languages whose client is written in another language."""


@cache
def profile_of(language: str | None, version: str | None = None) -> ClientProfile:
    """Return the profile of a member with this ``language`` and ``version``.

    Args:
        language: One of `LANGUAGES`, or None if unknown. Languages whose client was never tested or
            read are treated as Java (`is_modelled` identifies them).
        version: The release of the client; None or one of RocketMQ's versions if unknown.

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


def is_modelled(language: str | None) -> bool:
    """Return False for a language whose client was never tested or read and is treated as Java.

    >>> is_modelled("GO"), is_modelled(None), is_modelled("PHP")
    (True, True, False)
    """
    language = SAME_CLIENT.get(language or JAVA, language or JAVA)
    return language == JAVA or language in PROFILES


def is_java(language: str | None) -> bool:
    """Return True if a member is treated as a Java client because its language is Java or
    unknown.
    """
    return profile_of(language) is JAVA_PROFILE


def member_profile(language: str | None, version: str, rebalance_mode: str) -> ClientProfile:
    """Return the profile of a member; a proxy allocates for members behind it in any language.

    >>> member_profile("GO", "5.0.0", "PROXY").language
    'JAVA'
    """
    return JAVA_PROFILE if rebalance_mode == PROXY_REBALANCE else profile_of(language, version)


def profile_of_row(member: Mapping[str, object]) -> ClientProfile:
    """Return the profile of a row of memberships."""
    mode, language = member["rebalance_mode"] or BROKER_REBALANCE, member["language"]
    known = None if language is None else str(language)
    return member_profile(known, str(member["version"]), str(mode))


def client_intervals(settings: GroupSettings, join: Event) -> Intervals:
    """Return the timer intervals of the client in a CONSUMER_JOIN.

    The group's pass intervals apply to Java; a client in another language has its own.
    """
    intervals = settings.intervals_of(join)
    profile = profile_at(settings, join)
    if profile is JAVA_PROFILE or join.wait_interval_ms is not None:
        return intervals
    return replace(intervals, wait_interval_ms=profile.pass_ms)


def window_intervals(settings: GroupSettings, join: Event) -> Intervals:
    """Return the intervals that bound windows, which are `client_intervals` or longer.

    A client that is not known to react to notices acts on a change only in its next periodic pass.
    """
    intervals = client_intervals(settings, join)
    if profile_at(settings, join).notice_run:
        return intervals
    return replace(intervals, wait_interval_ms=0, min_interval_ms=intervals.wait_interval_ms)


def profile_at(settings: GroupSettings, join: Event) -> ClientProfile:
    """Return the profile of the client in a CONSUMER_JOIN."""
    version = join.version or settings.client_version
    return member_profile(join.language, version, join.rebalance_mode or settings.rebalance_mode)


OTHER_RULES = "4.9"
"""The version whose rules clients in other languages follow unless their own are known: the classic
client, which does not ask brokers for its share and has no minimum interval between passes.
"""


def rules_version(language: str | None, version: str) -> str:
    """Return the RocketMQ version whose rules a member follows by default.

    >>> rules_version("JAVA", "5.3.3"), rules_version("GO", "2.1.2")
    ('5.3.3', '4.9')
    """
    return version if language in (None, JAVA) else OTHER_RULES


def _is_within(release: tuple[int, ...], bounds: tuple[str | None, str | None]) -> bool:
    first, last = (None if b is None else tuple(map(int, b.split("."))) for b in bounds)
    return (first is None or release >= first) and (last is None or release <= last)
