"""readers_card.py - runs the lines of Python in a set's data card in the set's folder, with the package that they
name; they must give as many ids as the card says, and with masks the mask of the first sequence. For every format of
this build. Prints `ok`, `not ok` or `skip`
lines.
"""
import json, os, re, subprocess, sys, tempfile
from contextlib import nullcontext

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "lib"))
from sets import streaming_lock  # noqa: E402
bin_dir = os.environ.get("BIN") or os.path.join(here, "../../build/bin")
env = dict(os.environ, PATH=bin_dir + ":" + os.environ["PATH"], SLUICE_CACHE_DIR="")
WANTS_LABELS = {"wds", "ds", "megatron"}


def sh(line, **more):
    return subprocess.run(["bash", "-e", "-o", "pipefail", "-c", line], env=env, capture_output=True, text=True, **more)


def card(d, format, masks=False, documents=False):
    label = "--label-token" if format in WANTS_LABELS else ""
    name = format + "-masks" * masks + "-documents" * documents
    steps = "shuffle -q --documents --order keep" if documents else "decompose --min 64 --max 256 %s | pack --long error | shuffle -q" % label
    made = sh("tokenize -t bytes %s c.jsonl | %s --format %s -o %s" % ("--spans-field spans" * masks, steps, format, name), cwd=d)
    if " cannot carry masks" in made.stderr or " cannot take whole documents" in made.stderr:
        return
    if made.returncode:
        missing = "is not built in" in made.stderr
        return print("%s card %s: %s" % ("skip" if missing else "not ok", format, made.stderr.strip()[-200:]))
    text = open(os.path.join(d, name, "README.md"), encoding="utf-8").read()
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    want = 0 if documents else int(re.search(r"# (\d+) ids", code).group(1))
    code += "\nprint('ids', len(ids))" + "\nprint('mask', [int(x) for x in mask])" * masks
    code += "\nprint('all', [int(x) for x in ids])" * documents
    with streaming_lock() if format == "mds" else nullcontext():
        ran = subprocess.run([sys.executable, "-c", code], cwd=os.path.join(d, name), env=env, capture_output=True, text=True, timeout=120)
    last = (ran.stderr.strip() or ran.stdout.strip()).split("\n")[-1]
    if ran.returncode and "No module named" in last:
        return print("skip card %s: %s" % (format, last))
    good = ran.returncode == 0 and "ids %d" % want in ran.stdout
    if documents:  # the first one, or what the reader takes of all
        said = {k: json.loads(v) for k, v in re.findall(r"^(all|mask) (\[.*\])$", ran.stdout, re.M)}
        rows = [json.loads(line) for line in sh("inspect --records " + name, cwd=d).stdout.splitlines()]
        want = len(said.get("all", []))
        good = want >= len(rows[0]["tokens"]) and said["all"] == [i for r in rows for i in r["tokens"]][:want]
        good = good and (not masks or said["mask"] == [i for r in rows for i in r["mask"]][:want])
    elif masks:
        first = json.loads(sh("inspect --records=1 " + name, cwd=d).stdout)
        at = 0
        for part in first["segments"] if format == "megatron-sft" else []:  # which has no label there
            first["mask"][at], at = 0, at + part["length"]
        good = good and 0 < sum(first["mask"]) < want and "mask %s" % first["mask"] in ran.stdout
    print("%s card %s: its lines of Python read %d ids%s" % ("ok" if good else "not ok", name, want, "" if good else ": " + last))


with tempfile.TemporaryDirectory() as d:
    with open(os.path.join(d, "c.jsonl"), "w") as f:
        for i in range(400):
            text = "some words %d " % i * (i % 40 + 1)
            f.write(json.dumps({"text": text, "spans": [[k, k + 7] for k in range(3, len(text) - 7, 20)]}) + "\n")
    for format in sys.argv[1:] or ["wds", "olmo", "ds", "megatron", "mds", "litdata", "parquet", "megatron-sft"]:
        card(d, format)
        card(d, format, masks=True)
        card(d, format, documents=True)
        card(d, format, masks=True, documents=True)
