"""Removal of secrets from a record: values of secret keys and credentials in addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_core.contracts import paths
from rebalance_core.storage.run_folder import find_run as find_run
from rebalance_core.storage.run_folder import read_run as read_run

REDACTED = "***"


_SECRET_NAME = re.compile(
    r"passw|secret|salt|token|credential|access[._-]?key|api[._-]?key|account[._-]?key|private[._-]?key",
    re.IGNORECASE,
)


_IN_QUERY = re.compile(r"(?i)([?&;](?:sig|signature|x-amz-[a-z-]+|[^=&;]*token|key)=)[^&;\s]+")


def redact_text(text: str) -> str:
    """Return `text` without ``user:password@``, signatures of addresses and secret ``KEY=VALUE``.

    >>> redact_text("s3a://me:mine@bucket/a"), redact_text("fs.s3a.secret.key=abc")
    ('s3a://***@bucket/a', 'fs.s3a.secret.key=***')
    >>> redact_text("sc://host:443/;token=abc;user_id=me")
    'sc://host:443/;token=***;user_id=me'
    """
    name, equals, _ = text.partition("=")
    if equals and "://" not in name and _SECRET_NAME.search(name):
        return f"{name}={REDACTED}"
    return _IN_QUERY.sub(rf"\g<1>{REDACTED}", paths.without_user(text))


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the words of a command line, with the value of a secret option masked."""
    result: list[str] = []
    secret = False
    for word in arguments:
        result.append(REDACTED if secret else redact_text(word))
        secret = word.startswith("-") and "=" not in word and bool(_SECRET_NAME.search(word))
    return result


def redact_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the values of secret keys replaced, at any depth."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            result[key] = redact_values(value)
        elif value is not None and _SECRET_NAME.search(key):
            result[key] = REDACTED
        else:
            result[key] = redact_text(value) if isinstance(value, str) else value
    return result
