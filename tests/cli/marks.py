"""marks.py - an option decides an output unless its row in the option table says less; each row that does is tested.

  .effect = CLI_NOTHING   the output has the same bytes with and without the option
  .effect = CLI_BYTES     it has the same sequences
  .from = "STAGE"         the files of all stages before STAGE have the same bytes, and those from it on have not

And the report of a stage and its work file have the same record, whatever the options are.

The rows are read from the sources; one without a command here fails, and a mark in no row. A mark that is missing does no
harm: see cli.h.
"""
import glob
import json
import os
import re
import shutil
import struct
import sys

from stages import BIN, must, result, sha
from stages_jobs import JOBS, NEAR, SUBSTRING, part, prepare

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Rows that say what is to be done, or that are in the record by themselves.
ITSELF = {"cli": "output seed part part-base device version help format manifest facts compare", "flow": "stage phase work ranges stages",
          "choose": "partition"}
EXTRA = {"cli": "force threads memory tmpdir progress quiet verbose stats"}


def rows(path):
    """{name: {mark: value}} of the rows of a table that have one."""
    with open(path) as f:
        text = f.read()
    n_mark = len(re.findall(r'\.(?:effect = CLI_|from = ")', text))
    text = re.sub(r'"\s*\\?\n\s*"', "", text)  # strings that go on in the next line
    found = {}
    for m in re.finditer(r'\{"([a-z0-9-]+)", (?:0|\'.\'), CLI_(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}', text):
        marks = dict(re.findall(r'\.(effect|from) = "?(\w+)"?', re.sub(r'"(?:[^"\\]|\\.)*"(?!,?\s*\}?$)', lambda s: s[0] if re.fullmatch(r'"\w+"', s[0]) else '""', m[0])))
        if marks:
            found[m[1]] = marks
    if n_mark != sum(map(len, found.values())):
        result(False, "%s: %d marks, and in the rows that were read %d" % (path, n_mark, sum(map(len, found.values()))))
    return found


TABLES = {os.path.basename(os.path.dirname(p)): r for p in glob.glob(TOP + "/tools/*/*.c") if (r := rows(p))}
TABLES["flow"] = rows(TOP + "/tools/cli/cli_flow.h")

# For rows about the output: PROGRAM OPTION: the command without it (-o out is added), and what the option adds; or two
# values, where it is needed.
TOK = ["tokenize", "-t", "bytes", "c.jsonl"]
EXACT = ["dedup", "t0.tks"]
PLAIN = {
    "cli": {
        "threads": (TOK, ["-T", "1"], ["-T", "3"]), "memory": (TOK, ["-M", "64M"], ["-M", "200M"]), "tmpdir": (TOK, [], ["--tmpdir", "."]),
        "force": (TOK, [], ["-f"]), "stats": (TOK, [], ["--stats", "x"]), "progress": (TOK, [], ["--progress", "never"]),
        "quiet": (TOK, [], ["-q"]), "verbose": (TOK, [], ["-v"]),
        "zstd": (TOK, [], ["-z"]), "no-provenance": (TOK, [], ["--no-provenance"]),
    },
    "tokenize": {
        "no-cache": (TOK, [], ["--no-cache"]), "holdout-output": (TOK + ["--holdout", "0.2"], ["--holdout-output", "x"], ["--holdout-output", "y"]),
        "files-from": (["tokenize", "-t", "bytes"], ["c.jsonl"], ["--files-from", "list"]), "no-vocab": (TOK, [], ["--no-vocab"]),
    },
    "dedup": {
        "exact": (EXACT, [], ["--exact"]), "audit": (["dedup", *NEAR, "t0.tks"], [], ["--audit"]),
        "report": (["dedup", "--ngrams", "--ngram", "2", "t0.tks"], [], ["--report", "x"]), "pairs": (EXACT, [], ["--pairs", "x"]),
    },
    "decompose": {
        "histogram": (["decompose", "t0.tks"], [], ["--histogram", "x"]), "accept-mismatch": (["decompose", "t0.tks"], [], ["--accept-mismatch"]),
    },
    "pack": {
        "save-plan": (["pack", "d0.tks"], [], ["--save-plan", "x"]), "apply-plan": (["pack", "d0.tks"], [], ["--apply-plan", "d0.plan"]),
    },
    "shuffle": {
        "replace-set": (["shuffle", "--format", "wds", "p0.tks"], [], ["--replace-set"]),
        "accept-mismatch": (["shuffle", "--format", "wds", "p0.tks"], [], ["--accept-mismatch"]),
        "olmo-path": (["shuffle", "--format", "olmo", "n0.tks"], [], ["--olmo-path", "/a"]),
        "olmo-tokenizer": (["shuffle", "--format", "olmo", "n0.tks"], [], ["--olmo-tokenizer", "dolma2"]),
    },
    "forget": {
        "list": (["forget", "mds", "--ids-drop", "ids", "--accept-mismatch", "--pad-id", "258"], [], ["--list", "x"]),
        "schedule": (["forget", "mds", "--ids-drop", "ids", "--accept-mismatch", "--pad-id", "258", "--list", "x"], [], ["--schedule", "mds.sched"]),
    },
    "schedule": {
        "json": (["schedule", "--trainer", "generic", "--batch-tokens", "256", "wds"], [], ["--json", "x"]),
        "olmo-cache": (["schedule", "--trainer", "olmo", "--cycles", "1", "--batch-tokens", "256", "olmo"], [], ["--olmo-cache", "w"]),
        "olmo-path": (["schedule", "--trainer", "olmo", "--cycles", "1", "--batch-tokens", "256", "--olmo-cache", "w", "olmo"], [], ["--olmo-path", "/a"]),
        "olmo-tokenizer": (["schedule", "--trainer", "olmo", "--cycles", "1", "--batch-tokens", "256", "--olmo-cache", "w", "olmo"], [], ["--olmo-tokenizer", "dolma2"]),
    },
}
SHARDS = ["gather", "finish"]
WDS, MDS, OLMO = ["--format", "wds"], ["--format", "mds"], ["--format", "olmo"]
# For rows about stages: PROGRAM OPTION: what each stage has, one of two values, the kind of streams, the stages.
STAGES = {
    "dedup": {
        "threshold": (NEAR, ["--threshold", "0.5"], [], "t", None), "no-verify": (NEAR, [], ["--no-verify"], "t", None),
        "band-cap": (NEAR, [], ["--band-cap", "1"], "t", None), "min-keep": (SUBSTRING, [], ["--min-keep", "200"], "t", None),
        "save-index": (NEAR, [], ["--save-index", "new.idx"], "t", None),
    },
    "shuffle": {
        "format": ([], OLMO, MDS, "n", None), "shard-sequences": (WDS, ["--shard-sequences", "4"], ["--shard-sequences", "8"], "p", None),
        "shard-size": (OLMO, [], ["--shard-size", "4K"], "n", None), "last": (WDS + ["--shard-sequences", "4"], [], ["--last", "drop"], "p", None),
        "compress": (MDS, [], ["--compress", "zstd"], "n", None), "member": (WDS, [], ["--member", "json.gz"], "p", None),
        "max-segments": (MDS, [], ["--max-segments", "40"], "q", None), "license": (WDS, [], ["--license", "MIT"], "p", None),
        "olmo-path": (OLMO, ["--olmo-path", "/a"], ["--olmo-path", "/b"], "n", None),
        "olmo-tokenizer": (OLMO, ["--olmo-path", "/a"], ["--olmo-path", "/a", "--olmo-tokenizer", "dolma2"], "n", None),
    },
}


def tree(path):
    if not os.path.isdir(path):
        return sha(path)
    return {f: sha(os.path.join(d, f)) for d, _, names in os.walk(path) for f in names}


def remove(*paths):
    for p in paths:
        if os.path.isdir(p):
            shutil.rmtree(p)
        elif os.path.exists(p):
            os.unlink(p)


def contents(path):
    """The checksum of the sequences, whatever bytes they have."""
    if os.path.isdir(path):
        with open(path + "/report.json") as f:
            return json.load(f)["checksum"]
    with open(path, "rb") as f:
        if f.read(4) == b"\xf5SLS":  # a schedule
            return sha(path)
    return json.loads(must(["inspect", "--json", path]).out)["checksum"]


def plain(program, name, effect):
    base, one, other = PLAIN[program][name]
    seen = []
    if not any(o == "--" + name or re.fullmatch("-[A-Za-z]", o) for o in one + other):
        result(False, "%s --%s: the command here does not have it" % (program, name))
    for options in (one, other):
        remove("out", "x", "w")
        if "--replace-set" in options:
            must([*base, *one, "-o", "out"])
        must([*base, *options, "-o", "out"])
        seen.append({p: tree(p) for p in ("out", "x", "w") if os.path.exists(p)} if effect == "CLI_NOTHING" else {"out": contents("out")})
    both = seen[0].keys() & seen[1].keys()  # further outputs, where the option is not the one that asks for them
    result("out" in both and all(seen[0][p] == seen[1][p] for p in both), "%s --%s changes %s" % (program, name, "nothing" if effect == "CLI_NOTHING" else "no sequence"),
           "the output of %s is another with %s; its mark %s in the option table is wrong" % (" ".join(base + one), " ".join(other), effect))


def jobs(program, common, options, kind):
    """All jobs of all stages, as --stages prints them, with two parts."""
    base = [program, "-q", *common, *options]
    for line in must([*base, "--stages"]).out.decode().splitlines():
        stage, many, reads, writes, _ = line.split()
        ranged = many == "parts" and re.search("^(sign|scatter)$", stage)
        for i in range(1 if many == "one" else 2):
            yield stage, [*base, "--stage", stage, "--work", "w"] + ([] if many == "one" else part(i, 2)) + \
                (["--ranges", "2"] if ranged else []) + (["-o", "out/set" if writes == "set" else "out/%s.%d" % (stage, i)] if writes != "-" else []) + \
                (["%s%d.tks" % (kind, i)] if reads == "reads" else [])


def staged(program, name, mark):
    common, one, other, kind, _ = STAGES[program][name]
    seen, order, own = [], [], []
    for options in (one, other):
        after = {}
        remove("w", "out", "new.idx")
        os.mkdir("out")
        for stage, argv in jobs(program, common, options, kind):
            if stage not in order:
                order.append(stage)
            must(argv)
            job = "%s %s" % (stage, argv[argv.index("--part") + 1] if "--part" in argv else "")
            files = {d + "/" + f: v for d in ("w", "out") for f, v in tree(d).items() if not f.endswith(".manifest.json")}
            files.update({"new.idx": sha("new.idx")} if os.path.exists("new.idx") else {})
            after.update({(stage, job, f): v for f, v in files.items()})
        seen.append(files)
        own.append(after)
    early = order[:order.index(mark)]
    own = [{key: v for key, v in of.items() if key[0] in early} for of in own]
    result(own[0] and own[0] == own[1], "%s --%s decides no stage before %s" % (program, name, mark),
           "files that differ: %s; its mark .from in the option table is wrong" % sorted({k[2] for k, _ in own[0].items() ^ own[1].items()}))
    result(seen[0] != seen[1], "  and what is made from it on", "nothing differs: the command tests nothing")


def record(path):
    """The record in a work file, with the number of ranges as a word; see sections()."""
    with open(path, "rb") as f:
        d = f.read()
    tail, = struct.unpack("<Q", d[-32:-24])
    ranges, n = struct.unpack("<Q40xQ", d[tail + 64:tail + 120])
    of = json.loads(d[tail + 128:tail + 128 + n].rstrip(b"\0"))
    return of | {"facts": of.get("facts", []) + (["--ranges=%d" % ranges] if ranges else [])}


def words(of):
    """Those of a record, but for facts that only the stream says."""
    return {k: [w for w in of.get(k, []) if not w.startswith("bins=")] for k in ("arguments", "contents", "lenient", "facts")} | \
        {k: of.get(k) for k in ("program", "bytes", "stage", "seed")}


def alike(name):
    """sluice-batch goes by the reports, and the stages by their work files: one must not be that of a run where the other is not."""
    bad, seen = [], 0
    remove("w", "set", "new.idx")
    for stage, argv in JOBS[name]():
        must([*argv, "--stats", "s.json"])
        i, n = argv[argv.index("--part") + 1].split("/") if "--part" in argv else (0, 0)
        path = "w/" + (stage + ".%s-of-%s" % (i, n) if n else stage)
        if not os.path.exists(path):
            continue
        seen += 1
        with open("s.json") as f:
            report, file = words(json.load(f)), words(record(path))
        if "--ranges=%s" % n in set(file["facts"]) - set(report["facts"]):
            file["facts"].pop()  # a range itself
        bad += ["%s: the report has %s, the file %s" % (path, report[k], file[k]) for k in report if report[k] != file[k]]
    result(seen and not bad, "%s: the record of each stage in its report is that in its file" % name, "\n".join(bad))


def main():
    prepare()
    for name in sorted(JOBS):
        alike(name)
    for i in range(2):
        must(["decompose", "-q", "--min", "16", "--max", "128", "--tail", "drop", "-o", "n%d.tks" % i, "t%d.tks" % i])
        must(["pack", "-q", "--length", "128", "-o", "q%d.tks" % i, "t%d.tks" % i])
    must(["pack", "-q", "--save-plan", "d0.plan", "-o", "/dev/null", "d0.tks"])
    must(["shuffle", "-q", "--format", "wds", "-o", "wds", "p0.tks"])
    must(["shuffle", "-q", "--format", "olmo", "-o", "olmo", "n0.tks"])
    must(["tokenize", "-q", "-t", "t.json", "--id-field", "id", "-o", "b.tks", "c.jsonl"])  # which has a padding id
    must(["decompose", "-q", "--min", "16", "--max", "128", "--tail", "drop", "-o", "bd.tks", "b.tks"])
    must(["shuffle", "-q", "--format", "mds", "-o", "mds", "bd.tks"])
    must(["schedule", "-q", "--trainer", "generic", "--batch-tokens", "256", "-o", "mds.sched", "mds"])
    with open("ids", "w") as f:
        f.write("1\n2\n")
    with open("list", "w") as f:
        f.write("c.jsonl\n")
    only = sys.argv[1:]
    for program, table in sorted(TABLES.items()):
        for name, marks in sorted(table.items()):
            if name in ITSELF.get(program, "").split() or (only and program not in only):
                continue
            if "effect" in marks:
                if name in PLAIN.get(program, {}):
                    plain(program, name, marks["effect"])
                else:
                    result(False, "%s --%s has a mark and no command here" % (program, name))
            if "from" in marks:
                if name in STAGES.get(program, {}):
                    staged(program, name, marks["from"])
                else:
                    result(False, "%s --%s has a mark and no command here" % (program, name))


main()
