#!/usr/bin/env python3
"""Makes random queries and asks DuckDB for their answers.

    python scripts/duckdb_random.py FOLDER --seed 7 --queries 200

Writes `rows.jsonl`, `rows.csv` and `rows.parquet` with the same rows into FOLDER, and a line of JSON
for every query to standard output: which file it reads, its text, and what DuckDB answers or why it refuses.
The test `queries_made_at_random_give_what_duckdb_gives_or_are_refused` reads them.
"""

import argparse
import csv
import datetime
import decimal
import json
import math
import pathlib
import random
import re
import sys
import types

import duckdb
import pyarrow
import pyarrow.parquet


class UtcZone(datetime.tzinfo):
    """The one time zone here, as the package `pytz` has it, which DuckDB asks for it."""

    def utcoffset(self, moment):
        return datetime.timedelta(0)

    def dst(self, moment):
        return datetime.timedelta(0)

    def tzname(self, moment):
        return "UTC"

    def localize(self, moment):
        return moment.replace(tzinfo=self)


sys.modules["pytz"] = types.SimpleNamespace(timezone=lambda name: UtcZone())

TYPES = {
    "id": "BIGINT",
    "name": "VARCHAR",
    "split": "VARCHAR",
    "score": "DOUBLE",
    "n": "BIGINT",
    "flag": "BOOLEAN",
    "day": "DATE",
    "moment": "TIMESTAMP",
    "price": "DECIMAL(10,2)",
    "big": "HUGEINT",
    "mixed": "JSON",
    "tags": "VARCHAR[]",
    "nums": "DOUBLE[]",
    "meta": "STRUCT(lang VARCHAR, size BIGINT, seen DATE)",
}
NAMES = ["Ada", "Bo", "Çelik", "Dee", "ÉCLAIR", "straße", "zoë", "", "O'Neil", "a%b", "50_x", "日本", "x y", "007", "12", "-3.5"]
WORDS = ["red", "green", "blue", "Été", "x"]


class JsonText(str):
    """JSON as a file may have it: with blanks, escapes and digits that need not be there."""


MIXED = [
    JsonText(text)
    for text in [
        *["1", "2.5", "2.50", '"x"', "true", "null", "[1,2]", "[1,  2]", "[ 1 , 2.0 ]", '{"a": 1}', '{ "a":1.0 }', '"[1]"', '"12"'],
        *["1e2", "1E+2", "100.0", "-0", "-0.0", "1e-7", "1e17", "1e21", "0.1000000000000000055511151231257827"],
        *["100000000000000000000", "18446744073709551615", "-9223372036854775809", '"1.5"', '" 7"', '"+7"', '"yes"', '"2024-02-03"'],
        *['"\\u00e9t\\u00e9\\/\\n"', '"été/\\u000a"', '{"b" : [1e17, "\\u00C7"], "a":-1}', '{"a":1,  "a":"\\u0041"}', "[ ]", "{ }"],
        *['[1.10, {"a" :  null}]', '[null, "x", "2"]', '{"a":{"b" : "12"}}', '["\\ud83d\\ude00\\u001f"]'],
    ]
]


def made_rows(chance):
    rows = []
    for number in range(1, 61):
        some = lambda value, share=0.15: None if chance.random() < share else value
        day = datetime.date(2023, 11, 1) + datetime.timedelta(days=chance.randrange(0, 200))
        clock = datetime.timedelta(seconds=chance.randrange(86400), microseconds=chance.choice([0, 0, 500000, 120000, 1]))
        rows.append(
            {
                "id": number,
                "name": some(chance.choice(NAMES)),
                "split": chance.choice(["train", "eval", "test"]),
                "score": some(round(chance.uniform(-20, 20), chance.choice([0, 1, 3]))),
                "n": some(chance.choice([0, 1, 2, 3, 5, 9, -4, 1000, 9007199254740993])),
                "flag": some(chance.random() < 0.5),
                "day": some(day),
                "moment": some(datetime.datetime.combine(day, datetime.time()) + clock),
                "price": some(decimal.Decimal(chance.randrange(-5000, 500000)) / 100),
                "big": some(chance.choice([18446744073709551615, 9223372036854775808, 1, -5, 170141183460469231731687303715884105])),
                "mixed": chance.choice(MIXED),
                "tags": some(chance.sample(WORDS, chance.randrange(0, 4))),
                "nums": some([chance.choice([1.5, 2.0, -3.25]) for _ in range(chance.randrange(0, 3))]),
                "meta": some({"lang": some(chance.choice(["de", "en"])), "size": some(chance.randrange(0, 9)), "seen": some(day)}),
            }
        )
    return rows


def plain_json(value):
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: plain_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain_json(one) for one in value]
    return value


def json_line(row):
    def text(value):
        return value if isinstance(value, JsonText) else json.dumps(plain_json(value), ensure_ascii=False)

    return "{" + ", ".join(f"{json.dumps(name)}: {text(value)}" for name, value in row.items()) + "}\n"


def write_inputs(folder, rows):
    with open(folder / "rows.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json_line(row) for row in rows)
    flat = [name for name in TYPES if name not in ("mixed", "tags", "nums", "meta")]
    with open(folder / "rows.csv", "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(flat)
        for row in rows:
            def cell(value):
                if value is None:
                    return ""
                if isinstance(value, bool):
                    return "true" if value else "false"
                return str(plain_json(value))
            writer.writerow([cell(row[name]) for name in flat])
    kinds = {
        "id": pyarrow.int64(),
        "name": pyarrow.string(),
        "split": pyarrow.string(),
        "score": pyarrow.float64(),
        "n": pyarrow.int64(),
        "flag": pyarrow.bool_(),
        "day": pyarrow.date32(),
        "moment": pyarrow.timestamp("us"),
        "price": pyarrow.decimal128(10, 2),
        "tags": pyarrow.list_(pyarrow.string()),
        "nums": pyarrow.list_(pyarrow.float64()),
        "meta": pyarrow.struct([("lang", pyarrow.string()), ("size", pyarrow.int64()), ("seen", pyarrow.date32())]),
    }
    columns = {name: pyarrow.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    columns["small"] = pyarrow.array([None if row["n"] is None else row["n"] % 100 for row in rows], pyarrow.int32())
    columns["real"] = pyarrow.array([row["score"] for row in rows], pyarrow.float32())
    columns["wide"] = pyarrow.array([None if row["price"] is None else row["price"] * 10**18 for row in rows], pyarrow.decimal128(38, 2))
    columns["unsigned"] = pyarrow.array([None if row["n"] is None else 18446744073709551615 - abs(row["n"]) for row in rows], pyarrow.uint64())
    columns["zoned"] = pyarrow.array([row["moment"] for row in rows], pyarrow.timestamp("us")).cast(pyarrow.timestamp("us", "UTC"))
    columns["tiny"] = pyarrow.array([None if row["n"] is None else row["n"] % 7 for row in rows], pyarrow.int8())
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "rows.parquet", row_group_size=16)
    return flat


class Generator:
    """Expressions of a type, over the columns of an input."""

    def __init__(self, chance, columns):
        self.chance = chance
        self.columns = columns
        self.depth = 0

    def pick(self, *choices):
        choice = self.chance.choice(choices)
        return choice() if callable(choice) else choice

    def column(self, kind):
        found = [name for name, one in self.columns.items() if one == kind]
        return self.chance.choice(found) if found else None

    def of_rows(self, make):
        """An expression that has a column in it, if one comes up."""
        made = make()
        for _ in range(5):
            if any(column in re.findall(r"\w+", made) for column in self.all):
                break
            made = make()
        return made

    def make(self, kind):
        self.depth += 1
        try:
            column = self.column(kind)
            if column and (self.depth > 3 or self.chance.random() < 0.4):
                return column
            if self.depth > 3:
                return self.literal(kind)
            return getattr(self, {"TEXT": "text", "WHOLE": "whole", "REAL": "real", "DECIMAL": "decimal", "TRUTH": "truth", "DATE": "date", "TIME": "time", "LIST": "list", "JSON": "json"}[kind])()
        finally:
            self.depth -= 1

    def literal(self, kind):
        return {
            "TEXT": lambda: self.pick("'a'", "'é'", "'red'", "'Ada'", "'%a%'", "''", "'O''Neil'"),
            "WHOLE": lambda: self.pick("0", "1", "2", "-3", "7", "100"),
            "REAL": lambda: self.pick("1e0", "2.5::DOUBLE", "-0.5::DOUBLE"),
            "DECIMAL": lambda: self.pick("0.5", "1.25", "-3.0", "100.00"),
            "TRUTH": lambda: self.pick("true", "false", "NULL"),
            "DATE": lambda: self.pick("DATE '2024-01-31'", "DATE '2023-12-01'"),
            "TIME": lambda: self.pick("TIMESTAMP '2024-01-15 10:30:00'", "TIMESTAMP '2023-12-01 00:00:00.25'"),
            "LIST": lambda: self.pick("['a', 'red']", "['x', NULL]"),
            "JSON": lambda: self.pick("'[1,  2]'::JSON", "'{\"a\" : 1e2}'::JSON", "'\"\\u00e9\"'::JSON", "'100.0'::JSON"),
        }[kind]()

    def json_string(self):
        """JSON in a string of the query, which takes the type of what it meets."""
        return self.pick("'[1,2]'", "'[1,  2]'", "'100.0'", "'1e2'", "'\"x\"'", "'{\"a\":1}'", "'0'")

    def json(self):
        j = lambda: self.make("JSON")
        path = lambda: self.pick("'$'", "'$.a'", "'$.b'", "'$[0]'", "'$[1]'", "'$.a.b'", "'$[-1]'", "0", "'a'")
        nested = lambda: self.pick("meta", "tags", "nums") if "meta" in self.all else self.make("LIST")
        return self.pick(
            lambda: self.literal("JSON"),
            lambda: f"({j()} -> {path()})",
            lambda: f"({j()} -> {path()})",
            lambda: f"json_extract({j()}, '$.a')",
            lambda: f"({nested()} -> {self.pick(path, lambda: chr(39) + '$.size' + chr(39))})",
            lambda: f"to_json({self.make(self.chance.choice(['TEXT', 'WHOLE', 'REAL', 'LIST', 'JSON', 'DATE', 'TRUTH']))})",
            lambda: f"to_json({nested()})",
            lambda: f"to_json([{j()}])",
            lambda: f"coalesce({j()}, {self.json_string()})",
            lambda: f"CASE WHEN {self.make('TRUTH')} THEN {j()} END",
            lambda: f"greatest({j()}, {self.json_string()})",
            lambda: f"nullif({j()}, {self.json_string()})",
        )

    def text(self):
        t, w = lambda: self.make("TEXT"), lambda: self.make("WHOLE")
        small = lambda: self.pick("0", "1", "2", "-1", "3")
        return self.pick(
            lambda: self.literal("TEXT"),
            lambda: f"lower({t()})",
            lambda: f"upper({t()})",
            lambda: f"trim({t()})",
            lambda: f"ltrim({t()}, 'a')",
            lambda: f"rtrim({t()}, 'xa ')",
            lambda: f"{t()} || {self.pick(t, w)}",
            lambda: f"concat({t()}, {self.pick(t, w)})",
            lambda: f"concat_ws('-', {t()}, {t()})",
            lambda: f"replace({t()}, 'a', {t()})",
            lambda: f"left({t()}, {small()})",
            lambda: f"right({t()}, {small()})",
            lambda: f"substr({t()}, {small()}, {small()})",
            lambda: f"lpad({t()}, 5, 'xy')",
            lambda: f"rpad({t()}, 4, '.')",
            lambda: f"repeat({t()}, 2)",
            lambda: f"reverse({t()})",
            lambda: f"split_part({t()}, 'a', {small()})",
            lambda: f"regexp_replace({t()}, '[aeiou]', '<\\0>', 'g')",
            lambda: f"regexp_extract({t()}, '(\\w)(\\d*)', 1)",
            lambda: f"strftime({self.make('TIME')}, '%Y-%m-%d %H:%M:%S %a %b %j')",
            lambda: f"dayname({self.make('DATE')})",
            lambda: f"monthname({self.make('TIME')})",
            lambda: f"CAST({self.pick(w, lambda: self.make('REAL'), lambda: self.make('DECIMAL'), lambda: self.make('DATE'), lambda: self.make('TIME'), lambda: self.make('TRUTH'))} AS VARCHAR)",
            lambda: f"coalesce({t()}, {t()})",
            lambda: f"CASE WHEN {self.make('TRUTH')} THEN {t()} ELSE {t()} END",
            lambda: f"nullif({t()}, {t()})",
            lambda: f"greatest({t()}, {t()})",
            lambda: f"{self.make('LIST')}[{small()}]",
            lambda: f"{t()}[2:3]",
            lambda: f"array_to_string({self.make('LIST')}, '+')",
            lambda: "(meta ->> '$.lang')" if "meta" in self.all else t(),
            lambda: "meta.lang" if "meta" in self.all else t(),
            lambda: f"chr({self.pick('65', '233')})",
            lambda: f"ifnull({t()}, {t()})",
            lambda: f"if({self.make('TRUTH')}, {t()}, {t()})",
            lambda: f"typeof({self.make(self.chance.choice(self.KINDS))})",
            lambda: f"list_extract({self.make('LIST')}, {small()})",
            lambda: "struct_extract(meta, 'lang')" if "meta" in self.all else f"struct_extract({{'a': {t()}}}, 'a')",
            lambda: "json_extract_string(meta, '$.lang')" if "meta" in self.all else "json_extract_string('{\"a\":\"é\"}', '$.a')",
            lambda: f"json_type({self.make('JSON')})",
            lambda: f"CAST({self.make('JSON')} AS VARCHAR)",
            lambda: f"({self.make('JSON')})::VARCHAR",
            lambda: f"({self.make('JSON')} ->> {self.pick(chr(39) + '$' + chr(39), chr(39) + '$.a' + chr(39), chr(39) + '$[1]' + chr(39), '0')})",
            lambda: f"({self.make('JSON')} || {t()})",
            lambda: f"trim({t()}, 'a')",
            lambda: f"CASE {t()} WHEN {t()} THEN {t()} WHEN {t()} THEN 'b' END",
            lambda: f"CAST(CAST({self.make('TIME')} AS TIME) AS VARCHAR)",
            lambda: f"regexp_replace({t()}, '(\\w)', '\\1\\1')",
            lambda: f"strftime({self.make('DATE')}, '%d/%m/%y %A %B %-d %-m')",
            lambda: f"CAST({self.make('TIME')} - {self.make('TIME')} AS VARCHAR)",
        )

    def whole(self):
        w, t = lambda: self.make("WHOLE"), lambda: self.make("TEXT")
        return self.pick(
            lambda: self.literal("WHOLE"),
            lambda: f"({w()} + {w()})",
            lambda: f"({w()} - {w()})",
            lambda: f"({w()} * {self.literal('WHOLE')})",
            lambda: f"({w()} // {self.pick('2', '7', '-3')})",
            lambda: f"({w()} % {self.pick('2', '7', '-3')})".replace("% -", "% - "),
            lambda: f"length({t()})",
            lambda: f"strpos({t()}, {t()})",
            lambda: f"abs({w()})",
            lambda: f"sign({w()})",
            lambda: f"round({w()}, -1)",
            lambda: f"{self.pick('year', 'month', 'day', 'quarter', 'week', 'dayofweek', 'isodow', 'dayofyear', 'hour', 'minute', 'second')}({self.pick(lambda: self.make('DATE'), lambda: self.make('TIME'))})",
            lambda: f"date_part('{self.pick('year', 'month', 'dow', 'week', 'hour', 'milliseconds')}', {self.make('TIME')})",
            lambda: f"extract({self.pick('year', 'month', 'day')} FROM {self.make('DATE')})",
            lambda: f"date_diff('{self.pick('day', 'month', 'hour', 'year', 'quarter', 'minute')}', {self.make('TIME')}, {self.make('TIME')})",
            lambda: f"({self.make('DATE')} - {self.make('DATE')})",
            lambda: f"CAST({self.pick(lambda: self.make('REAL'), lambda: self.make('DECIMAL'))} AS BIGINT)",
            lambda: f"TRY_CAST({t()} AS {self.pick('INTEGER', 'BIGINT', 'TINYINT')})",
            lambda: f"coalesce({w()}, {w()})",
            lambda: f"CASE WHEN {self.make('TRUTH')} THEN {w()} END",
            lambda: f"len({self.make('LIST')})",
            lambda: f"least({w()}, {w()})",
            lambda: "meta.size" if "meta" in self.all else w(),
            lambda: "CAST(meta ->> '$.size' AS INTEGER)" if "meta" in self.all else w(),
            lambda: f"TRY_CAST({self.make('JSON')} AS {self.pick('INTEGER', 'BIGINT', 'HUGEINT', 'UBIGINT')})",
            lambda: f"json_array_length({self.make('JSON')})",
            lambda: f"epoch_ms({self.make('TIME')})",
            lambda: f"unicode({t()})",
            lambda: f"ascii({t()})",
            lambda: f"strlen({t()})",
            lambda: f"instr({t()}, {t()})",
            lambda: f"position('a' IN {t()})",
            lambda: f"mod({w()}, {self.pick('2', '7')})",
            lambda: f"yearweek({self.pick(lambda: self.make('DATE'), lambda: self.make('TIME'))})",
            lambda: f"epoch_us({self.make('TIME')})",
            lambda: f"array_length({self.make('LIST')})",
            lambda: f"list_position({self.make('LIST')}, {t()})",
            lambda: f"json_array_length(to_json({self.make('LIST')}))",
            lambda: f"CAST({self.make('TRUTH')} AS INTEGER)",
            lambda: f"ifnull({w()}, {w()})",
            lambda: f"nullif({w()}, {w()})",
            lambda: f"TRY_CAST({w()} AS {self.pick('UTINYINT', 'SMALLINT', 'UINTEGER', 'UBIGINT', 'HUGEINT')})",
            lambda: "CAST(epoch(zoned) AS BIGINT)" if "zoned" in self.all else w(),
            lambda: f"hour(CAST({self.make('TIME')} AS TIME))",
        )

    def real(self):
        r, w, d = lambda: self.make("REAL"), lambda: self.make("WHOLE"), lambda: self.make("DECIMAL")
        any_number = lambda: self.pick(r, w, d)
        return self.pick(
            lambda: self.literal("REAL"),
            lambda: f"({r()} + {any_number()})",
            lambda: f"({r()} * {any_number()})",
            lambda: f"({any_number()} / {any_number()})",
            lambda: f"({r()} % {self.pick('2', '3.5')})",
            lambda: f"round({r()}, {self.pick('0', '1', '-1', '2')})",
            lambda: f"floor({r()})",
            lambda: f"ceil({r()})",
            lambda: f"trunc({r()})",
            lambda: f"abs({r()})",
            lambda: f"sqrt(abs({any_number()}))",
            lambda: f"ln(abs({r()}) + 1)",
            lambda: f"log10(abs({r()}) + 1)",
            lambda: f"power({r()}, 2)",
            lambda: f"exp({r()} / 10)",
            lambda: f"CAST({any_number()} AS DOUBLE)",
            lambda: f"TRY_CAST({self.make('TEXT')} AS DOUBLE)",
            lambda: f"epoch({self.make('TIME')})",
            lambda: f"round(cbrt({r()}), 9)",
            lambda: f"log(abs({r()}) + 1)",
            lambda: f"log2(abs({r()}) + 1)",
            lambda: f"pi() * {r()}",
            lambda: f"({r()} - {any_number()})",
            lambda: f"- {r()}",
            lambda: f"ceil({d()}) * 1.5::DOUBLE",
            lambda: f"CAST({r()} AS FLOAT)",
            lambda: f"date_part('epoch', {self.make('TIME')})",
            lambda: "nums[1]" if "nums" in self.all else r(),
            lambda: f"TRY_CAST({self.make('JSON')} AS DOUBLE)",
            lambda: f"CASE WHEN {self.make('TRUTH')} THEN {r()} ELSE {r()} END",
        )

    def decimal(self):
        d, w = lambda: self.make("DECIMAL"), lambda: self.make("WHOLE")
        return self.pick(
            lambda: self.literal("DECIMAL"),
            lambda: f"({d()} + {self.pick(d, w)})",
            lambda: f"({d()} - {d()})",
            lambda: f"({d()} * {self.literal('DECIMAL')})",
            lambda: f"({d()} % {self.pick('0.7', '3')})",
            lambda: f"round({d()}, {self.pick('0', '1', '-1')})",
            lambda: f"floor({d()})",
            lambda: f"abs({d()})",
            lambda: f"CAST({self.pick(lambda: self.make('REAL'), d, w)} AS DECIMAL({self.pick('18,3', '10,1', '38,4')}))",
            lambda: f"coalesce({d()}, {d()})",
            lambda: f"greatest({d()}, {self.pick(d, w)})",
            lambda: f"ceil({d()})",
            lambda: f"trunc({d()})",
            lambda: f"- {d()}",
            lambda: f"CASE WHEN {self.make('TRUTH')} THEN {d()} ELSE {self.pick(d, w)} END",
            lambda: f"TRY_CAST({self.make('TEXT')} AS DECIMAL(9,2))",
            lambda: f"TRY_CAST({self.make('JSON')} AS DECIMAL({self.pick('9,2', '38,3')}))",
        )

    def date(self):
        return self.pick(
            lambda: self.literal("DATE"),
            lambda: f"CAST({self.make('TIME')} AS DATE)",
            lambda: f"({self.make('DATE')} + {self.pick('1', '30', '-400')})",
            lambda: f"last_day({self.make('DATE')})",
            lambda: f"greatest({self.make('DATE')}, {self.make('DATE')})",
            lambda: f"TRY_CAST({self.make('TEXT')} AS DATE)",
            lambda: f"make_date(2024, {self.pick('1', '2', '12')}, {self.pick('1', '28')})",
            lambda: f"CAST(date_trunc('month', {self.make('DATE')}) AS DATE)",
            lambda: f"coalesce({self.make('DATE')}, {self.make('DATE')})",
            lambda: f"CASE WHEN {self.make('TRUTH')} THEN {self.make('DATE')} END",
            lambda: "meta.seen" if "meta" in self.all else self.literal("DATE"),
            lambda: f"TRY_CAST({self.make('JSON')} AS DATE)",
        )

    def time(self):
        moment = lambda: self.pick(lambda: self.make("DATE"), lambda: self.make("TIME"))
        return self.pick(
            lambda: self.literal("TIME"),
            lambda: f"CAST({self.make('DATE')} AS TIMESTAMP)",
            lambda: f"({moment()} + INTERVAL {self.pick('3 DAY', '1 MONTH', '-5 HOUR', '90 MINUTE', '1 YEAR')})".replace("INTERVAL -5 HOUR", "INTERVAL (-5) HOUR"),
            lambda: f"({moment()} - INTERVAL '{self.pick('2 days', '1 month 3 days', '04:05:06')}')",
            lambda: f"date_trunc('{self.pick('year', 'quarter', 'month', 'week', 'day', 'hour', 'minute')}', {moment()})",
            lambda: f"coalesce({self.make('TIME')}, {self.make('TIME')})",
            lambda: f"make_timestamp(2024, 2, {self.pick('1', '29')}, 3, 4, {self.pick('5.5', '0.25')})",
            lambda: f"make_timestamp({self.pick('0', '1700000000000000')} + {self.make('WHOLE')})",
            lambda: f"strptime(strftime({self.make('TIME')}, '%Y-%m-%d %H:%M:%S'), '%Y-%m-%d %H:%M:%S')",
            lambda: f"try_strptime({self.make('TEXT')}, '%Y-%m-%d')",
            lambda: f"date_add({self.make('DATE')}, INTERVAL {self.pick('3 DAY', '2 MONTH')})",
            lambda: f"({moment()} + {self.pick('to_days', 'to_hours', 'to_minutes', 'to_months', 'to_years', 'to_seconds')}({self.pick('2', '-3')}))",
            lambda: "(zoned AT TIME ZONE 'UTC')" if "zoned" in self.all else self.literal("TIME"),
            lambda: f"least({self.make('TIME')}, {self.make('TIME')})",
        )

    def list(self):
        return self.pick(
            lambda: self.literal("LIST"),
            lambda: f"string_split({self.make('TEXT')}, 'a')",
            lambda: f"[{self.make('TEXT')}, {self.make('TEXT')}]",
            lambda: f"list_sort({self.make('LIST')})",
            lambda: f"{self.make('LIST')}[1:2]",
            lambda: f"list_concat({self.make('LIST')}, {self.make('LIST')})",
            lambda: f"list_value({self.make('TEXT')}, {self.make('TEXT')})",
            lambda: f"regexp_extract_all({self.make('TEXT')}, '[a-z]+')",
            lambda: "json_keys(to_json(meta))" if "meta" in self.all else self.literal("LIST"),
            lambda: f"json_keys({self.make('JSON')})",
            lambda: f"TRY_CAST({self.make('JSON')} AS VARCHAR[])",
            lambda: f"CASE WHEN {self.make('TRUTH')} THEN {self.make('LIST')} END",
        )

    def truth(self):
        kind = self.pick("TEXT", "WHOLE", "REAL", "DECIMAL", "DATE", "TIME")
        one, other = lambda: self.make(kind), lambda: self.make(kind)
        sign = self.pick("=", "<>", "<", "<=", ">", ">=")
        t = lambda: self.make("TEXT")
        return self.pick(
            lambda: f"{one()} {sign} {other()}",
            lambda: f"{one()} {sign} {other()}",
            lambda: f"{self.make('WHOLE')} {sign} {self.pick(lambda: self.make('REAL'), lambda: self.make('DECIMAL'))}",
            lambda: f"{self.make('DATE')} {sign} {self.make('TIME')}",
            lambda: f"{self.make('TIME')} {sign} '{self.pick('2024-01-15 06:00:00', '2024-01-15', '2023-12-24T12:00:00')}'",
            lambda: f"{self.make('DATE')} {sign} '2024-01-15'",
            lambda: f"{one()} IS {self.pick('', 'NOT ')}NULL",
            lambda: f"{one()} IS {self.pick('', 'NOT ')}DISTINCT FROM {other()}",
            lambda: f"{one()} BETWEEN {other()} AND {other()}",
            lambda: f"{one()} {self.pick('', 'NOT ')}IN ({other()}, {other()})",
            lambda: f"{t()} {self.pick('', 'NOT ')}{self.pick('LIKE', 'ILIKE')} {self.pick(chr(39) + '%a%' + chr(39), chr(39) + '_b%' + chr(39), chr(39) + 'É%' + chr(39), t)}",
            lambda: f"contains({t()}, {t()})",
            lambda: f"starts_with({t()}, {t()})",
            lambda: f"ends_with({t()}, 'e')",
            lambda: f"regexp_matches({t()}, '{self.pick('^[a-z]+$', '[0-9]', chr(92) + 'w' + chr(92) + 'w', 'é|a', '(?i)ADA')}')",
            lambda: f"list_contains({self.make('LIST')}, {t()})",
            lambda: f"({self.make('TRUTH')} AND {self.make('TRUTH')})",
            lambda: f"({self.make('TRUTH')} OR {self.make('TRUTH')})",
            lambda: f"NOT ({self.make('TRUTH')})",
            lambda: f"({self.make('TRUTH')}) IS TRUE",
            lambda: f"{self.make('LIST')} {sign} {self.make('LIST')}",
            lambda: f"{t()} SIMILAR TO '{self.pick('[a-z]*', '.*a.*', 'A|B')}'",
            lambda: f"{t()} ~ '{self.pick('[A-Z].*', 'x')}'",
            lambda: f"regexp_full_match({t()}, '[a-zA-Z]*')",
            lambda: f"regexp_matches({t()}, 'A.*', 'i')",
            lambda: f"isnan({self.make('REAL')})",
            lambda: f"isinf({self.make('REAL')})",
            lambda: f"isfinite({self.make('REAL')})",
            lambda: f"json_valid({t()})",
            lambda: f"({self.make('TIME')} - {self.make('TIME')}) {sign} INTERVAL {self.pick('3 DAY', '2 HOUR')}",
            lambda: "random() < 2",
            lambda: f"{self.make('TRUTH')} IS NOT DISTINCT FROM {self.make('TRUTH')}",
            lambda: "zoned >= TIMESTAMPTZ '2024-01-15 06:00:00+00'" if "zoned" in self.all else self.literal("TRUTH"),
            lambda: f"CAST({self.make('TIME')} AS TIME) {sign} TIME '12:30:00'",
            lambda: f"TRY_CAST({self.pick(t, lambda: self.make('JSON'))} AS BOOLEAN)",
            lambda: f"{self.make('JSON')} {sign} {self.pick(self.json_string, lambda: self.make('JSON'))}",
            lambda: f"{self.make('JSON')} {self.pick('', 'NOT ')}IN ({self.json_string()}, {self.json_string()})",
            lambda: f"{self.make('JSON')} IS {self.pick('', 'NOT ')}DISTINCT FROM {self.make('JSON')}",
            lambda: f"CAST({self.make('JSON')} AS VARCHAR) {sign} {self.json_string()}",
            lambda: f"TRY_CAST({self.make('JSON')} AS DOUBLE[]) IS NULL",
            lambda: "meta.size > 3" if "meta" in self.all else self.literal("TRUTH"),
            lambda: "json_extract(meta, '$.size') IS NULL" if "meta" in self.all else self.literal("TRUTH"),
        )

    KINDS = ["TEXT", "WHOLE", "REAL", "DECIMAL", "TRUTH", "DATE", "TIME", "LIST", "JSON"]

    def query(self):
        form = self.chance.random()
        kind = self.chance.choice(self.KINDS)
        condition = f" WHERE {self.make('TRUTH')}" if self.chance.random() < 0.5 else ""
        if form < 0.35:
            return f"SELECT id, {self.make(kind)} AS x, {self.make(self.chance.choice(self.KINDS))} AS y FROM input{condition} ORDER BY id"
        if form < 0.5:
            order = self.of_rows(lambda: self.make(self.chance.choice(["TEXT", "WHOLE", "REAL", "DECIMAL", "DATE", "TIME", "LIST", "JSON"])))
            more = self.pick("", " DESC", " NULLS FIRST", " DESC NULLS FIRST")
            return f"SELECT id FROM input{condition} ORDER BY {order}{more}, id LIMIT {self.pick('5', '20')}"
        if form < 0.75:
            key = self.of_rows(lambda: self.make(self.chance.choice(["TEXT", "WHOLE", "TRUTH", "DATE", "DECIMAL", "JSON"])))
            value = lambda: self.make(self.chance.choice(["WHOLE", "REAL", "DECIMAL"]))
            aggregates = [
                "count(*)",
                f"count({value()})",
                f"count(DISTINCT {self.make(self.chance.choice(['TEXT', 'JSON']))})",
                f"sum({value()})",
                f"avg({value()})",
                f"min({self.make(kind)})",
                f"max({self.make(kind)})",
                f"median({value()})",
                f"quantile_cont({value()}, 0.25)",
                f"stddev({value()})",
                f"var_pop({value()})",
                f"bool_and({self.make('TRUTH')})",
                f"bool_or({self.make('TRUTH')})",
                f"count_if({self.make('TRUTH')})",
                f"string_agg({self.make('TEXT')}, ',' ORDER BY id)",
                f"list({self.make('TEXT')} ORDER BY id)",
                f"arg_max(id, score)",
                f"count(*) FILTER (WHERE {self.make('TRUTH')})",
                f"any_value(split ORDER BY id)",
                f"sum(DISTINCT {value()})",
                f"quantile_disc({value()}, 0.5)",
                f"stddev_pop({value()})",
                f"variance({value()})",
                f"arg_min(id, price)",
                f"first({self.make('TEXT')} ORDER BY id)",
                f"last({self.make(kind)} ORDER BY id)",
                f"max({value()}) FILTER (WHERE {self.make('TRUTH')})",
            ]
            one, other = self.chance.sample(aggregates, 2)
            having = f" HAVING count(*) > {self.pick('0', '1', '3')}" if self.chance.random() < 0.3 else ""
            return f"SELECT {key} AS k, {one} AS x, {other} AS y FROM input{condition} GROUP BY ALL{having} ORDER BY ALL"
        if form < 0.85:
            window = self.pick(
                "row_number() OVER (PARTITION BY split ORDER BY id)",
                "rank() OVER (ORDER BY n)",
                "sum(n % 100) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
                "avg(score) OVER (PARTITION BY split)",
                "lag(name) OVER (ORDER BY id)",
                "lead(price, 2) OVER (ORDER BY id)",
                "first_value(day) OVER (PARTITION BY flag ORDER BY id)",
                "max(moment) OVER (ORDER BY id)",
                "count(*) OVER (PARTITION BY name)",
                "dense_rank() OVER (ORDER BY day DESC)",
                "percent_rank() OVER (ORDER BY price)",
                "cume_dist() OVER (PARTITION BY split ORDER BY n)",
                "ntile(4) OVER (ORDER BY id)",
                "last_value(name) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
                "nth_value(n, 2) OVER (PARTITION BY split ORDER BY id)",
                "min(price) OVER (PARTITION BY flag)",
                "bool_and(flag) OVER (PARTITION BY split)",
                "bool_or(flag) OVER (ORDER BY id)",
                "count_if(flag) OVER (ORDER BY id)",
                f"sum({self.make('WHOLE')} % 10) OVER (PARTITION BY {self.make('TEXT')})",
            )
            qualify = self.pick("", "", f" QUALIFY row_number() OVER (PARTITION BY split ORDER BY score DESC, id) <= 3")
            return f"SELECT id, {window} AS x, {self.make(kind)} AS y FROM input{condition}{qualify} ORDER BY id"
        if form < 0.93:
            return self.pick(
                f"SELECT DISTINCT {self.make(self.chance.choice(['TEXT', 'JSON']))} AS x, flag FROM input{condition} ORDER BY ALL",
                f"SELECT id FROM input WHERE {self.make('WHOLE')} IN (SELECT {self.make('WHOLE')} FROM input{condition}) ORDER BY id",
                f"SELECT id FROM input a WHERE EXISTS (SELECT 1 FROM input b WHERE b.split = a.split AND b.id > a.id AND b.score > a.score) ORDER BY id",
                f"WITH t AS (SELECT *, {self.make(kind)} AS x FROM input{condition}) SELECT id, x FROM t WHERE x IS NOT NULL ORDER BY id",
                f"SELECT a.id, b.id AS other FROM input a JOIN input b ON a.n = b.n AND a.id < b.id ORDER BY ALL",
                f"SELECT a.id, b.id AS other FROM input a LEFT JOIN input b ON b.id = a.id + 1 AND b.flag ORDER BY ALL",
                f"SELECT split AS x FROM input{condition} UNION SELECT name FROM input ORDER BY x",
                f"SELECT {self.make('JSON')} AS x FROM input{condition} UNION SELECT {self.make('JSON')} FROM input ORDER BY x",
                f"SELECT id FROM input WHERE {self.make('JSON')} IN (SELECT {self.make('JSON')} FROM input{condition}) ORDER BY id",
                f"SELECT n AS x FROM input INTERSECT SELECT id FROM input ORDER BY x",
                f"SELECT name AS x FROM input EXCEPT SELECT split FROM input ORDER BY x",
                f"SELECT id, (SELECT max(score) FROM input b WHERE b.split = a.split) AS x FROM input a ORDER BY id",
                f"SELECT * EXCLUDE (name, score) REPLACE ({self.make('WHOLE')} AS n) FROM input{condition} ORDER BY id",
                f"SELECT DISTINCT ON (split) split, id, {self.make(kind)} AS x FROM input{condition} ORDER BY split, id DESC",
                f"FROM input SELECT id, {self.make(kind)} AS x{condition} ORDER BY id DESC NULLS LAST",
                f"WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < 7) SELECT i, name FROM t JOIN input ON input.id = t.i ORDER BY i",
                f"SELECT v.a, count(*) AS c FROM input JOIN (VALUES ('train', 1), ('eval', 2)) AS v(s, a) ON v.s = input.split GROUP BY ALL ORDER BY ALL",
                f"SELECT id, b.x FROM input a FULL JOIN (SELECT id, {self.make(kind)} AS x FROM input{condition}) b USING (id) ORDER BY id",
                f"SELECT split, {self.make('TRUTH')} AS t, count(*) AS c FROM input GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY ALL",
                f"SELECT id, CASE WHEN x > 3 THEN 'many' ELSE 'few' END AS y FROM (SELECT id, {self.make('WHOLE')} AS x FROM input) ORDER BY id OFFSET 5",
            )
        if "tags" in self.all:
            return self.pick(
                f"SELECT id, unnest({self.make('LIST')}) AS x FROM input ORDER BY id, x",
                f"SELECT id, meta, tags, mixed FROM input{condition} ORDER BY id" if "mixed" in self.all else f"SELECT id, meta, tags FROM input{condition} ORDER BY id",
                f"SELECT meta AS x, count(*) AS c FROM input GROUP BY meta ORDER BY ALL",
                f"SELECT i.id, u.t FROM input i, unnest(i.tags) AS u(t) WHERE u.t <> 'x' ORDER BY ALL",
                f"SELECT id, meta -> '$.size' AS s, tags ->> '$[0]' AS t FROM input ORDER BY id",
                f"SELECT id, CAST({self.make('JSON')} AS VARCHAR) AS x, {self.make('JSON')} AS y FROM input ORDER BY id",
                f"SELECT {self.pick('mixed', 'mixed::VARCHAR', 'mixed ->> chr(36)')} AS x, count(*) AS c FROM input GROUP BY ALL ORDER BY ALL".replace("chr(36)", "'$'")
                if "mixed" in self.all
                else f"SELECT {self.make('JSON')} AS x FROM input ORDER BY x NULLS FIRST",
            )
        return f"SELECT * FROM input{condition} ORDER BY id"


def shown(value, near):
    """A value as the test compares it."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, decimal.Decimal)):
        return {"#": f"{value:f}" if isinstance(value, decimal.Decimal) else str(value)}
    if isinstance(value, float):
        return number(value, near)
    if isinstance(value, datetime.time):
        return value.isoformat()
    if isinstance(value, (bytes, datetime.timedelta)):
        raise ValueError(f"no answer can be compared that has {type(value).__name__}")
    if isinstance(value, datetime.datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
        text += f".{value.microsecond:06}".rstrip("0") if value.microsecond else ""
        return text if value.tzinfo is None else text + "+00:00"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, list):
        return [shown(one, near) for one in value]
    if isinstance(value, dict):
        return {name: shown(one, near) for name, one in value.items()}
    return value


def number(value, near):
    """A number with a binary fraction, and how near another must be."""
    if math.isnan(value):
        return {"#": "NaN"}
    if math.isinf(value):
        return {"#": "Infinity" if value > 0 else "-Infinity"}
    return {"#": repr(value + 0.0), "near": near}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--functions", nargs="*", default=[])
    flags = parser.parse_args()
    chance = random.Random(flags.seed)
    rows = made_rows(chance)
    flat = write_inputs(flags.folder, rows)
    kinds = {"VARCHAR": "TEXT", "BIGINT": "WHOLE", "DOUBLE": "REAL", "BOOLEAN": "TRUTH", "DATE": "DATE", "TIMESTAMP": "TIME", "VARCHAR[]": "LIST", "HUGEINT": "WHOLE", "DECIMAL(10,2)": "DECIMAL", "JSON": "JSON"}
    inputs = {}
    for name in ("rows.jsonl", "rows.csv", "rows.parquet"):
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        connection.execute("SET TimeZone = 'UTC'")
        path = flags.folder / name
        if name == "rows.jsonl":
            known = {**TYPES, "price": "DOUBLE"}
            columns = ", ".join(f"{column}: '{kind}'" for column, kind in known.items())
            source = f"read_json('{path}', format = 'newline_delimited', columns = {{{columns}}})"
        elif name == "rows.csv":
            known = {column: {**TYPES, "price": "DOUBLE"}[column] for column in flat}
            columns = ", ".join(f"'{column}': '{kind}'" for column, kind in known.items())
            source = f"read_csv('{path}', columns = {{{columns}}}, header = true)"
        else:
            known = {column: kind for column, kind in TYPES.items() if column not in ("big", "mixed")}
            known |= {"small": "BIGINT", "real": "DOUBLE", "wide": "DECIMAL(10,2)", "unsigned": "BIGINT", "tiny": "BIGINT", "zoned": "TIMESTAMPTZ"}
            source = f"read_parquet('{path}')"
        connection.execute(f"CREATE TABLE input AS SELECT * FROM {source}")
        generator = Generator(chance, {column: kinds[kind] for column, kind in known.items() if kind in kinds})
        generator.all = known
        inputs[name] = (connection, generator)
    for name, sql in queries(chance, inputs, flags):
        sys.stdout.write(json.dumps(asked(inputs[name][0], name, sql), ensure_ascii=False) + "\n")


# How many queries have a function at least, and how many are made to find one that has it.
LEAST = 3
TRIES = 200_000


def queries(chance, inputs, flags):
    """The queries with the inputs that they are for: as many as were asked for, then those that have the
    functions which chance passed over."""
    missing = {function: LEAST for function in flags.functions}

    def made():
        name = chance.choice(list(inputs))
        sql = inputs[name][1].query()
        has = set(re.findall(r"\w+", sql)) & missing.keys()
        for function in has:
            missing[function] -= 1
            if missing[function] == 0:
                del missing[function]
        return name, sql, has

    for _ in range(flags.queries):
        name, sql, _ = made()
        yield name, sql
    for _ in range(TRIES):
        if not missing:
            return
        name, sql, has = made()
        if has:
            yield name, sql


# What depends on the mathematics of the machine, or adds numbers in an order that DuckDB chooses.
INEXACT = re.compile(r"\b(cbrt|exp|ln|log|log10|log2|power|median|quantile_cont)\(|\bOVER\b|\b(sum|avg)\(DISTINCT|AS FLOAT|\breal\b")


# Averages of whole numbers and decimals: whether DuckDB divides the sum itself or a DOUBLE of it depends on
# what else its optimizer finds in the query, so their last digits may differ by as much as this.
AVERAGES = re.compile(r"SELECT .* AS k, (.*) AS x, (.*) AS y FROM input")
LAST_DIGITS = 4 * sys.float_info.epsilon

# The optimizer of DuckDB 2.0 takes `CASE WHEN a THEN b END IN (…)` of constants for `a IS NOT NULL`, so that it
# returns rows for which the condition is null.
MISTAKEN = re.compile(r"\bWHERE\b.*\bCASE WHEN\b.*\bEND IN \(")


def averages(sql):
    """The columns of a query that are averages."""
    found = AVERAGES.match(sql)
    return {name for name, text in zip("xy", found.groups()) if text.startswith("avg(")} if found else set()


def asked(connection, name, sql):
    """A query with what DuckDB answers."""
    answer = {"input": name, "sql": sql}
    try:
        connection.execute("PRAGMA disable_optimizer" if MISTAKEN.search(sql) else "PRAGMA enable_optimizer")
        result = connection.execute(sql)
        names = [column[0] for column in result.description]
        json_columns = {column[0] for column in result.description if str(column[1]) == "JSON"}
        most = 1e-10 if INEXACT.search(sql) else 0
        near = {column[0]: 1e-6 if "FLOAT" in str(column[1]) else most for column in result.description}
        near |= {one: max(LAST_DIGITS, near[one]) for one in averages(sql)}
        found = []
        for row in result.fetchall():
            pairs = zip(names, row)
            found.append({one: shown(json.loads(value) if one in json_columns and value is not None else value, near[one]) for one, value in pairs})
        answer["rows"] = found
    except (duckdb.Error, OverflowError, ValueError) as error:
        answer["error"] = str(error).split("\n")[0]
    return answer


if __name__ == "__main__":
    main()
