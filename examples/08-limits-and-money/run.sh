#!/usr/bin/env bash
# A provider with limits and prices on this machine; a plan, a run that stops at its budget, and a
# resume with a higher one.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

# 600 requests and 60,000 tokens per minute; its statistics show what it charges.
$rowmill simulate --rpm 600 --tpm 60000 --latency uniform:20ms..80ms --tokenizer o200k \
  --answer-tokens uniform:20..80 --price input=0.75,cached=0.075,output=4.5 > provider.log &
trap "kill $!" EXIT
until grep -q listening provider.log; do sleep 0.1; done
provider=$(sed 's/listening on //' provider.log)
export OPENAI_BASE_URL=$provider/v1 OPENAI_API_KEY=any

worker=(-i ../reviews.jsonl -m 'openai.gpt-5.4-mini?max_tokens=200' --instruction ../classify.md
  --prompt 'Classify this review: {{review}}' --id-field id --cache answers)
rm -rf answers

echo '--- plan: five calls are made, to see how long answers are; the run finds them in the cache'
$rowmill plan "${worker[@]}" --sample-calls 5

echo '--- run: a call is sent only if its worst case fits into what is left of $0.004'
code=0
$rowmill run "${worker[@]}" -o results.jsonl --overwrite --max-cost 0.004 --no-final-summary || code=$?
[ "$code" -eq 4 ]

echo '--- resume: rows that were not sent are sent now, and what was spent before counts'
$rowmill run "${worker[@]}" -o results.jsonl --resume --max-cost 0.05 --no-final-summary

if command -v curl > /dev/null; then
  echo "--- the provider charged, sample calls included: $(curl -s "$provider/stats" | grep -o '"cost_usd":[0-9.e-]*')"
fi
