#!/usr/bin/env python3
"""Faults that every program must survive or report: faults.py PART... in an empty folder (see faults.sh).

Parts: truncated flipped full head empty terminal kill pipe-kill io memory. Each time the following is required: a
program that fails exits with exactly 1 and gives the reason on stderr in lines of the form "tool: ..."; no file
appears under the final name of its output; and no program ends by a signal, except those that are killed here (9) and
those that write to a pipe whose reader has exited (13). With FULL=1 every byte and every call is tried, else a
sample.
"""
import errno
import hashlib
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

BIN = os.environ["BIN"] + "/" + os.environ.get("PROGRAM_PREFIX", "")
FULL = os.environ.get("FULL") == "1"
MORE = FULL or os.environ.get("MORE") == "1"
SHIM = os.environ.get("SHIM", "")
HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = ["--min", "16", "--max", "128", "--label-token"]
POOL = ThreadPoolExecutor(os.cpu_count() or 2)
case = "faults"


def result(good, what, why=""):
    if not good:
        for line in str(why).splitlines()[:8]:
            print("  " + line[:300])
    print("%s %s: %s" % ("ok" if good else "not ok", case, what), flush=True)


class Run:
    """One run of a program: status, out, err (bytes)."""

    def __init__(self, argv, stdin=None, env=None, stdout=subprocess.PIPE, timeout=120):
        self.argv = argv
        full_env = dict(os.environ)
        stdin = stdin() if callable(stdin) else stdin
        if env:
            full_env.update(env)
        try:
            p = subprocess.run([BIN + argv[0]] + argv[1:], input=b"" if stdin is None else stdin,
                               stdout=stdout, stderr=subprocess.PIPE, env=full_env, timeout=timeout)
            self.status, self.out, self.err = p.returncode, p.stdout or b"", p.stderr
        except subprocess.TimeoutExpired:
            self.status, self.out, self.err = "hangs", b"", b""

    def __str__(self):
        return "%s\nexit status %s\n%s" % (" ".join(self.argv), self.status,
                                          self.err.decode("utf-8", "replace"))

    def clear_failure(self):
        """Exactly 1, with lines that say why."""
        lines = self.err.decode("utf-8", "replace").splitlines()
        return (self.status == 1 and 1 <= len(lines) <= 3
                and all(re.match(r"[a-z][a-z0-9-]*: .{3}", x) for x in lines)
                and b"Sanitizer" not in self.err)


def make_streams():
    """1.tks … 5.tks: small streams as each program gets them; 6.tks is compressed, 7.tks has its vocabulary,
    8.npy are ids, 9.tks has the records' ids, its vocabulary, and copies."""
    subprocess.run([sys.executable, HERE + "/make_corpus.py", "c.jsonl", "1500", "2"], check=True)
    with open("c.jsonl", encoding="utf-8") as f:
        lines = f.readlines()
    with open("c.jsonl", "a", encoding="utf-8") as f:
        f.write(lines[0])
    for argv, out in ((["tokenize", "-t", "bytes", "--no-vocab", "--id-field", "id", "--domain-field", "domain", "c.jsonl"], "1"),
                      (["dedup", "1.tks"], "2"),
                      (["decompose"] + SMALL + ["2.tks"], "3"),
                      (["pack", "3.tks"], "4"),
                      (["shuffle", "--seed", "3", "4.tks"], "5"),
                      (["decompose"] + SMALL + ["-z", "2.tks"], "6"),
                      (["tokenize", "-t", "bytes", "c.jsonl"], "7"),
                      (["tokenize", "-t", "bytes", "--id-field", "id", "c.jsonl", "c.jsonl"], "9")):
        r = Run(argv + ["-o", out + ".tks"])
        if r.status != 0:
            result(False, "make the small streams", r)
            sys.exit(1)
    with open("8.npy", "wb") as f:
        f.write(b"".join(i.to_bytes(2, "little") for i in [7] * 70 + [0, 0] + [8] * 300 + [0] + [9] * 5))
    os.mkdir("D_4")
    with open("D_4/manifest.jsonl", "w") as f:
        f.write('{"shard":"a","num_sequences":50}\n{"shard":"b","num_sequences":30}\n')


# Who reads what, with every option that makes a program write.
READERS = {
    "inspect": (["inspect", "--verify"], "4.tks"),
    "dedup": (["dedup"], "1.tks"),
    "dedup-ngrams": (["dedup", "--ngrams"], "7.tks"),
    "dedup-near": (["dedup", "--near"], "7.tks"),
    "choose": (["choose", "--domain", "web,code", "--length", "2.."], "1.tks"),
    "choose-top": (["choose", "--top", "90%", "--by", "length", "--per", "domain"], "1.tks"),
    "decompose": (["decompose"] + SMALL, "2.tks"),
    "decompose-mixture": (["decompose"] + SMALL + ["--mixture-tokens", "300"], "2.tks"),
    "pack": (["pack"], "3.tks"),
    "shuffle": (["shuffle"], "4.tks"),
    "shuffle-wds": (["shuffle", "--format", "wds", "--shard-sequences", "4", "--last", "keep"], "4.tks"),
}


def leftovers(path):
    """Files under (or at) path, and temporary ones beside it."""
    found = []
    folder = os.path.dirname(path)
    for d, _, files in os.walk(folder):
        found += [os.path.join(d, f) for f in files]
    return found


def reader_fails(name, data, number):
    """Runs a reader on bad data in a folder of its own; returns what is wrong, or None."""
    argv, _ = READERS[name]
    folder = "try-%s-%d" % (name, number)
    os.mkdir(folder)
    argv = list(argv)
    if name != "inspect":
        argv += ["-o", folder + "/out"]
    r = Run(argv, stdin=data)
    bad = None
    if not r.clear_failure():
        bad = str(r)
    elif leftovers(folder + "/out"):
        bad = "%s\nleft behind: %s" % (r, leftovers(folder + "/out"))
    shutil.rmtree(folder)
    return bad


def each(name, cases, what):
    """cases: (description, data or a function that makes it); all must fail cleanly."""
    cases = list(cases)
    bad = []
    for (text, _), problem in zip(cases, POOL.map(lambda c: reader_fails(name, c[1][1], c[0]),
                                                  enumerate(cases))):
        if problem:
            bad.append("%s: %s" % (text, problem))
    result(not bad, "%s: %s (%d)" % (name, what, len(cases)),
           "%d of them are not refused as they must be\n%s" % (len(bad), "\n".join(bad[:2])))


def truncated():
    for name, (_, stream) in READERS.items():
        for file, step in ((stream, 1 if FULL or name == "inspect" else 512 if MORE else 4096), ("6.tks", 1 if FULL else 512 if MORE else 4096)):
            data = open(file, "rb").read()
            if not FULL and name == "inspect" and len(data) > 6000:
                step = 16 if MORE else 128
            cuts = sorted({n for base in range(0, len(data), step) for n in (base - 1, base, base + 1)
                           if 0 <= n < len(data)})
            each(name, (("%d bytes" % n, lambda n=n: data[:n]) for n in cuts), "%s truncated" % file)


def regions(data):
    """(name, first byte, end) of each part of a stream, for the names of the results."""
    at = 0
    while at < len(data):
        stored = int.from_bytes(data[at + 32:at + 40], "little")
        kind = data[at + 4:at + 8].decode("ascii")
        yield kind + " header", at, at + 64
        end = at + 64 + stored
        if stored:
            yield kind + " payload", at + 64, end
        if end % 64:
            yield kind + " padding", end, end + 63 & ~63
        at = end + 63 & ~63


def flip(data, at, bit):
    b = bytearray(data)
    b[at] ^= 1 << bit
    return bytes(b)


def flipped():
    for file in ("4.tks", "6.tks", "7.tks"):
        data = open(file, "rb").read()
        for region, first, end in regions(data):
            step = 1 if FULL else max(1, (end - first) // (24 if MORE else 5))
            cases = []
            for at in range(first, end, step):
                cases.append(("bit %d of byte %d" % (at * 5 % 8, at), lambda at=at: flip(data, at, at * 5 % 8)))
            each("inspect", list(cases), "%s, a bit of %s at %d is flipped" % (file, region, first))
    for name, (_, stream) in READERS.items():
        data = open(stream, "rb").read()
        cases = []
        for at in range(0, len(data), 1 if FULL else max(1, len(data) // (50 if MORE else 11))):
            cases.append(("byte %d" % at, lambda at=at: flip(data, at, at % 8)))
        each(name, cases, "%s, bits are flipped" % stream)
    each("inspect", [("text", b"hello, world\n" * 100), ("zeros", bytes(4096)),
                     ("a shell's error", b"sh: 1: tokenize: not found\n")], "no stream at all")


WRITERS = {
    "tokenize": ["tokenize", "-t", "bytes", "--id-field", "id", "c.jsonl"],
    "dedup": ["dedup", "1.tks"],
    "dedup-ngrams": ["dedup", "--ngrams", "7.tks"],
    "choose": ["choose", "--length", "2..", "2.tks"],
    "choose-top": ["choose", "--top", "90%", "--by", "length", "2.tks"],
    "decompose": ["decompose"] + SMALL + ["2.tks"],
    "decompose-mixture": ["decompose"] + SMALL + ["--mixture-tokens", "300", "2.tks"],
    "pack": ["pack", "3.tks"],
    "shuffle": ["shuffle", "4.tks"],
    "schedule": ["schedule", "--trainer", "generic", "--batch-tokens", "32", "--seed", "9", "D_4"],
    "inspect": ["inspect", "--records", "4.tks"],
}


def full():
    for name, argv in WRITERS.items():
        with open("/dev/full", "wb") as f:
            r = Run(argv, stdout=f)
        result(r.clear_failure(), name + ": >/dev/full", r)
        if name != "inspect":
            r = Run(argv + ["-o", "/dev/full"])
            result(r.clear_failure(), name + ": -o /dev/full", r)
            r = Run(argv + ["-o", "x.tks", "--stats", "/dev/full"])
            result(r.clear_failure(), name + ": --stats /dev/full", r)
            if os.path.exists("x.tks"):
                os.unlink("x.tks")
    for name, extra in (("tokenize", ["--on-error", "skip", "--rejects", "/dev/full"]), ("dedup", ["--pairs", "/dev/full"]),
                        ("decompose", ["--histogram", "/dev/full"])):
        argv = WRITERS[name]
        if name == "tokenize":
            open("bad.jsonl", "w").write('{"text": "a"}\n{"text": 1}\n')
            argv = argv[:-1] + ["bad.jsonl"]
        r = Run(argv + extra + ["-o", "x.tks"])
        result(r.clear_failure(), "%s: %s" % (name, " ".join(extra)), r)
        result(not os.path.exists("x.tks"), "%s: %s leaves no output" % (name, " ".join(extra)), os.listdir("."))
        if os.path.exists("x.tks"):
            os.unlink("x.tks")
    for argv in (["inspect", "--help"], ["inspect", "--json", "4.tks"], ["inspect", "--histogram", "4.tks"],
                 ["decompose", "--plan"] + SMALL + ["2.tks"]):
        with open("/dev/full", "wb") as f:
            r = Run(argv, stdout=f)
        result(r.clear_failure(), "%s >/dev/full" % " ".join(argv[:2]), r)
    for what, path in (("/dev/full", "/dev/full"), ("a folder that is not there", "no/such/folder/x.svg")):
        r = Run(["inspect", "--svg", path, "4.tks"])
        result(r.clear_failure(), "inspect --svg: " + what, r)
    for name, argv in WRITERS.items():
        if name != "inspect":
            r = Run(argv + ["-o", "no/such/folder/out.tks"])
            result(r.clear_failure(), name + ": -o in a folder that does not exist", r)


def head():
    """The reader goes away: SIGPIPE, in silence. The writer's stream is cut: exit 1."""
    subprocess.run([sys.executable, HERE + "/make_corpus.py", "big.jsonl", "2000000", "4"], check=True)
    Run(["tokenize", "-t", "bytes", "big.jsonl", "-o", "big.tks"])
    Run(["decompose"] + SMALL + ["big.tks", "-o", "pieces.tks"])
    for name, argv in {"tokenize": ["tokenize", "-t", "bytes", "big.jsonl"], "dedup": ["dedup", "big.tks"],
                       "decompose": ["decompose"] + SMALL + ["big.tks"], "shuffle": ["shuffle", "big.tks"],
                       "inspect": ["inspect", "--records", "big.tks"]}.items():
        p = subprocess.Popen([BIN + argv[0]] + argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(100)
        p.stdout.close()
        err = p.stderr.read()
        p.wait()
        result(p.returncode == -13 and not err, name + ": | head -c 100 ends it by SIGPIPE, in silence",
               "status %s, %r" % (p.returncode, err))
    data = open("pieces.tks", "rb").read()
    for name in READERS:
        each(name, [("head -c", data[:len(data) // 2])], "head -c of a larger stream")


def empty():
    for name in READERS:
        each(name, [("nothing", b"")], "empty input")
    r = Run(["tokenize", "-t", "bytes", "-o", "x.tks", "no-such-file.jsonl"])
    result(r.clear_failure() and not os.path.exists("x.tks"), "tokenize: a file that is not there", r)
    for name, (argv, _) in READERS.items():
        r = Run(argv + ["no-such-file.tks"] + (["-o", "x.tks"] if name != "inspect" else []))
        result(r.clear_failure() and b"no-such-file.tks" in r.err and not os.path.exists("x.tks"),
               name + ": a file that is not there, named", r)


def terminal():
    for name, argv in WRITERS.items():
        if name == "inspect":
            continue
        master, slave = pty.openpty()
        r = Run(argv, stdout=slave)
        os.close(slave)
        try:
            shown = os.read(master, 100)
        except OSError as e:
            shown = b"" if e.errno == errno.EIO else b"?"
        os.close(master)
        result(r.status in (1, 2) and r.err and not shown, name + ": a terminal is refused as output", r)
    for name, (argv, _) in READERS.items():
        master, slave = pty.openpty()
        p = subprocess.Popen([BIN + argv[0]] + argv[1:] + ([] if name == "inspect" else ["-o", "x.tks"]),
                             stdin=slave, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, err = p.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            p.kill()
            _, err = p.communicate()
        os.close(slave)
        os.close(master)
        result(p.returncode in (1, 2) and err, name + ": a terminal is refused as input",
               "status %s %r" % (p.returncode, err))


def digest(path, but=("report.json",)):
    """Of a file, or of a folder's files but reports (which hold times)."""
    h = hashlib.sha256()
    if os.path.isdir(path):
        for d, dirs, files in os.walk(path):
            dirs[:] = sorted(f for f in dirs if f not in but)
            for f in sorted(files):
                if f not in but:
                    h.update(os.path.join(os.path.relpath(d, path), f).encode())
                    h.update(open(os.path.join(d, f), "rb").read())
    elif os.path.exists(path):
        h.update(open(path, "rb").read())
    else:
        return None
    return h.hexdigest()


def shimmed(at, do, log):
    return {"LD_PRELOAD": SHIM + "/fault.so", "SHIM_AT": at, "SHIM_DO": str(do), "SHIM_LOG": log}


FILES = dict(WRITERS)
del FILES["inspect"]
IDS = ["--eos-id", "0", "--token-bytes", "2", "8.npy"]
FILES["decompose-ids"] = ["decompose", "-q"] + SMALL + IDS
FILES["decompose-scan"] = ["decompose", "-q", "--plan"] + SMALL + IDS
FILES["dedup-near"] = ["dedup", "--near", "--pairs", "/dev/null", "7.tks"]
# FILE is another output of the program, which must be complete or not there.
FILES["dedup-pairs"] = ["dedup", "--pairs", "FILE", "9.tks"]
FILES["dedup-near-pairs"] = ["dedup", "--near", "--keep", "longest", "--pairs", "FILE", "9.tks"]
FILES["dedup-substring-pairs"] = ["dedup", "--substring", "20", "--annotate", "--pairs", "FILE", "9.tks"]
FILES["dedup-longest"] = ["dedup", "--near", "--keep", "longest", "--pairs", "/dev/null", "7.tks"]
FILES["schedule-olmo"] = ["schedule", "--trainer", "olmo", "--batch-tokens", "32", "--json", "/dev/null", "D_4"]
LINE = ["sluice", "run", "-q", "tokenize", "-t", "bytes", "c.jsonl", "!", "dedup", "!", "decompose"] + SMALL + ["!", "pack"]
if not os.environ.get("PROGRAM_PREFIX"):
    FILES["run"] = LINE
    FILES["run-wds"] = LINE + ["!", "shuffle", "--format", "wds", "--shard-sequences", "4", "--last", "keep"]
FILES["shuffle-wds"] = ["shuffle", "--format", "wds", "--shard-sequences", "4", "--last", "keep", "4.tks"]


def injected(name, at, do, number, before):
    """One run of FILES[name] with a fault; (fired, what is wrong or None)."""
    folder = "inj-%s-%s-%d" % (name, at.replace(":", "-"), number)
    os.mkdir(folder)
    out, log = folder + "/out", folder + ".log"
    kept = None
    if before and not name.endswith("-wds"):
        open(out, "wb").write(b"what was here before")
        kept = digest(out)
    file = folder + ".file"
    r = Run([file if a == "FILE" else a for a in FILES[name]] + ["-o", out], env=shimmed(at, do, log))
    fired = os.path.exists(log)
    bad = None
    now = digest(out)
    complete = name + "\0" + str(now) in GOOD
    of_file = digest(file)
    if (of_file or r.status == 0) and "FILE" in FILES[name] and name + "\0FILE\0" + str(of_file) not in GOOD:
        return fired, "the file beside the output is there, and not complete: %s" % r
    if not fired:
        if r.status != 0 or not complete:
            bad = "no fault was injected, and yet: %s" % r
    elif do == "kill":
        if r.status != -9:
            bad = "killed, but %s" % r
    elif r.status == 0:  # a folder .partial that cannot be removed is left beside the whole set
        if not complete and name + "\0" + str(digest(out, ("report.json", ".partial"))) not in GOOD:
            bad = "success with another output: %s" % r
    elif not r.clear_failure():
        bad = str(r)
    if not bad and r.status != 0 and not complete:
        if name.endswith("-wds"):
            last = [p for p in leftovers(out) if p.endswith(("manifest.jsonl", "report.json"))]
            if do == "kill":
                if os.path.exists(out + "/report.json"):  # published last: only .partial is left to be removed
                    whole = name + "\0" + str(digest(out, ("report.json", ".partial"))) in GOOD
                    if not whole or Run(["inspect", "--verify", out]).status != 0:
                        bad = "report.json is there, and the set is not complete"
                elif os.path.isdir(out) and Run(["inspect", "--verify", out]).status != 1:
                    bad = "inspect --verify accepts an incomplete set"
            elif os.path.exists(out + "/.partial/ready"):  # all is written: the same again only publishes it
                finals, again = os.listdir(out), Run(FILES[name] + ["-o", out])
                if finals != [".partial"] or again.status != 0 or name + "\0" + str(digest(out)) not in GOOD:
                    bad = "not published by the same again: %s %s" % (finals, again)
            elif last or leftovers(out):
                bad = "left behind after %s: %s" % (r, leftovers(out))
        elif now != kept:
            bad = "the output's final name was touched: %s" % r
        elif do != "kill" and len(os.listdir(folder)) != (1 if kept else 0):
            bad = "left behind: %s" % os.listdir(folder)
    shutil.rmtree(folder)
    if of_file:
        os.unlink(file)
    if fired:
        os.unlink(log)
    return fired, bad


GOOD = set()


def good_outputs():
    if GOOD:
        return
    for name, argv in FILES.items():
        r = Run(["good-file" if a == "FILE" else a for a in argv] + ["-o", "good-" + name])
        if r.status != 0:
            result(False, name + ": runs at all", r)
        GOOD.add(name + "\0" + str(digest("good-" + name)))
        if "FILE" in argv:
            if b'"id":' not in open("good-file", "rb").read():
                result(False, name + ": the file beside the output has the records' ids", r)
            GOOD.add(name + "\0FILE\0" + str(digest("good-file")))


def loop(calls, do, what, most, names=FILES):
    """Fails call 1, 2, 3, … until a run in which the call was not reached."""
    for name in names:
        for call in calls:
            bad, n, tried, gap, last = [], 1, 0, 1, False
            while not last:
                batch = []
                for _ in range(8):
                    batch.append(n)
                    n += gap
                    if not FULL and len(batch) + tried >= (24 if MORE else 16):
                        gap = max(gap, n // 8)
                    elif FULL and n > most:
                        gap = max(gap, n // 50)
                for k, (fired, problem) in zip(batch, POOL.map(
                        lambda k: injected(name, "%s:%d" % (call, k), do, k, k % 2), batch)):
                    tried += 1
                    if problem:
                        bad.append("%s:%d: %s" % (call, k, problem))
                    if not fired:
                        last = True
                if len(bad) > 20:
                    break
            result(not bad, "%s: %s %s (%d runs)" % (name, call, what, tried),
                   "%d bad\n%s" % (len(bad), "\n".join(bad[:2])))


def kill():
    good_outputs()
    for name in FILES:
        bad, fired_at = [], []
        points = ["start:1", "read:1", "read:2", "write:1", "write:2", "write:3", "sync:1", "name:1", "close:1", "end:1"]
        if FULL:
            points += ["%s:%d" % (c, n) for c in ("read", "write", "sync", "name", "close", "open", "mkdir", "unlink")
                       for n in range(1, 20)]
        for (fired, problem), p in zip(POOL.map(lambda p: injected(name, p, "kill", 1, True), sorted(set(points))),
                                       sorted(set(points))):
            if fired:
                fired_at.append(p)
            if problem:
                bad.append("%s: %s" % (p, problem))
        need = {"start:1", "write:1", "name:1", "end:1"}
        if not need <= set(fired_at):
            bad.append("the fail-points %s were not reached" % " ".join(sorted(need - set(fired_at))))
        result(not bad, "%s: kill -9 at %s" % (name, " ".join(fired_at)), "\n".join(bad[:3]))


def pipe_kill():
    """kill -9 of each program of the line in one pipe, at fail-points."""
    line = [("tokenize", ["-t", "bytes", "big.jsonl"]), ("dedup", []), ("decompose", SMALL), ("pack", []),
            ("shuffle", ["-o", "OUT", "--format", "wds", "--shard-sequences", "64", "--last", "keep"])]
    if not os.path.exists("big.jsonl"):
        subprocess.run([sys.executable, HERE + "/make_corpus.py", "big.jsonl", "2000000", "4"], check=True)
    for victim in range(len(line)):
        for at in ("start:1", "read:1", "read:2", "write:1", "write:4", "end:1"):
            tag = "pipe-%s-%s" % (line[victim][0], at.replace(":", "-"))
            procs, prev = [], None
            for i, (prog, args) in enumerate(line):
                env = dict(os.environ)
                if i == victim:
                    env.update(shimmed(at, "kill", tag + ".log"))
                argv = [BIN + prog] + [tag if a == "OUT" else a for a in args]
                p = subprocess.Popen(argv, stdin=prev.stdout if prev else subprocess.DEVNULL,
                                     stdout=subprocess.PIPE if i + 1 < len(line) else subprocess.DEVNULL,
                                     stderr=open("%s.err%d" % (tag, i), "wb"), env=env)
                if prev:
                    prev.stdout.close()
                procs.append(p)
                prev = p
            deadline = time.time() + 60
            bad = []
            for i, p in enumerate(procs):
                try:
                    p.wait(max(1, deadline - time.time()))
                except subprocess.TimeoutExpired:
                    bad.append("%s hangs" % line[i][0])
                    p.kill()
                    p.wait()
            status = [p.returncode for p in procs]
            err = [open("%s.err%d" % (tag, i)).read() for i in range(len(line))]
            if not os.path.exists(tag + ".log") or status[victim] != -9:
                bad.append("%s was not alive at %s" % (line[victim][0], at))
            for i, s in enumerate(status):
                if i < victim and s not in (0, -13):
                    bad.append("%s ended with %s" % (line[i][0], s))
                elif i > victim and (s != 1 or not re.fullmatch(r"([a-z]+: .{3}.*\n){1,2}", err[i])):
                    # A program killed at its normal end has written everything; what follows is fine.
                    counts = re.fullmatch(r"[a-z]+: \d+ documents?, \d+ tokens? in; .*; [\d.]+ s\n", err[i])
                    if not (at == "end:1" and s == 0 and (line[i][0] == "shuffle" or counts)):
                        bad.append("%s ended with %s: %s" % (line[i][0], s, err[i]))
            finished = status[-1] == 0 or (victim == len(line) - 1 and at == "end:1")
            verified = os.path.isdir(tag) and Run(["inspect", "--verify", tag]).status == 0
            if verified != finished:
                bad.append("the shards verify: %s, the line finished: %s" % (verified, finished))
            if victim < len(line) - 1 and not finished and leftovers(tag + "/x"):
                bad.append("shuffle left %s" % leftovers(tag + "/x")[:3])
            result(not bad, "pipe: kill -9 of %s at %s; statuses %s" % (line[victim][0], at, status), "\n".join(bad))
            shutil.rmtree(tag, ignore_errors=True)


def io():
    good_outputs()
    loop(["read", "write", "open", "sync", "close", "name", "truncate", "mkdir", "stdio"] if FULL else ["io"],
         errno.EIO, "fails", 400)
    if not FULL:  # among all calls those of the second file are missed
        loop(["write", "sync", "name"], errno.EIO, "fails", 400, [name for name in FILES if "FILE" in FILES[name]])
    if FULL:
        loop(["write"], errno.ENOSPC, "finds the disk full", 400)


def memory():
    good_outputs()
    loop(["memory", "map", "thread"], errno.ENOMEM, "fails", 1500)


def main(parts):
    global case
    make_streams()
    for part in parts:
        case = os.environ.get("case_name", "faults")
        if part in ("kill", "pipe-kill", "io", "memory") and not SHIM:
            print("skip %s: %s: not under sanitizers" % (case, part))
            continue
        globals()[part.replace("-", "_")]()


if __name__ == "__main__":
    main(sys.argv[1:])
