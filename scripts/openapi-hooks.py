"""JSON Lines for schemathesis, which knows no serializer of its own for them."""

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    return value.encode("utf-8", "replace") if isinstance(value, str) else str(value).encode()
