"""A panel of judges, asked through the program ``venire`` or through ``venire serve``."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from venire.errors import NotMeasured, UsageError, VenireError
from venire.ruling import Ruling

#: Seconds for one judgement: more than the judges' own limits take.
TIMEOUT = 600.0
#: Seconds that a program which is ended has to end its judges' own programs.
GRACE = 10.0
#: How often a busy server is asked again.
RETRIES = 3
#: Seconds between two questions to a busy server at most, whatever it asks for.
LONGEST_PAUSE = 30.0


class Transport(Protocol):
    """How a case gets to the judges and the ruling back."""

    def rule(self, case: Mapping[str, Any]) -> Ruling:
        """Judges a case.

        Raises ``UsageError`` where nothing can be judged so, ``NotMeasured`` where the judges
        could not be reached or did not end in time.
        """
        ...


class Panel:
    """A panel of judges.

    ``Panel("panel.toml")`` starts the program ``venire`` for each case; ``Panel.at(url)`` asks
    a server. It has no state of its own, so any number of threads may use one.
    """

    def __init__(
        self,
        config: str | os.PathLike[str] = "panel.toml",
        *,
        executable: str | os.PathLike[str] | None = None,
        arguments: Sequence[str] = (),
        timeout: float = TIMEOUT,
        transport: Transport | None = None,
    ) -> None:
        """A panel file; ``executable`` is ``$VENIRE`` or ``venire`` on the path where nothing
        is said. ``arguments`` are further ones of ``venire score``, such as
        ``["--profile", "p.json"]``. ``timeout`` is in seconds, for one case."""
        self._transport = transport or _Program(Path(config), executable, arguments, timeout)

    @classmethod
    def at(cls, url: str, *, token: str | None = None, timeout: float = TIMEOUT) -> Panel:
        """A panel behind ``venire serve`` at ``url``; ``token`` is ``$VENIRE_TOKEN`` where
        nothing is said."""
        token = token if token is not None else os.environ.get("VENIRE_TOKEN")
        return cls(transport=_Server(url, token, timeout))

    def judge(
        self,
        output: str,
        *,
        input: str | None = None,
        expected: str | None = None,
        context: str | None = None,
        baseline: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Ruling:
        """Judges one output. A ruling may be ``undecided``; what could not even be asked
        raises ``UsageError`` or ``NotMeasured``."""
        if not isinstance(output, str):
            raise UsageError(f"`output` is {type(output).__name__}: expected text")
        parts: dict[str, Any] = {
            "input": input,
            "output": output,
            "expected": expected,
            "context": context,
            "baseline": baseline,
            "metadata": dict(metadata) if metadata else None,
        }
        return self._transport.rule({k: v for k, v in parts.items() if v is not None})

    async def ajudge(
        self,
        output: str,
        *,
        input: str | None = None,
        expected: str | None = None,
        context: str | None = None,
        baseline: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Ruling:
        """As ``judge``, on another thread."""
        return await asyncio.to_thread(
            self.judge,
            output,
            input=input,
            expected=expected,
            context=context,
            baseline=baseline,
            metadata=metadata,
        )


def _ruling(text: str, source: str) -> Ruling:
    try:
        raw = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise VenireError(f"{source} gave no JSON: {error}") from None
    return Ruling.from_json(raw)


def _refuse(word: str) -> None:
    raise ValueError(f"`{word}` is no number")


class _Program:
    """Asks through ``venire score --json``."""

    def __init__(
        self,
        config: Path,
        executable: str | os.PathLike[str] | None,
        arguments: Sequence[str],
        timeout: float,
    ) -> None:
        named = os.fspath(executable) if executable else os.environ.get("VENIRE", "venire")
        found = shutil.which(named)
        if found is None:
            raise UsageError(
                f"no program `{named}`: install it with `cargo install --path .`, "
                "or name it with `executable` or the variable VENIRE"
            )
        if not config.is_file():
            raise UsageError(f"no panel file `{config}`")
        # Hosts change the folder they work in.
        self._command = [os.path.abspath(found), "score", "--quiet", "--json", "--case", "-"]
        self._command += ["--config", os.path.abspath(config), *arguments]
        self._timeout = timeout

    def rule(self, case: Mapping[str, Any]) -> Ruling:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is the host's, which then ends this one.
            start_new_session=True,
        )
        try:
            out, err = process.communicate(json.dumps(case).encode(), self._timeout)
        except subprocess.TimeoutExpired:
            self._end(process)
            raise NotMeasured(f"not measured: no ruling within {self._timeout:g} s") from None
        except BaseException:
            self._end(process)
            raise
        said = err.decode(errors="replace").strip()
        text = out.decode(errors="replace").strip()
        code = process.returncode
        if code in (0, 1, 3) and text:
            return _ruling(text, "`venire score`")
        if code == 2:
            raise UsageError(said or "`venire score` ended with 2")
        if code == 4:
            raise NotMeasured("not measured: a person has to answer first")
        raise NotMeasured(f"not measured: `venire score` ended with {code}: {said}")

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        """Ends the program, which ends its judges' programs itself when it has the time."""
        process.terminate()
        try:
            process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.communicate()


class _Server:
    """Asks through ``POST /v1/score`` of ``venire serve``."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UsageError(f"`{url}` is no address: expected such as `http://127.0.0.1:8700`")
        self._url = url.rstrip("/") + "/v1/score"
        self._token = token
        self._timeout = timeout

    def rule(self, case: Mapping[str, Any]) -> Ruling:
        until = time.monotonic() + self._timeout
        body = json.dumps(case).encode()
        for attempt in range(RETRIES + 1):
            left = until - time.monotonic()
            status, headers, text = self._post(body, max(left, 0.001))
            if status == 200:
                return _ruling(text, f"`{self._url}`")
            pause = _pause(headers.get("retry-after"), attempt)
            busy = status in (429, 503)
            if not busy or attempt == RETRIES or time.monotonic() + pause > until:
                break
            time.sleep(pause)
        said = f"`{self._url}` answered {status}: {_message(text)}"
        # A server's own fault, and a case that is too large for it, end no other case; any
        # other refusal is of the request, and of every one like it.
        if status >= 500 or status in (408, 413, 429):
            raise NotMeasured(f"not measured: {said}")
        raise UsageError(said)

    def _post(self, body: bytes, timeout: float) -> tuple[int, Mapping[str, str], str]:
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, _lower(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _lower(error.headers), error.read().decode(errors="replace")
        except (OSError, http.client.HTTPException, UnicodeDecodeError) as error:
            reason = getattr(error, "reason", error)
            raise NotMeasured(f"not measured: failed to ask `{self._url}`: {reason}") from error


def _lower(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _pause(asked: str | None, attempt: int) -> float:
    try:
        seconds = float(asked) if asked else 0.5 * 2.0**attempt
    except ValueError:
        seconds = 0.5 * 2.0**attempt
    return min(max(seconds, 0.0), LONGEST_PAUSE)


def _message(text: str) -> str:
    try:
        error = json.loads(text)["error"]
        field = f" (`{error['field']}`)" if error.get("field") else ""
        return f"{error['kind']}: {error['message']}{field}"
    except (ValueError, KeyError, TypeError):
        return text.strip()[:500] or "nothing"
