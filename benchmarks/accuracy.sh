#!/usr/bin/env bash
# Accuracy on one table: fit, five seeds of random queries pooled, every method on the same queries; then error bars
# on questions of all kinds, the rules that people expect of counts, and where the error is.
#
#   benchmarks/accuracy.sh TABLE.parquet OUTPUT_DIRECTORY [options of countless fit]
#
# Writes fit.json, workload.jsonl, one JSON file a method, kinds.json, rules.json and diagnosis/. What exists already is kept, so a cut run goes on.
set -euo pipefail
table=$1 out=$2
shift 2
bin="$(dirname "$0")/../.venv/bin"
mkdir -p "$out"
model="$out/model.countless"

if [ ! -s "$model" ] || [ -e "$model.checkpoint" ]; then
    "$bin/countless" fit "$table" -o "$model" --resume "$@"
fi
"$bin/countless" info "$model" --json > "$out/fit.json"

if [ ! -s "$out/workload.jsonl" ]; then
    for seed in 0 1 2 3 4; do
        "$bin/countless" evaluate "$model" "$table" --queries 1000 --seed "$seed" --save "$out/seed$seed.jsonl" --json > "$out/seed$seed.json"
    done
    cat "$out"/seed[0-4].jsonl > "$out/workload.jsonl"
fi

measure() { # name, then the options of countless evaluate
    local name=$1
    shift
    if [ ! -s "$out/$name.json" ]; then
        "$bin/countless" evaluate "$model" "$table" --workload "$out/workload.jsonl" --json "$@" > "$out/$name.json.partial"
        mv "$out/$name.json.partial" "$out/$name.json"
    fi
    printf '%-16s' "$name"
    cat "$out/$name.json"
}

measure particles
measure particles-no-summary --no-summary
measure skipping-100 --method skipping --particles 100
measure independence --method independence
measure row-sample --method row-sample
measure postgres --method postgres # needs a PostgreSQL server: apt-get install postgresql
measure postgres-extended --method postgres-extended

ask() { # name, then the options of countless evaluate, with questions of its own
    local name=$1
    shift
    if [ ! -s "$out/$name.json" ]; then
        "$bin/countless" evaluate "$model" "$table" --json "$@" > "$out/$name.json.partial"
        mv "$out/$name.json.partial" "$out/$name.json"
    fi
}

ask kinds --kinds --queries 4000 --seed 100
ask rules --rules --queries 1000 --seed 200
[ -s "$out/diagnosis/diagnosis.json" ] || "$bin/countless" diagnose "$model" "$table" --seed 300 -o "$out/diagnosis"
