"""programs.py BIN [SEED] - programs on the emulated device: the bytes of --device cpu, and kernels that ran.

BIN holds programs that are linked with tests/emu/cudart.c; $BIN the ordinary ones, which make their input. Each job runs
with --device cpu and with --device cuda and
must write the same. Findings of the emulator are exit statuses.
"""
import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

BIN = os.path.abspath(sys.argv[1])
ORDINARY = os.environ["BIN"]
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
failed = 0


def report(good, what, why=""):
    global failed
    failed += not good
    print("%s %s%s" % ("ok" if good else "not ok", what, "" if good else ": " + why), flush=True)


def run(args, folder=BIN, **more):
    env = dict(os.environ, SLU_EMU_LOG="log", SLUICE_CACHE_DIR="", **more)
    if os.path.exists("log"):
        os.unlink("log")
    p = subprocess.run([os.path.join(folder, args[0])] + args[1:], env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = p.stdout
    if "--plan" in args:  # a column of pack's is seconds
        out = re.sub(rb"(?m) +[0-9]+\.[0-9]{3}$", b"", out)
    told = re.sub(r"(?m); [0-9.]+ s$", "", p.stderr.decode("utf-8", "replace"))  # the summary line ends in seconds
    return p.returncode, hashlib.sha256(out).hexdigest(), told, len(out)


def logged(number):
    with open("log") as f:
        return int(re.search(number, f.read()).group(1))


def check(args, device_memory=None):
    what = " ".join(args) + (", %s MiB" % device_memory if device_memory else "")
    want = run(args + ["--device", "cpu"])
    if want[0] != 0 or want[3] == 0:
        report(False, what, "--device cpu: status %d, %d bytes: %s" % (want[0], want[3], want[2]))
        return
    got = run(args + ["--device", "cuda"], **({"SLU_EMU_MIB": device_memory} if device_memory else {}))
    if got[:2] != want[:2] or got[2] != want[2]:
        report(False, what, "status %d, %s bytes: %s, not %s" % (got[0], "the same" if got[1] == want[1] else "other",
                                                                 got[2][-2000:], want[2][-2000:]))
    else:
        ids = sum(os.path.getsize(a) for a in args if a.endswith(".npy")) if args[0] == "pack" else 0
        ran, locked = logged("launches ([0-9]+)"), logged("up ([0-9]+) pinned")
        report(ran and locked >= ids, what, "%d kernels ran; %d bytes went up from page-locked memory, %d are ids" % (
            ran, locked, ids))


def files(r):
    """Documents of bytes, some of which are not trained on; ids of two and of four bytes with 0 behind each document."""
    with open("c.jsonl", "w") as f:
        for i in range(600):
            n = r.choice((0, 1, 7, 60, 300, 2000)) + r.randrange(40)
            f.write('{"text": "%s", "domain": "%s"}\n' % ("".join(r.choice("abc de") for _ in range(n)), r.choice("xyz")))
    with open("m.jsonl", "w") as f:
        for i in range(300):
            f.write('{"text": "%s", "spans": [[0, %d]]}\n' % ("abc" * r.randrange(1, 99), i % 3))
    with open("short.jsonl", "w") as f:
        f.write('{"text": "a"}\n' * 150000)
    for name, code, top in (("a.npy", "H", 50000), ("b.npy", "I", 120000)):
        ids = [r.randrange(1, top) if r.randrange(150) else 0 for _ in range(90000)] + [7] * 9000 + [0, 0, 5, 0]
        with open(name, "wb") as f:
            f.write(struct.pack("<%d%s" % (len(ids), code), *ids))


def jobs():
    stream, two, four = ["c.tks"], ["--eos-id", "0", "--token-bytes", "2", "a.npy"], [
        "--eos-id", "0", "--token-bytes", "4", "--vocab-size", "120000", "b.npy"]
    for method in ("bfd", "ffd", "spfhp", "lpfhp", "nnlshp", "concat"):
        yield ["pack", "--length", "512", "--method", method] + stream
    yield ["pack", "--method", "multi", "--buckets", "256,512,1024"] + stream
    yield ["pack", "--length", "300", "--mix-domains"] + two
    yield ["pack", "--length", "1024", "--fill", "drop", "-T", "2"] + four
    yield ["pack", "--length", "512", "--balance", "2"] + two
    yield ["pack", "--length", "512", "--max-segments", "3"] + four
    yield ["pack", "--length", "512", "-z"] + stream
    yield ["pack", "d.tks"]
    yield ["pack", "--length", "512", "--long", "split", "m.tks"]
    yield ["pack", "--length", "512", "--order", "related"] + stream
    yield ["pack", "--length", "700", "-M", "32M"] + four + ["b.npy", "b.npy"]
    yield ["pack", "--plan", "--length", "512"] + stream
    for inputs in (stream, two, four):
        yield ["decompose", "--plan"] + inputs
    for inputs in (two, four):
        yield ["inspect", "--histogram"] + inputs


def larger_than_device():
    """Ids that the device has no room for are read over the bus, to be hashed and to be placed; no copy brings them there.
    One thread: others would bring batches to the pool in another order, and sectors at their borders cross the bus twice."""
    for method in ("bfd", "concat"):
        args = ["pack", "-T", "1", "-M", "32M", "--length", "512", "--method", method, "--eos-id", "0", "--token-bytes", "2"] + 8 * ["a.npy"]
        n_tok = 8 * os.path.getsize("a.npy") // 2
        want = run(args + ["--device", "cpu"])
        got = run(args + ["--device", "cuda"], SLU_EMU_MIB="3", SLU_EMU_TRACE="trace")
        with open("trace") as f:
            lines = f.read().split("\n")
        hashed = next((i for i, line in enumerate(lines) if "hash_seqs" in line), 0) - 1  # what that launch read
        up = [0] + [int(line.split()[1]) for i, line in enumerate(lines) if line.startswith("up ") and i != hashed]
        report(got[:3] == want[:3] and want[0] == 0 and lines[hashed] == "up %d pinned" % (2 * n_tok)
               and max(up) < 2 * n_tok <= sum(up) < 2.6 * n_tok,
               "%s: the pool stays on the host" % " ".join(args), "%s, not %s; %d bytes up, at most %d at once, %d ids" % (
                   got, want, sum(up), max(up), n_tok))


def beyond_memory():
    """Documents that wait for the device go to disk when they take half of -M: the CPU hashes and packs them."""
    args = ["pack", "--length", "512", "-M", "32M", "--stats", "s", "short.tks"]
    want, got = (run(args + ["--device", d]) for d in ("cpu", "cuda"))
    with open("s") as f:
        spilled = json.load(f)["spill_bytes"]
    report(got[:2] == want[:2] and want[0] == 0 and spilled, " ".join(args), "%s, not %s; %d bytes spilled" % (got, want, spilled))


def main():
    with tempfile.TemporaryDirectory(prefix="sluice-emu.", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        os.chdir(folder)
        files(random.Random(SEED))
        for args in (["tokenize", "-t", "bytes", "--domain-field", "domain", "c.jsonl", "-o", "c.tks"],
                     ["tokenize", "-t", "bytes", "--spans-field", "spans", "m.jsonl", "-o", "m.tks"],
                     ["tokenize", "-t", "bytes", "short.jsonl", "-o", "short.tks"],
                     ["decompose", "--min", "64", "--max", "256", "c.tks", "-o", "d.tks"]):
            done = run(args, ORDINARY)
            if done[0]:
                report(False, " ".join(args), done[2])
                return
        for args in jobs():
            check(args)
        got = run(["inspect", "--histogram", "--device", "cuda", "c.tks"])
        report(got[0] == 0 and got[2].count("\n") == 1 and "no kernel had work" in got[2], "a device without work", got[2])
        run(["decompose", "--plan", "--device", "cuda", "--stats", "s", "c.tks"], SLU_EMU_TRACE="trace", SLU_EMU_SM="2")
        with open("trace") as f, open("s") as g:
            lines, n = [line.split() for line in f], json.load(g)["documents"]["in"]
        up, blocks = sum(int(w[1]) for w in lines if w[0] == "up"), [w[2] for w in lines if w[0] == "launch"]
        report(up == 4 * n and blocks == ["2"], "lengths cross once, of four bytes, for all multiprocessors",
               "%d bytes for %d lengths; launches of %s blocks" % (up, n, blocks))
        check(["pack", "--length", "512", "c.tks"], "3")  # windows of the output, or no room at all
        larger_than_device()
        beyond_memory()
        os.chdir("/")


main()
sys.exit(failed != 0)
