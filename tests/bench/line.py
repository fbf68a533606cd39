#!/usr/bin/env python3
"""MB/s and Mtok/s of every program and of the whole line, beside Hugging Face's `tokenizers`.

    line.py [-n RUNS] CORPUS_FOLDER
    line.py [-n RUNS] -t TOKENIZER FILE...

Each program is timed alone, from a file in the page cache to a file, with -T1 and -T2 in turn; then
the line of five in one pipe. The figures are medians; MB is 10^6 bytes of raw text (for tokenize and the
line) or of the stream read (for the others). Hugging Face's `tokenizers` encodes the same text in the same
run with the same vocabulary (GPT-2, from the judges), from records that are in memory already, on one
thread: reading, JSON and zstd are not counted against it. Prints a Markdown table. Nothing is asserted:
timings are only printed.

-t: processor seconds and time of the line by `sluice run` and as a pipe, in turn, from FILEs to shards in
memory; "the rest" is the line less tokenize alone. Each run is preceded by touching memory: a virtual
machine gives freed memory back, and taking it again costs ten times what the programs do with it.
"""
import argparse, json, mmap, os, shutil, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
O = os.environ.get("O", "build")
BIN = os.environ.get("BIN", os.path.join(ROOT, O, "bin"))
VOCAB = os.path.join(ROOT, O, "judges", "vocab")


def run(argv, stats):
    """Runs one program with --stats; (seconds of the process, its report)."""
    began = time.perf_counter()
    subprocess.run([os.path.join(BIN, argv[0])] + argv[1:] + ["-q", "--stats", stats], check=True,
                   stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    with open(stats) as f:
        return seconds, json.load(f)


def gpt2():
    """tokenizer.json of GPT-2 as the judges have it, or None."""
    for folder, _, names in os.walk(VOCAB):
        for name in names:
            if name == "gpt2.json":
                return os.path.join(folder, name)
    return None


def hugging_face(tokenizer, texts):
    try:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        from tokenizers import Tokenizer
    except ImportError:
        return None
    t = Tokenizer.from_file(tokenizer)
    began = time.perf_counter()
    n = sum(len(t.encode(x, add_special_tokens=False).ids) for x in texts)
    return time.perf_counter() - began, n


def sample(corpus, most):
    """Texts of about `most` bytes, spread over the corpus' files."""
    files = sorted(os.path.join(corpus, f) for f in os.listdir(corpus) if f.endswith(".zst"))
    texts, size = [], 0
    for path in files:
        with open(path, "rb") as f, subprocess.Popen(["zstd", "-dcq"], stdin=f, stdout=subprocess.PIPE) as p:
            here = 0
            for line in p.stdout:
                text = json.loads(line)["text"]
                texts.append(text)
                here += len(text.encode())
                if here > most / len(files):
                    break
            size += here
            p.stdout.close()
            p.kill()
    return texts, size


def touch(n_byte):
    if os.fork():
        return os.wait()
    memory = mmap.mmap(-1, n_byte, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory[::4096] = bytes(n_byte // 4096)
    os._exit(0)


def beside(tokenizer, files, n):
    """One process beside the pipe: medians of n, ratios in pairs."""
    os.environ["PATH"] = BIN + ":" + os.environ["PATH"]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        first = "tokenize -q -t %s %s" % (tokenizer, " ".join(files))
        line = lambda sep, f: (" %s " % sep).join([first, "dedup -q", "decompose -q --min 256 --max 8192 --label-token",
                                                   "pack -q", "shuffle -q --format %s -o %s/set" % (f, tmp)])
        commands = {"tokenize": first + " -o /dev/null"}
        for f in ("wds", "megatron --accept-mismatch"):
            commands[f.split()[0], "|"] = line("|", f)
            commands[f.split()[0], "!"] = "sluice run " + line("!", f)
        seen = {k: [] for k in commands}
        for i in range(n + 1): # the first is not counted
            for k, command in commands.items():
                shutil.rmtree(tmp + "/set", ignore_errors=True)
                touch(3 << 29)
                began = time.perf_counter()
                p = subprocess.Popen(["bash", "-o", "pipefail", "-c", command])
                _, status, used = os.wait4(p.pid, 0)
                if status:
                    sys.exit("failed: " + command)
                if i:
                    seen[k].append((used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_utime))
    middle = lambda k: [statistics.median(x) for x in zip(*seen[k])]
    print("tokenize alone: %.2f s of a processor\n" % middle("tokenize")[0])
    print("| format | pipe: processor, user, wall, s | run: processor, user, wall | processor | wall | the rest |")
    print("|---|---:|---:|---:|---:|---:|")
    for f in ("wds", "megatron"):
        rows = list(zip(seen[f, "|"], seen[f, "!"], seen["tokenize"]))
        ratio = lambda of: statistics.median(of(*r) for r in rows)
        cell = lambda k: "%.2f, %.2f, %.2f" % tuple(middle(k)[i] for i in (0, 2, 1))
        print("| %s | %s | %s | %.2f | %.2f | %.2f |" % (
            f, cell((f, "|")), cell((f, "!")), ratio(lambda p, r, t: r[0] / p[0]), ratio(lambda p, r, t: r[1] / p[1]),
            ratio(lambda p, r, t: (r[0] - t[0]) / (p[0] - t[0]))))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-n", type=int, default=3)
    ap.add_argument("-t", dest="tokenizer")
    ap.add_argument("corpus", nargs="+")
    a = ap.parse_args()
    if a.tokenizer:
        return beside(a.tokenizer, a.corpus, a.n)
    a.corpus = a.corpus[0]
    files = sorted(os.path.join(a.corpus, f) for f in os.listdir(a.corpus) if f.endswith(".zst"))
    rows = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as tmp:
        at = lambda name: os.path.join(tmp, name)
        stats = at("stats.json")
        tok = gpt2()
        steps = [
            ("tokenize (builtin)", lambda t: ["tokenize", "-T", t, "-o", at("docs.tks")] + files),
            ("dedup", lambda t: ["dedup", "-T", t, "-o", at("unique.tks"), at("docs.tks")]),
            ("decompose", lambda t: ["decompose", "--label-token", "-T", t, "-o", at("pieces.tks"), at("unique.tks")]),
            ("pack", lambda t: ["pack", "-T", t, "-o", at("packed.tks"), at("pieces.tks")]),
            ("shuffle (stream)", lambda t: ["shuffle", "-T", t, "-o", at("shuffled.tks"), at("packed.tks")]),
            ("shuffle (wds)", lambda t: ["shuffle", "-T", t, "--replace-set", "--format", "wds", "-o", at("shards"), at("packed.tks")]),
            ("inspect --verify", lambda t: ["inspect", "--verify", "-T", t, at("packed.tks")]),
        ]
        if tok:
            steps.insert(0, ("tokenize (gpt2)", lambda t: ["tokenize", "-t", tok, "-T", t, "-o", at("gpt2.tks")] + files))
        text_bytes = 0
        for name, argv in steps:
            seconds = {"1": [], "2": []}
            for _ in range(a.n):
                for t in "12":
                    s, report = run(argv(t), stats)
                    seconds[t].append(s)
            tokens = report["tokens"]["out"] or report["tokens"]["in"]
            if name.startswith("tokenize"):
                text_bytes = size = report["text_bytes"]
            else:
                size = os.path.getsize([x for x in argv("1") if x.endswith(".tks")][-1])
            rows.append((name, size, tokens, seconds))
        line = ("{0}/tokenize -q {1} | {0}/dedup -q | {0}/decompose -q --label-token | {0}/pack -q | "
                "{0}/shuffle -q --replace-set -o {2} --format wds").format(BIN, " ".join(files), at("line"))
        seconds = {"1": [], "2": []}
        for _ in range(a.n):
            began = time.perf_counter()
            subprocess.run(["bash", "-o", "pipefail", "-c", line], check=True)
            seconds["2"].append(time.perf_counter() - began)
        rows.append(("the line, files to shards", text_bytes, rows[-1][2], seconds))
        print("| program | MB/s -T1 | MB/s -T2 | Mtok/s -T1 | Mtok/s -T2 |\n|---|---:|---:|---:|---:|")
        for name, size, tokens, seconds in rows:
            m = [statistics.median(seconds[t]) if seconds[t] else None for t in "12"]
            cell = lambda x: "" if x is None else "%.0f" % x if x >= 20 else "%.1f" % x
            print("| %s | %s | %s | %s | %s |" % (
                name, *[cell(size / s / 1e6 if s else None) for s in m], *[cell(tokens / s / 1e6 if s else None) for s in m]))
        texts, size = sample(a.corpus, 20e6)
        hf = hugging_face(tok, texts) if tok else None
        if hf:
            print("| Hugging Face tokenizers (gpt2), encoding alone | %.1f | | %.1f | |" % (size / hf[0] / 1e6, hf[1] / hf[0] / 1e6))
        else:
            print("| Hugging Face tokenizers: skipped, `make judges` fetches it | | | | |")
    print("\n%.0f MB of text in %d files; medians of %d runs; %d processors" % (text_bytes / 1e6, len(files), a.n, os.cpu_count()))


if __name__ == "__main__":
    sys.exit(main())
