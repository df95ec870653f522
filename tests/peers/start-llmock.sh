#!/usr/bin/env bash
# LLMock, a server that speaks the OpenAI format, fails on command and judges how its client took it.
#
#   start-llmock.sh DIR install               put it into DIR, if it is not there yet
#   start-llmock.sh DIR PORT [OPTION...]      serve on 127.0.0.1:PORT in the foreground, until ended or orphaned
#
# OPTIONs are those of `llmock serve`.
set -euo pipefail

usage="usage: $0 DIR install|PORT [OPTION...]"
dir=${1:?$usage}
act=${2:?$usage}
shift 2
package=llmock==0.2.2

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
python=$dir/venv/bin/python

if [ "$act" = install ]; then
  [ -e "$dir/installed" ] && exit
  [ -x "$python" ] || python3 -m venv "$dir/venv"
  "$python" -m pip install --quiet --disable-pip-version-check --no-compile --only-binary :all: "$package"
  touch "$dir/installed"
  exit
fi

exec "$python" - serve --host 127.0.0.1 --port "$act" --log-level warning "$@" <<'PYTHON'
import os, sys, threading, time

parent = os.getppid()

def end_with_parent():
    # Whoever started this may have been killed before it could end this: no server outlives its tests.
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)

threading.Thread(target=end_with_parent, daemon=True).start()
from llmock.cli import app

app()
PYTHON
