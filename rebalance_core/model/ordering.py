"""Java's string order, which decides who gets which queue."""

from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=1 << 16)  # the same names are sorted in every pass
def java_string_key(text: str) -> bytes:
    """Sort key equal to Java's ``String.compareTo`` (UTF-16 code units, not code points).

    >>> sorted(["10.0.0.1@1", "10.0.0.10@1"], key=java_string_key)
    ['10.0.0.10@1', '10.0.0.1@1']
    """
    return text.encode("utf-16-be", "surrogatepass")


def sort_client_ids(client_ids: Iterable[str]) -> list[str]:
    """The ids as the client sorts them before every allocation (cidAll); duplicates are kept."""
    return sorted(client_ids, key=java_string_key)
