"""draws.py - random programs and options for jobs.py.

A step is {"program", "groups", "pre"}: groups are lists of arguments that belong together, so that one can be left
out; pre are programs to be run before, [program, arguments]. In arguments {in} stands for the step's inputs, {out} for
a name that belongs to the step alone, {pre} for the same where a `pre` has made the file, {set} for the shards before.
A word that begins with @ is spelled as the program has it, see SPELLED.
"""
SPELLED = {"@accept": ("--accept-mismatch", "-f")}
FORMATS = ("wds", "olmo", "ds", "megatron", "mds", "litdata")
LABELS = ("wds", "ds")
MASKS = ("wds", "olmo", "mds", "litdata")
DOCUMENTS = ("olmo", "ds", "megatron", "mds", "litdata")


class Draw:
    """What is known of the stream so far decides which options make sense; now and then one that makes none is drawn."""

    def __init__(self, rng, corpus):
        self.rng, self.corpus = rng, corpus
        self.ids = corpus["kind"] in ("npy", "megatron", "ds", "mds")
        self.vocab, self.cut, self.label = not self.ids, False, False
        self.domains = self.scores = self.masks = False
        self.field = None  # of metadata, with a few values
        self.groups = []

    def maybe(self, p, *group):
        if self.rng.random() < p:
            self.groups.append([str(g() if callable(g) else g) for g in group])
            return True
        return False

    def one(self, *of):
        return self.rng.choice(of)

    def step(self, program, pre=()):
        g, self.groups = self.groups, []
        return {"program": program, "groups": g, "pre": list(pre)}

    def common(self):
        self.maybe(0.3, "--seed", self.rng.randrange(5))
        self.maybe(0.1, "-z%d" % self.one(1, 3, 9))
        self.maybe(0.15, "--no-provenance")

    # ---- programs ----

    def tokenize(self):
        m, r = self.maybe, self.rng
        m(0.65, "-t", "bytes")
        if self.corpus["kind"] == "jsonl" or r.random() < 0.1:
            deep = self.corpus["nested"] and r.random() < 0.7
            self.domains = m(0.6, "--domain-field", "meta.at.all.domain" if deep else "domain")
            m(0.5, "--id-field", "meta.id" if deep else "id")
            self.scores = m(0.4, "--score-field", "meta.at.all.score" if deep else "score")
            if self.domains:
                m(0.15, "--domain-default", "code")
            self.masks = m(0.9 if self.corpus.get("spans") else 0.01, "--spans-field", "meta.at.all.spans" if deep else "spans")
            of = "meta.at.all." if deep else ""
            names = r.sample([of + "lang", of + "domain=text", of + "score=f32", "meta.id" if deep else "id"], r.randrange(1, 5))
            if m(0.5, "--metadata", ",".join(names)) and of + "lang" in names:
                self.field = of + "lang"
            m(0.1, "--where", self.one('score == null or score > 0.5', 'len(text) < 300 or id == null',
                                       'domain in ["web", null] or meta != null', "not text matches '(?i)w[0-9]+ '"))
            m(0.04, "--urls-drop", "in/none") if r.random() < 0.1 else None
        m(0.05, "--rules", self.one("gopher-quality", "gopher-repetition", "c4", "fineweb", "fineweb,gopher-repetition"))
        self.masks or m(0.05, "--c4-lines")
        listed = m(0.07, "--files-from", "list", "--list-domains")
        if not m(0.1, "--domain-from", self.one("{}/*", "{}.jsonl*", "{}*")) and not listed:
            self.domains or m(0.2, "--domain", "web")
        m(0.1, "--source-prefix", self.one("p", "a/b"))
        self.vocab = not m(0.07, "--no-vocab")
        m(0.02, "--bos")
        m(0.15, "--no-eos")
        m(0.5 if self.masks else 0.1, "--special", "parse")
        m(0.1, "--sample", self.one("0", "0.5", "90%", "1"))
        m(0.06, "--max-tokens", self.one(0, 100, "5000", "100000"))
        m(0.1, "--holdout", self.one("0", "0.1", "0.5"), "--holdout-output", "{out}.held")
        m(0.1, "--on-missing", self.one("skip", "fail"))
        if self.corpus["bad"]:
            if r.random() < 0.9:
                m(0.2, "--on-error", "replace", "--rejects", "{out}.rejects") or m(0.5, "--on-error", "skip") or m(1, "--rejects", "{out}.rejects")
        else:
            m(0.05, "--rejects", "{out}.rejects")
        self.common()
        return self.step("tokenize")

    def near_options(self):
        m = self.maybe
        m(0.5, "--bands", self.one(5, 10, 20), "--rows", self.one(3, 4, 8))
        m(0.6, "--ngram", self.one(1, 2, 3, 5))
        if not self.vocab or m(0.2, "--unit", "token"):
            self.vocab or m(0.95, "--unit", "token")
        m(0.3, "--seed", self.rng.randrange(3))

    def on(self):
        self.maybe(0.6 if self.masks else 0.01, "--on", self.one("trained", "trained", "all"))

    def index(self, *how, many=1):
        """Programs that make an index of another corpus, or of each of its parts, which is compared with those before."""
        t = ["-t", "bytes"] if ["-t", "bytes"] in self.first["groups"] else []
        pre, before = [], []
        for i in range(many):
            pre.append(["tokenize", t + ["--part", "%d/%d" % (i, many), "-o", "{out}.side%d" % i, "side/a.jsonl"]])
            pre.append(["dedup", [*how, *before, "--save-index", "{pre}.%d.idx" % i, "-o", "{out}.kept%d" % i, "{out}.side%d" % i]])
            before += ["--against", "{pre}.%d.idx" % i]
        return pre, before

    def dedup(self):
        m, r = self.maybe, self.rng
        mode = r.choices(("exact", "near", "ngrams", "substring", "against", "save"), (25, 27, 14, 22, 8, 4))[0]
        pre = []
        if mode == "exact":
            m(0.6, "--exact")
            self.on()
            m(0.25, "--pairs", "{out}.pairs")
        elif mode == "near":
            self.groups.append(["--near"])
            self.near_options()
            m(0.5, "--threshold", self.one("0.3", "0.5", "75%", "1"))
            m(0.15, "--no-verify")
            m(0.15, "--band-cap", self.one(1, 3, 50))
            if not m(0.15, "--keep", "longest") and self.domains:
                m(0.2, "--keep", "domain-order", "--domains", self.one("code,web", "web", "ünï,none"))
            m(0.2, "--pairs", "{out}.pairs")
            m(0.07, "--audit=%d" % self.one(10, 500))
            self.on()
        elif mode == "ngrams":
            m(1, self.one("--ngrams", "--ngrams=paragraph", "--ngrams=document"))
            m(0.6, "--ngram", self.one(0, 1, 3, 8))
            m(0.3, "--min-words", self.one(1, 5))
            m(0.4, "--overlap", self.one("0.2", "0.5", "1"))
            m(0.2, "--fp-rate", self.one("0.0001", "0.3"))
            m(0.3, "--report", "{out}.report")
            m(0.2 if self.vocab else 0.95, "--unit", "token")
            self.on()
        elif mode == "substring":
            m(1, "--substring", self.one(2, 8, 20, 50, 200))
            if not m(0.15, "--annotate", "--pairs", "{out}.pairs"):
                m(0.3, "--min-keep", self.one(1, 5, 40))
                m(0.25, "--pairs", "{out}.pairs")
        elif mode == "save":
            self.groups.append(["--ngrams", "--save-index", "{out}.idx"])
            m(0.5, "--ngram", self.one(2, 8))
            m(0.1 if self.vocab else 0.95, "--unit", "token")
        elif self.ids:
            m(0.3, "--against", "in/none.idx")
        else:
            kind = self.one("--exact", "--near", "--ngrams")
            if kind == "--near":
                self.near_options()
            elif kind == "--ngrams":
                m(1, "--ngram", self.one(1, 3, 6))
            many = self.one(1, 1, 3) if kind != "--ngrams" else 1
            pre, against = self.index(kind, *[a for g in self.groups for a in g], many=many)
            if kind == "--ngrams":
                self.groups = []
                m(0.5, "--report", "{out}.report")
                m(0.5, "--cut") and m(0.5, "--window", self.one(0, 2, 10))
            else:
                self.groups.insert(0, [kind])
                m(0.3, "--save-index", "{out}.new")
                m(0.3, "--pairs", "{out}.pairs")
            self.groups.append(against)
        self.common()
        return self.step("dedup", pre)

    def choose(self):
        m = self.maybe
        if self.domains:
            m(0.3, "--domain", self.one("web,code", "web,", "ünï,nothing"))
        m(0.2, "--source", self.one("*", "*0*", "*.jsonl,x"))
        # --fasttext needs a model, which tests/cli/tokenize_fasttext.sh trains
        m(0.05, "--ids-drop", "in/none") if self.rng.random() < 0.1 else None
        m(0.4, "--length", self.one("10..", "..400", "3..1000"))
        if self.scores:
            m(0.3, "--score", self.one(">=0", "<2,!=1", "> 0.5"))
        if self.field:
            m(0.3, "--where", self.one('%s == "zh"', "%s == null or length > 100", "not (%s in ['en', 'none'])") % self.field)
            if m(0.1, "--drop-metadata", self.field):
                self.field = None
        if m(0.5 if self.groups else 0.97, "--top", self.one("10%", "50%", "99.9%", "0", "20", "5K", "1M")):
            self.scores and m(0.5, "--by", "score") or m(0.98, "--by", self.one("length", "hash"))
            m(0.5, "--unit", self.one("documents", "tokens"))
            m(0.4, "--per", "domain")
        self.common()
        return self.step("choose")

    def decompose(self):
        m = self.maybe
        if m(0.2, "--buckets", self.one("16,48,100", "7", "64,256,1000")):
            pass
        elif m(0.9, "--min", self.one(1, 8, 16, 32, 128)):
            m(0.8, "--max", self.one(128, 256, 1024, 4096))
        m(0.3, "--split", "random")
        self.label = m(0.5, "--label-token")
        m(0.15, "--tail", "drop")
        m(0.1, "--min-length", self.one(3, 30))
        m(0.1, "--max-length", self.one(500, 5000))
        m(0.1, "--mixture", self.one("equal", "natural"))
        m(0.05, "--mixture-tokens", self.one(1000, "50000"))
        m(0.1, "--histogram", "{out}.histogram")
        m(0.04, "--plan")
        m(0.4 if self.cut else 0.02, "@accept")
        self.cut = True
        self.common()
        return self.step("decompose")

    def pack(self):
        m, pre = self.maybe, []
        if self.rng.random() < 0.12:
            self.groups.append(["--method", "multi"])
            m(0.3 if self.cut else 0.95, "--buckets", self.one("64,128", "16,32,256"))
            m(0.3, "--padding-threshold", self.one("0", "0.2"))
        else:
            m(0.6, "--method", self.one("bfd", "ffd", "spfhp", "lpfhp", "nnlshp", "concat"))
            if ["--method", "nnlshp"] in self.groups:  # it takes the cube of the length
                self.groups.append(["--length", self.one("16", "64", "128", "200")])
            else:
                m(0.25 if self.cut else 0.95, "--length", self.one(16, 64, 128, 200, 512, 2048))
        m(0.97 if self.masks else 0.35, "--long", self.one("split", "drop", "drop", "error"))
        m(0.2, "--fill", "drop")
        m(0.12, "--order", "related") or m(0.2, "--max-segments", self.one(1, 2, 5))
        m(0.4, "--mix-domains")
        if m(0.12, "--balance", self.one(1, 2, 8)):
            m(0.5, "--balance-sequences", self.one(1, 2)) or m(0.5, "--balance-tokens", self.one(4096, 65536))
            m(0.2, "--balance-cost", "100,1")
            m(0.2, "--balance-window", self.one(1, 9))
        elif m(0.1, "--save-plan", "{out}.plan"):
            pass
        elif self.rng.random() < 0.1:
            flat = [a for g in self.groups for a in g]
            pre = [["pack", flat + ["--save-plan", "{pre}.plan", "-o", "{out}.once", "{in}"]]]
            self.groups.append(["--apply-plan", "{pre}.plan"])
        self.common()
        self.cut = True
        return self.step("pack", pre)

    def shuffle(self, shards=False):
        m = self.maybe
        if shards:
            documents = m(0.03 if self.cut else 0.9, "--documents")
            suits = DOCUMENTS if documents else [f for f in FORMATS if (f in LABELS) == self.label]
            suits = [f for f in suits if not self.masks or f in MASKS] or suits
            shape = self.one(*(suits if self.rng.random() < 0.9 else FORMATS))
            self.groups.append(["--format", shape])
            built = documents and shape in ("mds", "litdata")  # whose shards are by bytes
            m(0.03 if built else 0.6, "--shard-sequences", self.one(1, 4, 30, 1000)) or m(0.4, "--shard-size", self.one(1, 999, "20K", "1M", "16G"))
            if not documents or self.rng.random() < 0.05:
                m(0.2, "--last", "drop")
                m(0.5, "--tails", "drop")
            m(0.4 if shape in ("mds", "litdata") else 0.01, "--compress", self.one("zstd", "zstd:1", "none"))
            m(0.4 if shape == "wds" else 0.01, "--member", self.one("json", "txt", "json.gz"))
            m(0.3 if shape == "mds" else 0.01, "--max-segments", 100000)
            m(1 if shape == "olmo" else 0, "--olmo-path", "s3://bucket/set")  # else its cache names the folder
            m(0.1, "--license", "Apache-2.0")
            m(0.3, "@accept")
        if self.field and self.rng.random() < 0.5:
            if m(0.6, "--mix-by", self.field, "--mix", self.one("zh=0.7,en=0.3", "en=1,=1", "größe=1,en=9")):
                m(0.5, "--max-tokens", self.one(1000, "20000", "200000"))
                m(0.3, "--max-epochs", self.one(1, "2.5", 20))
            else:
                m(1, "--mix", self.one('%s == "en":2', "%s in ['zh', \"größe\"] and length > 20:0.5, domain == null:0", "%s == null:3") % self.field)
        elif self.domains and self.rng.random() < 0.35:
            if m(0.7, "--mix", self.one("web=0.7,code=0.3", "web=1", "code=0.5,web=0.4,=0.1", "ünï=1,web=9")):
                m(0.5, "--max-tokens", self.one(1000, "20000", "200000"))
                m(0.3, "--max-epochs", self.one(1, "2.5", 20))
            elif m(1, "--mix-schedule", self.one("web=1:30%;code=1,web=1:70%", "web=1:2000;web=1,code=2", "code=1:3steps;web=1")):
                m(0.8, "--max-tokens", self.one(5000, "50000"))
                m(0.5, "--batch-tokens", self.one(256, 4096))
        elif not (self.scores and m(0.2, "--mix", self.one("score>=1:2", "score<0:0, score>1:2.5", "score=0:3,score<=1:0.5"))):
            m(0.1, "--max-tokens", self.one(0, 1000, "50000"))
            m(0.2, "--order", self.one("keep", "ascending", "descending", "bands:3") if self.scores else "keep")
        m(0.15, "--sample", self.one("0", "0.5", "99%"))
        m(0.5, "--seed", self.rng.randrange(9))
        self.common()
        return self.step("shuffle")

    def schedule(self):
        m = self.maybe
        if m(0.85, "--trainer", self.one("generic", "generic", "olmo")):
            m(0.95, "--batch-tokens", self.one(4096, 16384, 65536))
            m(0.3, "--cycles", self.one(2, 5))
            m(0.3, "--json", "{out}.json")
            m(0.2, "--reorder") if self.groups[0][1] == "generic" else m(0.2, "--balanced")
            m(0.2, "--bricks")
            m(0.1, "--from-step", self.one(1, 10))
        m(0.5, "--curriculum", self.one("natural", "uniform", "grow-linear", "shrink-p2", "grow-p100"))
        m(0.3, "--epochs", self.one(2, 3))
        m(0.2, "--tokens", self.one("20000", "1000000"))
        m(0.3, "--world", self.one(2, 4))
        return self.step("schedule")

    # ---- a line of them ----

    def steps(self):
        """In the usual order with gaps, or in any; at the end perhaps shards, and a schedule of them."""
        r, out = self.rng, []
        if r.random() < 0.6:
            chain = [p for p, q in (("dedup", 0.6), ("dedup", 0.2), ("choose", 0.3), ("decompose", 0.75), ("pack", 0.7), ("shuffle", 0.4)) if r.random() < q]
        else:
            chain = [r.choice(("dedup", "dedup", "choose", "decompose", "pack", "shuffle")) for _ in range(r.randrange(1, 5))]
        if not self.ids:
            self.first = self.tokenize()
            out.append(self.first)
        out += [getattr(self, p)() for p in chain]
        if r.random() < (0.5 if self.cut else 0.3):
            out.append(self.shuffle(shards=True))
            if r.random() < 0.4:
                out.append(self.schedule())
        return out


def job(rng, corpus):
    """Everything that a job is."""
    return {"corpus": corpus, "steps": Draw(rng, corpus).steps(), "threads": rng.choice((2, 3, 8)), "memory": rng.choice(("32M", "40M", "64M")),
            "parts": rng.choice((1, 2, 3, 5, 8)), "ranges": rng.choice((1, 2, 3, 7)), "again": rng.random() < 0.2,
            "order": rng.randrange(1000)}
