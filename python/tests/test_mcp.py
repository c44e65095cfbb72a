"""The real `mcp` client against `venire mcp`: both eras, stdio and streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SHORT, Make, need

need("mcp")

LONG, GOOD = "one two three four five six", "one two"
TOOLS = ["score", "gate_status", "explain"]
MODES = ["auto", "legacy", "2026-07-28"]


async def _conversation(client: Any) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    # The client itself holds structured answers against the tools' schemas.
    good = await client.call_tool("score", {"task": "count", "answer": GOOD})
    assert not good.is_error
    assert good.structured_content["decision"] == "accept"
    bad = (await client.call_tool("score", {"task": "count", "answer": LONG})).structured_content
    assert bad["decision"] == "reject" and "cut 2" in bad["feedback"][0]["text"]
    why = await client.call_tool("explain", {"case": bad["case"]})
    assert why.structured_content["verdicts"][0]["judge"] == "short"
    status = (await client.call_tool("gate_status", {})).structured_content
    assert status["outcomes"][0]["decision"] == "reject"
    wrong = await client.call_tool("score", {"answer": GOOD})
    assert wrong.is_error and "`task`" in wrong.content[0].text
    assert wrong.structured_content is None


@pytest.mark.parametrize("mode", MODES)
def test_over_stdio(mode: str, panel_file: Make, program: str, tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    parameters = StdioServerParameters(
        command=program, args=["mcp", "-c", str(panel_file(SHORT))], cwd=str(tmp_path)
    )

    async def go() -> None:
        async with Client(stdio_client(parameters), mode=mode) as client:
            await _conversation(client)

    asyncio.run(asyncio.wait_for(go(), 60))


@pytest.fixture
def url(panel_file: Make, program: str, tmp_path: Path) -> Iterator[str]:
    process = subprocess.Popen(
        [program, "mcp", "-c", str(panel_file(SHORT)), "--http", "127.0.0.1:0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "VENIRE_TOKEN"},
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.terminate()
    assert process.wait(20) == 0
    process.stdout.close()


@pytest.mark.parametrize("mode", MODES)
def test_over_streamable_http(mode: str, url: str) -> None:
    from mcp import Client

    async def go() -> None:
        async with Client(url, mode=mode) as client:
            await _conversation(client)

    asyncio.run(asyncio.wait_for(go(), 60))
