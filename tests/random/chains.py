#!/usr/bin/env python3
"""Chains of changes to a folder of sluice-batch: after each, its set is that of a fresh run, or it says why not.

    chains.py [--seed S] [--chains N] [--only I] [--keep DIR] [-j N] [-v]

A chain begins with a random recipe and corpus, and changes them six times: options of any step, steps that come and go,
lists of documents, inputs (new, longer, shorter, gone, touched, with a bad record), limits, parts, seed; a list or an
input is exchanged between two parts; files between stages are removed; runs and single programs are killed. After each
change sluice-batch runs, with the recipe or by resume. If it exits with 0, the bytes of the set, or the records of the
stream, must be those of a pipe of the programs by the same recipe over the same files, and resume has nothing to do;
else a line must say why not. Then the change is taken back, or a new folder is begun if the line says that.

Chain I of a seed is the same for every N, but for the moments of kills. Prints "ok", "not ok" and "# " lines, and how
often sluice-batch took what, and refused what; exit 1 if anything failed. With --keep the folder of a failed chain stays.
"""
import argparse
import collections
import copy
import glob
import hashlib
import json
import multiprocessing
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from jobs import room_for_jobs  # noqa: E402

BIN = os.path.abspath(os.environ.get("BIN", "build/bin"))
WORDS = "sluice gate water river mill stone wheel turns slowly over the old wooden dam at night and day".split()

# The values of each line of a recipe. None: there is no such line; a list: several lines.
MENU = {
    "input": ["in", "in/*.jsonl", "in/[0-3].jsonl"],
    "tokenize": ["--id-field id", "--id-field id --ids-drop drop", "--id-field id --domain web", "--id-field id --sample 0.7",
                 "--id-field id --on-error skip", "--id-field id --on-error skip --ids-drop drop"],
    "dedup": [None, ["--exact"], ["--near"], ["--near --threshold 0.5"], ["--near --bands 7 --rows 4"], ["--exact", "--near"],
              ["--substring 20"]],
    "choose": [None, None, "--ids-drop drop", "--ids-keep keep", "--top 60% --by length", "--length 50.."],
    "decompose": ["--min 32 --max 256", "--min 16 --max 256", "--max=256 --min 32", "--min 32 --max 128",
                  "--min 32 --max 256 --tail drop"],
    "pack": [None, "", "--mix-domains"],
    "shuffle": [None, ""] + ["--accept-mismatch --tails drop --format " + f
                             for f in ("wds", "mds", "olmo --olmo-path /data", "wds --shard-sequences 16")],
    "parts": ["2", "3"],
    "seed": [None, "1"],
    "keep": [None, "needed"],
    "memory": [None, "512M"],
}
LIMITS = ("parts", "keep", "memory")  # they decide no byte of the set


class Bad(Exception):
    pass


def draw_recipe(rng):
    return {key: rng.choice(values) for key, values in MENU.items()}


def document(rng, name):
    if rng.random() < 0.25:  # duplicates and near duplicates, of few texts
        rng = random.Random(rng.randrange(6))
    words = [rng.choice(WORDS) for _ in range(rng.randrange(5, 400))]
    return {"id": name, "text": " ".join(words)}


class State:
    """What the user has: a recipe, inputs, lists."""

    def __init__(self, rng):
        self.recipe = draw_recipe(rng)
        self.files, self.made = {}, 0
        for _ in range(rng.randrange(2, 5)):
            self.new_file(rng)
        self.lists = {"drop": self.some_ids(rng, 0.1), "keep": self.some_ids(rng, 0.8)}

    def new_file(self, rng):
        name = "in/%d.jsonl" % self.made
        self.files[name] = [document(rng, "%d-%d" % (self.made, i)) for i in range(rng.randrange(5, 25))]
        self.made += 1
        return name

    def some_ids(self, rng, share):
        ids = [d["id"] for f in self.files.values() for d in f if isinstance(d, dict)]
        return [i for i in ids if rng.random() < share] or ids[:1]

    def text_of(self, name):
        if name in self.lists:
            return "".join(i + "\n" for i in self.lists[name])
        return "".join((d if isinstance(d, str) else json.dumps(d)) + "\n" for d in self.files[name])

    def write(self, before=None):
        """Writes what differs from `before`."""
        os.makedirs("in", exist_ok=True)
        for name in os.listdir("in"):
            if "in/" + name not in self.files:
                os.remove("in/" + name)
        for name in [*self.files, *self.lists]:
            text = self.text_of(name)
            if not os.path.exists(name) or before is None or open(name).read() != text:
                with open(name + ".new", "w") as f:
                    f.write(text)
                os.rename(name + ".new", name)
        with open("recipe", "w") as f:
            for key, v in self.recipe.items():
                for one in v if isinstance(v, list) else [v] if v is not None else []:
                    f.write("%s = %s\n" % (key, one))

    def key(self):
        """What decides the set."""
        return json.dumps([{k: v for k, v in self.recipe.items() if k not in LIMITS}, self.files, self.lists])


def digest(folder):
    """Of all names and contents of a set; of the records of a stream in parts; None: there is neither."""
    h = hashlib.sha256()
    streams = sorted(glob.glob(folder + "/*.tks"))
    if streams:
        p = subprocess.run(["sh", "-c", 'cat "$@" | "$0" --records -', BIN + "/inspect", *streams], stdout=subprocess.PIPE)
        return p.returncode == 0 and hashlib.sha256(p.stdout).hexdigest()
    names = sorted(os.path.join(d, f) for d, _, files in os.walk(folder) for f in files)
    if not names:
        return None
    for n in names:
        h.update(n[len(folder):].encode() + b"\0" + open(n, "rb").read() + b"\0")
    return h.hexdigest()


def run(command, timeout=120, **more):
    p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                       errors="replace", **more)
    return p.returncode, p.stdout, p.stderr


class Chain:
    def __init__(self, seed, i, verbose):
        self.rng = random.Random("%s/%d" % (seed, i))
        self.state, self.fresh, self.verbose = State(self.rng), {}, verbose
        self.took, self.told, self.log = collections.Counter(), collections.Counter(), []

    def batch(self, *words, any_status=False):
        self.log.append("sluice-batch " + " ".join(words))
        status, out, err = run([BIN + "/sluice-batch", *words])
        self.log.append("  %d %s" % (status, (err or out).strip().replace("\n", "\n    ")))
        if status not in (0, 1) and not any_status:
            raise Bad("status %d: %s" % (status, err))
        return status, out, err

    def pipe(self):
        """The digest of the set by one pipe; None where a program refuses."""
        key = self.state.key()
        if key not in self.fresh:
            r = self.state.recipe
            steps = [["tokenize", r["tokenize"] + " " + r["input"]]]
            steps += [["dedup", d] for d in r["dedup"] or []]
            steps += [[p, r[p]] for p in ("choose", "decompose", "pack", "shuffle") if r[p] is not None]
            steps[-1][1] += " -o fresh/set" if "--format" in steps[-1][1] else " -o fresh/0.tks"
            seed = " --seed " + r["seed"] if r["seed"] else ""
            shutil.rmtree("fresh", ignore_errors=True)
            os.mkdir("fresh")
            line = " | ".join("%s/%s -q%s %s" % (shlex.quote(BIN), p, seed, o) for p, o in steps)
            status, _, err = run(["bash", "-c", "set -o pipefail; " + line])
            self.fresh[key] = ((digest("fresh/set") or digest("fresh")) if status == 0 else None, err)
        return self.fresh[key]

    # ---- changes: each alters self.state or the folder, and returns its name ----

    def option(self):
        key = self.rng.choice([k for k in MENU if k not in LIMITS])
        old = self.state.recipe[key]
        self.state.recipe[key] = self.rng.choice([v for v in MENU[key] if v != old])
        return "option of " + key

    def limit(self):
        key = self.rng.choice(LIMITS)
        self.state.recipe[key] = self.rng.choice([v for v in MENU[key] if v != self.state.recipe[key]])
        return "limit " + key

    def a_list(self):
        name = self.rng.choice(["drop", "keep"])
        self.state.lists[name] = self.state.some_ids(self.rng, self.rng.choice([0.1, 0.5, 0.9]))
        return "list"

    def new_input(self):
        self.state.new_file(self.rng)
        return "new input"

    def lost_input(self):
        if len(self.state.files) > 1:
            del self.state.files[self.rng.choice(sorted(self.state.files))]
        return "input gone"

    def other_input(self):
        f = self.state.files[self.rng.choice(sorted(self.state.files))]
        if self.rng.random() < 0.5 and len(f) > 1:
            f.pop()
            return "input shorter"
        f.append(document(self.rng, "more-%d" % self.rng.randrange(10**6)))
        return "input longer"

    def same_size(self):
        f = self.state.files[self.rng.choice(sorted(self.state.files))]
        d = f[self.rng.randrange(len(f))]
        if isinstance(d, dict):
            d["text"] = "".join(reversed(d["text"]))
        return "input of the same size"

    def bad_record(self):
        f = self.state.files[self.rng.choice(sorted(self.state.files))]
        f.insert(self.rng.randrange(len(f) + 1), '{"id": "bad", "text": 7}')
        if self.rng.random() < 0.8 and "skip" not in self.state.recipe["tokenize"]:
            self.pending = ("tokenize", self.state.recipe["tokenize"] + " --on-error skip")
        return "bad record"

    def touched(self):
        os.utime(self.rng.choice(sorted(self.state.files) + sorted(self.state.lists)))
        return "touched"

    def cleaned(self):
        if os.path.isdir("out"):
            self.batch("clean", "out")
        return "clean"

    def killed(self):
        """A run by a changed recipe is killed, whole or one of its programs."""
        self.option()
        self.state.write(self.before)
        p = subprocess.Popen([BIN + "/sluice-batch", "--local", "2", "recipe", "out"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            p.wait(self.rng.random() * self.rng.choice([0.3, 1, 3]))
        except subprocess.TimeoutExpired:
            if self.rng.random() < 0.3:
                run(["pkill", "-KILL", "-g", str(p.pid), "-n"])
                p.wait(120)
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()
        while run(["pgrep", "-g", str(p.pid)])[0] == 0:
            time.sleep(0.02)
        return "killed"

    def by_hand(self):
        """Some tasks part by part, as other schedulers run them; a list or an input changes between parts."""
        self.option()
        self.state.write(self.before)
        if self.batch("init", "recipe", "out")[0] == 0:
            for line in self.batch("stages", "out")[1].splitlines()[:self.rng.randrange(1, 6)]:
                task, parts, _ = line.split()
                for i in range(int(parts)):
                    self.batch("task", "out", task, str(i), any_status=True)
                    if self.rng.random() < 0.2:
                        self.rng.choice([Chain.a_list, Chain.a_list, Chain.other_input, Chain.new_input])(self)
                        self.state.write(self.before)
        return "by hand"

    CHANGES = [option] * 6 + [limit] * 2 + [a_list] * 3 + [new_input, lost_input, other_input, other_input, same_size, bad_record,
                                                     bad_record, touched, cleaned, killed, killed, killed, by_hand, by_hand]

    # ---- what must hold ----

    def settle(self, what, may_resume=True):
        """Runs sluice-batch until it says that all is done, or why not; compares. False: it refused."""
        resumed = may_resume and self.rng.random() < 0.2 and os.path.isdir("out")
        status, out, err = self.batch(*(["resume"] if resumed else ["recipe"]), "out", "--local", "2")
        if resumed and (status != 0 or self.folder_differs()):
            status, out, err = self.batch("recipe", "out", "--local", "2")
            resumed = False
        want, why = self.pipe()
        if status == 0:
            if want and (digest("out/shards") or digest("out/stream")) == want:
                self.took[what] += 1
                if self.rng.random() < 0.2 and self.batch("resume", "out", "--local", "2")[1].count("\n") != 1:
                    raise Bad("%s: resume has something to do" % what)
                return True
            # resume keeps to the inputs that it has read, and says that they are others now.
            if resumed and re.search("tokenize: was made from |what was made of (it|them) is kept|, and was not there when", err):
                self.told[what + ": resume keeps what was made of other inputs"] += 1
                return self.settle(what, False)
            raise Bad("%s: another set than that of a pipe" % what if want else
                      "%s: sluice-batch made a set, and a pipe refuses: %s" % (what, why))
        lines = [x for x in err.splitlines() if x.startswith("sluice-batch: ")]
        if not lines:
            raise Bad("%s: status 1, and no line says why: %s" % (what, err))
        text = re.sub(r"\d+|in/\S+|\"[^\"]*\"", "#", lines[-1][14:])
        self.told["%s: %s" % (what, text[:150])] += 1
        return False

    def folder_differs(self):
        """Whether the folder has another recipe than the user: resume goes by that of the folder."""
        return sorted(open("recipe").read().splitlines()) != sorted(open("out/recipe").read().splitlines())

    def go(self):
        self.before = self.pending = None
        self.state.write()
        while not self.settle("first run"):
            shutil.rmtree("out", ignore_errors=True)
            self.state.recipe = draw_recipe(self.rng)
            self.state.write()
        for _ in range(6):
            self.before, self.pending = copy.deepcopy(self.state), None
            what = self.rng.choice(self.CHANGES)(self)
            self.log.append("# " + what)
            self.state.write(self.before)
            good = self.settle(what)
            if not good and self.pending:
                self.state.recipe[self.pending[0]] = self.pending[1]
                self.state.write(self.before)
                what += ", --on-error skip"
                good = self.settle(what)
            if not good and not self.again(what):
                raise Bad("%s: refused, and taking it back does not help" % what)

    def again(self, what):
        """After a refusal: what was before, in the same folder or in a new one."""
        last = self.log[-1]
        self.state = self.before
        self.state.write(self.state)
        if "use another folder" in last or "other folder" in last:
            shutil.rmtree("out")
        return self.settle("taken back")


def one(task):
    seed, i, keep, verbose = task
    here, folder = os.getcwd(), tempfile.mkdtemp(prefix="sluice-chain.", dir=room_for_jobs())
    os.chdir(folder)
    chain, bad = Chain(seed, i, verbose), None
    try:
        chain.go()
    except Bad as b:
        bad = str(b)
    except subprocess.TimeoutExpired as t:
        bad = "no end: %s" % t
    os.chdir(here)
    if bad and keep:
        os.makedirs(keep, exist_ok=True)
        shutil.rmtree("%s/%s-%d" % (keep, seed, i), ignore_errors=True)
        shutil.move(folder, "%s/%s-%d" % (keep, seed, i))
    shutil.rmtree(folder, ignore_errors=True)
    return "%s/%d" % (seed, i), bad, chain.took, chain.told, chain.log


def main(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", default="1")
    p.add_argument("--chains", type=int, default=300)
    p.add_argument("--only", type=int, help="that chain alone")
    p.add_argument("--keep", help="folder of failed chains")
    p.add_argument("-v", action="store_true", help="print the commands of failed chains")
    p.add_argument("-j", type=int, default=len(os.sched_getaffinity(0)))
    args = p.parse_args(argv)
    numbers = range(args.chains) if args.only is None else [args.only]
    took, told, failed = collections.Counter(), collections.Counter(), 0
    with multiprocessing.Pool(args.j) as pool:
        for name, bad, a, b, log in pool.imap_unordered(one, [(args.seed, i, args.keep, args.v) for i in numbers]):
            took, told, failed = took + a, told + b, failed + bool(bad)
            print("%sok chain %s%s" % (("not ", name, ": " + bad) if bad else ("", name, "")))
            if bad or (args.v and args.only is not None):
                print("\n".join("# " + x for x in "\n".join(log).splitlines()))
            sys.stdout.flush()
    for what, n in sorted(took.items()):
        print("# %5d the set of a fresh run: %s" % (n, what))
    for what, n in sorted(told.items()):
        print("# %5d refused: %s" % (n, what))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
