import { strict as assert } from "node:assert";
const sizes = {
  0: "0 B", 512: "512 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1048575: "1.0 MiB",
  1048576: "1.0 MiB", 1073741824: "1.0 GiB", 1099511627776: "1.0 TiB", 1125899906842624: "1024.0 TiB",
};
for (const [n, text] of Object.entries(sizes)) assert.equal(formatBytes(Number(n)), text);
for (const n of [-1, NaN, Infinity]) assert.throws(() => formatBytes(n), RangeError, String(n));
