"""A venire panel as the judge of other people's loops.

``Panel`` asks the program ``venire`` (or ``venire serve`` over HTTP) and gives a ``Ruling``.
The modules beside it put a panel into a host, each in the host's own terms: ``venire.dspy``,
``venire.langgraph``, ``venire.crewai``, ``venire.adk``, ``venire.openhands``,
``venire.openevolve``, ``venire.trl``. Importing this package imports no host.

An answer that could not be measured has no score: not 0, not the mean, not NaN. Each module
says what it does then, since each host needs something else.
"""

from venire.errors import NotMeasured, UsageError, VenireError
from venire.panel import Panel
from venire.ruling import Decision, Ruling

__all__ = ["Decision", "NotMeasured", "Panel", "Ruling", "UsageError", "VenireError"]
