import { strict as assert } from "node:assert";
let calls = 0;
const groups = groupBy([1, 2, 3, 4, 5], (n) => { calls += 1; return n % 2; });
assert.deepEqual([...groups], [[1, [1, 3, 5]], [0, [2, 4]]]);
assert.equal(calls, 5, `keyOf was called ${calls} times`);
const key = {};
assert.deepEqual(groupBy(["x"], () => key).get(key), ["x"]);
assert.deepEqual(groupBy(["x"], () => "__proto__").get("__proto__"), ["x"]);
assert.equal(groupBy([], (x) => x).size, 0);
