#!/usr/bin/env bash
# Rows from standard input, envelopes to standard output, messages to standard error.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

grep -v backpack ../reviews.jsonl \
  | $rowmill run -i - --input-format jsonl -o - -m simulated --parallel 4 \
      --prompt 'Classify this review: {{review}}' --id-field id \
  | tee results.jsonl \
  | grep -c '"ok":true'
