"""Names that files receive on their way into a collection: second downloads, backups, escaped
ids.
"""

import re
from urllib.parse import unquote

_COPIES = (
    r" ?\(\d{1,4}\)|\[\d{1,4}\]"  # a browser's second download
    r"| - (?:Copy|Kopie|Copie|copia|副本|コピー)(?: ?\(\d{1,4}\))?"  # Windows
    r"| copy(?: \d{1,4})?| (?:的)?副本(?: ?\d{1,4})?"  # macOS
    r"| \((?:\w+ )?copy(?: \d{1,4})?\)"  # GNOME: (copy), (another copy), (3rd copy)
)
_OF_STEM = re.compile(rf"(?:{_COPIES})+$", re.IGNORECASE)
_PREFIX = re.compile(
    r"(?:(?:Copy(?: \(\d{1,4}\))?|Kopie|Copie|Copia) (?:of|von|de) )+", re.IGNORECASE
)
_BACKUP = re.compile(r"(?:~|\.(?:bak|old|orig|save|backup))+$", re.IGNORECASE)
_NUMBERED = re.compile(r"(?<=\.)(txt|json)\.\d{1,3}$", re.IGNORECASE)
"""wget's second download; a number after ``.log`` comes from rotation."""
_EXTENSION = re.compile(r"(?:\.(?:txt|json|jsonl|log|out|gz))+$", re.IGNORECASE)


def original_part(part: str) -> str:
    """Return the name of a file or folder without the marks of a copy.

    >>> original_part("1795-consumerProgress-g (1).txt"), original_part("Copy of g.txt.bak")
    ('1795-consumerProgress-g.txt', 'g.txt')
    >>> original_part("topics - Copy (2).json"), original_part("g.txt.1"), original_part("b.log.1")
    ('topics.json', 'g.txt', 'b.log.1')
    """
    while True:
        bare = _NUMBERED.sub(r"\1", _BACKUP.sub("", _PREFIX.sub("", part, count=1)))
        extension = _EXTENSION.search(bare)
        end = extension.start() if extension else len(bare)
        bare = _BACKUP.sub("", _OF_STEM.sub("", bare[:end])) + bare[end:]
        if bare == part or not bare or _EXTENSION.fullmatch(bare):
            return part
        part = bare


_ESCAPED = re.compile(r"[^%@#]*(?:%[0-9A-Fa-f]{2}[^%@#]*)+")
"""A name that is escaped as a whole; ``%RETRY%g`` is not, nor is an id that still has its @."""
_ADDRESS = r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}"
_FLAT_ID = re.compile(rf"(?P<ip>{_ADDRESS})[_-](?P<instance>.+)")
_FLAT_INSTANCE = re.compile(r"(\d{1,10})[_-](\d{9,20})(?:[_@-](.+))?")
_FLAT_STREAM = re.compile(r"[_-](?=STREAM$)")


def unescaped(text: str) -> str:
    """Return a group, topic or client id from a name in which it is URL-escaped.

    >>> unescaped("%25RETRY%25g"), unescaped("10.0.0.1%407%2312"), unescaped("%RETRY%abc")
    ('%RETRY%g', '10.0.0.1@7#12', '%RETRY%abc')
    """
    return unquote(text) if _ESCAPED.fullmatch(text) else text


def client_id_of(text: str) -> str:
    """Return the client id from the name of a file, where @ and # may be escaped, or be _ or -.

    RocketMQ builds it from the address, @, and the instance, mostly ``<pid>#<nanoseconds>``, and
    adds @ with the unit name, and ``@STREAM`` (rocketmq.md §1.2). Any other name is returned
    unchanged.

    >>> client_id_of("10.0.0.1_7_2526074142185"), client_id_of("10.0.0.1%40notify")
    ('10.0.0.1@7#2526074142185', '10.0.0.1@notify')
    >>> client_id_of("10.0.0.1-7-2526074142185-unit-1-STREAM")
    '10.0.0.1@7#2526074142185@unit-1@STREAM'
    """
    if "@" in text:
        return text
    text = unescaped(text)
    if "@" not in text and (match := _FLAT_ID.fullmatch(text)):
        text = f"{match['ip']}@{match['instance']}"
    address, separator, instance = text.partition("@")
    if flat := _FLAT_INSTANCE.fullmatch(instance):
        ending = f"@{_FLAT_STREAM.sub('@', flat[3])}" if flat[3] else ""
        instance = f"{flat[1]}#{flat[2]}{ending}"
    return f"{address}{separator}{instance}"


_CHANGED = re.compile(r"%[0-9A-Fa-f]{2}|[^0-9A-Za-z.]")


def may_be(name: str, client_id: str) -> bool:
    """Return True if a program may have derived the file's name from the client id.

    >>> may_be("10.0.0.1@7-2526074142185", "10.0.0.1@7#2526074142185"), may_be("a@1", "a@2")
    (True, False)
    """
    return _CHANGED.sub("_", name) == _CHANGED.sub("_", client_id)


_NO_NAME = re.compile(r"[\s()\[\]{}<>'\",;:!?*&=]")


def names_nothing(argument: str) -> bool:
    """Return True for a name that RocketMQ accepts neither for a group nor for a topic.

    >>> names_nothing("order service final"), names_nothing("%RETRY%order-service")
    (True, False)
    """
    return bool(_NO_NAME.search(argument))
