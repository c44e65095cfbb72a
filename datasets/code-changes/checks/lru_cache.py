cache = LRU(2)
cache.put("a", 1)
cache.put("b", 2)
assert cache.get("a") == 1
cache.put("c", 3)
assert cache.get("b") is None, "get does not count as use"
assert cache.get("a") == 1 and cache.get("c") == 3
cache.put("c", 30)
assert cache.get("a") == 1, "renewing a key threw out another"
cache.put("c", 31)
cache.put("d", 4)
assert cache.get("a") is None, "put of a known key does not count as use"
assert cache.get("c") == 31 and cache.get("d") == 4
