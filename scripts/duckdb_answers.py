#!/usr/bin/env python3
"""Asks DuckDB the queries of crates/rowmill-data/tests/suite/sql/queries.toml.

    pip install duckdb
    python scripts/duckdb_answers.py            # writes answers.json
    python scripts/duckdb_answers.py --check    # fails if answers.json would change
    python scripts/duckdb_answers.py --print    # writes the answers to standard output
"""

import datetime
import decimal
import json
import pathlib
import sys
import tomllib

import duckdb

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "crates/rowmill-data/tests/suite/sql"
TYPES = {
    "id": "BIGINT",
    "name": "VARCHAR",
    "split": "VARCHAR",
    "score": "DOUBLE",
    "n": "BIGINT",
    "flag": "BOOLEAN",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "parent": "BIGINT",
    "tags": "JSON",
    "meta": "JSON",
    "note": "VARCHAR",
}


def plain(value):
    """A value as JSON has it. Times have no `T`, and what is rounded differently is cut."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, str) and value[:1] in "[{" and value:
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def answers():
    connection = duckdb.connect()
    # Threads would hand rows on in any order, and sums of fractions would differ at their ends.
    connection.execute("SET threads = 1")
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in TYPES.items())
    connection.execute(
        f"CREATE TABLE input AS SELECT * FROM read_json('{FOLDER / 'rows.jsonl'}', "
        f"format = 'newline_delimited', columns = {{{columns}}})"
    )
    queries = tomllib.loads((FOLDER / "queries.toml").read_text("utf-8"))["query"]
    found = []
    for query in queries:
        result = connection.execute(query["sql"])
        names = [column[0] for column in result.description]
        rows = [{name: plain(value) for name, value in zip(names, row)} for row in result.fetchall()]
        found.append({"name": query["name"], "rows": rows})
    return found


def main():
    found = answers()
    lines = []
    for answer in found:
        rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in answer["rows"])
        lines.append(f'  {{"name": {json.dumps(answer["name"])}, "rows": [\n{rows}\n  ]}}')
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    path = FOLDER / "answers.json"
    if "--print" in sys.argv:
        sys.stdout.write(text)
    elif "--check" in sys.argv:
        if json.loads(path.read_text("utf-8")) != json.loads(text):
            sys.exit(f"{path} is not what DuckDB {duckdb.__version__} answers")
        print(f"DuckDB {duckdb.__version__}: {len(found)} answers are the same")
    else:
        path.write_text(text, "utf-8")
        print(f"DuckDB {duckdb.__version__}: wrote {len(found)} answers to {path}")


if __name__ == "__main__":
    main()
