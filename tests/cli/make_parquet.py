#!/usr/bin/env python3
"""A Parquet file from JSON lines, with nothing but Python: make_parquet.py OUT [--rows N] [--pages N] [--gzip] [--first N] [--small] <JSONL

A column a key of the records, in order of first sight: strings become UTF-8 byte arrays, booleans bits, integers int64, floats doubles
(NaN and Infinity too); what is missing or null is null. --small: int32 and floats. Row groups of --rows rows, pages of --pages values, plain encoding, a checksum a page. Objects become
structs of columns, [[begin, end], ...] a list of lists, or with --structs of structs of begin and end. Written from the format's specification (parquet-format: Thrift compact protocol, data pages v1).
"""
import argparse
import json
import struct
import sys
import zlib

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
# physical types, and how struct packs a value; with --small the smaller ones
BOOLEAN, INT32, INT64, FLOAT, DOUBLE, TEXT = 0, 1, 2, 4, 5, 6
SPANS = 7  # no type of Parquet: columns of int64 in lists, see spans_columns
PACK = {INT32: "<i", INT64: "<q", FLOAT: "<f", DOUBLE: "<d"}


def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def thrift(fields):
    """A struct: [(id, type, value)], ids rising; a list's value is (element type, values)."""
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([(number - last) << 4 | kind]) + encode(kind, value)
        last = number
    return out + b"\0"


def encode(kind, value):
    if kind in (I32, I64):
        return varint((value << 1 ^ value >> 63) & (1 << 64) - 1)
    if kind == BINARY:
        value = value.encode() if isinstance(value, str) else value
        return varint(len(value)) + value
    if kind == LIST:
        of, items = value
        head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + varint(len(items))
        return head + b"".join(encode(of, v) for v in items)
    return thrift(value)


def columns_of(records, prefix=()):
    """[(path, physical type)] in order of first sight."""
    seen = {}
    for r in records:
        for key, value in r.items():
            if isinstance(value, dict):
                for path, kind in columns_of([value], prefix + (key,)):
                    seen[path] = max(seen.get(path, 0), kind)
            elif isinstance(value, list):
                seen[prefix + (key,)] = SPANS
            elif value is not None or prefix + (key,) not in seen:
                kind = TEXT if isinstance(value, str) else DOUBLE if isinstance(value, float) else BOOLEAN if isinstance(value, bool) else INT64
                seen[prefix + (key,)] = max(seen.get(prefix + (key,), 0), kind)
    return list(seen.items())


def schema_of(columns):
    """Elements, depth first; structs and values are optional."""
    def children(depth, group):
        names = list(dict.fromkeys(path[depth] for path, _ in group))
        out = []
        for name in names:
            inner = [(p, t) for p, t in group if p[depth] == name]
            if len(inner[0][0]) > depth + 1:
                below, n = children(depth + 1, inner)
                out.append([(3, I32, 1), (4, BINARY, name), (5, I32, n)])
                out += below
            else:
                out.append([(1, I32, 6), (3, I32, 1), (4, BINARY, name), (6, I32, 0)] if inner[0][1] == TEXT else
                           [(1, I32, inner[0][1]), (3, I32, 1), (4, BINARY, name)])
        return out, len(names)
    elements, n = children(0, columns)
    return [[(4, BINARY, "schema"), (5, I32, n)]] + elements


def spans_columns(name, structs):
    """The schema of a column of spans, and of its leaves the path and which of a span's numbers it has, None: both."""
    inner = ["begin", "end"] if structs else ["list", "element"]
    elements = [[(3, I32, 1), (4, BINARY, name), (5, I32, 1), (6, I32, 3)], [(3, I32, 2), (4, BINARY, "list"), (5, I32, 1)]]
    if structs:
        elements += [[(3, I32, 1), (4, BINARY, "element"), (5, I32, 2)]] + [[(1, I32, INT64), (3, I32, 1), (4, BINARY, n)] for n in inner]
        return elements, [((name, "list", "element", n), i) for i, n in enumerate(inner)]
    elements += [[(3, I32, 1), (4, BINARY, "element"), (5, I32, 1), (6, I32, 3)], [(3, I32, 2), (4, BINARY, "list"), (5, I32, 1)],
                 [(1, I32, INT64), (3, I32, 1), (4, BINARY, "element")]]
    return elements, [((name, "list", "element", "list", "element"), None)]


def spans_levels(spans, which):
    """[(repetition, definition, value)] of a row."""
    if not spans:
        return [(0, 0 if spans is None else 1, None)]
    out = []
    for i, span in enumerate(spans):
        if which is not None and len(span) != 2:
            sys.exit("a struct has a begin and an end")
        if which is not None:
            out.append((1 if i else 0, 3 + (span[which] is not None), span[which]))
        for k, v in enumerate(span if which is None else ()):
            out.append((2 if k else 1 if i else 0, 3 + 2 * (v is not None), v))
        if which is None and not span:
            out.append((1 if i else 0, 3, None))
    return out


def levels(values, width):
    """The hybrid of runs: one bit-packed run."""
    values = values + [0] * (-len(values) % 8)
    bits = sum(v << i * width for i, v in enumerate(values))
    run = varint(len(values) // 8 << 1 | 1) + bits.to_bytes(len(values) // 8 * width, "little")
    return struct.pack("<I", len(run)) + run


def value_of(record, path):
    """(definition level, value)"""
    for depth, key in enumerate(path):
        record = record.get(key)
        if record is None:
            return depth, None
    return len(path), record


def page(values, path, kind, gzip):
    found = [] if kind == SPANS else [value_of(r, path) for r in values]
    if kind == SPANS:
        rows = [x for r in values for x in spans_levels(r.get(path[0][0]), path[1])]
        found = [(d, v) for _, d, v in rows]
        body = levels([r for r, _, _ in rows], 1 if path[1] is not None else 2) + levels([d for d, _ in found], 3)
        kind = INT64
    else:
        body = levels([d for d, _ in found], len(path).bit_length())
    if kind == BOOLEAN:
        flags = [v for _, v in found if v is not None]
        body += sum(v << i for i, v in enumerate(flags)).to_bytes((len(flags) + 7) // 8, "little")
    for _, v in found:
        if v is not None and kind != BOOLEAN:
            v = v.encode(errors="surrogateescape") if kind == TEXT else v
            body += struct.pack("<I", len(v)) + v if kind == TEXT else struct.pack(PACK[kind], v)
    stored = body
    if gzip:
        z = zlib.compressobj(6, zlib.DEFLATED, 31)
        stored = z.compress(body) + z.flush()
    crc = zlib.crc32(stored)
    crc -= (crc >> 31) << 32
    head = thrift([(1, I32, 0), (2, I32, len(body)), (3, I32, len(stored)), (4, I32, crc),
                   (5, STRUCT, [(1, I32, len(found)), (2, I32, 0), (3, I32, 3), (4, I32, 3)])])
    return head + stored, len(head) + len(body), len(found)


def main():
    arg = argparse.ArgumentParser()
    arg.add_argument("out")
    arg.add_argument("--rows", type=int, default=100)
    arg.add_argument("--pages", type=int, default=1000)
    arg.add_argument("--gzip", action="store_true")
    arg.add_argument("--first", type=int, help="so many of the records, with the columns of all")
    arg.add_argument("--structs", action="store_true", help="spans are structs")
    arg.add_argument("--small", action="store_true", help="int32 and floats")
    arg = arg.parse_args()
    records = [json.loads(line) for line in sys.stdin]
    columns = columns_of(records)
    small = {INT64: INT32, DOUBLE: FLOAT} if arg.small else {}
    columns = [(p, small.get(t, t)) for p, t in columns if not any(q[:len(p)] == p and q != p for q, _ in columns)]
    records = records[:arg.first]
    leaves = [c for c in columns if c[1] != SPANS]
    schema = schema_of(leaves)
    for path, kind in columns:
        if kind == SPANS:
            elements, below = spans_columns(path[0], arg.structs)
            schema += elements
            schema[0] = [(4, BINARY, "schema"), (5, I32, schema[0][1][2] + 1)]
            leaves += [(leaf, SPANS) for leaf in below]
    out, groups = b"PAR1", []
    for at in range(0, len(records), arg.rows):
        rows = records[at:at + arg.rows]
        chunks, begin = [], len(out)
        for path, kind in leaves:
            offset, plain, n_value = len(out), 0, 0
            for i in range(0, len(rows), arg.pages):
                stored, n, levels_here = page(rows[i:i + arg.pages], path, kind, arg.gzip)
                n_value += levels_here
                out += stored
                plain += n
            chunks.append([(2, I64, offset), (3, STRUCT, [
                (1, I32, INT64 if kind == SPANS else kind), (2, LIST, (I32, [0, 3])),
                (3, LIST, (BINARY, list(path[0] if kind == SPANS else path))), (4, I32, 2 if arg.gzip else 0), (5, I64, n_value), (6, I64, plain), (7, I64, len(out) - offset),
                (9, I64, offset)])])
        groups.append([(1, LIST, (STRUCT, chunks)), (2, I64, len(out) - begin), (3, I64, len(rows))])
    footer = thrift([(1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, len(records)),
                     (4, LIST, (STRUCT, groups)), (6, BINARY, "make_parquet.py")])
    with open(arg.out, "wb") as f:
        f.write(out + footer + struct.pack("<I", len(footer)) + b"PAR1")


main()
