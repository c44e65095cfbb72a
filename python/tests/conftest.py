"""Panels that need no model, and what a test of a host needs of its machine."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from venire import Panel

#: Accepts at most four words, and says what to cut.
SHORT = """
name = "short"
threshold = 0.5
[[judge]]
name = "short"
kind = "rule"
rule = "length"
words = { max = 4 }
graded = false
"""

#: Can't say anything without a reference answer.
SAME = """
name = "same"
threshold = 0.5
[[judge]]
name = "same"
kind = "rule"
rule = "equals"
"""

#: Rejects what does not say please, whatever the median.
VETO = """
name = "veto"
threshold = 0.5
[[judge]]
name = "polite"
kind = "rule"
rule = "contains"
all = ["please"]
required = true
[[judge]]
name = "short"
kind = "rule"
rule = "length"
words = { max = 4 }
graded = false
[[judge]]
name = "shorter"
kind = "rule"
rule = "length"
words = { max = 5 }
graded = false
"""


def need(module: str) -> ModuleType:
    """A host's module. Where it is not installed the test is skipped, unless the variable
    VENIRE_CLIENTS names it (or says `all`): then that is a failure."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        wanted = os.environ.get("VENIRE_CLIENTS", "").replace(",", " ").split()
        if package in wanted or "all" in wanted:
            pytest.fail(f"VENIRE_CLIENTS names {package}, which can't be imported: {error}")
        pytest.skip(
            f"{package} is not installed: scripts/test-python installs and tests it",
            allow_module_level=True,
        )


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name == "VENIRE_TOKEN":
            monkeypatch.delenv(name)
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("CREWAI_TRACING_ENABLED", "false")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")


@pytest.fixture
def program() -> str:
    named = os.environ.get("VENIRE", "venire")
    found = shutil.which(named)
    if found is None:
        pytest.fail(f"no program `{named}`: build it, and name it with the variable VENIRE")
    return os.path.abspath(found)


Make = Callable[[str], Path]


@pytest.fixture
def panel_file(tmp_path: Path) -> Make:
    def make(text: str) -> Path:
        path = tmp_path / f"panel-{len(list(tmp_path.glob('panel-*')))}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return make


@pytest.fixture
def short(panel_file: Make, program: str) -> Panel:
    """Accepts at most four words."""
    return Panel(panel_file(SHORT), executable=program)


@pytest.fixture
def same(panel_file: Make, program: str) -> Panel:
    """Measures nothing without a reference answer."""
    return Panel(panel_file(SAME), executable=program)


@pytest.fixture
def veto(panel_file: Make, program: str) -> Panel:
    """Rejects what does not say please."""
    return Panel(panel_file(VETO), executable=program)
