"""Client addresses that a tool has replaced (a fleet's real addresses are in few networks), and ids
that it has partly masked.
"""

import re
from collections.abc import Iterable
from itertools import zip_longest

from rebalance_core.ingest.collection import ADMIN, Collection
from rebalance_core.ingest.copied_names import client_id_of
from rebalance_core.ingest.file_reader import FileStats

LEAST_ADDRESSES = 3
"""Real addresses would share a network; this many hashed ones do not."""
MANY, MOSTLY = 5, 0.75
"""Among this many hashes, some share a network by chance, but most do not."""
_ADDRESS = re.compile(
    r"(172(?=\.(?:1[6-9]|2\d|3[01])\.)|\d{1,3}\.\d{1,3})\.\d{1,3}\.\d{1,3}(?:\.\d{1,3})?"
)
"""The network of an address; the networks that container engines assign, one per bridge, count as
one.
"""
_HASH = re.compile(r"(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{8,}")
"""A tool's replacement for an address; RocketMQ's own addresses belong to a network."""
_MASKED = re.compile(
    r"\*{2,}|…|\.{3}|(?<![A-Za-z])[xX]{3,}(?![A-Za-z])|[#@]\*|<[^>]*>|(?i:redact|masked|anonym)"
    r"|(?<=\d\.)[xX*]+(?=[.@])"
)
"""Replacements that tools insert for removed text."""


_MASK = re.compile(r"[xX*]+")


def looks_hashed(addresses: Iterable[str]) -> bool:
    """Return True if the addresses are hashes, or come from about as many networks as there are
    hosts.

    >>> looks_hashed(["10.0.0.1", "10.0.0.2", "10.1.0.3"]), looks_hashed(["9f86d081"])
    (False, True)
    >>> looks_hashed(["10.117.122.188", "10.71.254.20", "10.137.54.235"])
    True
    >>> looks_hashed(["172.17.0.2", "172.18.0.2", "172.19.0.2"])
    False
    """
    addresses = set(addresses)
    networks = [match[1] for match in map(_ADDRESS.fullmatch, addresses) if match]
    share = MOSTLY if len(addresses) >= MANY else 1
    apart = len(set(networks)) >= share * len(addresses) and len(addresses) >= LEAST_ADDRESSES
    return apart or any(map(_HASH.fullmatch, addresses))


def looks_masked(client_id: str) -> bool:
    """Return True if a part of the id is masked.

    >>> looks_masked("10.0.0.1@***"), looks_masked("10.0.x.x@1#2"), looks_masked("10.0.0.*@1#2")
    (True, True, True)
    >>> looks_masked("host-1@20078#2063471432709"), looks_masked("web.x.prod@1#2")
    (False, False)
    """
    return _MASKED.search(client_id) is not None


def stands_for(address: str, other: str) -> bool:
    """Return True if the addresses are equal except for the numbers that a tool masked in one.

    >>> stands_for("10.0.x.x", "10.0.3.1"), stands_for("10.0.0.1", "10.0.0.1")
    (True, True)
    >>> stands_for("10.0.x.x", "10.1.3.1"), stands_for("x.com", "y.com"), stands_for("", "10.0.3.1")
    (False, False, False)
    """
    pairs = list(zip_longest(address.split("."), other.split(".")))
    return all(a == b or (b and b.isdecimal() and _MASK.fullmatch(a or "")) for a, b in pairs)


def client_addresses(collection: Collection, stats: Iterable[FileStats]) -> set[str]:
    """Return the addresses of the clients that brokers' logs and lists name, or that have an answer
    to ``consumerStatus``.
    """
    asked = (
        file.name.rpartition("/")[2].removesuffix(".txt")
        for file in collection.files
        if file.kind == ADMIN and file.arguments[0] == "consumerStatus" and file.name.count("/") > 1
    )
    listed = (client_id for file_stats in stats for _, client_id in file_stats.members())
    return {name.partition("@")[0] for name in (*map(client_id_of, asked), *listed)}
