#!/usr/bin/env bash
# An agent: the model looks every order up with a Python function before it answers in a fixed shape.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}
rm -rf traces recorded

echo '--- try the tool: `passthrough` calls what the prompt says, and answers with what the tool gave'
$rowmill run -i orders.csv -o - -m passthrough --agent-card clerk.md --no-progress \
  --prompt '***CALL_TOOL find_order {"number": "{{order}}"}'

# A provider on this machine; its script plays a model that calls the tool, then answers.
$rowmill simulate --script script.jsonl > provider.log &
trap "kill $!" EXIT
until grep -q listening provider.log; do sleep 0.1; done
export OPENAI_BASE_URL=$(sed 's/listening on //' provider.log)/v1 OPENAI_API_KEY=any

echo '--- run: two turns per row; a tool that fails is told to the model, which answers all the same'
$rowmill run -i orders.csv -o results.jsonl --overwrite -m openai.gpt-5.4-mini --agent-card clerk.md \
  --prompt '{{question}} (order {{order}})' --json-schema answer.schema.json \
  --record-tools recorded --export-traces traces --no-progress --no-final-summary
cat results.jsonl

echo '--- what was said and done for the first row'
grep -o '"type":"function_call.*' traces/row-000002__*.jsonl

echo '--- again without the tool: what it gave is played back'
$rowmill run -i orders.csv -o - -m openai.gpt-5.4-mini --agent-card clerk.md \
  --prompt '{{question}} (order {{order}})' --json-schema answer.schema.json \
  --stub find_order="$(echo recorded/*find_order*.jsonl)" --no-progress
