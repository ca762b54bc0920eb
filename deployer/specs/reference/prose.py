"""The prose of docs/spec.md and docs/spec/ that the JSON Schema does not contain."""

from __future__ import annotations

GENERATED = "<!-- Made by `make reference` from the JSON Schema. Do not edit. -->"

INTRODUCTION = """\
# Specs

<!-- Made by `make reference` from the JSON Schema. Do not edit. -->

A lake is declared in YAML: exactly one `Instance`, and any number of `Table`s and reusable `Schema`s, in as many
files and documents as you like. `deployer validate` shows every problem at once; `deployer schema` prints the JSON
Schema, with which editors complete and check while you type:

```yaml
# yaml-language-server: $schema=../../spec.schema.json
kind: Table
database: nyc
name: airlines
description: Carriers by their two-letter code.
columns:
  - { name: carrier, type: string, nullable: false, description: Two-letter code. }
  - { name: name, type: string, nullable: false, description: Full name. }
row_keys: [carrier]
```

- Every `*.yaml` and `*.yml` file directly in the folder of specs is read, and what they `include`. A file that is
  reached twice is read once. `validate` and `preview` name spec files in subfolders that no file includes.
- Files are YAML with the scalars of YAML 1.2: `true` and `false` are the only booleans, and `no`, `on`, `1_000` and
  `1:30` are text. Anchors, aliases and merge keys (`<<`) work; duplicate keys, tabs and unknown fields are problems.
  Quote types that hold `: `, and inside of `{…}` those that hold a comma or brackets: `{type: "decimal128(10, 2)"}`.
- A file has at most 16 MiB and 1,000,000 values, keys among them. All files have at most 256 MiB and 5,000,000 values,
  and there are at most 20,000 files. Aliases add at most 100,000 values and 1,000,000 characters to a file. The values
  of variables, each time that one is written, have at most 10,000,000 characters, and the descriptions, tags and
  expressions of all tables 67,108,864.
- Fields that start with `x-`, directly in an Instance, Schema or Table, are not looked at: a place for anchors.
- Names of databases, tables and schemas are letters, digits and `_`, at most 128, and start with a letter or `_`; those
  of instances and clusters may have `-` as well. Columns have [other names](spec/columns.md#names-of-columns). Two
  names that differ only in case clash.

## Environments

One set of files serves several Pulumi stacks. What differs is a variable, an overlay, or a file that only some stacks
include; `deployer render --stack prod` prints what a stack declares after that.

```yaml
kind: Variables
variables:
  root: { default: lakes/nyc, description: Where the lake lives. }
  protect: { type: boolean, default: false }
stacks:
  prod:
    root: s3://our-lakes/nyc
    protect: true
---
kind: Instance
name: nyc
root: ${root}
---
kind: Table
database: nyc
name: planes
columns:
  - { name: tailnum, type: string, nullable: false }
  - { name: engine, type: string }
deletion_protection: ${protect}
---
kind: Overlay
stack: prod
target: table/nyc.planes
set:
  tags: { owner: operations }
  columns:
    - { name: tailnum, description: Tail number of the plane. }
    - { name: engine, remove: true }
```

`${stack}` is the name of the stack, without a declaration: `root: lakes/${stack}` gives each stack a lake of its own.
Specs may declare a variable `stack` of their own instead.

A value that is one `${name}` and nothing else has the variable's type; inside of `{…}` and `[…]` write it in quotes.
Keys and `include` take no variables. A document `stack: prod` with `include: [prod/*.yaml]` reads files for one stack
only. A problem in a value that an overlay sets points at the overlay.
"""

TYPES = """\
Every type that Lance stores, with what was tried in file versions 2.1 and 2.2: a dataset created empty, written twice
with nulls, read back equal, and its schema as declared. A type is text, as in the table; `not null` behind the type
of an item, value or field says that it is never null. The long form gives nested fields descriptions:

```yaml
columns:
  - name: trip
    type:
      struct:
        - { name: miles, type: float32, nullable: false, description: Length of the trip. }
        - name: stops
          type: { list: { type: string, nullable: false, description: FAA code of an airport. } }
  - name: embedding
    type: { vector: { item: float32, size: 768 } }
```

Fields of structs are named as columns are. Descriptions are kept in the metadata of Arrow fields, under `description`.
"""

COLUMN_NAMES = """\
## Names of columns

A column, a field of a struct and an index may have any name of one line, such as `Total Amount`, `2nd`, `Größe`, `数量`
or `km/h`, with at most 255 characters. These are refused:

- a dot: it stands between a column and its fields, as in `trip.miles`. Lance refuses it in columns;
- a backtick, with which Lance does not find a column;
- characters that are not shown, such as tabs, line ends and zero-width spaces;
- of columns, not of fields: the name `*`, and names that start with `_row`, which are Lance's own;
- two names in one table or struct that differ only in case or in Unicode's form (`é` as one character or as two).

Lance builds no index on a field of a struct whose name is `null`, `true` or `false`, or of letters, digits and `_` only
and starts with a digit.

How such a name is written:

- in lists of names of a spec (`row_keys`, `columns` of an index or of CLUSTER, `renamed_from`), as it is. YAML wants
  quotes for some: `row_keys: [Total Amount, "# rows"]`;
- in a type's text in double quotes, as in JSON: `type: 'struct<"Post Code": string>'`;
- in SQL (`default:`, `using:`, `query --where`, `deployer sql`, `where=` in Python) in backticks:
  `` --where '`Total Amount` > 3 AND address.`Post Code` = 10115' ``;
- in options that take several names (`query --columns`, `import --row-keys`, `-o columns=`) as it is; in double quotes
  where it has a comma, begins with a quote, or has spaces around: `--columns 'id,"Amount, net"'`;
- in `query --range` as it is: `--range 'Total Amount=1..3'`.

Backticks work in all SQL. Double quotes do too in `default:`, `using:` and `deployer sql`. In `--where` and `where=`
Lance takes them for text, so that a column's name in double quotes is an error there. Without quotes, `default:`,
`using:` and `deployer sql` read a name in small letters: quote one with capitals. A shell runs what stands in
backticks, except in single quotes: `--where '…'`.
"""

KEYS = """\
## Values of split points

A split point is a value of the first row key, or a list of values of the first few. Its values are of the key's type:

| type of the row key | written as | such as |
|---|---|---|
| bool | true or false | `true` |
| integers, floats | a number in the type's range | `42` |
| decimals | a number with no more digits than the type | `"12.50"` |
| string, large_string | text, quoted where YAML would read another value | `JFK`, `"10"` |
| binary, large_binary, fixed_size_binary | hexadecimal digits | `"00ff"` |
| date32, date64 | a date | `2013-01-31` |
| time32, time64 | a time of day | `"13:30:05.250"` |
| timestamp with a zone | a date or time in that zone, or one with an offset | `2013-01-31`, `"2013-01-31T13:30:00Z"` |
| timestamp without a zone | a date or time without an offset | `"2013-01-31T13:30:00"` |
| duration | a number with ns, us, ms, s, m, h or d, or whole units of the type | `90s`, `7d` |

Text is ordered by its UTF-8 bytes, false before true, all else by value. Leaf i holds the keys from split point i - 1
on and below split point i; a table without split points has one leaf.
"""
