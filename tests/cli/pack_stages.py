#!/usr/bin/env python3
"""Checks the promises of pack --stage: pack_stages.py PART... in an empty folder (see pack_stages.sh).

Parts: equal refused damaged killed. FULL=1: a larger corpus.
"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from stages import BIN, FULL, Run, must, result, sha


def corpus(path, n, seed):
    """Documents of three domains; ids and scores; a few are long."""
    rng = random.Random(seed)
    with open(path, "w") as f:
        for i in range(n):
            words = int(rng.paretovariate(0.9) * 3)
            d = {"text": " ".join(rng.choice(("to", "be", "or", "not", "that", "is")) for _ in range(min(words, 3000))),
                 "id": "d%d" % i if rng.random() < 0.7 else "a rather long name of document %d" % i,
                 "quality": rng.random()}
            # A domain that the first parts lack, so that their order of appearance differs.
            d["domain"] = rng.choice("abc" if i > n // 2 else "ba")
            f.write(json.dumps(d) + "\n")


def make(ns=(1, 3, 8)):
    """pN-I.tks: documents; qN-I.tks: decomposed."""
    corpus("c.jsonl", 20000 if FULL else 2500, 5)
    for n in ns:
        for i in range(n):
            must(["tokenize", "-t", "bytes", "--domain-field", "domain", "--id-field", "id", "--score-field", "quality",
                  "--part", "%d/%d" % (i, n), "-o", "p%d-%d.tks" % (n, i), "c.jsonl"])
            must(["decompose", "--min", "32", "--max", "256", "--label-token", "-o", "q%d-%d.tks" % (n, i),
                  "p%d-%d.tks" % (n, i)])


def steps(work, n, ranges, options, prefix):
    """(stage, part, argv) of each, in order."""
    base = ["pack"] + options + ["--work", work, "--stage"]
    many = ["--ranges", str(ranges)] if ranges != n else []
    for i in range(n):
        yield "count", i, base + ["count", "--part", "%d/%d" % (i, n), "%s%d-%d.tks" % (prefix, n, i)]
    yield "plan", 0, base + ["plan"]
    for i in range(n):
        yield "scatter", i, base + ["scatter", "--part", "%d/%d" % (i, n)] + many + \
            ["-o", "%s-passed.%d" % (work, i), "%s%d-%d.tks" % (prefix, n, i)]
    for j in range(ranges):
        yield "gather", j, base + ["gather", "--part", "%d/%d" % (j, ranges), "-o", "%s-bins.%d" % (work, j)]


def cat(work, n, ranges):
    with open(work + ".tks", "wb") as f:
        for name in ["%s-passed.%d" % (work, i) for i in range(n)] + ["%s-bins.%d" % (work, j) for j in range(ranges)]:
            f.write(open(name, "rb").read())
    return work + ".tks"


def whole(work, n, ranges, options, prefix, stats=None):
    for stage, part, argv in steps(work, n, ranges, options, prefix):
        name = "s-%s-%d.json" % (stage, part)
        must(argv + ["--stats", name])
        if stats is not None:
            stats.append((stage, json.load(open(name))))
    return cat(work, n, ranges)


def facts(path):
    """Everything that a stream has, in order: records, and the tokens themselves (a pass that changes nothing)."""
    records = must(["inspect", "--records", path]).out
    return hashlib.sha256(records).hexdigest(), json.loads(must(["inspect", "--json", path]).out)["checksum"]


def clear(work, n, ranges):
    shutil.rmtree(work, ignore_errors=True)
    for i in range(max(n, ranges)):
        for name in ("%s-passed.%d" % (work, i), "%s-bins.%d" % (work, i)):
            forget(name)
            if os.path.exists(name):
                os.unlink(name)


def total(stats, program, key):
    """tokens, sequences, documents of a row of the account, over a stage's parts."""
    n = [0, 0, 0]
    for stage, s in stats:
        if stage == program:
            for i, k in enumerate(("tokens", "sequences", "documents")):
                v = s[k].get(key, 0)
                n[i] += sum(v.values()) if isinstance(v, dict) else v
    return n


CASES = [
    ("q", ["--length", "128"]),
    ("q", ["--method", "ffd", "--mix-domains", "--max-segments", "3"]),
    ("p", ["--length", "200", "--fill", "drop"]),
    ("p", ["--length", "200", "--long", "drop", "--method", "spfhp"]),
    ("q", ["--method", "multi", "--padding-threshold", "0.2"]),
    ("p", ["--length", "300", "--method", "lpfhp", "--max-segments", "5"]),
    ("p", ["--length", "64", "--method", "nnlshp", "--mix-domains"]),
]


def equal():
    make()
    for k, (prefix, options) in enumerate(CASES):
        name = "%s %s" % (prefix, " ".join(options))
        must(["pack"] + options + ["-o", "one.tks", "--stats", "one.json", prefix + "1-0.tks"])
        one, want = json.load(open("one.json")), facts("one.tks")
        shapes = [(n, r) for n in (1, 3, 8) for r in (1, 3, 5)]
        for n, ranges in shapes if k == 0 or FULL else [shapes[k], shapes[(k + 5) % 9]]:
            stats = []
            got = whole("w", n, ranges, options, prefix, stats)
            result(facts(got) == want, "%s: N = %d, R = %d: records, order and checksum of the one run" % (name, n, ranges))
            there, back = total(stats, "scatter", "to_work"), total(stats, "gather", "from_work")
            result(there == back and there[0] > 0, "%s: N = %d, R = %d: the account" % (name, n, ranges), (there, back))
            out = sum(total(stats, p, "out")[0] for p in ("scatter", "gather"))
            result(total(stats, "scatter", "in")[0] == one["tokens"]["in"] and out == one["tokens"]["out"],
                   "%s: N = %d, R = %d: tokens in and out" % (name, n, ranges), (out, one["tokens"]))
            plan = dict(stats)["plan"]
            result(all(plan[f] == one[f] for f in ("bins", "packed", "full_bins", "groups", "fill")),
                   "%s: N = %d: the plan's report" % (name, n), (plan, one))
            clear("w", n, ranges)
    options = ["--length", "128"]
    whole("w3", 3, 3, options, "q")
    for extra in (["-T", "1", "-M", "32M"], ["-T", "2", "-M", "2G"]):
        whole("other", 3, 3, options + extra, "q")
        files = sorted(os.listdir("w3"))
        result(len(files) == 7 and files == sorted(os.listdir("other")) and
               all(sha("w3/" + f) == sha("other/" + f) for f in files) and
               all(sha("w3-%s.%d" % (a, i)) == sha("other-%s.%d" % (a, i)) for a in ("passed", "bins") for i in range(3)),
               "every file is the same with " + " ".join(extra))
        clear("other", 3, 3)
    clear("w3", 3, 3)
    spilled(options)
    nothing()
    plans(options)


def spilled(options):
    """Past -M: the sorters write. No domains here."""
    with open("big.jsonl", "w") as f:
        rng = random.Random(7)
        for i in range(9000):
            f.write(json.dumps({"text": "x" * rng.randrange(1, 4000)}) + "\n")
    for i in range(2):
        must(["tokenize", "-t", "bytes", "--part", "%d/2" % i, "-o", "b2-%d.tks" % i, "big.jsonl"])
    must(["tokenize", "-t", "bytes", "-o", "b1-0.tks", "big.jsonl"])
    options = ["--length", "4096"]
    must(["pack"] + options + ["-o", "one.tks", "b1-0.tks"])
    stats = []
    got = whole("w", 2, 1, options + ["-M", "32M"], "b", stats)
    result(facts(got) == facts("one.tks"), "past -M: the records of the one run")
    result(all((s["spill_bytes"] > 0) == (p == "scatter") for p, s in stats if p in ("scatter", "gather")),
           "past -M: scatter has spilled, and gather merges what it is given", [s["spill_bytes"] for p, s in stats])
    clear("w", 2, 1)


def nothing():
    """Parts without documents, and no documents at all."""
    open("empty.jsonl", "w").close()
    must(["tokenize", "-t", "bytes", "--domain-field", "domain", "--id-field", "id", "--score-field", "quality",
          "--on-error", "skip", "-o", "e2-0.tks", "empty.jsonl"])
    shutil.copy("e2-0.tks", "e2-1.tks")
    got = whole("w", 2, 3, ["--length", "64"], "e")
    result(json.loads(must(["inspect", "--json", got]).out)["sequences"] == 0, "no documents at all")
    clear("w", 2, 3)
    shutil.copy("p1-0.tks", "e2-1.tks")
    got = whole("w", 2, 3, ["--length", "64"], "e")
    must(["pack", "--length", "64", "-o", "one.tks", "p1-0.tks"])
    result(facts(got) == facts("one.tks"), "a part without documents")
    clear("w", 2, 3)


def plans(options):
    """--save-plan and --apply-plan of --stage plan."""
    must(["pack"] + options + ["--save-plan", "one.plan", "-o", "one.tks", "q1-0.tks"])
    for stage, _, argv in steps("w", 3, 3, options, "q"):
        must(argv + (["--save-plan", "parts.plan"] if stage == "plan" else []))
    result(sha("one.plan") == sha("parts.plan"), "--save-plan: the plan of the one run")
    clear("w", 3, 3)
    for stage, _, argv in steps("w", 3, 3, options, "q"):
        must(argv + (["--apply-plan", "one.plan"] if stage == "plan" else []))
    result(facts(cat("w", 3, 3)) == facts("one.tks"), "--apply-plan: the bins of the one run")
    clear("w", 3, 3)
    must(["pack", "--length", "128", "--save-plan", "other.plan", "-o", "x.tks", "q3-0.tks"])
    for stage, i, argv in steps("w", 3, 3, options, "q"):
        if stage == "plan":
            r = Run(argv + ["--apply-plan", "other.plan"])
            result(r.line(1) and "plan was made for other data" in r.err, "a plan for other data is refused", r)
            break
        must(argv)
    clear("w", 3, 3)


def no(what, message, argv, status=1):
    r = Run(argv)
    result(r.line(status) and message in r.err, what, r)


def refused():
    make((2, 3))
    options = ["--length", "128"]
    base = ["pack"] + options
    work = ["--work", "w"]
    for extra, message in ((["--order", "related"], "--order related needs all documents"),
                           (["--balance", "2"], "--balance needs all documents"),
                           (["--method", "concat"], "--method concat needs all documents"),
                           (["--plan"], "--plan compares"),
                           (["--save-plan", "x"], "--save-plan needs --stage plan"),
                           (["--apply-plan", "one.plan"], "--apply-plan needs --stage plan")):
        no("%s has no stages" % extra[0], message, base + extra + work + ["--stage", "count", "--part", "0/2", "q2-0.tks"], 2)
    no("--part without --stage", "use --stage", base + ["--part", "0/2", "q2-{part}.tks"], 2)
    no("--work without --stage", "--work needs --stage", base + work + ["q2-0.tks"], 2)
    no("no --work", "needs --work", base + ["--stage", "count", "--part", "0/2", "q2-0.tks"], 2)
    no("no --part", "needs --part", base + work + ["--stage", "count", "q2-0.tks"], 2)
    no("plan with --part", "leave --part out", base + work + ["--stage", "plan", "--part", "0/2"], 2)
    no("plan with a stream", "reads no stream", base + work + ["--stage", "plan", "q2-0.tks"], 2)
    no("count with -o", "writes to --work only", base + work + ["--stage", "count", "--part", "0/2", "-o", "x", "q2-0.tks"], 2)
    no("gather with --ranges", "takes no --ranges", base + work + ["--stage", "gather", "--part", "0/2", "--ranges", "2", "-o", "x"], 2)
    os.makedirs("w", exist_ok=True)
    no("plan without counts", "no count files", base + work + ["--stage", "plan"])
    no("scatter without a plan", "plan is missing; run stage plan",
       base + work + ["--stage", "scatter", "--part", "0/2", "-o", "x", "q2-0.tks"])
    no("gather without a plan", "plan is missing", base + work + ["--stage", "gather", "--part", "0/2", "-o", "x"])
    all_of = list(steps("w", 2, 2, options, "q"))
    must(all_of[0][2])
    no("plan without a part", "count.1-of-2 is missing; run stage count for part 1/2", all_of[2][2])
    no("count with other options", "was made without --max-segments, now --max-segments=3; remove it, or use -f", all_of[0][2] + ["--max-segments", "3"])
    r = must(all_of[0][2] + ["-v"])
    result("was there already" in r.err, "count: a finished job is not done again", r)
    must(all_of[1][2])
    must(["pack"] + options + work + ["--stage", "count", "--part", "0/3", "q3-0.tks"])
    no("plan with counts of two jobs", "of 2 parts and of 3", all_of[2][2])
    os.unlink("w/count.0-of-3")
    must(all_of[2][2])
    r = must(all_of[2][2] + ["-v"])
    result("was there already" in r.err, "plan: a finished job is not done again", r)
    no("plan with other options", "was made without --method, now --method=ffd; remove it and run stage count again", all_of[2][2] + ["--method", "ffd"])
    no("scatter with other options", "was made without --long, now --long=drop", all_of[3][2] + ["--long", "drop"])
    no("scatter of another number of parts", "plan: is of 2 parts, and this run is part 0/3",
       base + work + ["--stage", "scatter", "--part", "0/3", "-o", "x", "q3-0.tks"])
    no("scatter of another stream", "differs from the one that w/count.0-of-2 was made from", all_of[3][2][:-1] + ["q2-1.tks"])
    result(not os.path.exists("w-passed.0") and not os.path.exists("w/scatter.0-of-2"), "and leaves nothing")
    must(["tokenize", "-t", "builtin", "--domain-field", "domain", "-o", "t.tks", "c.jsonl"])
    must(["decompose", "--min", "32", "--max", "256", "--label-token", "-o", "u.tks", "t.tks"])
    no("scatter of another tokenizer", "another tokenizer", all_of[3][2][:-1] + ["u.tks"])
    must(all_of[3][2])
    no("gather without a part", "scatter.1-of-2 is missing; run stage scatter for part 1/2", all_of[5][2])
    must(all_of[4][2] + ["--ranges", "3"])
    no("gather of scatter files of other ranges", "has 3 ranges, so part 0/2 does not exist", all_of[5][2])
    must(all_of[4][2] + ["-f"])
    no("gather of a range that is none", "has 2 ranges, so part 0/3 does not exist",
       base + work + ["--stage", "gather", "--part", "0/3", "-o", "x"])
    no("gather with other options", "was made without --fill, now --fill=drop", all_of[5][2] + ["--fill", "drop"])
    # A count that is made again from another stream: the plan, and what follows, is not of it.
    must(["pack"] + options + work + ["--stage", "count", "--part", "0/2", "-f", "q2-1.tks"])
    no("scatter that is done, of another count", "was made from w/count.0-of-2", all_of[3][2])
    os.unlink("w-passed.0")
    no("scatter of a count that is not the plan's", "differs from the file that the plan was made from", all_of[3][2])
    no("plan of other counts", "made from other files", all_of[2][2])
    must(all_of[2][2] + ["-f"])
    no("gather of scatter files of another plan", "made from other files", all_of[5][2])
    must(all_of[0][2] + ["-f"])
    must(all_of[2][2] + ["-f"])
    for _, _, argv in all_of[3:]:
        must(argv + ["-f"])
    must(base + ["-o", "one.tks", "q2-0.tks", "q2-1.tks"])
    result(facts(cat("w", 2, 2)) == facts("one.tks"), "and -f begins again")
    again(all_of, work, base)
    clear("w", 2, 2)
    r = Run(["pack", "--long", "error", "--length", "64"] + work + ["--stage", "count", "--part", "0/2", "p2-0.tks"])
    result(r.line(1) and "more than a bin's 64" in r.err and not os.path.exists("w/count.0-of-2"), "--long error", r)


def again(all_of, work, base):
    """What is there, and what it was made from, is the same: nothing is done. What was removed is made again."""
    for stage, i, argv in all_of[3:]:
        r = must(argv + ["-v", "--stats", "s.json"])
        result("is there already" in r.err and json.load(open("s.json"))["skipped"],
               "--stage %s --part %d: done is done" % (stage, i), r)
    was = sha("w/scatter.1-of-2", "w-passed.1")
    os.unlink("w/scatter.1-of-2")
    must(all_of[4][2])
    result(sha("w/scatter.1-of-2", "w-passed.1") == was, "a scatter file that was removed is made again")
    os.unlink("w-passed.1")
    must(all_of[4][2])
    result(sha("w/scatter.1-of-2", "w-passed.1") == was, "and so is what passed")
    r = must(all_of[5][2] + ["-v"])
    result("is there already" in r.err, "and bins of the same files are the same", r)
    no("scatter with other options, done", "long", all_of[3][2] + ["--long", "drop"])


def forget(out):
    """It is made again, whatever its manifest says."""
    if os.path.exists(out + ".manifest.json"):
        os.unlink(out + ".manifest.json")


def damaged():
    make((2,))
    options = ["--length", "128"]
    all_of = list(steps("w", 2, 2, options, "q"))
    for _, _, argv in all_of:
        must(argv)
    rng = random.Random(3)
    for name, argv in (("count.1-of-2", all_of[2][2]), ("count.1-of-2", all_of[4][2]), ("plan", all_of[3][2]), ("plan", all_of[5][2]),
                       ("scatter.1-of-2", all_of[5][2]), ("scatter.0-of-2", all_of[6][2])):
        path = "w/" + name
        data = open(path, "rb").read()
        out = argv[argv.index("-o") + 1] if "-o" in argv else "w/plan"
        was = sha(out)
        argv = argv + (["-f"] if argv is all_of[2][2] else [])
        bad = 0
        places = [0, 8, 16, len(data) // 2, len(data) - 1] + [rng.randrange(len(data)) for _ in range(40 if FULL else 8)]
        cuts = [0, 15, 100, len(data) // 2, len(data) - 1]
        # A gather does not read the sections of other ranges: damage there is found by their gathers.
        for at in places:
            with open(path, "wb") as f:
                f.write(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
            forget(out)
            r = Run(argv)
            bad += not (r.line(1) or (r.status == 0 and name != "count.1-of-2" and sha(out) == was))
        for n in cuts:
            with open(path, "wb") as f:
                f.write(data[:n])
            forget(out)
            r = Run(argv)
            bad += not r.line(1)
        with open(path, "wb") as f:
            f.write(data)
        result(bad == 0, "%s damaged or cut, as --stage %s sees it" % (name, argv[argv.index("--stage") + 1]), r)
        result(sha(out) == was, "and %s is unchanged" % out)
    # Files of other kinds, and other programs'.
    for name, other, say, argv in (
            ("plan", "count.0-of-2", "is part 0/2 of a stage; expected the file of all parts", all_of[3][2]),
            ("scatter.0-of-2", "count.0-of-2", "was made by --stage count, now scatter", all_of[5][2]),
            ("scatter.0-of-2", "scatter.1-of-2", "is part 1/2; expected part 0/2", all_of[5][2])):
        data = open("w/" + name, "rb").read()
        shutil.copy("w/" + other, "w/" + name)
        forget(argv[argv.index("-o") + 1])
        no("%s is %s" % (name, other), say, argv)
        with open("w/" + name, "wb") as f:
            f.write(data)
    shutil.copy("q2-0.tks", "w/scatter.0-of-2")
    forget("w-bins.0")
    no("a stream is no scatter file", "not a work file of sluice; remove it and run its stage again", all_of[5][2])


def unmade(stage, part, argv):
    """Removes what the job writes. A file whose name is free gets it in one step: a kill leaves nothing else."""
    written = ["w/" + f for f in os.listdir("w") if f == stage or f.startswith("%s.%d-" % (stage, part))]
    if "-o" in argv:
        out = argv[argv.index("-o") + 1]
        written += [out, out + ".manifest.json"]
    for f in filter(os.path.exists, written):
        os.unlink(f)


def killed():
    make((2,))
    options = ["--length", "128"]
    must(["pack"] + options + ["-o", "one.tks", "q2-0.tks", "q2-1.tks"])
    want = facts("one.tks")
    rng = random.Random(11)
    all_of = list(steps("w", 2, 2, options, "q"))
    os.mkdir("w")  # all may be killed before they make it
    for k, (stage, part, argv) in enumerate(all_of):
        killed = 0
        for _ in range(4):
            unmade(stage, part, argv)
            began = time.time()
            p = subprocess.Popen([BIN + argv[0]] + argv[1:], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.random() * 0.02)
            p.send_signal(signal.SIGKILL)
            killed += p.wait() == -signal.SIGKILL
        left = [f for f in os.listdir("w") + os.listdir(".") if ".tmp" in f]
        must(argv)
        result(not left, "kill -9 in --stage %s --part %d (%d of 4 in time), and again" % (stage, part, killed), left)
    result(facts(cat("w", 2, 2)) == want, "kill -9 in each stage: the records of the one run")
    clear("w", 2, 2)


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    for part in sys.argv[1:]:
        globals()[part]()
        for f in os.listdir("."):
            shutil.rmtree(f) if os.path.isdir(f) else os.unlink(f)
