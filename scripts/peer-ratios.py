"""The other side of scripts/peer-ratios: the numbers, the libraries, and the table."""

import json
import statistics
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

ITEMS, RATERS, CLASSES = 100_000, 10, 5
TARGETS = {
    "dawid_skene_iteration": 30,
    "kappa_bootstrap": 50,
    "isotonic": 3,
    "krippendorff": 5,
}


def write(folder: Path) -> None:
    """The same numbers for both sides, as 64-bit floats."""
    random = np.random.default_rng(0)
    truth = random.integers(0, CLASSES, ITEMS)
    accuracy = random.uniform(0.5, 0.8, RATERS)
    right = random.random((ITEMS, RATERS)) < accuracy
    wrong = (truth[:, None] + random.integers(1, CLASSES, (ITEMS, RATERS))) % CLASSES
    labels = np.where(right, truth[:, None], wrong)
    first = (random.random(10_000) < 0.4).astype(float)
    second = np.where(random.random(10_000) < 0.85, first, 1 - first)
    score = random.random(1_000_000)
    label = (random.random(1_000_000) < score**2).astype(float)
    base = random.integers(0, CLASSES, 100_000)
    units = np.where(
        random.random((100_000, 5)) < 0.7, base[:, None], random.integers(0, CLASSES, (100_000, 5))
    )
    for name, values in {
        "labels": labels.ravel(),
        "ratings": np.concatenate([first, second]),
        "points": np.concatenate([score, label]),
        "units": units.ravel(),
    }.items():
        values.astype("<f8").tofile(folder / f"{name}.f64")


def read(folder: Path, name: str) -> np.ndarray:
    return np.fromfile(folder / f"{name}.f64", dtype="<f8")


def timed(run, rounds: int):
    found = run()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), found


def peers(folder: Path, rounds: int):
    """Name, library, what was done, seconds, and a value that both sides must agree on."""
    import krippendorff
    import pandas
    from crowdkit.aggregation import DawidSkene
    from scipy.stats import bootstrap
    from sklearn.isotonic import IsotonicRegression

    warnings.simplefilter("ignore")
    labels = read(folder, "labels").astype(int)
    table = pandas.DataFrame(
        {
            "task": np.repeat(np.arange(ITEMS), RATERS),
            "worker": np.tile(np.arange(RATERS), ITEMS),
            "label": labels,
        }
    )
    iterations = 10
    seconds, _ = timed(lambda: DawidSkene(n_iter=iterations, tol=0).fit(table), 1)
    yield (
        "dawid_skene_iteration",
        f"crowd-kit {version('crowd-kit')}",
        "Dawid-Skene, an iteration, 1 000 000 labels (100 000 x 10, 5 classes)",
        seconds / iterations,
        None,
    )

    first, second = np.split(read(folder, "ratings"), 2)

    def kappa(x, y, axis=-1):
        agreed = (x == y).mean(axis=axis)
        p, q = x.mean(axis=axis), y.mean(axis=axis)
        chance = p * q + (1 - p) * (1 - q)
        return (agreed - chance) / (1 - chance)

    seconds, found = timed(
        lambda: bootstrap(
            (first, second), kappa, paired=True, vectorized=True, n_resamples=10_000, batch=200,
            method="BCa", rng=np.random.default_rng(0),
        ),
        max(1, rounds // 2),
    )
    yield (
        "kappa_bootstrap",
        f"scipy {version('scipy')}",
        "BCa interval of Cohen's kappa, 10 000 resamples of 10 000 pairs",
        seconds,
        found.confidence_interval.low,
    )

    score, label = np.split(read(folder, "points"), 2)
    seconds, found = timed(lambda: IsotonicRegression().fit(score, label), rounds)
    yield (
        "isotonic",
        f"scikit-learn {version('scikit-learn')}",
        "isotonic fit of 1 000 000 points",
        seconds,
        float(found.predict([0.5])[0]),
    )

    units = read(folder, "units").reshape(-1, 5).T.copy()
    seconds, found = timed(
        lambda: krippendorff.alpha(reliability_data=units, level_of_measurement="nominal"), rounds
    )
    yield (
        "krippendorff",
        f"krippendorff {version('krippendorff')}",
        "Krippendorff's alpha, nominal, 100 000 units x 5",
        seconds,
        found,
    )


def compare(folder: Path, rounds: int) -> None:
    own = {
        row["name"]: row
        for row in map(json.loads, (folder / "own.jsonl").read_text().splitlines())
    }
    print("| what | library | its seconds | venire | ratio | target | |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, library, what, seconds, value in peers(folder, rounds):
        mine = own[name]
        if value is not None and abs(mine["value"] - value) > 2e-3:
            sys.exit(f"error: {name}: {mine['value']} here and {value} there")
        ratio, target = seconds / mine["seconds"], TARGETS[name]
        kept = "kept" if ratio >= target else "missed"
        print(
            f"| {what} | {library} | {seconds:.4g} | {mine['seconds']:.4g} | {ratio:.1f} "
            f"| {target} | {kept} |",
            flush=True,
        )


if __name__ == "__main__":
    place = Path(sys.argv[2])
    if sys.argv[1] == "write":
        write(place)
    else:
        compare(place, int(sys.argv[3]))
