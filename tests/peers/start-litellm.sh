#!/usr/bin/env bash
# LiteLLM's proxy with the models of litellm.yaml, for the test that wants a real gateway.
#
#   start-litellm.sh DIR install    put the proxy into DIR, if it is not there yet
#   start-litellm.sh DIR PORT       serve on 127.0.0.1:PORT in the foreground, until ended or orphaned
#
# LLAMA_BASE_URL names the server behind the model `smollm2-135m`.
set -euo pipefail

usage="usage: $0 DIR install|PORT"
dir=${1:?$usage}
act=${2:?$usage}
package='litellm[proxy]==1.108.7'
models=$(cd "$(dirname "$0")" && pwd)/litellm.yaml

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
python=$dir/venv/bin/python

if [ "$act" = install ]; then
  [ -e "$dir/installed" ] && exit
  [ -x "$python" ] || python3 -m venv "$dir/venv"
  # Not compiled: a server started for one test imports a small part of it.
  "$python" -m pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: "$package"
  touch "$dir/installed"
  exit
fi

# Neither prices nor anything else is fetched at start.
export LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_TELEMETRY=False LITELLM_LOG=ERROR
exec nice -n 19 "$python" - "$models" "$act" <<'PYTHON'
import os, sys, threading, time

parent = os.getppid()

def end_with_parent():
    # Whoever started this may have been killed before it could end this: no server outlives its tests.
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)

threading.Thread(target=end_with_parent, daemon=True).start()
from litellm.proxy.proxy_cli import run_server

run_server(["--config", sys.argv[1], "--host", "127.0.0.1", "--port", sys.argv[2]])
PYTHON
