"""JSON Lines for schemathesis, which knows no serializer of its own for them."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace")
