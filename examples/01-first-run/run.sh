#!/usr/bin/env bash
# The shortest run: each row becomes a prompt, and each prompt an envelope.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

$rowmill run -i ../reviews.jsonl -o results.jsonl --overwrite -m simulated \
  --prompt 'Say in one sentence what this review is about: {{review}}'

head -n 3 results.jsonl
