"""Real LangGraph: a graph that writes, is judged, and writes again."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import need

from venire import Panel, UsageError
from venire.langgraph import RulingState, node, router

need("langgraph")


def _graph(panel: Panel, answers: list[str], most: int, checkpointer: Any = None) -> Any:
    from langgraph.graph import END, START, StateGraph

    class State(RulingState, total=False):
        task: str
        answer: str
        prompts: list[str]

    def write(state: State) -> dict[str, Any]:
        prompts = [*state.get("prompts", []), state.get("feedback", "")]
        return {"answer": answers[len(prompts) - 1], "prompts": prompts}

    graph = StateGraph(State)
    graph.add_node("write", write)
    graph.add_node("judge", node(panel, output="answer", input="task"))
    graph.add_node("give_up", lambda state: {})
    graph.add_node("no_quorum", lambda state: {"feedback": "asked a person"})
    graph.add_edge(START, "write")
    graph.add_edge("write", "judge")
    route = router(accept=END, reject="write", undecided="no_quorum", spent="give_up", most=most)
    graph.add_conditional_edges("judge", route, [END, "write", "no_quorum", "give_up"])
    graph.add_edge("give_up", END)
    graph.add_edge("no_quorum", END)
    return graph.compile(checkpointer=checkpointer)


LONG, GOOD = "one two three four five six", "one two"


def test_a_rejected_answer_is_written_again_with_the_feedback(short: Panel) -> None:
    end = _graph(short, [LONG, GOOD], most=5).invoke({"task": "count"})
    assert (end["decision"], end["score"], end["judged"]) == ("accept", 1.0, 2)
    assert end["prompts"][0] == "" and "cut 2" in end["prompts"][1]


def test_the_loop_has_an_end_when_nothing_is_ever_accepted(short: Panel) -> None:
    end = _graph(short, [LONG] * 9, most=3).invoke({"task": "count"})
    assert (end["decision"], end["judged"]) == ("reject", 3)


def test_what_could_not_be_measured_goes_its_own_way_with_no_score(same: Panel) -> None:
    end = _graph(same, [GOOD], most=3).invoke({"task": "1+1"})
    assert (end["decision"], end["score"], end["judged"]) == ("undecided", None, 1)
    assert end["feedback"] == "asked a person"


def test_judges_that_can_t_be_reached_are_undecided_too() -> None:
    panel = Panel.at("http://127.0.0.1:9")
    end = _graph(panel, [GOOD], most=3).invoke({"task": "1+1"})
    assert (end["decision"], end["score"], end["ruling"]) == ("undecided", None, {})


def test_the_ruling_survives_a_checkpoint(short: Panel) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    graph = _graph(short, [LONG, GOOD], most=5, checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    graph.invoke({"task": "count"}, thread)
    kept = graph.get_state(thread).values
    assert kept["ruling"]["verdicts"][0]["judge"] == "short"


def test_what_is_named_wrongly_is_an_error(short: Panel) -> None:
    with pytest.raises(UsageError, match="`anser`"):
        node(short, output="anser")({"answer": GOOD})
    with pytest.raises(UsageError, match="at least 1"):
        router(accept="a", reject="b", undecided="c", spent="d", most=0)
