#!/usr/bin/env python3
"""Files of ids with their rows beside them, as the dolma toolkit writes them (numpy's raw memmap, Python's csv), for
tests/cli/tokens_rows.sh.

  make_rows.py records FILE.json OUT WIDTH [GAP]   documents of `inspect --records`; GAP ids of padding behind each fifth
  make_rows.py check FILE.json OUT.npy.json        records read back are those: tokens, ids, places
  make_rows.py rows OUT.csv.gz "EXPRESSION"        rows alone: a list of lists
  make_rows.py text OUT.csv.gz "STRING"            any text
"""
import array
import csv
import gzip
import json
import sys


def rows(path, every):
    with gzip.open(path, "wt", newline="") as f:
        csv.writer(f).writerows(every)


def main(what, *arg):
    if what == "records":
        width, gap = int(arg[2]), int(arg[3]) if len(arg) > 3 else 0
        ids, every = array.array({2: "H", 4: "I"}[width]), []
        for i, line in enumerate(open(arg[0])):
            r = json.loads(line)
            begin = len(ids)
            ids.extend(r["tokens"])
            name = r["segments"][0].get("id", "")
            every.append((begin, len(ids), 'odd "%d", in\nlines' % i if i % 7 == 3 else name, "s3://b/a,b.json.gz", i + 1))
            if i % 5 == 4:
                ids.extend([1] * gap)
        if sys.byteorder == "big":
            ids.byteswap()
        with open(arg[1] + ".npy", "wb") as f:
            f.write(ids.tobytes())
        rows(arg[1] + ".csv.gz", every)
    elif what == "check":
        n = at = 0
        gap = int(arg[2]) if len(arg) > 2 else 0
        for i, (a, b) in enumerate(zip(open(arg[0]), open(arg[1]), strict=True)):
            a, b = json.loads(a), json.loads(b)
            (s,) = b["segments"]
            name = 'odd "%d", in\nlines' % i if i % 7 == 3 else a["segments"][0].get("id", "")
            if a["tokens"] != b["tokens"] or s["document"] != at or s.get("id", "") != name:
                sys.exit("record %d: %s, of %s" % (i, s, a["segments"]))
            at += len(a["tokens"]) + (gap if i % 5 == 4 else 0)
            n += 1
        print("%d records" % n)
    elif what == "rows":
        rows(arg[0], eval(arg[1]))
    elif what == "text":
        with gzip.open(arg[0], "wt", newline="") as f:
            f.write(eval(arg[1]))


main(*sys.argv[1:])
