#!/usr/bin/env bash
# Tune a prompt on a few rows of a CSV file; the same seed selects the same rows.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

$rowmill run -i tickets.csv -o results.jsonl --overwrite -m simulated \
  --sample 5 --seed 7 --include-input --no-final-summary \
  --prompt 'Which team should answer this? {{subject}}: {{body}}'

cat results.jsonl
