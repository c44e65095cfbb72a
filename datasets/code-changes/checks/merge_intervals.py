argument = [(8, 9), (1, 3), (3, 5)]
assert merge(argument) == [(1, 5), (8, 9)], merge(argument)
assert argument == [(8, 9), (1, 3), (3, 5)], "the argument was changed"
assert merge([(1, 10), (2, 3)]) == [(1, 10)], "a contained interval"
assert merge([]) == []
assert merge([(1, 2), (4, 5)]) == [(1, 2), (4, 5)]
