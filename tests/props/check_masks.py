#!/usr/bin/env python3
"""Masks through the programs: each token is trained on as its text says, wherever it goes.

What it proves: dialogues with spans are tokenized, and a token of (document, offset) is trained on if
and only if a rule of ten lines, by the text alone, says so. Then decompose, dedup, pack with every
method, with balance, past memory and in stages, and shuffle, mixed and in stages, hand on each token
that is trained on exactly once, and no other with its bit; what they drop is in their books. All
streams are read by tokstream.py.

    check_masks.py [SEED]     BIN names the folder of the programs

Tokens are bytes (`-t bytes`), or those of the built-in vocabulary.
"""
import glob
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tokstream  # noqa: E402

BIN = os.environ.get("BIN", "build/bin")
MORE = os.environ.get("CHECK_MORE")
N = 200 if os.environ.get("CHECK_FULL") else 40  # dialogues
bad = 0


def say(good, what):
    global bad
    bad += not good
    print("%s masks: %s" % ("ok" if good else "not ok", what))


def run(*argv, fails=False):
    p = subprocess.run([os.path.join(BIN, argv[0]), "-q"] + [str(a) for a in argv[1:]],
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if fails != (p.returncode != 0):
        raise SystemExit("not ok masks: %s: exit status %d: %s"
                         % (" ".join(map(str, argv)), p.returncode, p.stderr.decode()))
    return p.stderr.decode()


def dialogue(rng, lengths):
    """A text, and the spans of its answers; most end within a line, some are empty, or overlap."""
    text, spans = "", []
    for _ in range(rng.randrange(1, 6)):
        text += "<user>" + word(rng, lengths) + "\n<assistant>"
        answer = word(rng, lengths) if rng.random() < 0.9 else ""
        spans.append([len(text), len(text) + len(answer)])
        text += answer + "\n"
    if rng.random() < 0.1:
        spans = []
    if rng.random() < 0.1:
        rng.shuffle(spans)
        spans.append([0, min(3, len(text))])
    return text, spans


def word(rng, lengths):
    alphabet = rng.choice(["abc def ", "h\u00e9\u00e0 \u00fc", "\u65e5\u672c\u8a9e", "\U0001f600x \U0001f468\u200d"])
    return "".join(rng.choice(alphabet) for _ in range(rng.choice(lengths)))


def by_bytes(text, spans):
    """Of a text whose tokens are its bytes, those that transformers trains on."""
    first, at = [], 0
    for c in text:
        first.append(at)
        at += len(c.encode())
    trained = set()
    for begin, end in spans:
        if 0 < end and begin < len(text):
            trained.update(range(first[begin], first[end - 1] + 1))
    return trained


class Book:
    """What a stream says of its tokens: the trained ones by (document, offset)."""

    def __init__(self, *paths):
        self.seen, self.trained, self.wrong = {}, {}, 0
        self.n_loss = 0
        for path in paths:
            r = tokstream.Reader(open(path, "rb"), cuts=True)
            for q in r:
                at = 0
                for s in q.segments:
                    if s.source != tokstream.PADDING:
                        self.take(r, q, s, at)
                    at += s.length
            self.n_loss += r.total.n_loss

    @classmethod
    def of_set(cls, folder):
        """The same of a set of shards, as inspect reads it back; n_loss is that of its report."""
        book = cls()
        p = subprocess.run([os.path.join(BIN, "inspect"), "--records", folder], stdout=subprocess.PIPE, check=True)
        for line in p.stdout.splitlines():
            q, at = json.loads(line), 0
            for s in q["segments"]:
                for k in range(0 if s.get("padding") else s["length"]):
                    key = (s["source"].encode(), s["document"], s["offset"] + k)
                    book.seen[key] = book.seen.get(key, 0) + 1
                    if q["mask"][at + k]:
                        book.trained[key] = book.trained.get(key, 0) + 1
                at += s["length"]
        book.n_loss = json.load(open(os.path.join(folder, "report.json")))["loss_tokens"]
        return book

    def take(self, r, q, s, at):
        for k in range(s.length):
            key = (r.sources[s.source], s.document, s.offset + k)
            trained = q.mask is None or bool(q.mask[at + k])
            self.seen[key] = self.seen.get(key, 0) + 1
            if trained:
                self.trained[key] = self.trained.get(key, 0) + 1


def dialogues(path, n, rng, spans=True, lengths=(1, 5, 40, 300)):
    """Writes n records whose turns have so many characters; yields (place, text, trained offsets) of each."""
    at = 0
    with open(path, "wb") as f:
        for i in range(n):
            text, sp = dialogue(rng, lengths)
            if i % 17 == 3:
                text, sp = last  # a duplicate
            last = text, sp
            rec = {"text": text, "spans": sp, "domain": "d%d" % (i % 3)}
            if not spans:
                del rec["spans"]
            line = json.dumps(rec, ensure_ascii=i % 2 == 0).encode() + b"\n"
            f.write(line)
            yield at, text, by_bytes(text, sp)
            at += len(line)


def make(path, n, rng, spans=True):
    """Writes n records; returns {(source, document): trained offsets}, of those that have any."""
    return {(os.path.basename(path).encode(), at): trained if spans else None
            for at, _, trained in dialogues(path, n, rng, spans) if trained or not spans}


def same(what, book, want, exactly=True):
    """Each token has the bit that it must have, and each trained one is there once. Without exactly,
    tokens may be dropped, or repeated."""
    keys = {(s, d, o) for (s, d), offsets in want.items() for o in offsets}
    wrong = set(book.trained) - keys
    lost = keys - set(book.trained)
    if not exactly:
        lost = {k for k in lost if k in book.seen}
    twice = [k for k, n in book.seen.items() if n > 1] if exactly else []
    wrong |= {k for k, n in book.trained.items() if n != book.seen[k]}
    say(not wrong and not lost and not twice and book.n_loss == sum(book.trained.values()) > 0,
        "%s: %d trained tokens%s" % (what, book.n_loss,
                                     "" if not (wrong or lost or twice) else
                                     "; %d wrong, %d lost, %d twice" % (len(wrong), len(lost), len(twice))))


def balanced(path):
    row = json.load(open(path))["loss_tokens"]
    left = row["in"] + row["created"] + row["repeated"] + row.get("from_work", 0)
    right = row["out"] + row.get("to_work", 0) + sum(row["dropped"].values())
    return left == right and (row["in"] or row.get("from_work", 0))


def step(what, want, program, *argv, exactly=True):
    run(program, *argv, "-o", "out.tks", "--stats", "s.json")
    same(what, Book("out.tks"), want, exactly)
    say(balanced("s.json"), what + ": the account have them")
    run("inspect", "--verify", "out.tks")


def stages(what, want, program, names, options, n, files):
    os.mkdir("work")
    outs = []
    for name, kind in names:
        for i in range(n if kind != "one" else 1):
            argv = [program, "--stage", name, "--work", "work"] + options
            if kind == "parts":
                argv += ["--part", "%d/%d" % (i, n)] + (["--ranges", str(n)] if name == "scatter" else [])
                argv += [files[i]]
            elif kind == "ranges":
                outs.append("gather%d.tks" % i)
                argv += ["--part", "%d/%d" % (i, n), "-o", outs[-1]]
            run(*argv, "--stats", "s.json")
    same("%s in stages, N = %d" % (what, n), Book(*outs), want)
    say(balanced("s.json"), "%s in stages, N = %d: the account have them" % (what, n))
    subprocess.run(["rm", "-rf", "work"] + outs, check=True)


def dedup_stages(want, mode, n, files):
    """The stages that dedup --stages lists: what their filters write is what one process does."""
    what = "dedup %s in stages, N = %d" % (" ".join(mode), n)
    os.mkdir("work")
    listed = subprocess.run([os.path.join(BIN, "dedup"), *mode, "--stages"], stdout=subprocess.PIPE, check=True).stdout
    outs = ["f%d.tks" % i for i in range(n)]
    for name, kind, reads, writes, _ in (line.split() for line in listed.decode().splitlines()):
        for i in range(1 if kind == "one" else n):
            run("dedup", *mode, "--work", "work", "--stage", name,
                *(["--part", "%d/%d" % (i, n)] if kind != "one" else []),
                *(["--ranges", n] if name == "sign" else []), *([files[i]] if reads == "reads" else []),
                *(["-f", "-o", outs[i]] if writes == "writes" else []), "--stats", "s.json")
            if writes == "writes":
                say(balanced("s.json"), what + ": the account have them")
    run("dedup", *mode, "a.tks", "-o", "one.tks", "-f")
    book = Book(*outs)
    same(what, book, want, exactly=False)
    say(book.trained == Book("one.tks").trained, what + ": as in one process")
    subprocess.run(["rm", "-rf", "work"] + outs, check=True)


def dedup_against(want):
    """Indexes of some of the dialogues, as texts without masks: one index of n-grams, one for each mode."""
    with open("a.jsonl", "rb") as f, open("h.jsonl", "wb") as out:
        out.writelines(itertools.islice(f, 30))
    run("tokenize", "-t", "bytes", "h.jsonl", "-o", "h.tks")
    run("dedup", "--ngrams", "--ngram", 3, "--save-index", "g.idx", "h.tks", "-o", "out.tks", "-f")
    step("dedup --against", want, "dedup", "--against", "g.idx", "-f", "a.tks", exactly=False)
    step("dedup --against --cut", want, "dedup", "--against", "g.idx", "--cut", "-f", "a.tks", exactly=False)
    for mode in ("--exact", "--near"):
        run("dedup", mode, "--save-index", "m.idx", "h.tks", "-o", "out.tks", "-f")
        step("dedup %s --against" % mode, want, "dedup", mode, "--against", "m.idx", "-f", "a.tks", exactly=False)
        dropped = json.load(open("s.json"))["loss_tokens"]["dropped"]
        say(sum(dropped.values()) > 0, "dedup %s --against: drops some, and counts them" % mode)
        os.unlink("m.idx")


ANSWERS = [["--exact"], ["--near", "--threshold", "0.5"], ["--near", "--ngram", 2, "--unit", "char", "--seed", 3],
           ["--near", "--ngram", 3, "--unit", "token", "--keep", "longest"], ["--near", "--no-verify", "--rows", 4],
           ["--ngrams=document", "--ngram", 2, "--overlap", "0.5", "--fp-rate", "0.000001"]]


def dedup_answers(rng):
    """dedup --on trained keeps what dedup keeps of a stream of the trained tokens alone, and what has none of them."""
    words, old = ["w%d" % i for i in range(60)], []
    prompts = [" ".join(rng.choices(words, k=300)) + "\n" for _ in range(3)]
    with open("d.jsonl", "w") as f:
        for i in range(6 * N):
            answer = rng.choices(words, k=rng.choice((1, 2, 8, 20))) if not old or rng.random() < 0.4 else list(rng.choice(old))
            if rng.random() < 0.3:
                answer[rng.randrange(len(answer))] = "n%d" % i
            old.append(answer)
            answer, prompt, cut = " ".join(answer), rng.choice(prompts) + str(i) * 20, rng.randrange(3)
            n, k = len(prompt), len(prompt) + cut
            f.write(json.dumps({"text": prompt + answer[:cut] + "\n\n" + answer[cut:],
                                "spans": [[n, n + cut], [k + 2, k + 2 + len(answer) - cut]]}) + "\n")
    run("tokenize", "-t", "bytes", "--no-eos", "--spans-field", "spans", "d.jsonl", "-o", "whole.tks")
    run("decompose", "--min", 16, "--max", 64, "whole.tks", "-o", "pieces.tks")
    for stream in ("whole", "pieces") if MORE else ("pieces",):
        places, texts = [], []
        for q in tokstream.Reader(open(stream + ".tks", "rb"), cuts=True):
            places.append((q.segments[0].document, q.segments[0].offset))
            texts.append("".join(chr(t) for t, on in zip(q.tokens, q.mask) if on))
        line, at = {}, 0
        with open("alone.jsonl", "w") as f:
            for place, text in zip(places, texts):
                if text:
                    line[at] = place
                    at += f.write(json.dumps({"text": text}) + "\n")
        run("tokenize", "-t", "bytes", "--no-eos", "alone.jsonl", "-o", "alone.tks", "-f")
        none = len(places) - len(line)
        say((none > 0) == (stream == "pieces"), "%s: %d without a trained token" % (stream, none))
        for mode in ANSWERS:
            what = "%s: dedup %s --on trained" % (stream, " ".join(map(str, mode)))
            run("dedup", *mode, "alone.tks", "-o", "out.tks", "-f")
            left = {line[q.segments[0].document] for q in tokstream.Reader(open("out.tks", "rb"))}
            want = [p for p, text in zip(places, texts) if not text or p in left]
            run("dedup", *mode, "--on", "trained", stream + ".tks", "-o", "out.tks", "-f", "--stats", "s.json")
            got = [(q.segments[0].document, q.segments[0].offset) for q in tokstream.Reader(open("out.tks", "rb"), cuts=True)]
            say(got == want and none < len(got) < len(places), "%s: %d of %d" % (what, len(got), len(places)))
            counts = json.load(open("s.json"))
            say(counts["without_trained" if mode == ["--exact"] else "without_words"] == none, what + ": counts those without")
            if mode[0] == "--ngrams=document" or "longest" in mode:
                continue
            run("dedup", *mode, "--on", "trained", stream + ".tks", "--save-index", "m.idx", "-o", "out.tks", "-f")
            run("dedup", *mode, "--on", "trained", stream + ".tks", "--against", "m.idx", "-o", "out.tks", "-f")
            say(json.load(open("s.json"))["sequences"]["in"] - counts["sequences"]["dropped"].get(mode[0][2:] + "-duplicate") == len(got) and
                sum(1 for _ in tokstream.Reader(open("out.tks", "rb"), cuts=True)) == none, what + ": its index has all that is trained on")
            os.unlink("m.idx")


SETS = [["parquet"], ["megatron-sft"], ["olmo"], ["mds"], ["mds", "--max-segments", 600, "--compress", "none"],
        ["litdata"], ["litdata", "--compress", "zstd"], ["wds", "--accept-mismatch"],
        ["wds", "--accept-mismatch", "--member", "json.gz"]]
SHORT = [["megatron-sft"], ["olmo"], ["mds", "--max-segments", 600, "--compress", "none"]]


def digests(folder):
    """Of all files of a set but those that name their folder, or differ in what they say of how they were made."""
    return subprocess.run("cd %s && find . -type f ! -path './olmo-cache/*' ! -name manifest.jsonl ! -name report.json "
                          "! -name README.md | sort | xargs sha256sum" % folder, shell=True, stdout=subprocess.PIPE,
                          check=True).stdout


def in_stages(want, name, options):
    os.mkdir("work")
    options = options + ["--work", "work"]
    for i in range(2):
        run("shuffle", "--stage", "scatter", *options, "--part", "%d/2" % i, "--ranges", "2", ["k.tks", "empty.tks"][i])
    trained = 0
    for i in range(2):
        run("shuffle", "--stage", "gather", *options, "--part", "%d/2" % i, "-o", "set3", "--stats", "s.json")
        trained += json.load(open("s.json")).get("loss_tokens", {"out": 0})["out"]
    say(trained == sum(map(len, want.values())), name + " in stages: the account of gather have them")
    run("shuffle", "--stage", "finish", *options, "-o", "set3", "--stats", "s.json")
    same(name + " in stages", Book.of_set("set3"), want)
    say(digests("set") == digests("set3") != b"", name + " in stages: the same bytes")


def to_set(want, format, *more):
    """The set as inspect reads it, and its segments as tokstream.py does; in stages, the same bytes."""
    options = ["--format", format, *more]
    name = " ".join(map(str, ["shuffle"] + options))
    p = subprocess.run([os.path.join(BIN, "shuffle"), "-q", *map(str, options), "-o", "set", "k.tks", "--stats", "s.json"],
                       stderr=subprocess.PIPE)
    if b"not built in" in p.stderr:
        print("skip masks: shuffle --format parquet: needs Arrow")
        return
    say(not p.returncode, name + p.stderr.decode())
    same(name, Book.of_set("set"), want)
    say(balanced("s.json"), name + ": the account have them")
    same(name + ": the segments", Book(*glob.glob("set/segments/*.tks")), want)
    run("inspect", "--verify", "set")
    step(name + ", and the set as an input", want, "shuffle", "--input-format", "set", "set", "-f")
    run("shuffle", *options, "--last", "drop", "--shard-sequences", 64, "-o", "set2", "k.tks", "--stats", "s.json")
    same(name + " --last drop", Book.of_set("set2"), want, exactly=False)
    say(balanced("s.json"), name + " --last drop: the account have them")
    in_stages(want, name, options)
    # A report that was changed: the masks of the shards are not those that it says.
    text = open("set/report.json").read()
    at = text.index('"mask_checksum": "') + len('"mask_checksum": "')
    open("set/report.json", "w").write(text[:at] + "%x" % (int(text[at], 16) ^ 1) + text[at + 1:])
    say("masks" in run("inspect", "--verify", "set", fails=True), name + ": a report with another checksum of masks is seen")
    if format == "olmo":
        path = glob.glob("set2/D_9/*.label_mask")[0]
        byte = bytearray(open(path, "rb").read())
        byte[777] ^= 1
        open(path, "wb").write(byte)
        say("token %d" % (777 % 512) in run("inspect", "--records", "set2", fails=True), "shards are compared with segments")
    subprocess.run(["rm", "-rf", "work", "set", "set2", "set3"], check=True)


def sets_as_inputs(both):
    """Sets of two formats joined, in a third one, mixed, in stages, and in the other programs."""
    for name, format in (("a", "olmo"), ("c", "litdata")):
        run("pack", "--length", 512, "--long", "split", name + ".tks", "-o", "k.tks", "-f")
        run("shuffle", "--format", format, "-o", name + ".set", "k.tks")
    sets = ["--input-format", "set", "-f", "a.set", "c.set"]
    run("shuffle", "--format", "mds", *sets, "-o", "to.set", "--stats", "s.json")
    same("two sets, in another format", Book.of_set("to.set"), both)
    say(balanced("s.json"), "two sets, in another format: the account have them")
    run("inspect", "--verify", "to.set")
    step("two sets, mixed", both, "shuffle", "--mix-by", "input", "--mix", "a.set=0.3,c.set=0.7", "--max-tokens", 400 * N, *sets,
         exactly=False)
    step("two sets, packed", both, "pack", "--length", 128, "--long", "split", *sets)
    step("two sets, cut", both, "decompose", "--min", 8, "--max", 64, "--accept-mismatch", *sets)
    step("two sets, without duplicates", both, "dedup", "--exact", *sets, exactly=False)
    run("shuffle", "--stage", "scatter", "--work", "work", "--part", "0/1", "--ranges", 1, *sets)
    run("shuffle", "--stage", "gather", "--work", "work", "--part", "0/1", "-f", "-o", "out.tks", "--stats", "s.json")
    same("two sets, in stages", Book("out.tks"), both)
    subprocess.run(["rm", "-rf", "work", "c.set", "to.set"], check=True)


def sets_without_masks(both):
    """Beside a set that has masks, all tokens of a set without are trained on, as of streams; padding is not."""
    run("pack", "--length", 512, "b.tks", "-o", "k.tks", "-f")
    for format, sets in (("olmo", ["a.set", "b.set"]), ("wds", ["b.set", "a.set"])):
        run("shuffle", "--format", format, *(["--accept-mismatch"] if format == "wds" else []), "-o", "b.set", "k.tks")
        what = "%s, %s without masks" % (" ".join(sets), format)
        inputs = ["--input-format", "set", "-f", *sets]
        step(what, both, "shuffle", "--order", "keep", *inputs)
        step(what + ", cut", both, "decompose", "--min", 8, "--max", 64, "--accept-mismatch", *inputs)
        run("shuffle", "--format", "mds", *inputs, "-o", "to.set", "--stats", "s.json")
        same(what + ", in another format", Book.of_set("to.set"), both)
        say(balanced("s.json"), what + ", in another format: the account have them")
        run("inspect", "--verify", "to.set")
        subprocess.run(["rm", "-rf", "b.set", "to.set"], check=True)
    subprocess.run(["rm", "-rf", "a.set"], check=True)


def main():
    rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    os.environ["SLUICE_CACHE_DIR"] = ""
    global BIN
    BIN = os.path.abspath(BIN)
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    want = make("a.jsonl", N, rng)
    more = make("b.jsonl", N // 4, rng, spans=False)
    tok = ["-t", "bytes", "--domain-field", "domain"]

    run("tokenize", *tok, "--spans-field", "spans", "a.jsonl", "-o", "a.tks", "--stats", "s.json")
    book = Book("a.tks")
    same("tokenize", book, want)
    say(balanced("s.json"), "tokenize: the account have them")
    dropped = json.load(open("s.json"))["documents"]["dropped"]
    say(dropped.get("untrained", 0) == N - len(want) > 0, "dialogues with nothing to train on are counted")
    run("tokenize", *tok, "b.jsonl", "-o", "b.tks")
    for (s, d, o) in Book("b.tks").seen:
        if more[(s, d)] is None:
            more[(s, d)] = set()
        more[(s, d)].add(o)
    both = {**want, **more}

    step("decompose", want, "decompose", "--min", 8, "--max", 256, "a.tks")
    os.rename("out.tks", "p.tks")
    step("decompose --tails drop", want, "decompose", "--min", 8, "--max", 256, "--tail", "drop", "a.tks", exactly=False)
    step("decompose --label-token", want, "decompose", "--min", 8, "--max", 256, "--label-token", "a.tks")
    step("decompose --mixture", want, "decompose", "--min", 8, "--max", 64, "--mixture", "equal", "a.tks", exactly=False)
    step("decompose --min-length", want, "decompose", "--min", 8, "--max", 64, "--min-length", 500, "a.tks", exactly=False)
    for mode in (["--exact"], ["--near"], ["--ngrams"], ["--substring", "20"]):
        step("dedup %s" % " ".join(mode), want, "dedup", *mode, "a.tks", exactly=False)
    dedup_against(want)
    dedup_answers(rng)
    ways = [[], ["--fill", "drop"], ["--mix-domains"]]
    for i, method in enumerate(("bfd", "ffd", "spfhp", "lpfhp", "nnlshp", "concat", "multi")):
        length = ["--buckets", "64,512"] if method == "multi" else ["--length", 512]
        for options in ways if MORE else ways[i % 3:][:1]:
            step(" ".join(["pack --method", method] + options), want, "pack", "--method", method, "--long", "split", *length, *options,
                 "a.tks", exactly="drop" not in options)
    step("pack --long drop", want, "pack", "--length", 256, "--long", "drop", "a.tks", exactly=False)
    step("pack --order related", want, "pack", "--length", 512, "--long", "split", "--order", "related", "a.tks")
    step("pack past memory", want, "pack", "--length", 512, "--long", "split", "-M", "32M", "a.tks")
    step("pack --balance", want, "pack", "--length", 512, "--long", "split", "--balance", 4, "a.tks")
    step("shuffle", want, "shuffle", "--seed", 3, "p.tks")
    step("shuffle --sample", want, "shuffle", "--sample", "0.5", "p.tks", exactly=False)
    step("shuffle with a stream without masks", both, "shuffle", "--seed", 3, "a.tks", "b.tks")
    step("shuffle, the one without masks first", both, "shuffle", "--seed", 3, "b.tks", "a.tks")
    step("shuffle --mix", both, "shuffle", "--mix-by", "input", "--mix", "a.tks=0.4,b.tks=0.6", "a.tks", "b.tks",
         exactly=False)
    step("shuffle --mix, repeated", both, "shuffle", "--mix-by", "input", "--mix", "a.tks=0.1,b.tks=0.9",
         "--max-tokens", 400 * N, "a.tks", "b.tks", exactly=False)
    step("shuffle --max-tokens", want, "shuffle", "--max-tokens", "20000", "a.tks", exactly=False)
    for n in (1, 3, 8) if MORE else (3,):
        files = []
        for i in range(n):
            run("tokenize", *tok, "--spans-field", "spans", "--part", "%d/%d" % (i, n), "a.jsonl", "-o", "part%d.tks" % i, "-f")
            files.append("part%d.tks" % i)
        same("tokenize in %d parts" % n, Book(*files), want)
        stages("shuffle", want, "shuffle", [("scatter", "parts"), ("gather", "ranges")], ["--seed", "3"], n, files)
        for mode in (["--exact"], ["--near"], ["--substring", "20"], ["--exact", "--on", "trained"], ["--near", "--on", "trained"]):
            dedup_stages(want, mode, n, files)
        stages("pack", want, "pack", [("count", "parts"), ("plan", "one"), ("scatter", "parts"), ("gather", "ranges")],
               ["--length", "512", "--long", "split"], n, files)
    run("pack", "--length", 512, "--long", "split", "a.tks", "-o", "k.tks")
    with open("empty.jsonl", "w") as f:  # a part without a sequence, made in the same way
        f.write('{"text": "", "spans": [], "domain": "a"}\n')
    run("tokenize", *tok, "--spans-field", "spans", "empty.jsonl", "-o", "empty.docs.tks")
    run("pack", "--length", 512, "--long", "split", "empty.docs.tks", "-o", "empty.tks")
    for options in SETS if MORE else SHORT:
        to_set(want, *options)
    others = make("c.jsonl", N // 4, rng)
    run("tokenize", *tok, "--spans-field", "spans", "c.jsonl", "-o", "c.tks")
    sets_as_inputs({**want, **others})
    sets_without_masks(both)
    run("shuffle", "--documents", "--format", "olmo", "-o", "set", "a.tks", "--stats", "s.json")
    same("shuffle --documents --format olmo", Book.of_set("set"), want)
    say(balanced("s.json"), "shuffle --documents --format olmo: the account have them")
    run("inspect", "--verify", "set")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
