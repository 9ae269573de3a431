#!/usr/bin/env bash
# Defaults from rowmill.toml, variables of the instruction from flags.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

# The model and the pace come from rowmill.toml in this folder.
$rowmill run -i ../reviews.jsonl -o results.jsonl --overwrite --limit 5 --no-final-summary \
  --instruction instruction.md --vars-json variables.json --var-file policy=policy.md --var tone=friendly \
  --prompt 'Answer this review of our {{product}}: {{review}}' --summary-output summary.json

grep -E '"(model|variables|parallel)"' summary.json
