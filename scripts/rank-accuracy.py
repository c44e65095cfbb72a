"""The rank accuracy of a model in each mode, as a Markdown table; called by scripts/rank-accuracy.

    python3 scripts/rank-accuracy.py PAIRS_FOLDER VERDICTS_FOLDER MODE ...

Reads MODE.jsonl, the verdict rows that `venire run -o` wrote. A pair is right when the good
answer's score is above the bad one's. A pair with an answer that has no score is counted as
unscored and is in no other figure. Nothing is rounded before it is compared.
"""

import csv
import json
import math
import statistics
import sys
from collections import Counter
from pathlib import Path


def sign_test(right, wrong):
    """One-sided: the chance of at least so many right ones of a coin, ties left out.

    >>> round(sign_test(18, 8), 4), round(sign_test(17, 9), 4)
    (0.0378, 0.0843)
    >>> sign_test(0, 0), sign_test(0, 5)
    (1.0, 1.0)
    """
    n = right + wrong
    return sum(math.comb(n, k) for k in range(right, n + 1)) / 2**n


def wilson(successes, n):
    """The 95 % interval of a share (Wilson 1927); successes may hold halves for ties.

    >>> [round(bound, 2) for bound in wilson(20, 26)]
    [0.58, 0.89]
    >>> wilson(0, 0)
    (0.0, 1.0)
    """
    if n == 0:
        return 0.0, 1.0
    z = statistics.NormalDist().inv_cdf(0.975)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def auc(good, bad):
    """Chance that a good answer scores above a bad one of any pair; ties count half.

    >>> auc([3, 2], [1, 2]), auc([], [1])
    (0.875, None)
    """
    if not good or not bad:
        return None
    return sum((g > b) + 0.5 * (g == b) for g in good for b in bad) / (len(good) * len(bad))


def ranked(pairs):
    """How many of these (good, bad) are right, tied and wrong.

    >>> ranked([(1, 0), (0.5, 0.5), (0, 1), (0.2, 0.1)])
    (2, 1, 1)
    """
    return (sum(g > b for g, b in pairs), sum(g == b for g, b in pairs), sum(g < b for g, b in pairs))


def read_jsonl(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def labels(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {row["item_id"]: int(row["label"]) for row in csv.DictReader(file)}


def by_pair(cases, label, value):
    """The (good, bad) values of each pair that has both, and how many pairs there are."""
    sides = {}
    for case in cases:
        sides.setdefault(case["group"], {})[label[case["id"]]] = value(case)
    whole = [(pair[1], pair[0]) for pair in sides.values() if None not in pair.values()]
    return whole, len(sides)


def row(name, pairs, count, good, bad, source="", seconds="", others=""):
    right, tie, wrong = ranked(pairs)
    n = len(pairs)
    low, high = wilson(right + tie / 2, n)
    share = f"{(right + tie / 2) / n:.2f} [{low:.2f}, {high:.2f}]" if n else "-"
    area = auc(good, bad)
    area = "-" if area is None else f"{area:.2f} ({len(good)}, {len(bad)})"
    cells = [name, right, tie, wrong, count - n, share, f"{sign_test(right, wrong):.2g}", area, source, seconds, others]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def measured(rows):
    """Where scores were read from, seconds a case, and the statuses of what has no score."""
    ok = [r for r in rows if r["status"] == "ok"]
    sources = Counter(r["notes"].get("score_source", "?") for r in ok)
    source = ", ".join(f"{name} {n}" for name, n in sources.most_common())
    times = [r["latency_ms"] / 1000 for r in rows if not r["cached"]]
    seconds = f"{statistics.median(times):.1f}" if times else ""
    others = ", ".join(f"{s} {n}" for s, n in Counter(r["status"] for r in rows).most_common() if s != "ok")
    return source, seconds, others


def single(folder, mode, rows):
    cases, label = read_jsonl(folder / "cases.jsonl"), labels(folder / "labels.csv")
    score = {r["case"]: r["score"] for r in rows}
    if score.keys() != label.keys():
        sys.exit(f"error: the verdicts of mode `{mode}` are not of these cases: judge them again")
    pairs, count = by_pair(cases, label, lambda case: score[case["id"]])
    good, bad = ([s for c, s in score.items() if s is not None and label[c] == side] for side in (1, 0))
    return row(mode, pairs, count, good, bad, *measured(rows))


def pairwise(folder, rows):
    """A pair is right when the mean over both orders prefers the good answer."""
    label = labels(folder / "pairwise-labels.csv")
    if {r["case"] for r in rows} != label.keys():
        sys.exit("error: the verdicts of mode `pairwise` are not of these pairs: judge them again")
    ok = [r for r in rows if r["status"] == "ok"]
    # `score` is the preference for `output`: turned round where the baseline is the good one.
    pairs = [(r["score"], 0.5) if label[r["case"]] else (0.5, r["score"]) for r in ok]
    good, bad = ([r["score"] for r in ok if label[r["case"]] == side] for side in (1, 0))
    line = row("pairwise", pairs, len(label), good, bad, *measured(rows))
    changed = sum(not r["notes"]["position_consistent"] for r in ok)
    first = sum(r["notes"]["picked_first"] for r in ok)
    both = sum(r["notes"]["position_consistent"] and (r["score"] > 0.5) == bool(label[r["case"]]) for r in ok)
    low, high = wilson(changed, len(ok))
    means = [r["notes"]["p_first"] for r in ok if "p_first" in r["notes"]]
    text = (
        f"Pairwise: the pick changes with the order in {changed} of {len(ok)} pairs "
        f"([{low:.2f}, {high:.2f}]); the first place is picked {first} times of {2 * len(ok)}; "
        f"right in both orders {both} of {len(ok)}."
    )
    if means:
        text += f" The mean probability of the first place is {statistics.mean(means):.2f}."
    return line, text


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    folder, verdicts, *modes = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
    cases, label = read_jsonl(folder / "cases.jsonl"), labels(folder / "labels.csv")
    print("| mode | right | tie | wrong | unscored | right + ties/2 [95 %] | p | AUC (good, bad) | read from | seconds a case | no score |")
    print("| --- " * 11 + "|")
    remark = ""
    for mode in modes:
        rows = read_jsonl(verdicts / f"{mode}.jsonl")
        if mode == "pairwise":
            line, remark = pairwise(folder, rows)
            print(line)
        else:
            print(single(folder, mode, rows))
    lengths = {case["id"]: len(case["output"]) for case in cases}
    pairs, count = by_pair(cases, label, lambda case: lengths[case["id"]])
    good, bad = ([n for c, n in lengths.items() if label[c] == side] for side in (1, 0))
    print(row("(the longer answer)", pairs, count, good, bad))
    print(f"\np: one-sided sign test without ties. Intervals: Wilson 1927. n = {count} pairs.")
    if remark:
        print(f"\n{remark}")


if __name__ == "__main__":
    main()
