"""Proxy restarts, and where their gRPC clients go."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rebalance_core.model.errors import InputRefused, did_you_mean
from rebalance_core.model.times import MINUTE_MS, SECOND_MS, read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.scenario import edit
from rebalance_core.planning.scenario.cluster_life import ClusterNames
from rebalance_core.planning.scenario.edit import Edit
from rebalance_core.planning.scenario.group_life import EditedMember, GroupLife
from rebalance_core.protocol.proxy_stops import REGISTERED_AGAIN_MS

MOST_PROXIES = 1_000
EVERY_MS = MINUTE_MS
BACK_AFTER_MS = 30 * SECOND_MS
"""The default time for which a proxy is down."""
STOPPED, KILLED = "stopped", "killed"
_GLOB_SIGNS = frozenset("*?[")


@dataclass(frozen=True, kw_only=True)
class RestartProxies(Edit):
    """Restart of every proxy that ``proxy`` matches, one after another at intervals of ``every``.

    ``how``: ``stopped`` gracefully (SIGTERM) or ``killed``; each is back after ``back_after``. Its
    clients lose their connections and register at other proxies after `REGISTERED_AGAIN_MS`, or
    that long after the first proxy is back. A client is at the proxy whose log records its join;
    clients without such a log are distributed evenly, with a warning. ``proxies``: the number of
    proxies, if rows do not name them all.
    """

    KIND = "restart_proxies"

    proxy: tuple[str, ...] = table_keys.needed(table_keys.patterns)
    group: tuple[str, ...] = table_keys.key(table_keys.patterns, ("*",))
    how: str = table_keys.key(table_keys.one_of(STOPPED, KILLED), STOPPED)
    every: int = table_keys.key(read_duration, EVERY_MS)
    back_after: int = table_keys.key(read_duration, BACK_AFTER_MS)
    proxies: int | None = table_keys.key(table_keys.whole(1, MOST_PROXIES))

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return the groups."""
        return {"group": ("groups", self.group)}

    def concerns_group(self, consumer_group: str) -> bool:
        """Return True if the name matches."""
        return edit.matches(consumer_group, self.group)

    def unknown_names(self, clusters: Mapping[str, ClusterNames]) -> Iterator[str]:
        """Yield a mistake for each pattern that matches no proxy."""
        if not clusters:
            return
        known = {name for names in clusters.values() for name in names.proxies}
        most = max((sorted(names.proxies) for names in clusters.values()), key=len)
        if self.proxies is not None and self.proxies < len(most):
            yield f"proxies = {self.proxies}: rows name {len(most)} ({', '.join(most)})"
        for pattern in self.proxy:
            if known and not any(edit.matches(name, [pattern]) for name in known):
                hint = did_you_mean(pattern, known)
                yield f'proxy = "{pattern}" matches none of {len(known)} proxies{hint}'
            elif not known and self.proxies is None:
                yield (
                    f'proxy = "{pattern}" is not known: no row comes from a log of a proxy (source '
                    "proxy/<name>/…); state how many there are with proxies"
                )
        if not known and self.proxies is not None:
            yield from self._unresolved(self.proxies)

    def _unresolved(self, proxies: int) -> Iterator[str]:
        globs = [pattern for pattern in self.proxy if _GLOB_SIGNS & set(pattern)]
        for pattern in globs:
            yield f'proxy = "{pattern}" is a pattern, and no row names a proxy; name those meant'
        if len(self.proxy) > proxies:
            yield f"proxies = {proxies}: proxy names {len(self.proxy)}"

    def on_group(self, life: GroupLife, source: str) -> None:
        """Plan the stops."""
        if not any(map(life.is_proxied, life.members())):
            if life.consumer_group in self.group:
                raise InputRefused(
                    f"{source}: {life.consumer_group} has no member behind a proxy at that time "
                    "(rebalance_mode PROXY); leave the group out"
                )
            return
        if not life.proxies and (self.proxies is None or [*self._unresolved(self.proxies)]):
            raise InputRefused(
                f"{source}: no row of the cluster of {life.consumer_group} names a proxy; name "
                "those meant, and state how many there are with proxies"
            )
        names = self._names(life.proxies)
        for number, name in enumerate(name for name in names if edit.matches(name, self.proxy)):
            life.after(number * self.every, self._stop, life, source, name, names)

    def _names(self, known: Collection[str]) -> tuple[str, ...]:
        """Return all proxies; those that neither a row nor a pattern names get a number."""
        named = tuple(sorted(known)) or self.proxy
        others = range(len(named) + 1, (self.proxies or 0) + 1)
        return (*named, *(f"#{number}" for number in others))

    def _stop(self, life: GroupLife, source: str, name: str, names: Sequence[str]) -> None:
        self._place(life, source, names)
        back_ms = life.now_ms + self.back_after
        life.proxies_back[name] = max(back_ms, life.proxies_back.get(name, 0))
        life.at(back_ms, _come_back, life, name)
        for member in life.members():
            if member.proxy == name and life.is_proxied(member):
                life.disconnect(member, source)
                life.after(REGISTERED_AGAIN_MS, _reconnect, life, member, source, names)

    def _place(self, life: GroupLife, source: str, names: Sequence[str]) -> None:
        """Distribute the clients for which no row states a proxy."""
        up = [name for name in names if name not in life.proxies_back]
        unknown = [
            member
            for member in life.members()
            if life.is_proxied(member) and member.proxy not in names
        ]
        if not unknown:
            return
        for number, member in enumerate(life.draws(f"{source}/proxies").shuffled(unknown)):
            member.proxy = (up or names)[number % len(up or names)]
        life.log.warn(
            f"{source}: no row states to which of {len(names)} proxies {len(unknown)} clients of "
            f"{life.consumer_group} are connected; even shares are assumed"
        )


def _come_back(life: GroupLife, name: str) -> None:
    if life.proxies_back.get(name) == life.now_ms:
        del life.proxies_back[name]


def _reconnect(life: GroupLife, member: EditedMember, source: str, names: Sequence[str]) -> None:
    """Connect a client to a proxy that is up, or wait for the first one to return."""
    up = [name for name in names if name not in life.proxies_back]
    if not up:
        back_ms = min(life.proxies_back[name] for name in names)
        life.at(back_ms + REGISTERED_AGAIN_MS, _reconnect, life, member, source, names)
        return
    number = life.draws(f"{source}/{member.key[0]}/{life.now_ms}").between(0, len(up) - 1)
    if life.reconnect(member, source):
        member.proxy = up[number]
