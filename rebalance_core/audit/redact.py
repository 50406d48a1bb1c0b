"""Client ids, which hold addresses and process ids, replaced by names that reveal nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.observations import address_of
from rebalance_core.ingest.redaction import IPV4, IPV6

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FindingsBegun

Found = TypeVar("Found", bound="FindingsBegun")

PREFIX = "client-"
DIGITS = 10
ADDRESS = "(address)"
FOLDER = "clients/(client)"

HIDDEN = "(redacted)"
"""Replaces a table's text that may mention clients."""

CLIENT_COLUMNS = ("client_id", "other_client_id")
PLACE_COLUMNS = ("channel_id", "client_addr")
PLACES_OF_CLIENTS = r"(?<=clients/)[^/]+|[^/]*@[^/:]*|[0-9]{1,3}(\.[0-9]{1,3}){3}"
"""In a file's path: the folder of a client's logs, a name like a client id, or an address."""
DUMP_OF_CLIENT = re.compile(
    r"((?:^|/)[0-9]+-consumerStatus-[^/]*/)(.*?)((?:\.txt)?(?:[:@][0-9]+)?)$"
)
"""A path below a consumerStatus folder: the folder, the client's id, the rest."""
_PLACE_DETAILS = ("client_ip", "client_addr", "client_host", "log")
_NAMED = re.compile(rf"{PREFIX}[0-9a-f]{{{DIGITS}}}")
_FOLDER = r'\bclients/[^/\s"*]+'
_DUMP = r'\b[0-9]+-consumerStatus-[^/\s"]*/[^/\s":,;)]+'
_LIKE_A_CLIENT = r"[\w.:%\[\]-]+@(?:[\w.:%#@\[\]-]*[\w#])?"
_IP = rf"{IPV4}(?::\d+)?|{IPV6}"


def pseudonym(client_id: str, salt: str) -> str:
    """Return the name of a client id, the same in every run with the same salt.

    >>> pseudonym("10.0.0.1@7", "s")
    'client-d441ac7e2d'
    """
    return PREFIX + hashlib.sha256((salt + client_id).encode()).hexdigest()[:DIGITS]


class Redaction:
    """Texts and findings without client ids, clients' hosts and addresses.

    Recognisable ids are replaced everywhere: ids by their ``@``, IP addresses, folders of clients'
    logs, files of a consumerStatus. Ids and hosts that look like ordinary words are found if the
    group's rows name them.

    Args:
        salt: the salt for the names that replace client ids.
        group: the group that the texts are about; None for texts about the cluster.
        brokers: names that stay although they look like a client id or host.

    >>> Redaction("s").text("10.0.0.1@7 asked from 10.0.0.1:99 (clients/shop-1/client.log)")
    'client-d441ac7e2d asked from (address) (clients/(client)/client.log)'
    """

    def __init__(
        self, salt: str, group: GroupSnapshot | None = None, brokers: Iterable[str] = ()
    ) -> None:
        self._salt = salt
        clients, places, kept = _names(group) if group else (set[str](), set[str](), set[str]())
        kept.update(brokers)
        parts = {
            "client": _any_of(clients, r"(?<!\w)", r"(?!\w)"),
            "kept": _any_of(kept, r"(?<![\w.@-])", r"(?![\w@-])"),
            "folder": _FOLDER,
            "dump": _DUMP,
            "other": _LIKE_A_CLIENT,
            "place": _any_of(places, r"(?<![\w.-])", r"(?![\w-]|\.\w)"),
            "ip": _IP,
        }
        whole = "|".join(f"(?P<{name}>{part})" for name, part in parts.items() if part)
        self._pattern = re.compile(whole)

    def text(self, text: str) -> str:
        """Return the text with clients replaced by names and addresses by a placeholder."""
        return self._pattern.sub(self._replaced, text)

    def place(self, path: str) -> str:
        """Return the redacted path of a collection's file, which may end with a line number."""
        named = DUMP_OF_CLIENT.sub(lambda m: f"{m[1]}{self._name(m[2])}{m[3]}", path)
        return named if named != path else self.text(path)

    def finding(self, row: Found) -> Found:
        """Return a redacted row of ``findings``; text that is already redacted stays unchanged."""
        shown = row.copy()
        shown["summary"] = self.text(row["summary"])
        shown["remedy"] = self.text(row["remedy"])
        shown["accepted"] = self.text(row["accepted"]) if row["accepted"] else row["accepted"]
        shown["client_id"] = self._name(row["client_id"]) if row["client_id"] else None
        evidence = row["evidence"] or {}
        shown["evidence"] = {self.text(key): self.text(value) for key, value in evidence.items()}
        return shown

    def _name(self, client_id: str) -> str:
        return client_id if _NAMED.fullmatch(client_id) else pseudonym(client_id, self._salt)

    def _replaced(self, match: re.Match[str]) -> str:
        match match.lastgroup:
            case "client" | "other":
                return self._name(match[0])
            case "kept":
                return match[0]
            case "folder":
                return FOLDER
            case "dump":
                return match[0].partition("/")[0] + "/(client).txt"
        return ADDRESS


def _names(group: GroupSnapshot) -> tuple[set[str], set[str], set[str]]:
    """Collect from all rows of the group: client ids, hosts, connections, and names that stay."""
    clients, places, kept = set[str](), set[str](), {group.consumer_group}
    tables = cast("Mapping[str, Sequence[Mapping[str, object]]]", group.tables)
    for rows in tables.values():
        for row in rows:
            details = cast("Mapping[str, str]", row.get("details") or {})
            clients.update(str(row.get(name) or "") for name in CLIENT_COLUMNS)
            clients.add(details.get("owner", ""))
            places.update(str(row.get(name) or "") for name in PLACE_COLUMNS)
            for name in _PLACE_DETAILS:
                places.update((details.get(name) or "").split(", "))
            kept.update(str(row.get(name) or "") for name in ("topic", "broker_name"))
    places |= {address_of(client_id) for client_id in clients}
    places |= {place.rpartition(":")[0] for place in places}
    return clients, places - clients - kept, kept


def _any_of(names: Iterable[str], before: str, after: str) -> str:
    longest_first = sorted((name for name in names if name), key=len, reverse=True)
    return f"{before}(?:{'|'.join(map(re.escape, longest_first))}){after}" if longest_first else ""
