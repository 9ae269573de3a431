#!/usr/bin/env bash
# Inspect a file, select rows with SQL, and write a table instead of envelopes.
set -euo pipefail
cd "$(dirname "$0")"
rowmill=${ROWMILL:-cargo run --quiet --release --}
quiet="--no-progress --no-final-summary --overwrite"

# Preview the file and the prompts.
$rowmill head tickets.csv -n 2 --prompt 'Which team should answer this? {{subject}}'

# A condition keeps rows unchanged, a query returns new ones.
$rowmill run -i tickets.csv -o open.jsonl -m simulated $quiet --where "status = 'open'" \
  --prompt 'Which team should answer this? {{subject}}'
$rowmill run -i tickets.csv -o results.jsonl -m simulated $quiet --id-field customer \
  --sql "SELECT customer, count(*) AS tickets, group_concat(subject, '; ') AS subjects
         FROM input GROUP BY customer ORDER BY tickets DESC, customer" \
  --prompt 'In one line: what troubles {{customer}}? {{subjects}}'

# A spreadsheet with the input next to the result.
$rowmill run -i tickets.csv -o teams.csv -m simulated $quiet --flatten --json-schema team.schema.json \
  --prompt 'Which team should answer this? {{subject}}'
head -n 3 teams.csv

# The same results as Parquet; this makes no calls.
$rowmill export teams.csv --output teams.parquet --overwrite
$rowmill head teams.parquet -n 2
$rowmill results teams.csv
