#!/usr/bin/env bash
# The batch lane, with a simulated provider on this machine: submit jobs, ask for their state, collect their results.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}

# Jobs that would take two hours take two seconds.
$rowmill simulate --batch-duration 2h --time-scale 3600 > provider.log &
trap "kill $!" EXIT
until grep -q listening provider.log; do sleep 0.1; done
provider=$(sed 's/listening on //' provider.log)
export OPENAI_BASE_URL=$provider/v1 OPENAI_API_KEY=any
# Where it is remembered which jobs were submitted: here, so that the example leaves nothing in your home folder.
export XDG_STATE_HOME=$PWD/state
rm -rf state

echo '--- submit: exit code 5 means that jobs are at the provider'
code=0
$rowmill run -i ../reviews.jsonl -o results.jsonl --overwrite --lane batch --detach -m 'openai.gpt-5.4-mini?max_tokens=200' \
  --instruction ../classify.md --json-schema ../sentiment.schema.json --id-field id --no-final-summary || code=$?
[ "$code" -eq 5 ]

echo '--- status: the first line is the state; any folder will do'
(cd .. && $rowmill batch status --wait --poll-every 200ms)

echo '--- retrieve: writes the output and prints its path'
code=5
while [ "$code" -eq 5 ]; do
  code=0
  $rowmill batch retrieve || code=$?
done
[ "$code" -eq 0 ]

echo '--- list: all runs that are known'
$rowmill batch list
