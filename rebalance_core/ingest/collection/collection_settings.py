"""``collection.toml``: what only the person who collects the files knows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rebalance_core.ingest.parse.text.time_zones import UTC_NAME, known_zone
from rebalance_core.model.errors import InputRefused, did_you_mean

SETTINGS_NAME = "collection.toml"
_KEYS = ("cluster", "admin_time_zone", "time_zones", "expected")
_EXPECTED = ("brokers", "name_servers", "proxies")


@dataclass(frozen=True)
class CollectionSettings:
    """Cluster name, zones of files with local time, and who should be there.

    Attributes:
        cluster: name of the cluster; every row gets it.
        admin_time_zone: zone of the machine that ran mqadmin; None: not said.
        time_zones: zone per pattern of a file's path in the collection; the first that fits holds.
        brokers: names of the brokers expected.
        name_servers: names of the name servers expected.
        proxies: names of the proxies expected.
    """

    cluster: str
    admin_time_zone: str | None = None
    time_zones: Mapping[str, str] = field(default_factory=dict)
    brokers: tuple[str, ...] = ()
    name_servers: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()

    def zone_of(self, name: str) -> str | None:
        """The zone of a file by its path in the collection; None if no pattern fits."""
        return next((z for p, z in self.time_zones.items() if fnmatchcase(name, p)), None)


def read_settings(folder: Path) -> CollectionSettings:
    """The settings of a collection.

    Raises:
        InputRefused: the file is missing or wrong; every mistake is named.
    """
    path = folder / SETTINGS_NAME
    if path.exists() and not path.is_file():
        raise InputRefused(f"{path} cannot be read: it is no plain file")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        document = tomllib.loads(text)
    except FileNotFoundError as error:
        raise InputRefused(
            f'{path} is missing: it names the cluster, e.g. cluster = "DefaultCluster"'
        ) from error
    except OSError as error:
        raise InputRefused(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputRefused(f"{path} cannot be read as TOML: {error}") from error
    mistakes = _mistakes(document)
    if mistakes:
        raise InputRefused("\n".join(f"{path}: {mistake}" for mistake in mistakes))
    expected = document.get("expected", {})
    return CollectionSettings(
        cluster=document["cluster"],
        admin_time_zone=document.get("admin_time_zone"),
        time_zones=dict(document.get("time_zones", {})),
        brokers=tuple(expected.get("brokers", ())),
        name_servers=tuple(expected.get("name_servers", ())),
        proxies=tuple(expected.get("proxies", ())),
    )


def _mistakes(document: Mapping[str, Any]) -> list[str]:
    mistakes = [
        f"unknown key {key}{did_you_mean(key, _KEYS)} (valid keys: {', '.join(_KEYS)})"
        for key in document
        if key not in _KEYS
    ]
    cluster = document.get("cluster")
    if not isinstance(cluster, str) or not cluster.strip():
        mistakes.append("cluster is missing: the name of the RocketMQ cluster, as text")
    zones = document.get("time_zones", {})
    expected = document.get("expected", {})
    if not isinstance(zones, dict) or not isinstance(expected, dict):
        return [*mistakes, "time_zones and expected are tables: [time_zones], [expected]"]
    named = {"admin_time_zone": document.get("admin_time_zone", UTC_NAME)} | zones
    for where, zone in named.items():
        if not isinstance(zone, str) or not known_zone(zone):
            mistakes.append(f"{where} = {zone!r} is no time zone; expected e.g. America/New_York")
    mistakes += [f"the pattern {where!r} leaves the collection" for where in zones if ".." in where]
    for key, names in expected.items():
        if key not in _EXPECTED:
            mistakes.append(f"unknown key expected.{key}{did_you_mean(key, _EXPECTED)}")
        elif not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            mistakes.append(f"expected.{key} is a list of names")
    return mistakes
