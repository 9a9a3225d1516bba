#!/usr/bin/env bash
# Columns and text in one model: a table of news URLs (a Parquet file with the column url) is split into outlet, section,
# the number of hyphens and the rest of the URL, fitted, and asked about columns and text together.
#
#   benchmarks/mixed.sh URLS.parquet OUTPUT_DIRECTORY [options of countless fit, by default --epochs 2]
#
# Writes news.parquet, news.countless and mixed.json. What exists already is kept, so a cut run goes on.
set -euo pipefail
urls=$1 out=$2
shift 2
bin="$(dirname "$0")/../.venv/bin"
mkdir -p "$out"
table="$out/news.parquet" model="$out/news.countless"

if [ ! -s "$table" ]; then
    "$bin/python" - "$urls" "$table" << 'PYTHON'
import sys

import duckdb

urls, table = sys.argv[1:]
duckdb.sql(f"""
    COPY (
        SELECT
            split_part(url, '/', 3) AS outlet,
            nullif(split_part(url, '/', 4), '') AS section,
            length(regexp_replace(rest, '[^-]', '', 'g')) AS hyphens,
            rest
        FROM (SELECT url, array_to_string(string_split(url, '/')[5:], '/') AS rest FROM '{urls}')
    ) TO '{table}'
""")
PYTHON
fi
if [ ! -s "$model" ] || [ -e "$model.checkpoint" ]; then
    "$bin/countless" fit "$table" -o "$model" --text rest --resume "${@:---epochs=2}"
fi
"$bin/python" "$(dirname "$0")/mixed.py" "$table" "$model" -o "$out/mixed.json"
