#!/usr/bin/env python3
"""Files of ids for tests/cli/tokens_npy.sh, by struct and array alone.

  make_npy.py records FILE.json OUT WIDTH [VERSION]   the tokens of `inspect --records`, one after another
  make_npy.py ids OUT WIDTH "EXPRESSION" [VERSION]    a list of ids, in Python
  make_npy.py header OUT "DICT"                        NumPy's header alone, as it is given
  make_npy.py check FILE.json FILE WIDTH...            each record lies where its document number says

VERSION 1 or 2: with NumPy's header.
"""
import array
import json
import struct
import sys

CODE = {2: "H", 4: "I"}


def header(text, version):
    text = text.encode()
    n = 10 if version == 1 else 12
    text += b" " * (-(n + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text


def write(out, ids, width, version=0):
    a = array.array(CODE[width], ids)
    if sys.byteorder == "big":
        a.byteswap()
    with open(out, "wb") as f:
        if version:
            f.write(header("{'descr': '<u%d', 'fortran_order': False, 'shape': (%d,), }" % (width, len(a)), version))
        f.write(a.tobytes())


def main(what, *arg):
    if what == "records":
        ids = [t for line in open(arg[0]) for t in json.loads(line)["tokens"]]
        write(arg[1], ids, int(arg[2]), int(arg[3]) if len(arg) > 3 else 0)
    elif what == "ids":
        write(arg[0], eval(arg[2]), int(arg[1]), int(arg[3]) if len(arg) > 3 else 0)
    elif what == "header":
        with open(arg[0], "wb") as f:
            f.write(header(arg[1], 1) + bytes(8))
    elif what == "check":
        n = 0
        files = []
        for name, width in zip(arg[1::2], arg[2::2]):
            a = array.array(CODE[int(width)])
            a.frombytes(open(name, "rb").read())
            files.append(a)
        for line in open(arg[0]):
            r = json.loads(line)
            (s,) = r["segments"]
            at = s["document"] + s["offset"]
            assert list(files[s["source_number"]][at:at + s["length"]]) == r["tokens"], s
            n += s["length"]
        assert n == sum(map(len, files)), (n, list(map(len, files)))


if __name__ == "__main__":
    main(*sys.argv[1:])
