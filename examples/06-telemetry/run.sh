#!/usr/bin/env bash
# Where the time and the tokens go: telemetry per row, failed rows in a separate file, a summary for programs.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

# One line of the input is broken and one row lacks the field `review`: two failed rows, exit code 3.
code=0
$rowmill run -i rows.jsonl -o results.jsonl --overwrite -m 'simulated?latency=20ms&jitter=0.5' \
  --prompt 'Classify this review: {{review}}' --parallel 2 --no-final-summary \
  --telemetry-output telemetry.jsonl --error-output errors.jsonl --summary-output summary.json || code=$?
[ "$code" -eq 3 ]

echo '--- telemetry.jsonl'
head -n 1 telemetry.jsonl
echo '--- errors.jsonl'
cat errors.jsonl
echo '--- summary.json'
cat summary.json
