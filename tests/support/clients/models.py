"""A model server that says what a script tells it, for tests with real coding agents.

It speaks the dialects of the agents (Anthropic Messages, OpenAI Responses and chat, Gemini),
streamed or not, on the loopback address and a free port. A script is a list of steps:

    {"say": "text"}          the model answers, and its turn ends
    {"run": "shell command"} the model calls the agent's own shell tool

The last step is repeated. Side questions of an agent (a title, a commit message, a routing
decision) come without tools, or without the form that an edit has to have: they get a harmless
answer and use no step up.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Models:
    """A running server; `close` stops it."""

    def __init__(self, steps):
        self.steps = list(steps)
        self.taken = 0
        self.log = []
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = {"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []}
                self.answer(200, "application/json", json.dumps(body))

            def do_HEAD(self):
                self.answer(200, "application/json", "")

            def do_POST(self):
                length = int(self.headers.get("content-length") or 0)
                raw = self.rfile.read(length)
                try:
                    request = json.loads(raw or b"{}")
                except ValueError:
                    request = {}
                status, kind, text = outer.reply(self.path, request)
                self.answer(status, kind, text)

            def answer(self, status, kind, text):
                body = text.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass  # The agent was stopped.

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def step(self):
        with self.lock:
            step = self.steps[min(self.taken, len(self.steps) - 1)]
            self.taken += 1
            return step

    def calls(self):
        """The requests that used a step up."""
        return [entry for entry in self.log if entry["step"] is not None]

    def reply(self, path, request):
        dialect = self.dialect(path)
        entry = {"path": path, "step": None, "request": request}
        with self.lock:
            self.log.append(entry)
        if dialect is None:
            return 404, "application/json", json.dumps({"error": {"message": "not here"}})
        if "count_tokens" in path or "countTokens" in path:
            return 200, "application/json", json.dumps({"input_tokens": 10, "totalTokens": 10})
        if dialect is chat:
            last = json.dumps(request["messages"][-1])
            aside = "file listing" not in last
        else:
            aside = not request.get("tools")
        if aside:
            step = {"say": self.aside(request)}
        else:
            step = self.step()
            entry["step"] = step
        return dialect(path, request, step, len(self.log))

    @staticmethod
    def aside(request):
        text = json.dumps(request)
        if "next_speaker" in text:
            return json.dumps({"reasoning": "scripted", "next_speaker": "user"})
        if "model_choice" in text:
            return json.dumps({"reasoning": "scripted", "model_choice": "flash"})
        return "scripted"

    @staticmethod
    def dialect(path):
        if "/messages" in path:
            return messages
        if "/responses" in path:
            return responses
        if "/chat/completions" in path:
            return chat
        if re.search(r":(stream)?[gG]enerateContent", path):
            return gemini
        return None


def events(items):
    lines = []
    for name, data in items:
        if name:
            lines.append(f"event: {name}\n")
        text = data if isinstance(data, str) else json.dumps(data)
        lines.append(f"data: {text}\n\n")
    return 200, "text/event-stream", "".join(lines)


def messages(_path, request, step, number):
    """Anthropic Messages."""
    model = request.get("model", "scripted")
    if "run" in step:
        tool = {"command": step["run"], "description": "scripted"}
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": tool}
        stop = "tool_use"
    else:
        block = {"type": "text", "text": step["say"]}
        stop = "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 5}
    whole = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model,
             "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage}
    if not request.get("stream"):
        return 200, "application/json", json.dumps(whole)
    if stop == "tool_use":
        first = dict(block, input={})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        first = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    start = dict(whole, content=[], stop_reason=None)
    return events([
        ("message_start", {"type": "message_start", "message": start}),
        ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": first}),
        ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        ("message_delta", {"type": "message_delta", "usage": {"output_tokens": 5},
                           "delta": {"stop_reason": stop, "stop_sequence": None}}),
        ("message_stop", {"type": "message_stop"}),
    ])


def responses(_path, request, step, number):
    """OpenAI Responses."""
    if "run" in step:
        names = {tool.get("name"): tool for tool in request["tools"]}
        if "exec_command" in names:
            name, arguments = "exec_command", {"cmd": step["run"]}
        elif "shell_command" in names:
            name, arguments = "shell_command", {"command": step["run"]}
        else:
            name, arguments = "shell", {"command": ["bash", "-c", step["run"]]}
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                "name": name, "arguments": json.dumps(arguments), "status": "completed"}
    else:
        content = [{"type": "output_text", "text": step["say"], "annotations": []}]
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant",
                "status": "completed", "content": content}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
             "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": f"resp_{number}", "object": "response", "status": "completed",
             "model": request.get("model", "scripted"), "output": [item], "usage": usage}
    opened = dict(whole, status="in_progress", output=[], usage=None)
    return events([
        ("response.created", {"type": "response.created", "response": opened}),
        ("response.output_item.added",
         {"type": "response.output_item.added", "output_index": 0, "item": item}),
        ("response.output_item.done",
         {"type": "response.output_item.done", "output_index": 0, "item": item}),
        ("response.completed", {"type": "response.completed", "response": whole}),
    ])


def gemini(path, _request, step, _number):
    """Gemini."""
    if "run" in step:
        arguments = {"command": step["run"], "description": "scripted"}
        part = {"functionCall": {"name": "run_shell_command", "args": arguments}}
    else:
        part = {"text": step["say"]}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
    if "stream" in path:
        return events([(None, whole)])
    return 200, "application/json", json.dumps(whole)


def chat(_path, request, step, number):
    """OpenAI chat completions; the agents that use it here have no tools."""
    model = request.get("model", "scripted")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    base = {"id": f"chat_{number}", "created": 1, "model": model}
    if not request.get("stream"):
        message = {"role": "assistant", "content": step["say"]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = dict(base, object="chat.completion", choices=[choice], usage=usage)
        return 200, "application/json", json.dumps(body)
    chunk = dict(base, object="chat.completion.chunk")
    said = {"index": 0, "delta": {"role": "assistant", "content": step["say"]}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return events([
        (None, dict(chunk, choices=[said])),
        (None, dict(chunk, choices=[end], usage=usage)),
        (None, "[DONE]"),
    ])
