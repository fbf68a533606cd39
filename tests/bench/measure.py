"""What tests/bench/tokenize and tests/bench/hostile share: where things are, and processes on one core that are timed."""
import json, os, resource, statistics, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
O = os.path.join(ROOT, os.environ.get("O", "build"))
BIN = os.environ.get("BIN", os.path.join(O, "bin"))
TEXTS = os.path.join(O, "bench", os.environ.get("TEXTS", ""))
VOCABS = os.path.join(O, "judges", "vocab")
RANKS = os.path.join(VOCABS, "gpt-tokenizer", "package", "data")
TOKENIZE = os.path.join(BIN, os.environ.get("PROGRAM_PREFIX", "") + "tokenize")
ENCODE = os.path.join(O, "tests", "bench", "encode")
PEER = [sys.executable, os.path.join(ROOT, "tests", "bench", "peer.py")]
SHM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"


def rank_file(encoding):
    return os.path.join(RANKS, encoding + "_base.tiktoken")


class Failed(Exception):
    pass


def timed(argv, cpus, env=None, stdout=subprocess.DEVNULL, limit=None, stdin=subprocess.DEVNULL):
    """Runs argv on the cores `cpus`: ((processor seconds, wall seconds), its output if stdout is a pipe)."""
    def begin():
        os.sched_setaffinity(0, cpus)
        if limit:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    began = time.perf_counter()
    p = subprocess.Popen(argv, stdin=stdin, stdout=stdout, preexec_fn=begin, env={**os.environ, **(env or {})})
    out = p.stdout.read() if p.stdout else b""
    _, status, use = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        raise Failed("%s: exit status %d" % (" ".join(argv), p.returncode))
    return (use.ru_utime + use.ru_stime, time.perf_counter() - began), out


def report(argv, cpus, **kw):
    """timed(), and the JSON object that argv prints."""
    t, out = timed(argv, cpus, stdout=subprocess.PIPE, **kw)
    return t, json.loads(out)


def median(xs):
    return statistics.median(xs) if xs else None


def geomean(xs):
    return statistics.geometric_mean(xs) if xs else float("nan")
