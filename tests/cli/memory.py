#!/usr/bin/env python3
"""Resident sets of every program and mode (see memory.sh); in an empty folder.

Each cell is a run: a mode, -T, -M, and a stream whose documents are
    tiny    10^6 of a few tokens
    one     one, of as many tokens as the mode takes at this -M
    four    four of those
    twelve  twelve of a quarter of that
    frame   as many sequences, segments and bytes of records' ids as a frame holds, each text twice
in ids of four bytes, a word each. ru_maxrss of a child begins with its parent's set, so this one stays small (it looks):
others make the inputs. A run that is refused because something does not fit says so in one line, and its set counts too.

Environment, for runs by hand: MATRIX=all|short, MODES="near ngrams", MEMORY="32 256", THREADS="1 8", SHAPES="one four",
TABLE=FILE (a line a cell).
"""
import base64
import json
import os
import random
import re
import resource
import shlex
import subprocess
import sys

BIN = os.environ["BIN"] + "/" + os.environ.get("PROGRAM_PREFIX", "")
FULL = os.environ.get("MATRIX", "all" if os.environ.get("FULL") == "1" else "short") == "all"
ABOVE = 64
MIB = 1 << 20

# name: command; IN is the stream, OUT an output of the run's own. Text for tokenize: IN is JSONL.
MODES = {
    "tokenize": "tokenize -t pairs.tiktoken --pattern cl100k IN -o OUT",
    "tokenize-skip": "tokenize -t pairs.tiktoken --pattern cl100k --on-error skip --holdout 0.5 --holdout-output OUT2 IN -o OUT",
    "tokenize-spans": "tokenize -t bytes --spans-field spans IN -o OUT",
    "tokenize-matches": "tokenize -t bytes --on-error skip --where \"text matches '^(?:[a-z ]|[A-Z])+$' or true\" IN -o OUT",
    "tokenize-rules": "tokenize -t bytes --rules gopher-quality,gopher-repetition IN -o OUT",
    "tokenize-c4": "tokenize -t bytes --c4-lines IN -o OUT",
    "inspect": "inspect IN",
    "groups": "inspect --groups domain IN",
    "histogram": "inspect --histogram IN",
    "verify": "inspect --verify IN",
    "text": "inspect --records --text IN",
    "jsonl": "inspect --jsonl IN",
    "exact": "dedup IN -o OUT",
    "exact-pairs": "dedup --pairs OUT2 IN -o OUT",
    "exact-save": "dedup --save-index OUT2 IN -o OUT",
    "near": "dedup --near IN -o OUT",
    "near-pairs": "dedup --near --keep longest --pairs OUT2 IN -o OUT",
    "near-token": "dedup --near --unit token IN -o OUT",
    "near-longest": "dedup --near --keep longest IN -o OUT",
    "ngrams": "dedup --ngrams IN -o OUT",
    "ngrams-document": "dedup --ngrams=document IN -o OUT",
    "ngrams-token": "dedup --ngrams --unit token IN -o OUT",
    "ngrams-save": "dedup --ngrams --save-index OUT2 IN -o OUT",
    "against": "dedup --against items.index IN -o OUT",
    "against-cut": "dedup --against items.index --cut --window 20 IN -o OUT",
    "substring": "dedup --substring 50 IN -o OUT",
    "substring-annotate": "dedup --substring 50 --annotate --pairs OUT2 IN -o OUT",
    "choose": "choose --length 2.. IN -o OUT",
    "choose-top": "choose --top 10% --by length --per domain IN -o OUT",
    "choose-partition": "choose --partition OUT IN",
    "decompose": "decompose IN -o OUT",
    "decompose-random": "decompose --split random IN -o OUT",
    "decompose-mixture": "decompose --mixture natural IN -o OUT",
    "decompose-plan": "decompose --plan IN",
    "pack": "pack --length 8192 IN -o OUT",
    "pack-multi": "pack --method multi --buckets 1024,8192 IN -o OUT",
    "pack-nnlshp": "pack --length 2048 --method nnlshp IN -o OUT",
    "pack-concat": "pack --length 8192 --method concat IN -o OUT",
    "pack-related": "pack --length 8192 --order related IN -o OUT",
    "pack-balance": "pack --length 8192 --balance 8 IN -o OUT",
    "shuffle": "shuffle IN -o OUT",
    "shuffle-sorted": "shuffle --order keep IN -o OUT",
    "shuffle-mix": "shuffle --mix-by input --mix 0=1 IN -o OUT",
    "shuffle-ascending": "shuffle --order ascending SCORED -o OUT",
    "shuffle-set": "shuffle SET -o OUT",
    "exact-masked": "dedup MASKED -o OUT",
    "near-masked": "dedup --near MASKED -o OUT",
    "decompose-masked": "decompose MASKED -o OUT",
    "pack-masked": "pack --length 8192 --long split MASKED -o OUT",
    "shuffle-masked": "shuffle MASKED -o OUT",
    "documents-ds": "shuffle --documents --shard-size 1G --format ds IN -o OUT",
    "documents-olmo": "shuffle --documents --shard-size 1G --format olmo MASKED -o OUT",
    "documents-megatron": "shuffle --documents --shard-size 1G --format megatron IN -o OUT",
    "documents-keep": "shuffle --documents --order keep --shard-size 1G --format ds IN -o OUT",
    "shards-wds": "shuffle --format wds --tails drop LABELLED -o OUT",
    "shards-wds-long": "shuffle --format wds --tails drop LONG -o OUT",
    "shards-mds": "shuffle --format mds --tails drop PIECES -o OUT",
    "shards-megatron": "shuffle --format megatron --tails drop PIECES -o OUT",
}
SHORT = [("one", m, 8, 32) for m in ("text", "ngrams", "ngrams-document", "against-cut", "exact", "decompose", "shuffle")] + \
        [("twelve", m, 8, 32) for m in ("tokenize", "ngrams", "text", "shards-wds", "verify", "tokenize-matches")] + \
        [("frame", "exact-pairs", 8, 32), ("frame", "near-pairs", 8, 64)]
MORE = [("one", m, 1, 32) for m in ("text", "ngrams", "ngrams-document", "against-cut", "exact", "decompose", "shuffle")] + \
       [("twelve", m, 8, 32) for m in ("against", "jsonl")] + \
       [("four", m, 8, 32) for m in ("ngrams", "against")] + \
       [("one", "tokenize-spans", 1, 64), ("tiny", "near", 8, 64)] + \
       [("four", "verify", 8, 64), ("four", "shuffle", 1, 64), ("four", "documents-ds", 2, 64), ("four", "documents-keep", 8, 64)] + \
       [("four", "shards-wds-long", 2, 200), ("four", "text", 8, 64), ("four", "documents-olmo", 8, 64)]
# mode, or mode/shape: why it is over. What is here and passes everywhere fails the case: the list cannot rot.
KNOWN = {}


def result(good, what, why=""):
    if not good:
        print("\n".join("  " + x[:200] for x in str(why).splitlines()[:12]))
    print("%s %s: %s" % ("ok" if good else "not ok", os.environ.get("case_name", "memory"), what), flush=True)


# ---- inputs: in a process of their own ----

def words(n, seed, line):
    """n tokens' text: a space and a letter each; a line feed after every `line` of them (0: none)."""
    letters = bytes(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 52] for i in range(256))
    text = bytearray(b" " * (2 * n))
    text[1::2] = random.Random(seed).randbytes(n).translate(letters)
    if line:
        for i in range(2 * line, 2 * n, 2 * line):
            text[i] = 10  # and a letter behind it: two tokens
    return bytes(text)


def put(f, number, text, ident="", domain="a"):
    f.write(b'{"id":"%d%s","domain":"%s","text":"' % (number, ident.encode(), domain.encode()))
    f.write(text.replace(b"\n", b"\\n"))
    f.write(b'","spans":[[0,%d]],"score":%d}\n' % (len(text), number % 7))


def make(what, size):
    """Writes WHAT-SIZE.jsonl."""
    with open("%s-%d.jsonl" % (what, size), "wb") as f:
        if what == "tiny":
            text = words(4 * size, 1, 0)
            for i in range(size):
                put(f, i, text[8 * i:8 * i + 2 + i % 4 * 2])
        elif what == "one":
            put(f, 0, words(size - 1, 2, 0))
        elif what in ("four", "twelve"):
            n = size if what == "four" else size // 4
            for i in range(4 if what == "four" else 12):
                put(f, i, words(n - n // 40 - 2, 3 + i, 50 if i % 2 else 0), domain="ab"[i % 2])
        else:
            text = words(15 * 65536, 20, 0)
            for i in range(65536):
                put(f, i, text[30 * (i // 2):30 * (i // 2) + 30], "x" * 240)


def run(argv, **kw):
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, **kw)


def tokenizer():
    with open("pairs.tiktoken", "w", encoding="ascii") as f:
        tokens = [bytes([a]) for a in range(256)] + [bytes([a, b]) for a in range(256) for b in range(256)]
        for i, t in enumerate(tokens):
            f.write("%s %d\n" % (base64.b64encode(t).decode(), i))


def need(what, size, text=False):
    """The path of an input; it is made where it is not there."""
    name = "%s-%d" % (what, size)
    if not os.path.exists(name + ".jsonl"):
        run([sys.executable, os.path.abspath(__file__), "make", what, str(size)])
    if not text and not os.path.exists(name + ".tks"):
        run([BIN + "tokenize", "-q", "-t", "pairs.tiktoken", "--pattern", "cl100k", "--id-field", "id", name + ".jsonl", "-o", name + ".tks"])
    return name + (".jsonl" if text else ".tks")


# LONG: masked windows of the largest power of two.
MADE = {"PIECES", "LABELLED", "LONG", "MASKED", "SCORED", "SET"}
TOKENIZE = "tokenize -q -t pairs.tiktoken --pattern cl100k --id-field id"


def made(path, what):
    """The same as one of MADE."""
    name = "%s.%s" % (path, what.lower())
    how = {
        "PIECES": "decompose -q %s -o %s" % (path, name),
        "LABELLED": "decompose -q --label-token %s -o %s" % (path, name),
        "LONG": "decompose -q --label-token --max %d %s.masked -o %s" % (1 << int(path[:-4].split("-")[1]).bit_length() - 1, path, name),
        "MASKED": TOKENIZE + " --spans-field spans %s.jsonl -o %s" % (path[:-4], name),
        "SCORED": TOKENIZE + " --score-field score %s.jsonl -o %s" % (path[:-4], name),
        "SET": "shuffle -q --documents --shard-size 1G --format ds %s -o %s" % (path, name),
    }[what]
    if not os.path.exists(name):
        if what == "LONG":
            made(path, "MASKED")
        argv = how.split()
        run([BIN + argv[0], *argv[1:]])
    return name


# ---- a cell ----

def measure(argv):
    """(exit status, resident set in bytes, stderr)"""
    with open("stderr", "w+b") as err, open("/dev/null", "r+b") as null:
        p = subprocess.Popen(argv, stdin=null, stdout=null, stderr=err)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        return p.returncode, used.ru_maxrss * 1024, err.read().decode("utf-8", "replace")


def less(n):
    """Tokens of a document that is taken where n are the most: frames' columns count too."""
    return n - 256 * (n // MIB + 2)


def clean():
    for name in ("OUT", "OUT2"):
        subprocess.run(["rm", "-rf", name], check=True)


def cell(mode, shape, threads, memory, taken):
    """(what happened in words, resident set in bytes); taken: size of `one` for a mode that says what it takes."""
    size = {"tiny": 10**6, "frame": 1}.get(shape) or taken.get((mode, memory)) or less(memory * MIB // (22 if "LONG" in MODES[mode] else 16))
    for _ in range(3):
        clean()
        path = need(shape, size, mode.startswith("tokenize"))
        argv = shlex.split(MODES[mode])
        for what in MADE & set(argv):
            path = made(path, what)
        argv = [BIN + argv[0], "-q", "-T", str(threads), "-M", "%dM" % memory, "--tmpdir", "."] + \
               [path if a == "IN" or a in MADE else a for a in argv[1:]]
        status, rss, err = measure(argv)
        clean()
        at_most = re.search(r"(?:at most|more than|memory allows) (\d+)(?: tokens|,|;)", err)
        if status == 0:
            return "ok", rss
        if status == 1 and at_most and shape in ("one", "four", "twelve"):
            if rss > (memory + ABOVE) * MIB:
                return "refused", rss
            # of masks the columns count too
            size = min(less(int(at_most.group(1))), size - size // 16 if "MASKED" in MODES[mode] else size - 1)
            taken[(mode, memory)] = size
            continue
        if status == 1 and len(err.splitlines()) == 1 and "-M" in err:
            return "refused", rss
        if status == 2 and "-M" in err and "needs at least" in err:
            return "below its floor", 0
        break
    return "status %d: %s" % (status, err.strip()[:160]), rss


def known(mode, shape):
    for k in (mode, "%s/%s" % (mode, shape)):
        if k in KNOWN:
            return k
    return None


def chosen():
    def of(name, every, kind=str):
        return [kind(x) for x in os.environ[name].split()] if name in os.environ else every
    if not FULL and "MODES" not in os.environ:
        return MORE if os.environ.get("MORE") else SHORT
    return [(s, m, t, mem) for mem in of("MEMORY", [32, 64, 256], int) for s in of("SHAPES", ["tiny", "one", "four", "twelve", "frame"])
            for m in of("MODES", list(MODES)) for t in of("THREADS", [1, 2, 8], int)]


def main():
    tokenizer()
    with open("items.jsonl", "w", encoding="ascii") as f:
        for i in range(40):
            f.write(json.dumps({"text": words(60, 1000 + i, 0).decode()}) + "\n")
        f.write(json.dumps({"text": words(4000, 3, 0).decode()[:120]}) + "\n")
    run([BIN + "tokenize", "-q", "-t", "pairs.tiktoken", "--pattern", "cl100k", "items.jsonl", "-o", "items.tks"])
    run([BIN + "dedup", "-q", "--ngrams", "--save-index", "items.index", "items.tks"], stdout=subprocess.DEVNULL)
    over, excused, taken, table = {}, {}, {}, os.environ.get("TABLE")
    cells = chosen()
    for shape, mode, threads, memory in cells:
        what, rss = cell(mode, shape, threads, memory, taken)
        bad = rss > (memory + ABOVE) * MIB or what not in ("ok", "refused", "below its floor")
        line = "%-19s %-7s -T %d -M %3dM: %4d of %d MiB%s" % (mode, shape, threads, memory, rss // MIB, memory + ABOVE,
                                                             "" if what == "ok" else ", " + what)
        if table:
            with open(table, "a", encoding="ascii") as f:
                f.write(line + (" OVER" if bad else "") + "\n")
        (excused if known(mode, shape) else over).setdefault(mode, [])
        if bad:
            (excused if known(mode, shape) else over)[mode].append(line)
    for mode, lines in over.items():
        n = sum(m == mode and not known(m, s) for s, m, _, _ in cells)
        result(not lines, "%s: within -M and %d MiB, %d runs" % (mode, ABOVE, n), "\n".join(lines))
    if FULL and "MODES" not in os.environ:
        for k in KNOWN:
            lines = [x for x in excused.get(k.split("/")[0], []) if "/" not in k or " %s " % k.split("/")[1] in x]
            result(bool(lines), "%s is over, as it is known to be: %s" % (k, KNOWN[k]), "it is not: take it off the list")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    result(own < 64, "the measuring program is small", "%d MiB" % own)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(sys.argv[2], int(sys.argv[3]))
    else:
        main()
