"""batch_chains.py - random chains of changes in a folder of sluice-batch.

After each change the folder has the bytes of a fresh one of the same recipe, lists and inputs, or both are refused; and
resume finds nothing to do. $CHAINS says how many chains, $CHAIN the first.
"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time

from stages import FULL, MORE, result

BATCH = "sluice-batch"
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()
WDS = "--format wds --accept-mismatch --tails drop --shard-sequences "
CHOICES = {
    "tokenize": ["", " --on-error skip", " --sample 0.7", " --ids-drop drop", " --ids-drop drop --on-error skip"],
    "dedup": [None, "--exact", "--near", "--near --threshold 0.6"],
    "choose": [None, "--ids-drop drop2", "--top 60% --by length", "--length 10.."],
    "decompose": ["--min 16 --max 64", "--min 16 --max 128", "--max=64 --min 16"],
    "pack": [None, ""],
    "shuffle": [None, "", WDS + "16", WDS + "32", "--format mds --accept-mismatch --tails drop"],
    "keep": ["all", "needed"],
    "memory": [None, "1G", "2G"],
    "parts": [1, 2, 3],
    "seed": [0, 1],
    "input": ["in", "in/a*", "in/*.jsonl"],
}
KEYS = ["input", "parts", "seed", "tokenize", "dedup", "choose", "decompose", "pack", "shuffle", "keep", "memory"]
OTHERS = ["list", "list", "file", "new file", "no file", "time", "nothing"]


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def texts(r, name, n, bad=False):
    rows = [json.dumps({"id": "%s-%d" % (name, i), "text": " ".join(r.choices(WORDS, k=r.randint(5, 60)))}) for i in range(n)]
    write("in/%s.jsonl" % name, "\n".join(rows + ['{"text": 1}'] * bad) + "\n")


def recipe(lines):
    write("recipe", "".join("%s = %s%s\n" % (k, "--id-field id" if k == "tokenize" else "", lines[k]) for k in KEYS if lines[k] is not None))


def change(r, lines):
    """Changes one thing; returns which."""
    what = r.choice([*CHOICES, "tokenize", "choose", "shuffle", *OTHERS])
    if what in CHOICES:
        lines[what] = r.choice(CHOICES[what])
    elif what == "list":
        write(r.choice(["drop", "drop2"]), "".join("%s-%d\n" % (r.choice("abc"), r.randint(0, 30)) for _ in range(5)))
    elif what == "file":
        texts(r, r.choice("ab"), 30)
    elif what == "new file":
        texts(r, "a%d" % r.randint(1, 3), 15, r.random() < 0.1)
    elif what == "no file":
        os.remove("in/" + r.choice([f for f in sorted(os.listdir("in")) if f != "a.jsonl"] or ["a.jsonl"]))
        if not os.path.exists("in/a.jsonl"):
            texts(r, "a", 30)
    elif what == "time":
        os.utime("in/a.jsonl")
    return what


def run(*words):
    return subprocess.run([BATCH, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def killed(r):
    p = subprocess.Popen([BATCH, "--local", "2", "recipe", "out"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(r.uniform(0.05, 1.2))
    if r.random() < 0.5:
        os.killpg(p.pid, signal.SIGKILL)
    else:
        p.kill()
    p.wait()


def by_hand(r, lines, log):
    """Runs some tasks part by part, as other schedulers do, and changes things between parts."""
    if run("init", "recipe", "out").returncode:
        return
    for line in run("stages", "out").stdout.splitlines()[:r.randint(1, 6)]:
        task, parts, _ = line.split()
        for i in range(int(parts)):
            run("task", "out", task, str(i))
            if r.random() < 0.2:
                log.append("between parts: " + change(r, dict(lines)))


def contents(folder):
    h = hashlib.sha256()
    for top in "shards", "stream":
        for path, folders, files in sorted(os.walk(os.path.join(folder, top))):
            for f in sorted(files):
                if f.endswith("manifest.json"): # of a stream, with times of files
                    continue
                with open(os.path.join(path, f), "rb") as data:
                    h.update(os.path.relpath(data.name, folder).encode() + data.read())
    return h.hexdigest()


def step(r, lines, log, first):
    """One change, and what it must lead to. Returns what is wrong."""
    for _ in range(r.choice([1, 1, 2])):
        log.append(change(r, lines))
    recipe(lines)
    way = 1 if first else r.random()
    if way < 0.35:
        killed(r)
        log.append("kill")
        if r.random() < 0.4:
            log.append(change(r, lines))
            recipe(lines)
    elif way < 0.55:
        log.append("by hand")
        by_hand(r, lines, log)
    shutil.rmtree("fresh", ignore_errors=True)
    old, fresh = run("--local", "2", "recipe", "out"), run("--local", "2", "recipe", "fresh")
    if old.returncode != fresh.returncode:
        return "%d, and %d in a fresh folder: %s" % (old.returncode, fresh.returncode, (old.stderr + fresh.stderr)[-600:])
    if old.returncode:
        return ""
    if contents("out") != contents("fresh"):
        return "other bytes than in a fresh folder"
    if sorted(os.listdir("out/stats")) != sorted(os.listdir("fresh/stats")):
        return "other reports than in a fresh folder"
    again = run("resume", "--local", "2", "out")
    return "" if again.returncode == 0 and again.stdout.count("\n") == 1 else "resume: " + again.stdout + again.stderr


def chain(seed):
    r, log = random.Random(seed), []
    shutil.rmtree("in", ignore_errors=True)
    shutil.rmtree("out", ignore_errors=True)
    os.mkdir("in")
    for name, n in ("a", 40), ("b", 40), ("c", 20):
        texts(r, name, n)
    for name in "drop", "drop2":
        write(name, "a-1\nb-2\n")
    lines = {k: CHOICES[k][0] for k in KEYS}
    lines["dedup"], lines["shuffle"] = r.choice([None, "--near"]), r.choice([None, WDS + "16"])
    for i in range(4):
        why = step(r, lines, log, i == 0)
        if why:
            return "%s: %s" % (", ".join(log), why)
    return ""


many = int(os.environ.get("CHAINS") or (300 if FULL else 12 if MORE else 2))
begin = int(os.environ.get("CHAIN", 1))
for n in range(begin, begin + many):
    why = chain(n)
    result(not why, "chain %d" % n, why)
    if why:
        break
