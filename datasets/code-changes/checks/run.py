#!/usr/bin/env python3
"""Runs the code in a model's reply against the check of its task.

    python3 checks/run.py REPLY_FILE [--task NAME]

All fenced code blocks of the reply are joined; the task is told from the function or class
that they define, or named by --task. The code runs in a process of its own, in a temporary
folder, for at most ten seconds.

Exit codes: 0 the check passed, 1 it failed (or the reply holds no code), 127 it could not be
run: no check for this code, or the language is not installed. That is a failed measurement,
not a failed check. This is no sandbox: run replies that you do not trust inside one.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKS = Path(__file__).resolve().parent
LIMIT_SECONDS = 10
BUILD_SECONDS = 120

# task -> (the name that the reply must define, file of the check)
TASKS = {
    "chunk": ("chunk", "chunk.py"),
    "merge-intervals": ("merge", "merge_intervals.py"),
    "parse-duration": ("parse_duration", "parse_duration.py"),
    "moving-average": ("moving_average", "moving_average.py"),
    "slugify": ("slugify", "slugify.py"),
    "last-page": ("last_page", "last_page.py"),
    "business-days": ("business_days", "business_days.py"),
    "retry": ("retry", "retry.py"),
    "csv-line": ("split_csv", "csv_line.py"),
    "lru-cache": ("LRU", "lru_cache.py"),
    "deep-equal": ("deepEqual", "deep_equal.mjs"),
    "group-by": ("groupBy", "group_by.mjs"),
    "format-bytes": ("formatBytes", "format_bytes.mjs"),
    "median-i64": ("median", "median_i64.rs"),
    "truncate-chars": ("truncate", "truncate_chars.rs"),
}


def code_in(reply):
    """The fenced code blocks of a reply, joined; the whole reply where there is no fence."""
    blocks = re.findall(r"^```[\w+-]*\n(.*?)^```", reply, re.MULTILINE | re.DOTALL)
    return "\n".join(blocks) if blocks else reply


def task_of(code):
    """The task whose function or class the code defines; None when there is none."""
    defined = set(re.findall(r"^(?:pub )?(?:def|class|function|const|fn) (\w+)", code, re.MULTILINE))
    for task, (name, _) in TASKS.items():
        if name in defined:
            return task
    return None


def run(command, folder, seconds=LIMIT_SECONDS, too_slow=1):
    """Runs a command in the folder; 127 where it is not installed, `too_slow` after the limit."""
    if shutil.which(command[0]) is None:
        print(f"`{command[0]}` is not installed", file=sys.stderr)
        return 127
    try:
        done = subprocess.run(command, check=False, cwd=folder, timeout=seconds, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        print(f"stopped after {seconds} seconds", file=sys.stderr)
        return too_slow
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        print("\n".join(lines[-8:]), file=sys.stderr)
    return 0 if done.returncode == 0 else 1


def check(code, task):
    """Joins the code and the check of its task, and runs the two."""
    test = CHECKS / TASKS[task][1]
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program" + test.suffix)
        Path(program).write_text(code + "\n\n" + test.read_text(encoding="utf-8"), encoding="utf-8")
        if test.suffix == ".py":
            return run([sys.executable, "-I", program], folder)
        if test.suffix == ".mjs":
            return run(["node", program], folder)
        binary = os.path.join(folder, "program")
        built = run(["rustc", "--edition=2021", "-C", "debug-assertions=on", "-A", "warnings",
                     "-o", binary, program], folder, BUILD_SECONDS, too_slow=127)
        return built or run([binary], folder)


def main():
    parser = argparse.ArgumentParser(description="check the code in a reply")
    parser.add_argument("reply", type=Path)
    parser.add_argument("--task", choices=sorted(TASKS))
    arguments = parser.parse_args()
    code = code_in(arguments.reply.read_text(encoding="utf-8"))
    task = arguments.task or task_of(code)
    if task is None:
        print("no check for this reply", file=sys.stderr)
        return 127
    return check(code, task)


if __name__ == "__main__":
    sys.exit(main())
