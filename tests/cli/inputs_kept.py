#!/usr/bin/env python3
"""inputs_kept.py - every output option with every kind of input: refused in one line, or no byte of an input changes.

The options come from --help. Every option with a value must be in one of the lists below, so that a new output option
cannot be forgotten: the test fails until the option is in OUTPUTS, and then tries it with all inputs. Each pair is
first tried with a file that is not an input, which must be replaced: if this is refused, the refusal has nothing to
do with inputs, and the pair is left out.
"""
import base64
import itertools
import os
import re
import shutil
import sys

from stages import must, result, sha, Run

# Of each program, what goes with an output option that does not go alone.
OUTPUTS = {
    "tokenize": {"--output": [], "--stats": [], "--rejects": [], "--holdout-output": ["--holdout", "0.5"]},
    "dedup": {"--output": [], "--stats": [], "--report": [], "--save-index": [], "--pairs": []},
    "choose": {"--output": [], "--stats": []},
    "decompose": {"--output": [], "--stats": [], "--histogram": []},
    "pack": {"--output": [], "--stats": [], "--save-plan": []},
    "shuffle": {"--output": [], "--stats": []},
    "schedule": {"--output": [], "--stats": [], "--json": []},
    "inspect": {"--output": [], "--stats": [], "--svg": []},
}
# Files and folders that are read, or made in ways of their own.
INPUTS = {
    "tokenize": ["--tokenizer", "--files-from", "--fasttext", "--ids-keep", "--ids-drop", "--urls-drop", "--rules"],
    "dedup": ["--against", "--work"],
    "choose": ["--ids-keep", "--ids-drop", "--partition", "--work"],
    "pack": ["--apply-plan", "--work"],
    "shuffle": ["--work"],
    "schedule": ["--olmo-cache"],
}
# Values that are no file's name, or that of a run which writes none.
VALUES = set("""--annotate --audit --balance --balance-cost --balance-sequences --balance-tokens --balance-window --band-cap --bands
--batch-tokens --buckets --by --column --compare --compress --curriculum --cycles --device --domain --domain-default --drop-metadata --domain-field
--domain-from --domains --eos --eos-id --epochs --exclude --field --fill --format --fp-rate --from-step --groups --holdout
--id-field --include --input-format --keep --last --length --license --long --max --max-epochs --max-length
--max-segments --max-tokens --member --memory --metadata --method --min --min-keep --min-length --min-words --mix --mix-by
--mix-schedule --mixture --mixture-tokens --ngram --ngrams --olmo-path --olmo-tokenizer --on --on-error --on-missing
--order --overlap --padding-threshold --part --part-base --pattern --per --progress --ranges --records --rows --sample
--score --score-field --seed --shard-sequences --shard-size --source --source-base --source-prefix --spans-field --special --split --stage --substring --tail --tails
--threads --threshold --title --tmpdir --token-bytes --tokens --top --trainer --unit --url-field --vocab-size --where --window --workers --world
--zstd""".split())
IDS = ["--eos-id", "256", "--vocab-size", "257"]


def check_options():
    for program, known in OUTPUTS.items():
        text = must([program, "--help"]).out.decode()
        with_value = set(re.findall(r"^  (?:-\w, |    )(--[a-z-]+)(?:\[?=)", text, re.M))
        strange = with_value - set(known) - set(INPUTS.get(program, [])) - VALUES
        gone = (set(known) | set(INPUTS.get(program, []))) - with_value
        result(not strange and not gone and len(with_value) > 8, program + ": every option with a value is known here",
               "not known: %s; not there: %s" % (sorted(strange), sorted(gone)))


def text(path, n, word="w"):
    with open(path, "w") as f:
        for i in range(n):
            f.write('{"text": "%s"}\n' % " ".join("%s%d" % (word, (i * 7 + k) % 97) for k in range(10 + i % 30)))


def prepare():
    """The inputs: one of each kind."""
    os.makedirs("in/sub")
    for path in "a.jsonl", "in/a.jsonl", "in/sub/b.jsonl", "listed.jsonl":
        text(path, 30)
    with open("list", "w") as f:
        f.write("listed.jsonl\n")
    with open("gpt2.tiktoken", "wb") as f:
        for i in range(256):
            f.write(base64.b64encode(bytes([i])) + b" %d\n" % i)
    must(["tokenize", "-q", "-t", "bytes", "-o", "t.tks", "a.jsonl"])
    for i in range(2):
        must(["tokenize", "-q", "-t", "bytes", "--part", "%d/2" % i, "-o", "t{part}.tks", "a.jsonl"])
    must(["decompose", "-q", "--min", "16", "--max", "64", "-o", "d.tks", "t.tks"])
    must(["pack", "-q", "--save-plan", "plan", "-o", "p.tks", "d.tks"])
    must(["dedup", "-q", "--save-index", "exact.idx", "-o", "/dev/null", "t.tks"])
    must(["dedup", "-q", "--near", "--save-index", "near.idx", "-o", "/dev/null", "t.tks"])
    must(["dedup", "-q", "--ngrams", "--ngram", "5", "--save-index", "ngrams.idx", "-o", "/dev/null", "t.tks"])
    must(["decompose", "-q", "--min", "16", "--max", "64", "--label-token", "--tail", "drop", "-o", "l.tks", "t.tks"])
    for form, stream in ("olmo", "p.tks"), ("megatron", "l.tks"), ("ds", "l.tks"), ("mds", "p.tks"), ("wds", "l.tks"):
        must(["shuffle", "-q", "--format", form, "--shard-sequences", "40", "-o", form + ".set", stream])
    for form, name, ends in (("olmo", "n", (".npy", ".csv.gz")), ("megatron", "megatron", (".bin", ".idx")),
                             ("ds", "ds", (".ds", ".ds.index", ".ds.metadata"))):
        for end in ends:
            found = sorted(f for f in os.listdir(form + ".set/D_6") if f.endswith(end))
            if found:
                shutil.copy("%s.set/D_6/%s" % (form, found[0]), name + end)
    # An index of several folders, which is no set of ours any more.
    shutil.copytree("mds.set", "mds")
    for name in "report.json", "manifest.jsonl", "README.md", "lengths.svg", "segments":
        (shutil.rmtree if os.path.isdir("mds/" + name) else os.unlink)("mds/" + name)
    must(["schedule", "--trainer", "generic", "--batch-tokens", "128", "-o", "steps", "olmo.set"])
    for i in range(2):
        must(["inspect", "-q", "--json", "--stats", "r%d.json" % i, "-o", "/dev/null", "t%d.tks" % i])
        must(["decompose", "-q", "--part", "%d/2" % i, "--stats", "r{part}.json", "-o", "/dev/null", "t{part}.tks"])
    with open("reports", "w") as f:
        f.write("r0.json\nr1.json\n")
    with open("rules", "w") as f:
        f.write("c4\n")
    with open("ids", "w") as f:
        f.write("1\n2\n")
    jobs = {"dw": [["dedup", "--stage", "sign", "--part", "%d/2" % i, "t%d.tks" % i] for i in range(2)]
            + [["dedup", "--stage", "group", "--part", "%d/2" % i] for i in range(2)],
            "pw": [["pack", "--stage", "count", "--part", "%d/2" % i, "d%d.tks" % i] for i in range(2)]
            + [["pack", "--stage", "plan"]]
            + [["pack", "--stage", "scatter", "--part", "%d/2" % i, "-o", "/dev/null", "d%d.tks" % i] for i in range(2)],
            "sw": [["shuffle", "--stage", "scatter", "--part", "%d/2" % i, "p%d.tks" % i] for i in range(2)]}
    for i in range(2):
        must(["decompose", "-q", "--min", "16", "--max", "64", "-o", "d%d.tks" % i, "t%d.tks" % i])
        must(["pack", "-q", "-o", "p%d.tks" % i, "d%d.tks" % i])
    for work, runs in jobs.items():
        for argv in runs:
            must(argv[:1] + ["-q", "--work", work] + argv[1:])


def files(*tops):
    """All files at and below these."""
    for top in tops:
        if os.path.isdir(top):
            for folder, _, names in os.walk(top):
                yield from (os.path.join(folder, n) for n in names)
        else:
            yield top


# (what, arguments, standard input, what is read of it)
def kinds():
    tok = ["tokenize", "-q", "--no-cache"]
    raw = tok + ["-t", "bytes"]
    yield "a file of text", raw + ["a.jsonl"], None, ["a.jsonl"]
    yield "text from standard input", raw, "a.jsonl", ["a.jsonl"]
    yield "a folder of text", raw + ["in"], None, ["in/a.jsonl", "in/sub/b.jsonl"]
    yield "a part of a folder of text", raw + ["--part", "0/2", "in"], None, ["in/a.jsonl", "in/sub/b.jsonl"]
    yield "a list", raw + ["--files-from", "list"], None, ["list", "listed.jsonl"]
    yield "a list from standard input", raw + ["--files-from", "-"], "list", ["list", "listed.jsonl"]
    yield "a tokenizer", tok + ["-t", "gpt2.tiktoken", "--pattern", "gpt2", "--no-eos", "a.jsonl"], None, ["gpt2.tiktoken"]
    yield "a stream", ["dedup", "-q", "t.tks"], None, ["t.tks"]
    yield "a stream, near", ["dedup", "-q", "--near", "t.tks"], None, ["t.tks"]
    yield "a stream, substring", ["dedup", "-q", "--substring", "50", "t.tks"], None, ["t.tks"]
    yield "a stream from standard input", ["dedup", "-q"], "t.tks", ["t.tks"]
    yield "one of several streams", ["dedup", "-q", "t0.tks", "t1.tks"], None, ["t1.tks"]
    yield "an index", ["dedup", "-q", "--exact", "--against", "exact.idx", "t.tks"], None, ["exact.idx"]
    yield "an index, near", ["dedup", "-q", "--near", "--against", "near.idx", "t.tks"], None, ["near.idx"]
    yield "an index of n-grams", ["dedup", "-q", "--against", "ngrams.idx", "t.tks"], None, ["ngrams.idx"]
    yield ("work files of dedup", ["dedup", "-q", "-f", "--work", "dw", "--stage", "filter", "--part", "0/2", "t0.tks"],
           None, ["dw/group.0-of-2", "dw/group.1-of-2", "dw/sign.1-of-2", "t0.tks"])
    yield ("another part's stream", ["dedup", "-q", "-f", "--work", "dw", "--stage", "filter", "--part", "0/2", "t{part}.tks"],
           None, ["t0.tks", "t1.tks"])
    yield "a list of hosts", ["tokenize", "-q", "-t", "bytes", "--urls-drop", "ids", "--url-field", "text", "a.jsonl"], None, ["ids", "a.jsonl"]
    yield "a list of ids", ["choose", "-q", "--ids-keep", "ids", "t.tks"], None, ["ids", "t.tks"]
    yield "a file of thresholds", ["tokenize", "-q", "-t", "bytes", "--rules", "c4,rules", "a.jsonl"], None, ["rules", "a.jsonl"]
    for program, extra in ("decompose", []), ("choose", ["--length", "1.."]), ("pack", ["--length", "64", "--fill", "drop"]), ("shuffle", []):
        base = [program, "-q"] + extra
        stream = "t.tks" if program in ("choose", "decompose") else "d.tks"
        yield "a stream, " + program, base + [stream], None, [stream]
        yield "npy, " + program, base + IDS + ["--token-bytes", "2", "n.npy"], None, ["n.npy", "n.csv.gz"]
        yield "megatron, " + program, base + IDS + ["megatron.bin"], None, ["megatron.bin", "megatron.idx"]
        yield "megatron by what both begin with, " + program, base + IDS + ["megatron"], None, ["megatron.bin", "megatron.idx"]
        ds = [f for f in ("ds.ds", "ds.ds.index", "ds.ds.metadata") if os.path.exists(f)]
        yield "ds, " + program, base + IDS + ["--token-bytes", "2", "ds.ds"], None, ds
        yield "mds, " + program, base + ["--vocab-size", "257", "mds"], None, list(files("mds"))
    yield "a plan", ["pack", "-q", "--apply-plan", "plan", "d.tks"], None, ["plan"]
    yield ("work files of pack", ["pack", "-q", "-f", "--work", "pw", "--stage", "gather", "--part", "0/2"], None,
           list(files("pw")))
    yield ("work files of shuffle", ["shuffle", "-q", "-f", "--work", "sw", "--stage", "gather", "--part", "0/2"], None,
           list(files("sw")))
    yield "a set, schedule", ["schedule", "-q", "wds.set"], None, ["wds.set/report.json", "wds.set/D_6/manifest.jsonl"]
    yield "a manifest, schedule", ["schedule", "-q", "wds.set/D_6/manifest.jsonl"], None, ["wds.set/D_6/manifest.jsonl"]
    yield ("a set, steps", ["schedule", "-q", "--trainer", "generic", "--batch-tokens", "128", "olmo.set"], None,
           ["olmo.set/report.json", "olmo.set/segments/D_6.tks"])
    yield "a set, inspect", ["inspect", "-q", "--histogram", "olmo.set"], None, list(files("olmo.set"))
    yield "a schedule", ["inspect", "-q", "steps"], None, ["steps"]
    yield "a stream, inspect", ["inspect", "-q", "--json", "t.tks"], None, ["t.tks"]
    yield "reports", ["inspect", "-q", "--merge-stats", "r0.json", "r1.json"], None, ["r0.json", "r1.json"]
    yield "a list of reports", ["inspect", "-q", "--merge-stats", "-"], "reports", ["reports", "r0.json", "r1.json"]


def folders():
    """A set in the place of what is read, and a manifest."""
    yield ["shuffle", "--replace-set", "--format", "mds", "--vocab-size", "257", "-o", "mds.set", "mds.set"], "mds.set"
    yield ["shuffle", "--replace-set", "--format", "olmo", "-o", "olmo.set"] + IDS + ["olmo.set/D_6/shard-0000000.npy"], "olmo.set/D_6"
    yield ["shuffle", "--replace-set", "--format", "olmo", "-o", "olmo.set/.", "../kept/link.npy"], "olmo.set/D_6"
    yield ["tokenize", "--manifest", "-o", "m", "m.manifest.json"], "m.manifest.json"
    yield ["shuffle", "--replace-set", "--format", "olmo", "-o", "olmo.set", "--stats", "olmo.set/report.json", "p.tks"], "olmo.set"
    os.mkdir("empty")
    yield ["shuffle", "--format", "olmo", "-o", "empty", "--stats", "empty/report.json", "p.tks"], "empty"
    yield ["tokenize", "-t", "bytes", "--manifest", "-o", "m", "--stats", "m.manifest.json", "a.jsonl"], "m.manifest.json"


def run(argv, stdin):
    with open(stdin, "rb") as f:
        return Run(argv, file=f)


# Ways to say the same file, each of which a run would replace: by its own name, another path, a link to it.
def ways(path):
    yield "itself", path
    yield "another path", os.path.join("in", "..", path)
    yield "a link", "link"
    yield "a hard link", "link"


def try_one(what, argv, stdin, option, path, way, name):
    """False where an input is another than before."""
    if name == "link":
        if os.path.lexists("link"):
            os.unlink("link")
        (os.symlink if way == "a link" else os.link)(path, "link")
    before = sha(path)
    r = run(argv + [option, name], stdin)
    kept = os.path.exists(path) and sha(path) == before
    refused = r.line(2) and "would replace the input" in r.err and option in r.err and name in r.err
    result(kept and refused, "%s: %s %s onto %s (%s)" % (what, argv[0], option, path, way),
           "%s%s" % ("" if kept else "the input is gone or another; ", r))
    if not kept:
        shutil.copy("../kept/" + path, path)
    return kept


def main():
    os.makedirs("here")
    os.chdir("here")
    check_options()
    prepare()
    shutil.copytree(".", "../kept")
    tried = set()
    turn = itertools.count()
    for what, argv, stdin, inputs in kinds():
        for option, extra in OUTPUTS[argv[0]].items():
            full = argv + extra
            with open("../out", "w") as f:
                f.write("another file")
            if run(full + [option, "../out"], stdin or "/dev/null").status != 0:
                continue
            if option == "--output":
                with open("../out", "rb") as f:
                    result(f.read() != b"another file", "%s: %s -o replaces a file that is no input" % (what, argv[0]))
            tried.add((argv[0], option))
            tried.add(what)
            for path in inputs:
                # Each pair one way, in turn; the first file of each kind all ways.
                one = next(turn) % 4
                for i, (way, name) in enumerate(ways(path)):
                    if path == inputs[0] and option == "--output" or i == one:
                        try_one(what, full, stdin or "/dev/null", option, path, way, name)
    text("m.manifest.json", 5)
    os.symlink(os.path.abspath("olmo.set/D_6/shard-0000000.npy"), "../kept/link.npy")
    for argv, path in folders():
        before = [sha(f) for f in sorted(files(path))]
        r = run(argv, "/dev/null")
        result(r.line(2) and before == [sha(f) for f in sorted(files(path))], " ".join(argv), r)
    for program, options in OUTPUTS.items():
        for option in options:
            result((program, option) in tried, "%s %s was tried" % (program, option), "it goes with no input here")
    for what, *_ in kinds():
        result(what in tried, what + " was tried", "no output goes with it")


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main()
