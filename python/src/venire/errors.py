"""What can go wrong, told apart by what a host should do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from venire.ruling import Ruling


class VenireError(Exception):
    """Anything that went wrong with judging."""


class UsageError(VenireError):
    """Nothing was judged and nothing will be: a wrong panel, a missing program, a bad case.

    Asking again does not help, so no host should take it for a verdict.
    """


class NotMeasured(VenireError):
    """No decision: too few judges could vote, an outage, a time-out, a spent budget.

    It is neither a pass nor a fail. ``ruling`` has the votes that came in, where some did.
    """

    def __init__(self, message: str, ruling: Ruling | None = None) -> None:
        super().__init__(message)
        self.ruling = ruling
