"""Serves one GGUF file over HTTP on the loopback address; started by scripts/local-model.

Prints `ready URL` when the model answers, not when the port opens: the port is open before
the weights are loaded. Keeps FILES.pid while it runs and FILES.url while it is ready. The API
key is read from LOCAL_MODEL_API_KEY.
"""

import argparse
import os
import signal
import sys
import time
import urllib.error
import urllib.request

import xllamacpp

LOAD_SECONDS = 280


def parameters(arguments):
    values = xllamacpp.CommonParams()
    values.model.path = arguments.model
    # Replies name the model; without an alias that would be the path of the file.
    values.model_alias = {os.path.basename(arguments.model).removesuffix(".gguf")}
    values.hostnames = ["127.0.0.1"]
    values.port = arguments.port
    values.n_parallel = arguments.slots
    # The server shares its context among the slots.
    values.n_ctx = arguments.context * arguments.slots
    values.cpuparams.n_threads = values.cpuparams_batch.n_threads = arguments.threads
    values.warmup = False
    values.endpoint_metrics = True
    key = os.environ.pop("LOCAL_MODEL_API_KEY", "")
    if key:
        values.api_keys = [key]
    return values


def wait_until_healthy(url):
    """/health needs no key; it answers 503 while the weights are loading."""
    deadline = time.monotonic() + LOAD_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url + "/health", timeout=10) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.2)
    sys.exit(f"error: {url} did not become healthy within {LOAD_SECONDS} seconds")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--files", required=True)
    arguments = parser.parse_args()

    # Blocked before the server starts its threads, so that sigwait below gets them. A signal that
    # nohup or a shell's background job set to be ignored would still reach sigwait: left out.
    ends = {
        end
        for end in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        if signal.getsignal(end) != signal.SIG_IGN
    }
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    pid_file, url_file = arguments.files + ".pid", arguments.files + ".url"
    with open(pid_file, "w") as file:
        file.write(f"{os.getpid()}\n")
    try:
        server = xllamacpp.Server(parameters(arguments))
        url = server.listening_address
        wait_until_healthy(url)
        with open(url_file + ".new", "w") as file:
            file.write(f"{url}\n")
        os.replace(url_file + ".new", url_file)
        print("ready", url, flush=True)
        signal.sigwait(ends)
    finally:
        for name in (pid_file, url_file):
            if os.path.exists(name):
                os.remove(name)
    # Ends here: the server's own threads would keep the process until idle connections close.
    os._exit(0)


if __name__ == "__main__":
    main()
