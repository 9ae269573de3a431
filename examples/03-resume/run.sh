#!/usr/bin/env bash
# A model that fails often, and a resume that pays only for missing rows.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

run() {
  $rowmill run -i ../reviews.jsonl -o results.jsonl -m 'simulated?failure_rate=0.4' \
    --prompt 'Classify this review: {{review}}' --id-field id --retries 0 --no-final-summary "$@"
}

# Exit code 3 means: finished, but some rows failed. Anything except 0 and 3 ends this script.
code=0
run --overwrite || code=$?
while [ "$code" -eq 3 ]; do
  echo '--- resume: rows that are ok are skipped, the others are tried again'
  code=0
  run --resume || code=$?
done
[ "$code" -eq 0 ]

echo "--- $(wc -l < results.jsonl) envelopes, one per row, in input order"
