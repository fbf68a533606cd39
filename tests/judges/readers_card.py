"""readers_card.py - runs the lines of Python in a set's data card in the set's folder, with the package that they
name; they must give as many ids as the card says. For every format of this build. Prints `ok`, `not ok` or `skip`
lines.
"""
import os, re, subprocess, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
bin_dir = os.environ.get("BIN") or os.path.join(here, "../../build/bin")
env = dict(os.environ, PATH=bin_dir + ":" + os.environ["PATH"], SLUICE_CACHE_DIR="")
WANTS_LABELS = {"wds", "ds", "megatron"}


def sh(line, **more):
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", line], env=env, capture_output=True, text=True, **more)


def card(d, format):
    label = "--label-token" if format in WANTS_LABELS else ""
    made = sh("tokenize -t bytes c.jsonl | decompose --min 64 --max 256 %s | pack | shuffle -q --format %s -o %s" % (label, format, format), cwd=d)
    if made.returncode:
        missing = "is not built in" in made.stderr
        return print("%s card %s: %s" % ("skip" if missing else "not ok", format, made.stderr.strip()[-200:]))
    text = open(os.path.join(d, format, "README.md"), encoding="utf-8").read()
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    want = int(re.search(r"# (\d+) ids", code).group(1))
    ran = subprocess.run([sys.executable, "-c", code + "\nprint('ids', len(ids))"], cwd=os.path.join(d, format), env=env,
                         capture_output=True, text=True, timeout=120)
    last = (ran.stderr.strip() or ran.stdout.strip()).split("\n")[-1]
    if ran.returncode and "No module named" in last:
        return print("skip card %s: %s" % (format, last))
    good = ran.returncode == 0 and "ids %d" % want in ran.stdout
    print("%s card %s: its lines of Python read %d ids%s" % ("ok" if good else "not ok", format, want, "" if good else ": " + last))


with tempfile.TemporaryDirectory() as d:
    with open(os.path.join(d, "c.jsonl"), "w") as f:
        for i in range(400):
            f.write('{"text": "%s"}\n' % ("some words %d " % i * (i % 40 + 1)))
    for format in sys.argv[1:] or ["wds", "olmo", "ds", "megatron", "mds", "litdata", "parquet"]:
        card(d, format)
