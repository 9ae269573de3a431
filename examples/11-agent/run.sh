#!/usr/bin/env bash
# An agent: the model looks up every order with a Python function before it gives a structured answer.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}
rm -rf traces recorded

echo '--- try the tool: `passthrough` calls the tool named in the prompt, and answers with its result'
$rowmill run -i orders.csv -o - -m passthrough --agent-card clerk.md --no-progress \
  --prompt '***CALL_TOOL find_order {"number": "{{order}}"}'

# A simulated provider on this machine; its script makes the model call the tool, then answer.
$rowmill simulate --script script.jsonl > provider.log &
trap "kill $!" EXIT
until grep -q listening provider.log; do sleep 0.1; done
export OPENAI_BASE_URL=$(sed 's/listening on //' provider.log)/v1 OPENAI_API_KEY=any

echo '--- run: two turns per row; if the tool fails, the model is told and answers all the same'
$rowmill run -i orders.csv -o results.jsonl --overwrite -m openai.gpt-5.4-mini --agent-card clerk.md \
  --prompt '{{question}} (order {{order}})' --json-schema answer.schema.json \
  --record-tools recorded --export-traces traces --no-progress --no-final-summary
cat results.jsonl

echo '--- what was said and done for the first row'
grep -o '"type":"function_call.*' traces/row-000002__*.jsonl

echo '--- again without the tool: its recorded answers are replayed'
$rowmill run -i orders.csv -o - -m openai.gpt-5.4-mini --agent-card clerk.md \
  --prompt '{{question}} (order {{order}})' --json-schema answer.schema.json \
  --stub find_order="$(echo recorded/*find_order*.jsonl)" --no-progress
