#!/usr/bin/env bash
# Structured results: each answer is validated against the schema before it becomes a result.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

$rowmill run -i ../reviews.jsonl -o results.jsonl --overwrite -m simulated \
  --instruction ../classify.md --template review.md --json-schema ../sentiment.schema.json \
  --id-field id --no-final-summary

head -n 3 results.jsonl
