"""parts.py - a job in parts: tokenize --part, then each part separately, or all parts in stages, with a few ranges.

After each step the streams of all parts, concatenated, must have the sequences of the single run; shards must be the
same files.
"""
import os
import random
import re
import shutil

from ways import BIG, Bad, MEMORY, Way, option, writes

# (stage, jobs: a part, a range or one, reads the streams, writes streams or the set)
STAGES = {
    "exact": (("sign", "parts", 1, 0), ("group", "ranges", 0, 0), ("filter", "parts", 1, 1)),
    "near": (("sign", "parts", 1, 0), ("group", "ranges", 0, 0), ("verify", "parts", 0, 0), ("cluster", "one", 0, 0), ("filter", "parts", 1, 1)),
    "substring": (("sign", "parts", 1, 0), ("group", "ranges", 0, 0), ("ask", "parts", 1, 0), ("match", "ranges", 0, 0), ("filter", "parts", 1, 1)),
    "choose": (("rank", "parts", 1, 0), ("cut", "one", 0, 0), ("filter", "parts", 1, 1)),
    "pack": (("count", "parts", 1, 0), ("plan", "one", 0, 0), ("scatter", "parts", 1, 1), ("gather", "ranges", 0, 1)),
    "shuffle": (("scatter", "parts", 1, 0), ("gather", "ranges", 0, 1)),
    "cut": (("count", "parts", 1, 0), ("cut", "one", 0, 0), ("scatter", "parts", 1, 0), ("gather", "ranges", 0, 1)),
    "mix": (("count", "parts", 1, 0), ("mix", "one", 0, 0), ("scatter", "parts", 1, 0), ("gather", "ranges", 0, 1)),
}
CUTS = {"exact": "sign", "near": "sign", "substring": "sign", "pack": "scatter", "shuffle": "scatter", "mix": "scatter", "cut": "scatter"}  # who is told --ranges


def flow(step):
    """How a step goes in parts: the name of its stages, "each" part for itself, or None: all of them in one run."""
    p = step["program"]

    def has(*names):
        return option(step, *names)

    if p == "tokenize":
        return None if has("--max-tokens") else "each"
    if p == "decompose":
        return None if has("--mixture", "--mixture-tokens", "--plan") else "each"
    if p == "choose":
        return "choose" if has("--top") else "each"
    if p == "dedup":
        if has("--ngrams", "--pairs", "--audit", "--annotate") or (has("--against", "--save-index") and not has("--near", "--exact")):
            return None
        return "near" if has("--near") else "substring" if has("--substring") else "exact"
    if p == "pack":
        return None if has("--plan", "--save-plan", "--apply-plan", "--balance") or has("--method") == "concat" or has("--order") == "related" else "pack"
    if p == "shuffle":
        mix = has("--mix", "--mix-schedule")
        if has("--order") == "keep" or has("--mix-by") == "input":
            return None
        return "mix" if mix else "cut" if has("--max-tokens") or has("--order") not in (None, "random") else "shuffle"
    return None


def same_rejects(parts, base):
    """Whether the lines are the same, but that a share which begins within a file does not know the number of a line."""
    return len(parts) == len(base) and all(
        x == y or (b'"line":null' in x and x == re.sub(b'"line":[0-9]+', b'"line":null', y, count=1)) for x, y in zip(parts, base))


class Refused(Exception):
    """For want of memory: no fault."""


class Parts(Way):
    def run(self):
        job, base = self.j.job, self.j.base
        self.rng = random.Random(job["order"])
        self.streams, self.options = list(self.j.inputs), list(self.j.reader)
        for k, (step, r) in enumerate(zip(job["steps"], base.results)):
            if r.status or step["program"] == "schedule":
                continue
            try:
                out = self.step(k, step)
            except Refused:
                self.j.add("refused for memory")
                return
            if writes(step) == "stream":
                self.check(k, out, base.target(k, step))
                self.streams, self.options = out, []
            elif writes(step) == "set":
                self.j.same(base.target(k, step), out[0])

    def step(self, k, step):
        how = flow(step)
        if how is None or (step["program"] == "tokenize" and self.j.job["parts"] == 1):
            return self.whole(k, step)
        self.j.add("steps in parts")
        return self.each(k, step) if how == "each" else self.stages(k, step, how)

    def draw(self):
        """Other threads and memory for every program."""
        self.threads, self.memory = self.rng.choice((1, 2, 3)), self.rng.choice(("64M", BIG))

    def one(self, k, step, args, streams, out=None, to=None):
        """A program that must work. to: what {out} stands for"""
        self.draw()
        extra = list(args) + self.options + ["--stats", "%s/%d.stats" % (self.name, k)] + (["-o", out] if out else [])
        groups = [a.replace("{out}", to) if to else a for a in self.j.groups(step)]
        r = self.j.run(self.command(k, step["program"], groups, extra, streams, pre="base"))
        if r.status and self.memory != BIG and MEMORY.search(r.err):
            raise Refused
        if r.status:
            raise Bad("status", "%d in parts, 0 in one: %s\n%s" % (r.status, self.j.log[-1], r.err))
        return self.j.books("%s/%d.stats" % (self.name, k))

    def joined(self, name, streams):
        """The streams, or a file of all of them: one behind another they are a stream."""
        if self.options or self.rng.random() < 0.5 or not all(os.path.isfile(s) and s.endswith(".tks") for s in streams):
            return streams
        self.j.log.append("cat %s >%s" % (" ".join(streams), name))
        with open(name, "wb") as out:
            for s in streams:
                with open(s, "rb") as f:
                    shutil.copyfileobj(f, out)
        return [name]

    def whole(self, k, step):
        out = self.target(k, step)
        self.one(k, step, [], self.joined("%s/%d.joined.tks" % (self.name, k), self.streams), out)
        return [out]

    def shares(self, n):
        """The streams of each part; none has none."""
        n = min(n, len(self.streams))
        at = [i * len(self.streams) // n for i in range(n + 1)]
        return [self.streams[at[i]:at[i + 1]] for i in range(n)]

    def jobs(self, n):
        """0 … n - 1 in any order, perhaps one of them twice."""
        order = list(range(n))
        self.rng.shuffle(order)
        return order + order[:1] * (self.j.job["again"] and self.rng.random() < 0.5)

    def each(self, k, step):
        """Every part for itself."""
        texts = step["program"] == "tokenize"
        n = self.j.job["parts"] if texts else len(self.streams)
        outs = ["%s/%d.%d.tks" % (self.name, k, i) for i in range(n)]
        for i in self.jobs(n):
            part, streams = ["--part", "%d/%d" % (i, n)], self.streams
            if not texts:
                streams = [self.streams[i].replace(".%d.tks" % i, ".{part}.tks")]
                if streams == [self.streams[i]] or not self.j.job["again"]:
                    part, streams = [], [self.streams[i]]
            self.one(k, step, part, streams, outs[i], "%s/%d.%d" % (self.name, k, i))
        for name in (".rejects", ".held"):
            if os.path.exists("base/%d%s" % (k, name)):
                self.extra(k, n, name)
        return outs

    def extra(self, k, n, name):
        """What was put aside, part after part, is what one run puts aside."""
        parts, base = ["%s/%d.%d%s" % (self.name, k, i, name) for i in range(n)], "base/%d%s" % (k, name)
        if name == ".held":
            self.check(k, parts, base)
        elif not same_rejects([line for p in parts for line in open(p, "rb")], list(open(base, "rb"))):
            raise Bad("bytes", "%s and those of %d parts differ" % (base, n))

    def stages(self, k, step, how):
        job, work = self.j.job, "%s/%d.work" % (self.name, k)
        shares = [self.joined("%s/%d.joined.%d.tks" % (self.name, k, i), s) for i, s in enumerate(self.shares(job["parts"]))]
        n, ranges, is_set = len(shares), job["ranges"], writes(step) == "set"
        out, sums = [], {}
        flow = list(STAGES[how])
        if how in ("near", "exact") and option(step, "--save-index"):
            flow.insert(-1, ("index", "one", 0, 0))
        for stage, what, reads, puts in flow:
            many = {"parts": n, "ranges": ranges, "one": 1}[what]
            names = ["%s/%d.%s.%d.tks" % (self.name, k, stage, i) for i in range(many)]
            for i in self.jobs(many):
                args = ["--phase", stage, "--work", work] + (["--part", "%d/%d" % (i, many)] if what != "one" else [])
                if stage == CUTS.get(how):
                    args += ["--ranges", str(ranges)]
                target = None if not puts else self.target(k, step) if is_set else names[i]
                self.book(sums, (stage, i), self.one(k, step, args, shares[i] if reads else [], target))
            out += names if puts else []
        if ("index", "one", 0, 0) in flow:
            self.j.same("base/%d.new" % k, "%s/%d.new" % (self.name, k))
        if is_set:
            out = [self.target(k, step)]
            self.one(k, step, ["--phase", "finish", "--work", work], [], out[0])
        self.balance(k, sums)
        return out

    @staticmethod
    def book(sums, job, books):
        """A job that found everything done reports nothing new: the first report counts."""
        sums.setdefault(job, books)

    def balance(self, k, sums):
        """What goes into the work folder comes out of it, and all stages together have the books of one run."""
        for what in {"tokens", "sequences", "loss_tokens"} & set(self.j.base.books[k]):
            rows = [b[what] for b in sums.values() if what in b]
            total = {key: sum(r.get(key, 0) for r in rows) for key in ("out", "from_work", "to_work")}
            if total["out"] != self.j.base.books[k][what]["out"] or total["from_work"] != total["to_work"]:
                raise Bad("books", "step %d, %s in stages: %s; in one: %s" % (k, what, total, self.j.base.books[k][what]))

    def check(self, k, parts, base):
        if self.j.normal(parts) != self.j.normal([base]):
            raise Bad("parts", "step %d: %s are not %s" % (k, " ".join(parts), base))
