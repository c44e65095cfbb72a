calls = []


def failing(times, error):
    calls.clear()

    def call():
        calls.append(1)
        if len(calls) <= times:
            raise error(f"attempt {len(calls)}")
        return "done"

    return call


assert retry(failing(0, KeyError), 1, KeyError) == "done"
assert retry(failing(2, KeyError), 3, (KeyError, OSError)) == "done" and len(calls) == 3
try:
    retry(failing(9, KeyError), 3, KeyError)
except KeyError as error:
    assert len(calls) == 3, f"{len(calls)} calls"
    assert "attempt 3" in str(error), error
else:
    raise AssertionError("the last error is not raised")
try:
    retry(failing(1, TypeError), 3, KeyError)
except TypeError:
    assert len(calls) == 1, "an error of another type was retried"
else:
    raise AssertionError("an error of another type was retried")
try:
    retry(failing(0, KeyError), 0, KeyError)
except ValueError:
    pass
else:
    raise AssertionError("0 attempts are accepted")
