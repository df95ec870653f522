#!/usr/bin/env bash
# Fuzzes one target for a bounded time, from the seeds in seeds/TARGET.
#
#   run.sh TARGET SECONDS
#
# These are the flags that `cargo fuzz run --sanitizer none` sets. A stable compiler takes them, so neither a nightly one nor
# cargo-fuzz is needed; `cargo +nightly fuzz run --fuzz-dir tests/fuzz reply` works as well and adds the address sanitizer,
# which finds little in a program without unsafe code. What makes the target fail is left in target/fuzz/TARGET: cut it
# down, keep it among the seeds, mend the fault.
set -euo pipefail
usage="usage: $0 TARGET SECONDS"
target=${1:?$usage}
seconds=${2:?$usage}
here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../target/fuzz
corpus=$out/$target/corpus
mkdir -p "$corpus"

flags=(--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1)
# The dependencies that the service itself is built with.
cp "$here/../../Cargo.lock" "$here/Cargo.lock"
# Named, so that build scripts are built without these flags.
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="${flags[*]}" cargo build --release --quiet --manifest-path "$here/Cargo.toml" --target-dir "$out" --target "$host"
exec "$out/$host/release/$target" "$corpus" "$here/seeds/$target" -dict="$here/$target.dict" \
  -max_total_time="$seconds" -max_len=16384 -timeout=20 -rss_limit_mb=1024 -artifact_prefix="$out/$target/" -print_final_stats=1
