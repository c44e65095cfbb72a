for text, seconds in {"1h30m": 5400, "45s": 45, "2h": 7200, "1h5s": 3605, "90m": 5400, "0s": 0}.items():
    assert parse_duration(text) == seconds, (text, parse_duration(text))
for text in ("", "h", "5", "1h2", "30m1h", "1h1h", "1.5h", "-1h", "1h 5s", "1hx", "x1h", "1d"):
    try:
        value = parse_duration(text)
    except ValueError:
        continue
    raise AssertionError(f"{text!r} gives {value}")
