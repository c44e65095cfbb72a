items = list(range(7))
assert chunk(items, 3) == [[0, 1, 2], [3, 4, 5], [6]], chunk(items, 3)
assert chunk(items, 7) == [items]
assert chunk(items, 100) == [items]
assert chunk([], 2) == []
assert items == list(range(7))
for size in (0, -1):
    try:
        chunk(items, size)
    except ValueError:
        continue
    raise AssertionError(f"size {size} is accepted")
