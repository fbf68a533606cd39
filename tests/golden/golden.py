#!/usr/bin/env python3
"""golden.py - files of earlier versions: every later version reads them and gives the same answers.

  golden.py make FOLDER       with the programs in $BIN, once for a release: FOLDER/files.tar.xz and FOLDER/answers.json
  golden.py check FOLDER...   unpacks the files and compares the answers; prints "ok" and "not ok" lines
  golden.py bytes [new]       compares the bytes of the files that are made now with those in tests/golden/bytes.json, whose
                              number is SLU_BYTES (lib/flow/made.h): other bytes need another number; new: writes the list

Of a stream or a set, the questions ask for its figures, and for its records with their texts. Of a plan, an index, a
schedule or a manifest they ask for the result of the work that reads it. Of the work files of stages: each later stage runs on
the files that the earlier stages left, and the records at the end must be the same as then.

Answers are data, not printed text: new fields in the output of inspect do not count. If a version does not read a file of an
earlier one, it must say so in one line, and REFUSED lists the file. The work files that 0.1.0 and 0.2.0 wrote in stages are
refused.
"""
import base64
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

BIN = os.environ.get("BIN", "build/bin")
# File or job of 0.1.0: the words of the line that refuses it.
REFUSED = {"pack from phase %d on" % k: "by another stage, program or version of sluice; remove it" for k in (1, 2, 3)}
REFUSED.update({"dedup-substring from phase %d on" % k: "by another stage, program or version of sluice; remove it" for k in (1, 3, 4)})
REFUSED["dedup-substring from phase 2 on"] = "no group files; run stage group first"
REFUSED["dedup-exact from phase 1 on"] = "by another stage, program or version of sluice; remove it"
REFUSED.update({"%s from phase %d on" % job: "by another stage, program or version of sluice; remove it"
                for job in (("shuffle", 1), ("shuffle-mix", 1), ("shuffle-mix", 3), ("shuffle-wds", 1), ("shuffle-wds", 2))})
REFUSED["shuffle-mix from phase 2 on"] = "w/mix is missing; run stage mix"  # it was called blend
REFUSED["dedup-near from phase 1 on"] = "by another stage, program or version of sluice; remove it"
REFUSED.update({"dedup-near from phase %d on" % k: "no group files; run stage group first" for k in (2, 3)})
REFUSED["dedup-near from phase 4 on"] = "w/cluster is missing; run stage cluster"
REFUSED["dedup-exact from phase 2 on"] = "no group files; run stage group first"
REFUSED.update({f: "was made with unit=word, which this version of sluice does not read; make the index again" for f in ("near.idx", "ngrams.idx")})
REFUSED["manifest.tks.manifest.json"] = "was made by version 0.1.0"  # an output is skipped for the same bytes alone
# Of 0.2.0, whose work files have no record.
REFUSED_2 = "was made by (version 0.2.0, which writes other bytes|an earlier version of sluice; remove it and run stage [a-z]+ again)"
GONE = {"dedup-exact from phase 3 on"}  # of versions that had one phase more

# ---- what is made -------------------------------------------------------------------------------

STREAMS = r"""
tokenize -t bytes --id-field id --domain-field domain --score-field score -o u16-ids-domains-scores.tks c.jsonl
tokenize -t bytes --no-vocab --no-provenance -o no-vocab-no-provenance.tks c.jsonl
tokenize -t bytes -z -o zstd.tks c.jsonl
tokenize -t llama3.tiktoken --bos -o bos.tks few.jsonl
decompose --token-bytes 4 --vocab-size 200000 --eos-id 0 --buckets 8,64 -o u32-buckets.tks raw.u32
decompose --min 16 --max 64 --label-token -o buckets-labels.tks u16-ids-domains-scores.tks
decompose --buckets 24,100 --no-provenance zstd.tks | pack --length 300 -o packed-padding.tks
pack --length 64 --method concat -o concat-cut.tks u16-ids-domains-scores.tks
pack -o packed-labels.tks buckets-labels.tks
shuffle --seed 7 -o shuffled.tks packed-labels.tks
printf '{"text": ""}' | tokenize -t bytes -o empty.tks
cat few.tks empty.tks zstd.tks >three-members.tks
tokenize -t bytes --no-vocab -z19 -o frames.tks long.txt
pack --length 256 --save-plan plan.pack -o /dev/null u16-ids-domains-scores.tks
dedup --exact --save-index exact.idx -o /dev/null few.tks
dedup --near --save-index near.idx -o /dev/null few.tks
dedup --ngrams --ngram 5 --min-words 5 --save-index ngrams.idx few.tks
tokenize -t bytes --manifest --id-field id -o manifest.tks c.jsonl
tokenize -t bytes --id-field id --metadata lang,url=text,a.b=u8,u32=u32,u64=u64,f32=f32,i64=i64,f64=f64 -o metadata.tks metadata.jsonl
decompose --min 8 --max 64 metadata.tks | pack -o metadata-packed.tks
shuffle --mix-by lang --mix en=1,=1 -o metadata-mixed.tks metadata-packed.tks
""".strip().splitlines()
SETS = {
    "wds": "packed-labels.tks", "wds --member json.gz": "shuffled.tks", "olmo": "plain.tks",
    "ds": "packed-labels.tks", "megatron": "plain.tks", "mds": "plain.tks", "litdata": "plain.tks", "parquet": "plain.tks",
}
SCHEDULES = ["generic --batch-tokens 256 --world 2", "generic --batch-tokens 256 --curriculum shrink-p100 --epochs 2",
             "olmo --batch-tokens 256 --cycles 1"]


def dedup(*mode, steps):
    return ["dedup %s --work w --phase %s" % (" ".join(mode), s) for s in steps]


PART = "--part {i}/2 "
JOBS = {  # the lines of each, in order; those with a part stand for both; what comes out at the end
    "dedup-exact": (dedup("--exact", steps=["sign --ranges 2 " + PART + "t{i}.tks", "group " + PART,
                                            "filter " + PART + "-f -o o.{i}.tks t{i}.tks"]), "o.*.tks"),
    "dedup-near": (dedup("--near --unit token --ngram 8 --bands 8 --rows 4", steps=[
        "sign --ranges 2 " + PART + "t{i}.tks", "group " + PART, "verify " + PART, "cluster",
        "filter " + PART + "-f -o o.{i}.tks t{i}.tks"]), "o.*.tks"),
    "dedup-substring": (dedup("--substring 20", steps=[
        "sign --ranges 2 " + PART + "t{i}.tks", "group " + PART, "ask " + PART + "t{i}.tks", "match " + PART,
        "filter " + PART + "-f -o o.{i}.tks t{i}.tks"]), "o.*.tks"),
    "pack": (["pack --work w --phase count " + PART + "d{i}.tks", "pack --work w --phase plan",
              "pack --work w --phase scatter --ranges 2 -f -o o.passed{i}.tks " + PART + "d{i}.tks",
              "pack --work w --phase gather -f -o o.bins{i}.tks " + PART], "o.*.tks"),
    "shuffle": (["shuffle --seed 4 --work w --phase scatter --ranges 2 " + PART + "p{i}.tks",
                 "shuffle --seed 4 --work w --phase gather -f -o o.{i}.tks " + PART], "o.*.tks"),
    "shuffle-mix": (["shuffle --mix web=0.5,books=0.5 --work w --phase count " + PART + "p{i}.tks",
                     "shuffle --mix web=0.5,books=0.5 --work w --phase mix",
                     "shuffle --mix web=0.5,books=0.5 --work w --phase scatter --ranges 2 " + PART + "p{i}.tks",
                     "shuffle --mix web=0.5,books=0.5 --work w --phase gather -f -o o.{i}.tks " + PART], "o.*.tks"),
    "shuffle-wds": (["shuffle --seed 4 --format wds --work w --phase scatter --ranges 2 " + PART + "p{i}.tks",
                     "shuffle --seed 4 --format wds --shard-sequences 4 --work w --phase gather -o o.set " + PART,
                     "shuffle --seed 4 --format wds --shard-sequences 4 --work w --phase finish -o o.set"], "o.set"),
}


def sh(line, folder=".", must=True):
    """A line of programs, in bash; all of a pipe must succeed."""
    path = os.path.abspath(BIN) + ":" + os.environ["PATH"]
    p = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", line], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL,
                       env=dict(os.environ, PATH=path, SLUICE_CACHE_DIR="", LC_ALL="C", TZ="UTC"))
    if must and p.returncode != 0:
        raise RuntimeError("%s: exit status %d: %s" % (line, p.returncode, p.stderr.decode(errors="replace")[-600:]))
    return p


def texts(path, n, seed):
    draw, seen = random.Random(seed), []
    with open(path, "w") as f:
        for i in range(n):
            words = [draw.choice(["one", "two", "three", "four", "five", "ünf", "six", "seven"]) for _ in range(draw.randrange(1, 24))]
            if seen and draw.random() < 0.4:
                words = list(draw.choice(seen))
                if draw.random() < 0.7:
                    words[draw.randrange(len(words))] = "w%d" % i
            seen.append(words)
            record = {"text": " ".join(words), "id": "id-%d" % i, "domain": draw.choice(["web", "books"])}
            if i % 3:
                record["score"] = i / 8
            f.write(json.dumps(record, ensure_ascii=False) + "\n")


def values(path, n):
    """Records with fields of all types, each of which is missing or null in some."""
    with open(path, "w") as f:
        for i in range(n):
            record = {"text": "the words of record %d" % i, "id": "m%d" % i, "lang": ["en", "größe", "", None][i % 4],
                      "url": "http://host/" + "x" * (i * i), "a": {"b": [254, True, None][i % 3]}, "u32": i * 2**26, "u64": 2**53 - i,
                      "f32": i / 8, "i64": -i, "f64": i / 10}
            record.pop(list(record)[2 + i % 8]) if i % 5 else None
            f.write(json.dumps(record, ensure_ascii=i % 2 > 0) + "\n")


def make_files(folder):
    texts(folder + "/c.jsonl", 40, 1)
    values(folder + "/metadata.jsonl", 50)
    texts(folder + "/few.jsonl", 8, 2)
    with open(folder + "/llama3.tiktoken", "w") as f:
        for i in range(256):
            f.write("%s %d\n" % (base64.b64encode(bytes([i])).decode(), i))
    with open(folder + "/raw.u32", "wb") as f:
        f.write(struct.pack("<300I", *(i * 661 % 200000 if i % 37 else 0 for i in range(300))))
    with open(folder + "/long.txt", "w") as f:  # more than a frame holds
        f.write("ab" * 600000)
    for line in ["tokenize -t bytes --id-field id --domain-field domain -o few.tks few.jsonl"] + STREAMS + [
            "decompose --min 16 --max 64 --tail drop -o plain.tks few.tks"]:
        sh(line, folder)
    for format, stream in SETS.items():
        name = "set-" + format.split(" ")[0] + ("-" + format.split(" ")[-1].replace(".", "") if " " in format else "")
        p = sh("shuffle --format %s --shard-sequences 24 -o %s %s" % (format, name, stream), folder, must=False)
        if p.returncode:
            if b"not built in" not in p.stderr:
                raise RuntimeError(p.stderr.decode())
            print("left out: %s: %s" % (name, p.stderr.decode().strip()))
    for k, options in enumerate(SCHEDULES):
        sh("schedule --trainer %s -o schedule-%d.sched set-wds" % (options, k), folder)
    for i in range(2):
        sh("tokenize -t bytes --no-vocab --id-field id --domain-field domain --part %d/2 -o t%d.tks c.jsonl" % (i, i), folder)
        sh("decompose --min 16 --max 64 --label-token -o d%d.tks t%d.tks" % (i, i), folder)
        sh("decompose --min 4 --max 64 --label-token --tail drop -o p%d.tks t%d.tks" % (i, i), folder)
    for name, (lines, _) in JOBS.items():
        os.mkdir("%s/work-%s" % (folder, name))
        with tempfile.TemporaryDirectory() as d:
            inputs(folder, d)
            for k in range(len(lines)):
                run_phase(lines[k], d)
                # What the phase left; the last one's is the output.
                for f in sorted(os.listdir(d + "/w")) if k + 1 < len(lines) else []:
                    to = "%s/work-%s/%s" % (folder, name, f)
                    if not os.path.exists(to):
                        shutil.copy("%s/w/%s" % (d, f), to)
                        with open("%s/work-%s/order" % (folder, name), "a") as o:
                            o.write("%d %s\n" % (k, f))
                if k + 2 == len(lines) and os.path.isdir(d + "/o.set"):  # shards without what ends a set
                    shutil.copytree(d + "/o.set", "%s/work-%s/o.set" % (folder, name))
    for f in "long.txt", "raw.u32", "llama3.tiktoken":
        os.remove(folder + "/" + f)
    for f in os.listdir(folder):
        if f.endswith(".manifest.json") and not f.startswith("manifest."):
            os.remove(folder + "/" + f)


def make(folder):
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(d + "/g")
        make_files(d + "/g")
        os.makedirs(folder)
        names = sorted(os.listdir(d + "/g"))
        sh("tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cJf %s -C %s/g ." % (
            os.path.abspath(folder + "/files.tar.xz"), d))
        answers = dict(ask(d + "/g"))
    bad = [k for k, a in answers.items() if isinstance(a, dict) and "failed" in a]
    if bad:
        raise SystemExit("no answer: %s" % [answers[k] for k in bad])
    with open(folder + "/answers.json", "w") as f:
        f.write(json.dumps(answers, ensure_ascii=False, sort_keys=True).replace('}, "', '},\n"') + "\n")
    print("%d files, %d questions" % (len(names), len(answers)))


# ---- what is asked ------------------------------------------------------------------------------

FIGURES = ("kind token_bytes documents sequences segments tokens padding vocab_size eos_id bos_id pad_id fingerprint checksum "
           "trace_checksum provenance lengths label_tokens bucket_lengths").split()


def digest(rows):
    h = hashlib.sha256()
    for r in rows:
        h.update(json.dumps(r, sort_keys=True).encode() + b"\n")
    return h.hexdigest()


def records(path, folder, text=False):
    rows = []
    for line in sh("inspect --records %s %s" % ("--text" if text else "", path), folder).stdout.splitlines():
        r = json.loads(line)
        segments = [{k: s[k] for k in ("source", "source_number", "document", "offset", "length", "id", "domain", "score", "metadata",
                                                "padding") if k in s} for s in r["segments"]]
        rows.append([segments, r["tokens"]] + ([r["text"]] if text else []))
    return {"n": len(rows), "sha256": digest(rows), "first": json.dumps(rows[:1])[:300]}


def figures(path, folder):
    d = json.loads(sh("inspect --json " + path, folder).stdout)
    return {k: d[k] for k in FIGURES if k in d}


def inputs(golden, folder):
    for f in ("t0.tks", "t1.tks", "d0.tks", "d1.tks", "p0.tks", "p1.tks"):
        shutil.copy("%s/%s" % (golden, f), folder)
    os.mkdir(folder + "/w")


def run_phase(line, folder):
    for i in range(2 if "{i}" in line else 1):
        sh(line.replace("{i}", str(i)), folder)


def job(name, from_phase, golden):
    """The records at the end, where the phases before from_phase were run by the version that left the golden files."""
    lines, out = JOBS[name]
    with tempfile.TemporaryDirectory() as d:
        inputs(golden, d)
        with open("%s/work-%s/order" % (golden, name)) as f:
            for row in f:
                k, file = row.split()
                if int(k) < from_phase:
                    shutil.copy("%s/work-%s/%s" % (golden, name, file), d + "/w")
        unfinished = "%s/work-%s/o.set" % (golden, name)
        if from_phase + 1 == len(lines) and os.path.isdir(unfinished):
            shutil.copytree(unfinished, d + "/o.set")
        for line in lines[from_phase:]:
            run_phase(line, d)
        return records("$(ls -d %s)" % out, d)


def questions(golden):
    """(name, function without arguments)"""
    names = sorted(os.listdir(golden))
    for f in names:
        path = f if f.endswith(".tks") or f.startswith("set-") else None
        if path:
            def stream(path=path):
                sh("inspect --verify " + path, golden)
                has_text = path in ("u16-ids-domains-scores.tks", "zstd.tks", "packed-padding.tks", "bos.tks")
                return {"figures": figures(path, golden), "records": records(path, golden, has_text)}
            yield f, stream
        if f.endswith(".sched"):
            yield f, lambda f=f: {"records": digest(map(json.loads, sh("inspect --records " + f, golden).stdout.splitlines()))}
    yield "frames.tks, packed", lambda: (sh("pack --length 1000 -o x.tks frames.tks", golden), figures("x.tks", golden))[1]["checksum"]
    for mode in "exact", "near":
        yield mode + ".idx", lambda mode=mode: (
            sh("dedup --%s --against %s.idx -o x.tks few.tks zstd.tks" % (mode, mode), golden), records("x.tks", golden))[1]
    yield "ngrams.idx", lambda: (sh("dedup --against ngrams.idx -o x.tks u16-ids-domains-scores.tks", golden), records("x.tks", golden))[1]
    yield "plan.pack", lambda: (
        sh("pack --length 256 --apply-plan plan.pack -o x.tks u16-ids-domains-scores.tks", golden), records("x.tks", golden))[1]
    yield "manifest.tks.manifest.json", lambda: (
        sh("tokenize -t bytes --manifest --id-field id --stats x.json -o manifest.tks c.jsonl; cat x.json", golden),
        json.load(open(golden + "/x.json")).get("skipped"))[1]
    yield "set-wds, scheduled", lambda: digest(
        map(json.loads, sh("schedule --trainer generic --batch-tokens 256 -o x.sched set-wds; inspect --records x.sched", golden).stdout.splitlines()))
    for name, (lines, _) in JOBS.items():
        for k in range(1, len(lines)):
            yield "%s from phase %d on" % (name, k), lambda name=name, k=k: job(name, k, golden)


def ask(golden):
    for name, question in questions(golden):
        try:
            yield name, question()
        except (RuntimeError, OSError, ValueError, KeyError) as e:
            yield name, {"failed": "%s: %s" % (type(e).__name__, e)}


def check(golden):
    version = os.path.basename(golden)
    with open(golden + "/answers.json") as f:
        want = json.load(f)
    with tempfile.TemporaryDirectory() as d:
        os.mkdir(d + "/g")
        sh("tar -xJf %s -C %s/g" % (os.path.abspath(golden + "/files.tar.xz"), d))
        got = dict(ask(d + "/g"))
    for name in sorted((want.keys() | got.keys()) - GONE):
        good = name in want and got.get(name) == want[name]
        if not good and version == "0.1.0" and name in REFUSED:
            good = REFUSED[name] in json.dumps(got.get(name))
        if not good and version == "0.2.0" and (name.startswith("manifest") or " from phase " in name):
            good = re.search(REFUSED_2, json.dumps(got.get(name)))
        if not good:
            print("  was: %s\n  is:  %s" % (json.dumps(want.get(name))[:600], json.dumps(got.get(name))[:600]))
        print("%s golden: %s of %s" % ("ok" if good else "not ok", name, version))


# ---- the bytes of now ---------------------------------------------------------------------------

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Made by compressors and by Arrow, whose versions differ; with times, paths or processes in them.
FOREIGN = re.compile(r"zstd\.tks|frames\.tks|three-members|json\.?gz|parquet|manifest\.json$|/order$|olmo-cache/|\.lock$")


def bytes_now():
    with open(TOP + "/lib/flow/made.h") as f:
        number = int(re.search(r"#define SLU_BYTES (\d+)", f.read())[1])
    now = {"number": number, "version": sh("tokenize --version").stdout.decode().split()[-1], "files": {}}
    with tempfile.TemporaryDirectory() as d:
        make_files(d)
        for path in sorted(os.path.join(at, f) for at, _, names in os.walk(d) for f in names):
            name = os.path.relpath(path, d)
            if not FOREIGN.search("/" + name):
                with open(path, "rb") as f:
                    now["files"][name] = hashlib.sha256(f.read()).hexdigest()[:32]
    return now


def bytes_check(new):
    path, now = TOP + "/tests/golden/bytes.json", bytes_now()
    if new:
        with open(path, "w") as f:
            f.write(json.dumps(now, indent=0) + "\n")
        return
    with open(path) as f:
        was = json.load(f)
    others = sorted(n for n in was["files"].keys() | now["files"].keys() if was["files"].get(n) != now["files"].get(n))
    numbered = (was["number"], was["version"]) == (now["number"], now["version"])
    for name in others:
        print("  other bytes: " + name)
    if others and numbered:
        print("  raise SLU_BYTES in lib/flow/made.h, then: tests/golden/golden.py bytes new")
    if not numbered:
        print("  SLU_BYTES or the version is another than in bytes.json: tests/golden/golden.py bytes new")
    print("%s golden: the bytes of %d files are those of SLU_BYTES %d" % ("not ok" if others or not numbered else "ok", len(now["files"]), now["number"]))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    elif sys.argv[1] == "bytes":
        bytes_check(sys.argv[2:] == ["new"])
    else:
        for folder in sys.argv[2:]:
            check(folder)
