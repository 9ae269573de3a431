#!/usr/bin/env bash
# A folder of documents: each file is a row, and its text is sent to the model.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}
quiet="--no-progress --no-final-summary"
rm -rf results.jsonl .results.jsonl.rowmill

# `passthrough` answers with its prompt and a line per file, so that you see what a model would get.
$rowmill run -i inbox -o results.jsonl -m passthrough $quiet --id content --extract text \
  --prompt 'Who wrote this, and what do they want?'

# A later run sends only new files: a copy under another name is the same document.
cp inbox/letters/ada.html inbox/the-same-as-ada.html
echo 'Dear shop, thank you. Zoe' > inbox/zoe.txt
$rowmill run -i inbox -o results.jsonl -m passthrough $quiet --id content --extract text \
  --prompt 'Who wrote this, and what do they want?' --resume
rm inbox/the-same-as-ada.html inbox/zoe.txt
cat results.jsonl
