"""ways.py - one job, run in several ways: as files one after another, in a pipe, in one process, with other threads and
memory, in parts and stages, and by another build.

Each job has its own folder: in/ has the corpus, WAY/K.tks the output of step K in that way, and tmp/ must be empty
after each program. Bad is raised at the first difference.
"""
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess

import inputs
from draws import SPELLED

BIG = "1G"
LIMIT = 300  # seconds that a program may take
MEMORY = re.compile(r"-M|memory|budget")  # what a refusal for want of it says
ENV = dict(os.environ, SLUICE_CACHE_DIR="", LC_ALL="C", TZ="UTC", ASAN_OPTIONS="exitcode=99", TSAN_OPTIONS="exitcode=99",
           UBSAN_OPTIONS="halt_on_error=1:exitcode=99", LSAN_OPTIONS="exitcode=99")


class Bad(Exception):
    """What was promised does not hold: a kind in a word, and all there is to say."""

    def __init__(self, kind, text):
        super().__init__(kind + ": " + text)
        self.kind = kind


def sha(path):
    """Of a file, or of all files of a folder. What a schedule writes may name the set that it is of."""
    h = hashlib.sha256()
    for at, folders, files in os.walk(path):
        folders.sort()
        for f in sorted(files):
            h.update(("%s/%s\n" % (os.path.relpath(at, path), f)).encode())
            h.update(sha(os.path.join(at, f)).encode())
    if os.path.isfile(path):
        with open(path, "rb") as f:
            data = f.read()
        way = path.split("/")[0].encode()
        h.update(data.replace(way + b"/", b"WAY/") if path.endswith((".end", ".json")) and path.count("/") == 1 else data)
    return h.hexdigest()


class Build:
    """A folder of programs, and which options they know."""

    def __init__(self, folder, prefix=""):
        self.folder, self.prefix, self.known = os.path.abspath(folder), prefix, {}

    def path(self, program):
        return os.path.join(self.folder, self.prefix + program)

    def knows(self, program):
        if program not in self.known:
            text = subprocess.run([self.path(program), "--help"], capture_output=True, text=True, check=True).stdout
            self.known[program] = set(re.findall(r"--[a-z][a-z-]*", text)) | {"-f", "-t"}
        return self.known[program]

    def has(self, program, word):
        """Whether it knows an argument; what is no option it does."""
        if word in SPELLED:
            return True
        return not word.startswith("--") or word.split("=")[0] in self.knows(program)

    def spell(self, program, word):
        return next(s for s in SPELLED[word] if s in self.knows(program)) if word in SPELLED else word

    def version(self):
        return subprocess.run([self.path("inspect"), "-V"], capture_output=True, text=True, check=True).stdout


class Result:
    def __init__(self, status, err):
        self.status, self.err = status, err


def option(step, *names):
    """The value of the first of these options that the step has; True where there is none behind it."""
    for g in step["groups"]:
        for i, a in enumerate(g):
            if a in names or a.split("=")[0] in names:
                return g[i + 1] if i + 1 < len(g) else True
    return None


def writes(step):
    """What the step leaves: a stream, a set of shards, or something that no program of ours reads on."""
    if step["program"] == "shuffle" and option(step, "--format"):
        return "set"
    return "end" if option(step, "--plan") or step["program"] == "schedule" else "stream"


class Job:
    """One job in the current folder."""

    def __init__(self, job, build, other=None):
        self.job, self.build, self.other = job, build, other
        self.log, self.count = [], {}  # commands so far, and what there was
        self.refused, self.messages = [], []  # why steps were; what the other build says in other words
        self.inputs, self.reader = inputs.make(job["corpus"], "in")
        with open("list", "w", encoding="utf-8") as f:  # for --list-domains
            f.write("".join("%s\t%s\n" % (domain, i) for domain in ("the web", "") for i in self.inputs))
        if any(step["pre"] for step in job["steps"]):  # the first of the same documents
            side = dict(job["corpus"], kind="jsonl", files=1, codec=None, bad=False, bytes=min(job["corpus"]["bytes"] // 3, 60000))
            inputs.make(side, "side")
        os.mkdir("tmp")

    def add(self, what, n=1):
        self.count[what] = self.count.get(what, 0) + n

    # ---- one program ----

    def argv(self, build, way, program, args):
        full = [build.path(program)] + [build.spell(program, a) for a in args]
        return full + ["-q"] * way.quiet + ["-T", str(way.threads), "-M", way.memory_of(program, args), "--tmpdir", "tmp"]

    def shell(self, argv):
        """As the reproducer has it."""
        name = os.path.basename(argv[0])
        where = "$OTHER/" if self.other and argv[0] == self.other.path(name[len(self.other.prefix):]) else "$BIN/"
        return where + shlex.join([name] + argv[1:])

    def run(self, argv):
        """Runs it, and looks at all that holds for every run."""
        self.log.append(self.shell(argv))
        with open("err", "wb") as err:
            try:
                p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, env=ENV, timeout=LIMIT)
            except subprocess.TimeoutExpired:
                raise Bad("hangs", self.log[-1])
        with open("err", encoding="utf-8", errors="replace") as f:
            r = Result(p.returncode, f.read())
        self.sane(os.path.basename(argv[0]), r, "-q" in argv)
        self.add("runs")
        return r

    def sane(self, program, r, quiet=False):
        """No crash; one line where it fails, warnings before it apart; nothing left in tmp/."""
        said = "%s\n%s" % (self.log[-1], r.err[:2000])
        if r.status not in (0, 1, 2) or "Sanitizer" in r.err or "runtime error:" in r.err:
            raise Bad("crash", "status %d: %s" % (r.status, said))
        lines = r.err.splitlines()
        if any(not re.fullmatch(program + ": .{3}.*", line) for line in lines) or bool(lines) < bool(r.status):
            raise Bad("message", "status %d: %s" % (r.status, said))
        if quiet and len(lines) != bool(r.status):
            raise Bad("message", "with -q, status %d: %s" % (r.status, said))
        if os.listdir("tmp"):
            raise Bad("leftover", "tmp has %s: %s" % (os.listdir("tmp"), said))

    def books(self, path):
        """A report's books, which must balance."""
        with open(path) as f:
            s = json.load(f)
        out = {}
        for what in ("tokens", "sequences", "documents", "loss_tokens"):
            if what not in s:
                continue
            b = s[what]
            left = b["in"] + b.get("created", 0) + b.get("repeated", 0) + b.get("padding", 0) + b.get("from_work", 0)
            right = b["out"] + sum(b["dropped"].values()) + b.get("to_work", 0)
            if left != right:
                raise Bad("books", "%s: %s" % (self.log[-1], b))
            out[what] = b
        if s.get("spill_bytes"):
            self.add("spilled")
        return out

    def normal(self, paths):
        """Of streams, one behind another: the hash of their sequences, however they were cut in frames."""
        p = subprocess.run([self.build.path("shuffle"), "-q", "--order", "keep", "--no-provenance", "-T", "1", "-M", BIG, "--tmpdir", "tmp",
                            *paths], capture_output=True, env=ENV, timeout=LIMIT)
        self.log.append(self.shell([self.build.path("shuffle"), "--order", "keep", "--no-provenance", *paths]) + " | sha256sum")
        if p.returncode != 0:
            raise Bad("unreadable", "%s\n%s" % (self.log[-1], p.stderr.decode()))
        return hashlib.sha256(p.stdout).hexdigest()

    def inspect(self, way, *args):
        argv = [self.build.path("inspect"), *args, "-T", str(way.threads)]
        self.log.append(self.shell(argv))
        p = subprocess.run(argv, capture_output=True, env=ENV, timeout=LIMIT)
        self.sane("inspect", Result(p.returncode, p.stderr.decode("utf-8", "replace")))
        return p.returncode, p.stdout

    # ---- ways ----

    def groups(self, step):
        """Arguments that both builds know."""
        builds = [self.build] + ([self.other] if self.other else [])
        return [a for g in step["groups"] if all(b.has(step["program"], a) for b in builds for a in g) for a in g]

    def look(self, base):
        """What the streams and sets say of themselves, read with one thread and with several."""
        many = Way(self, "many", self.job["threads"], self.job["memory"], self.build)
        for path in base.made[-2:]:
            status, _ = self.inspect(base, "--verify", path)
            if status != 0:
                raise Bad("verify", self.log[-1])
            for how in ("--json", "--records", "--histogram"):
                a, b = self.inspect(base, how, path), self.inspect(many, how, path)
                if a != b:
                    raise Bad("inspect", self.log[-1])
        for step, before, after in base.shuffled:
            a, b = (json.loads(self.inspect(base, "--json", f)[1])["checksum"] for f in (before, after))
            if a != b:
                raise Bad("checksum", "shuffle %s: %s" % (step, self.log[-1]))

    def compare(self, base, way):
        """The same statuses, messages, books and bytes. What memory refused ends the comparison."""
        for k, (a, b) in enumerate(zip(base.results, way.results)):
            if a.status != b.status:
                if way.name == "small" and b.status and MEMORY.search(b.err):
                    self.add("refused for memory")
                    return
                raise Bad("status", "step %d is %d in %s/, %d in %s/\n%s\n%s" % (k, a.status, base.name, b.status, way.name, a.err, b.err))
            said = [re.sub(r"\d+\.\d s\b", "", r.err.replace(w.name + "/", "W/")) for r, w in ((a, base), (b, way))]
            if way.quiet:
                said = [t.splitlines()[-1:] if a.status else [] for t in said]
            if said[0] != said[1]:
                if way.name == "small":
                    raise Bad("message", "step %d: %s%s" % (k, a.err, b.err))
                self.messages.append("step %d\n- %s+ %s" % (k, said[0], said[1]))
            if base.books[k] != way.books[k]:
                raise Bad("books", "step %d: %s in %s/, %s in %s/" % (k, base.books[k], base.name, way.books[k], way.name))
        same = [sorted(f for f in os.listdir(w.name) if not f.endswith(".stats")) for w in (base, way)]
        if same[0] != same[1]:
            raise Bad("files", "%s/ has %s, %s/ has %s" % (base.name, same[0], way.name, same[1]))
        for f in same[0]:
            if way.name == "other" and os.path.isdir("base/" + f):  # they name the version, and are words
                for w in (base, way):
                    for gone in ("report.json", "README.md"):
                        if os.path.exists("%s/%s/%s" % (w.name, f, gone)):
                            os.unlink("%s/%s/%s" % (w.name, f, gone))
                    self.forget("%s/%s/manifest.jsonl" % (w.name, f), '{"file":"README.md",')
            self.same("%s/%s" % (base.name, f), "%s/%s" % (way.name, f))

    @staticmethod
    def forget(path, begin):
        """Takes lines that begin so out of a file, where it is."""
        if os.path.exists(path):
            with open(path) as f:
                lines = [x for x in f if not x.startswith(begin)]
            with open(path, "w") as f:
                f.writelines(lines)

    def same(self, a, b):
        if sha(a) != sha(b):
            self.log.append("%s %s %s" % ("diff -rq" if os.path.isdir(a) else "cmp", a, b))
            raise Bad("bytes", "%s and %s differ" % (a, b))


class Way:
    def __init__(self, job, name, threads, memory, build):
        self.j, self.name, self.threads, self.memory, self.build = job, name, threads, memory, build
        self.quiet = name in ("small", "pipe", "line", "parts")  # the others' messages are compared
        os.makedirs(name, exist_ok=True)

    def memory_of(self, program, args):
        """Near duplicates want 64M."""
        return "64M" if program == "dedup" and "--near" in args and self.memory != BIG else self.memory

    def fill(self, args, k, streams, pre=None):
        """Arguments with the names in."""
        out = []
        for a in args:
            if a == "{in}":
                out += streams
            else:
                out.append(a.replace("{out}", "%s/%d" % (self.name, k)).replace("{pre}", "%s/%d" % (pre or self.name, k)))
        return out

    def command(self, k, program, args, extra=(), streams=(), pre=None):
        return self.j.argv(self.build, self, program, self.fill(list(args), k, list(streams), pre) + list(extra)) + list(streams)

    def target(self, k, step):
        return "%s/%d.%s" % (self.name, k, {"stream": "tks", "set": "set", "end": "end"}[writes(step)])


class Files(Way):
    """One program after another; each step's output is a file, and a step that is refused is left out.

    results, books: of each step; made: streams and sets, in order; shuffled: what changes no checksum."""

    def run(self):
        streams, options = list(self.j.inputs), list(self.j.reader)
        self.results, self.books, self.made, self.shuffled = [], [], [], []
        last = None
        for k, step in enumerate(self.j.job["steps"]):
            r, books = self.step(k, step, streams, options)
            self.results.append(r)
            self.books.append(books)
            self.j.add("refused" if r.status else step["program"])
            if r.status:
                if self.name == "base":
                    self.j.refused.append(" ".join(self.j.groups(step)) + ": " + r.err.strip())
                if not streams or step["program"] == "tokenize":
                    return
                continue
            if last and books and step["program"] != "schedule" and any(last[w]["out"] != b["in"] for w, b in books.items() if w in last):
                raise Bad("books", "step %d: in is not the last program's out: %s, %s" % (k, last, books))
            out = self.target(k, step)
            if step["program"] == "dedup" and books["tokens"]["in"] != books["tokens"]["out"]:
                self.j.add("dedup found some")
            if writes(step) in ("set", "stream"):
                self.made.append(out)
                if step["program"] == "shuffle" and books["tokens"]["in"] == books["tokens"]["out"] and not books["tokens"]["repeated"] and not options:
                    self.shuffled.append((step, streams[0], out))
            if writes(step) != "end":
                streams, options, last = [out], [], books

    def step(self, k, step, streams, options):
        """Runs it: its result, and its books where it ended with 0."""
        if step["program"] == "schedule" and not streams[0].endswith(".set"):
            return Result(2, ""), None
        for program, args in step["pre"]:
            r = self.j.run(self.j.argv(self.build, self, program, self.fill(args, k, streams) + (options if "{in}" in args else [])))
            if r.status:
                return r, None
        out, stats = self.target(k, step), "%s/%d.stats" % (self.name, k)
        before = set(os.listdir(self.name))
        r = self.j.run(self.command(k, step["program"], self.j.groups(step), options + ["--stats", stats, "-o", out], streams))
        if r.status == 0:
            return r, self.j.books(stats)
        left = [f for f in set(os.listdir(self.name)) - before if not os.path.isdir(self.name + "/" + f) or os.listdir(self.name + "/" + f)]
        # Where no record was accepted, the rejects say why.
        left = [f for f in left if not (f.endswith(".rejects") and b'"reason"' in open(self.name + "/" + f, "rb").read())]
        if left:
            raise Bad("leftover", "a run that failed left %s: %s" % (left, self.j.log[-1]))
        return r, None


class Pipe(Way):
    """All steps that worked, in one pipe; the last one's output is a file."""

    def run(self):
        j, base = self.j, self.j.base
        chain = [(k, s) for k, (s, r) in enumerate(zip(j.job["steps"], base.results)) if r.status == 0]
        while chain and writes(chain[-1][1]) == "end":
            chain.pop()
        chain = [(k, s) for k, s in chain if writes(s) == "stream" or k == chain[-1][0]]
        if len(chain) < 2:
            return
        argvs = []
        for i, (k, step) in enumerate(chain):
            extra = ["--stats", "%s/%d.stats" % (self.name, k)]
            if i == 0:
                extra += j.reader
            if i + 1 == len(chain):
                extra += ["-o", self.target(k, step)]
            argvs.append(self.command(k, step["program"], j.groups(step), extra, j.inputs if i == 0 else [], pre="base"))
        self.carry_out(argvs)
        j.add(self.name + "s")
        for k, _ in chain:
            books = j.books("%s/%d.stats" % (self.name, k))
            if books != base.books[k]:
                raise Bad("books", "step %d: %s in the %s, %s alone" % (k, books, self.name, base.books[k]))
        for f in sorted(os.listdir(self.name)):
            if not f.endswith(".stats"):
                j.same("base/" + f, self.name + "/" + f)

    def carry_out(self, argvs):
        j = self.j
        j.log.append(" | ".join(j.shell(a) for a in argvs))
        procs, prev = [], subprocess.DEVNULL
        try:
            for i, a in enumerate(argvs):
                with open("err%d" % i, "wb") as err:
                    procs.append(subprocess.Popen(a, stdin=prev, stdout=subprocess.PIPE if i + 1 < len(argvs) else subprocess.DEVNULL, stderr=err,
                                                  env=ENV))
                if i:
                    prev.close()
                prev = procs[-1].stdout
            for p in procs:
                p.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise Bad("hangs", j.log[-1])
        finally:
            for p in procs:
                p.kill()
        for i, p in enumerate(procs):
            with open("err%d" % i, encoding="utf-8", errors="replace") as f:
                r = Result(p.returncode, f.read())
            j.sane(os.path.basename(argvs[i][0]), r, quiet=True)
            if r.status != 0:
                raise Bad("status", "%d in the pipe, 0 alone: %s\n%s" % (r.status, j.log[-1], r.err))


class Line(Pipe):
    """The same in one process, by `sluice run`."""

    def carry_out(self, argvs):
        words = [os.path.join(self.build.folder, "sluice"), "run"]
        for i, a in enumerate(argvs):
            words += ["!"] * bool(i) + [os.path.basename(a[0])[len(self.build.prefix):]] + a[1:]
        r = self.j.run(words)
        if r.status != 0:
            raise Bad("status", "%d in one process, 0 alone: %s\n%s" % (r.status, self.j.log[-1], r.err))
