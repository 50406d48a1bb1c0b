"""Which request of a client failed."""

from typing import Final

PULL: Final = "PULL"
MEMBER_LIST: Final = "MEMBER_LIST"
COMMIT: Final = "COMMIT"
