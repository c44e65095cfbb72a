import { strict as assert } from "node:assert";
const equal = [
  [1, 1], [NaN, NaN], [null, null], ["", ""], [[], []], [{}, {}],
  [{ a: 1, b: [2, { c: null }] }, { b: [2, { c: null }], a: 1 }],
];
const different = [
  [1, "1"], [null, {}], [{}, null], [null, 0], [[], {}], [[1, 2], [2, 1]], [{ a: 1 }, { b: 1 }],
  [{ a: 1 }, { a: 1, b: 2 }], [NaN, null], [{ a: undefined }, { b: undefined }], [true, 1],
];
for (const [a, b] of equal) assert.equal(deepEqual(a, b), true, JSON.stringify([a, b]));
for (const [a, b] of different) assert.equal(deepEqual(a, b), false, JSON.stringify([a, b]));
