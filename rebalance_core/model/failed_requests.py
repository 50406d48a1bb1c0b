"""The requests of a client that can fail."""

from typing import Final

PULL: Final = "PULL"
MEMBER_LIST: Final = "MEMBER_LIST"
COMMIT: Final = "COMMIT"
