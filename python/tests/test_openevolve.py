"""Real OpenEvolve: its evaluator and its database of programs."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from conftest import SAME, SHORT, Make, need

from venire import NotMeasured, Panel
from venire.openevolve import evaluator

need("openevolve")

LONG, GOOD = "one two three four five six", "one two"


def _evaluated(
    panel_path: Path, program: str, folder: Path, texts: list[str], more: str = ""
) -> Any:
    from openevolve.config import EvaluatorConfig
    from openevolve.evaluator import Evaluator

    file = folder / "evaluation.py"
    file.write_text(
        "from venire import Panel\nfrom venire.openevolve import evaluator\n"
        f"panel = Panel({str(panel_path)!r}, executable={program!r})\n"
        f"evaluate = evaluator(panel, task='count'{more})\n"
    )
    config = EvaluatorConfig(cascade_evaluation=False, max_retries=1, timeout=60)
    judge = Evaluator(config, str(file), suffix=".txt")

    async def go() -> list[Any]:
        return [await judge.evaluate_program(text, f"p{at}") for at, text in enumerate(texts)]

    metrics = asyncio.run(go())
    return metrics, [judge.get_pending_artifacts(f"p{at}") for at in range(len(texts))]


def test_programs_are_scored_and_the_feedback_is_an_artifact(
    panel_file: Make, program: str, tmp_path: Path
) -> None:
    metrics, artifacts = _evaluated(panel_file(SHORT), program, tmp_path, [LONG, GOOD])
    assert [m["combined_score"] for m in metrics] == [0.0, 1.0]
    assert "cut 2" in artifacts[0]["feedback"]


def test_a_program_that_could_not_be_measured_is_never_the_best(
    panel_file: Make, program: str, tmp_path: Path
) -> None:
    from openevolve.config import DatabaseConfig
    from openevolve.database import Program, ProgramDatabase

    metrics, artifacts = _evaluated(panel_file(SAME), program, tmp_path, [GOOD])
    assert metrics[0] == {"combined_score": -math.inf, "measured": 0.0}
    assert "says nothing of the program" in artifacts[0]["feedback"]
    database = ProgramDatabase(DatabaseConfig(num_islands=1, db_path=str(tmp_path / "db")))
    bad = {"combined_score": 0.0, "measured": 1.0}
    database.add(Program(id="lost", code="a", metrics=metrics[0]))
    database.add(Program(id="bad", code="b", metrics=bad))
    database.add(Program(id="lost again", code="c", metrics=metrics[0]))
    best = database.get_best_program()
    assert best is not None and best.id == "bad"
    database.save(str(tmp_path / "db"))
    again = ProgramDatabase(DatabaseConfig(num_islands=1, db_path=str(tmp_path / "db")))
    again.load(str(tmp_path / "db"))
    assert again.programs["lost"].metrics["combined_score"] == -math.inf


def test_raising_has_the_host_try_again(panel_file: Make, program: str, tmp_path: Path) -> None:
    metrics, _ = _evaluated(panel_file(SAME), program, tmp_path, [GOOD], ", not_measured='raise'")
    assert metrics[0] == {"error": 0.0}, "what the host makes of an exception"
    judge = evaluator(Panel(panel_file(SAME), executable=program), not_measured="raise")
    path = tmp_path / "program.txt"
    path.write_text(GOOD)
    with pytest.raises(NotMeasured):
        judge(str(path))
