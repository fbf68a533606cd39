#!/usr/bin/env python3
"""The hexadecimal examples of formats/STREAM.md, read by the reader that was written from its text.

What it proves: each example is a legal stream by the specification's own rules, and the reader of the
tests can fail: no flipped bit and no truncation of an example passes.
"""
import io
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tokstream  # noqa: E402


def read(data):
    """None, or why the stream is refused."""
    try:
        for _ in tokstream.Reader(io.BytesIO(data), cuts=True):
            pass
    except (tokstream.StreamError, UnicodeDecodeError) as e:
        return str(e)
    return None


def main():
    text = open(os.path.join(HERE, "../../formats/STREAM.md"), encoding="utf-8").read()
    blocks = re.findall(r"```hex\n(.*?)```", text, re.S)
    bad = not blocks
    if bad:
        print("not ok spec: there are no examples")
    for k, block in enumerate(blocks):
        data = bytearray()
        for line in block.splitlines():
            at, *octets = line.split()
            assert int(at, 16) == len(data), line
            data += bytes(int(x, 16) for x in octets)
        why = read(bytes(data))
        print("%s spec: example %d, %d bytes, is a legal stream" % ("not ok" if why else "ok", k + 1, len(data)))
        if why:
            print("  " + why)
            bad = True
        if tokstream.xxhash is None:
            print("skip spec: example %d: flipped bits: no xxhash" % (k + 1))
            continue
        passed = []
        for at in range(len(data)):
            other = bytearray(data)
            other[at] ^= 1 << at % 8
            if read(bytes(other)) is None:
                passed.append(at)
        print("%s spec: example %d: no flipped bit passes" % ("not ok" if passed else "ok", k + 1))
        cut = [n for n in range(len(data)) if read(bytes(data[:n])) is None]
        print("%s spec: example %d: no truncation passes" % ("not ok" if cut else "ok", k + 1))
        if passed or cut:
            print("  bytes", passed[:10], "cuts", cut[:10])
            bad = True
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
