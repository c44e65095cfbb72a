"""Turns venire's exported verdict rows into the recorded judgements of a data set.

    python3 scripts/verdicts-to-judgements.py JUDGEMENTS_CSV VERDICTS_CSV ...

Judges that are in the new rows replace their old ones; other judges' rows are kept. A verdict
without a score is kept with its status and an empty score. Rows are sorted, so that recording
again shows in a diff only what changed.
"""

import csv
import os
import sys

COLUMNS = ["item_id", "judge", "criterion", "score", "raw", "status", "model_returned",
           "tokens_in", "tokens_out", "latency_ms"]
NAMES = {"item_id": "case", "criterion": None}


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def converted(path):
    """The rows of one export, one for each case and judge, with criterion `overall`."""
    rows = []
    for number, row in enumerate(read(path), 2):
        missing = {NAMES.get(column, column) for column in COLUMNS} - {None} - row.keys()
        if missing:
            sys.exit(f"error: `{path}` has no column {', '.join(sorted(missing))}")
        if row.get("sample") not in (None, "", "0"):
            sys.exit(f"error: `{path}` line {number}: a second sample; the recordings hold one")
        if (row["status"] == "ok") != (row["score"] != ""):
            sys.exit(f"error: `{path}` line {number}: status {row['status']} with score `{row['score']}`")
        new = {column: row[NAMES.get(column) or column] for column in COLUMNS if column != "criterion"}
        rows.append(new | {"criterion": "overall"})
    return rows


def main():
    target, *exports = sys.argv[1:]
    if not exports:
        sys.exit(__doc__)
    new = [row for path in exports for row in converted(path)]
    replaced = {row["judge"] for row in new}
    old = [row for row in read(target) if row["judge"] not in replaced] if os.path.exists(target) else []
    rows = sorted(old + new, key=lambda row: (row["judge"], row["item_id"]))
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{target}: {len(rows)} judgements by {', '.join(sorted({row['judge'] for row in rows}))}")


if __name__ == "__main__":
    main()
