#!/usr/bin/env python3
"""Files of ids with an index, for tests/cli/tokens_index.sh and tests/props/check_index.py, by struct and array alone.

  make_index.py megatron FILE.json PREFIX TYPE [SPLIT]   the records of `inspect --records` as Megatron's .bin and .idx;
                                                         TYPE u8 i8 i16 i32 i64 u16; SPLIT: sequences of at most so many ids
  make_index.py ds FILE.json X.ds WIDTH [noindex] [nometa]
  make_index.py check FILE.json megatron|ds FILE...      each record lies where its document number says
"""
import array
import json
import os
import struct
import sys

CODE = {"u8": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "f64": 6, "f32": 7, "u16": 8}
ARRAY = {"u8": "B", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f64": "d", "f32": "f", "u16": "H", "u32": "I"}


def megatron(prefix, docs, kind, modes=None):
    """docs: a list of documents, each a list of sequences of ids."""
    seqs = [s for d in docs for s in d]
    a = array.array(ARRAY[kind], [t for s in seqs for t in s])
    with open(prefix + ".bin", "wb") as f:
        f.write(a.tobytes())
    pointers, entries, at = [], [0], 0
    for s in seqs:
        pointers.append(at)
        at += len(s) * a.itemsize
    for d in docs:
        entries.append(entries[-1] + len(d))
    with open(prefix + ".idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODE[kind], len(seqs), len(entries)))
        f.write(struct.pack("<%di" % len(seqs), *map(len, seqs)))
        f.write(struct.pack("<%dq" % len(seqs), *pointers))
        f.write(struct.pack("<%dq" % len(entries), *entries))
        if modes is not None:
            f.write(struct.pack("<%db" % len(seqs), *modes))


def ds(path, docs, width, index=True, meta=True):
    ids = [t for d in docs for t in d]
    with open(path, "wb") as f:
        f.write(array.array("H" if width == 2 else "I", ids).tobytes())
    for suffix in (".index", ".metadata"):  # of another file of that name
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    ends, at = [], 0
    for d in docs:
        at += len(d)
        ends.append(at)
    if index:
        with open(path + ".index", "wb") as f:
            f.write(struct.pack("<%dQ" % len(ends), *ends))
    if meta:
        with open(path + ".metadata", "w") as f:
            f.write("gpt2|%d\n%d\n%d T" % (width, at, at))


def split(ids, n):
    return [ids[i:i + n] for i in range(0, len(ids), n)] if n else [ids]


def read_megatron(name):
    prefix = name[:-4] if name[-4:] in (".bin", ".idx") else name
    b = open(prefix + ".idx", "rb").read()
    code, n_seq, n_entry = struct.unpack_from("<BQQ", b, 17)
    kind = {v: k for k, v in CODE.items()}[code]
    length = struct.unpack_from("<%di" % n_seq, b, 34)
    entry = struct.unpack_from("<%dq" % n_entry, b, 34 + 12 * n_seq)
    a = array.array(ARRAY[kind])
    a.frombytes(open(prefix + ".bin", "rb").read())
    at = [0]
    for n in length:
        at.append(at[-1] + n)
    return [list(a[at[x]:at[y]]) for x, y in zip(entry, entry[1:])]


def read_ds(name):
    b = open(name + ".index", "rb").read()
    ends = struct.unpack("<%dQ" % (len(b) // 8), b)
    a = array.array("H" if ends[-1] * 2 == os.path.getsize(name) else "I")
    a.frombytes(open(name, "rb").read())
    return [list(a[x:y]) for x, y in zip((0,) + ends, ends)]


def main(what, *arg):
    if what == "check":
        files = [(read_megatron if arg[1] == "megatron" else read_ds)(f) for f in arg[2:]]
        n = 0
        for line in open(arg[0]):
            r = json.loads(line)
            (s,) = r["segments"]
            d = files[s["source_number"]][s["document"]]
            assert d[s["offset"]:s["offset"] + s["length"]] == r["tokens"], s
            n += s["length"]
        assert n == sum(len(d) for f in files for d in f) > 0, n
        return
    docs = [json.loads(line)["tokens"] for line in open(arg[0])]
    if what == "megatron":
        megatron(arg[1], [split(d, int(arg[3]) if len(arg) > 3 else 0) for d in docs], arg[2])
    else:
        ds(arg[1], docs, int(arg[2]), "noindex" not in arg, "nometa" not in arg)


if __name__ == "__main__":
    main(*sys.argv[1:])
