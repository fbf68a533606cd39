"""device_fake.py FAKE BIN - the loop of device_fake.sh: each call of the device fails in turn.

FAKE holds programs that are linked with tests/fake/device_fake.c; BIN the ordinary ones, which say what is right.
"""
import collections
import ctypes
import hashlib
import os
import re
import struct
import subprocess
import sys

FAKE, BIN = sys.argv[1:3]
FULL = bool(os.environ.get("FULL"))
MORE = os.environ.get("MORE") == "1"
failed = 0


def report(good, what):
    global failed
    failed += not good
    print("%s device_fake: %s" % ("ok" if good else "not ok", what), flush=True)


def run(folder, args, fail=None, **more):
    env = dict(os.environ, SLU_FAKE_LOG=os.path.abspath("fake.log"), **more)
    if fail:
        env["SLU_FAKE_FAIL"] = fail
    if os.path.exists("fake.log"):  # of the run before; one that asks for no device leaves none
        os.unlink("fake.log")
    p = subprocess.run([os.path.join(folder, args[0])] + args[1:], env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = p.stdout
    if args[:2] == ["pack", "--plan"]:  # its last column is seconds
        out = re.sub(rb"(?m) +[0-9]+\.[0-9]{3}$", b"", out)
    err = p.stderr.decode("utf-8", "replace")
    if p.returncode == 0:  # the last line has the counts
        err = re.sub(r"(?m)^[a-z]+: \d+ documents?, \d+ tokens? in; .*; [\d.]+ s\n\Z", "", err)
    return p.returncode, hashlib.sha256(out).hexdigest(), err


def counts():
    if not os.path.exists("fake.log"):
        return collections.Counter()
    with open("fake.log") as f:
        return dict((k, int(v)) for k, v in (line.split() for line in f))


def steps(calls):
    """All calls, or those at the start, at the end, and some between."""
    few, edge = (40, 10) if MORE else (6, 2)
    if FULL or calls <= few:
        return list(range(1, calls + 1))
    between = range(edge + 1, calls - edge, max(1, (calls - 2 * edge) // (few - 2 * edge)))
    return sorted(set(range(1, edge + 1)) | set(between) | set(range(calls - edge + 1, calls + 1)))


def one_line(err, program):
    return err.count("\n") == 1 and err.startswith(program + ": ") and len(err) > len(program) + 4


def check(args, kernels):
    what = " ".join(args)
    status, want, err = run(BIN, args + ["--device", "cpu"])
    if status != 0:
        report(False, "%s --device cpu: exit status %d: %s" % (what, status, err))
        return
    calls = {}
    for device in ("cuda", "auto"):
        status, got, err = run(FAKE, args + ["--device", device])
        n = counts()
        calls[device] = n["calls"]
        report((status, got, err) == (0, want, ""), "%s --device %s: the same bytes" % (what, device))
        missing = [k for k in kernels if not n[k]]
        report(not missing, "  every kernel on the device%s" % (": not " + ", ".join(missing) if missing else ""))
    bad = []
    told = 0
    for device in ("auto", "cuda"):
        for i, k in enumerate(steps(calls[device])):
            for mode in (("", ":lost", ":late") if FULL else (("", ":lost", ":late")[i % 3],)):
                status, got, err = run(FAKE, args + ["--device", device], "%d%s" % (k, mode))
                told += err != ""
                same = status == 0 and got == want
                if device == "auto":
                    good = same and (err == "" or (one_line(err, args[0]) and "cuda:0" in err))
                else:
                    good = (same and err == "") or (status == 1 and one_line(err, args[0]))
                if not good:
                    bad.append("%s, call %d%s: status %d, %s, %r" % (
                        device, k, mode, status, "same" if got == want else "other bytes", err[:200]))
    for line in bad[:8]:
        print("  " + line)
    report(not bad, "  each of %d calls failing: one warning and the same bytes, or one line" % calls["auto"])
    report(told > 0 or not kernels, "  and it was told")
    bad = []
    for memory in (0, 1000, 100000, 300000, 1000000):
        status, got, err = run(FAKE, args + ["--device", "auto"], SLU_FAKE_MEMORY=str(memory))
        if not (status == 0 and got == want and (err == "" or (one_line(err, args[0]) and "out of memory" in err))):
            bad.append("%d bytes: status %d, %r" % (memory, status, err[:200]))
    print("".join("  %s\n" % line for line in bad), end="")
    report(not bad, "  a device with too little memory")


PACK = ["histogram", "sort", "place", "copy", "hash"]
check(["pack", "--length", "512", "c.tks"], PACK)
check(["pack", "d.tks"], PACK)
check(["pack", "--mix-domains", "--length", "300", "c.tks"], PACK)
check(["pack", "--method", "multi", "--buckets", "256,512,1024", "c.tks"], PACK[1:])  # few lengths, no table
check(["pack", "--length", "512", "--method", "nnlshp", "--fill", "drop", "-T", "3", "c.tks"], PACK)
check(["pack", "--length", "512", "--balance", "2", "c.tks"], PACK)
check(["pack", "--length", "512", "--method", "concat", "c.tks"], ["copy", "hash"])
check(["pack", "--plan", "--length", "512", "c.tks"], ["histogram"])
check(["decompose", "--plan", "c.tks"], ["histogram"])
check(["decompose", "--plan", "--eos-id", "0", "--token-bytes", "2", "ids.npy"], ["scan"])

# Documents that wait are hashed on the device after they were read; the end frame of their stream is compared then.
xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
xxh3.restype = ctypes.c_uint64
xxh3.argtypes = ctypes.c_char_p, ctypes.c_size_t


def forge(path, name, at):
    """Copies a stream; byte `at` of the payload of its end frame is another one, its hashes are right."""
    with open(path, "rb") as f:
        p = bytearray(f.read())
    frame = 0
    while p[frame + 4:frame + 8] != b"ENDS":
        frame += 64 + (struct.unpack_from("<Q", p, frame + 32)[0] + 63) // 64 * 64
    p[frame + 64 + at] ^= 1
    struct.pack_into("<Q", p, frame + 48, xxh3(bytes(p[frame + 64:frame + 192]), 128))
    struct.pack_into("<Q", p, frame + 56, xxh3(bytes(p[frame:frame + 56]), 56))
    with open(name, "wb") as f:
        f.write(p)


def late(args, hashed, device="cuda"):
    """hashed: whether the device hashes sequences, once; else it hashes windows only, or with masks nothing (None)."""
    status, want, err = run(BIN, args + ["--device", "cpu"])
    got = run(FAKE, args + ["--device", device])
    n = counts()
    idle = "" if n["copy"] or device == "auto" else "pack: --device cuda: no kernel had work to do, the CPU did all of it\n"
    report(status == 0 and got == (0, want, idle), "late hashes: %s --device %s: %r" % (" ".join(args), device, got[::2]))
    report(n["hash"] == (0 if hashed is None else n["copy"] + hashed), "  %d hashes for %d windows" % (n["hash"], n["copy"]))


def refused(args):
    """The same refusal as on the CPU, and no output."""
    if os.path.exists("out"):
        os.unlink("out")
    want = run(BIN, args + ["--device", "cpu", "-o", "out"])
    got = run(FAKE, args + ["--device", "cuda", "-o", "out"])
    report(want[0] == 1 and "a checksum of its sequences differs" in want[2] and got == want and not os.path.exists("out"),
           "late hashes: refused: %s: %r" % (" ".join(args), got[::2]))


late(["pack", "--length", "512", "c.tks"], True)
late(["pack", "d.tks", "-T", "2"], True)  # some pass
late(["pack", "--length", "512", "c.tks", "e.tks"], True)  # e's sources have other numbers here, and are hashed at once
late(["pack", "--length", "512", "e.tks"], True)
late(["pack", "--length", "512", "--order", "related", "c.tks"], True)
late(["pack", "--length", "512", "--method", "concat", "c.tks"], True)
late(["pack", "--length", "512", "--long", "split", "m.tks"], None)  # with masks
late(["pack", "--length", "512", "-M", "40M", "-T", "3", "long.tks"], False)  # beyond memory: no window either
# auto decides before it reads where files say how many tokens will wait.
late(["pack", "--length", "512", "c.tks"], True, "auto")
late(["pack", "--length", "512", "c.tks", "e.tks"], True, "auto")
late(["pack", "--length", "512", "set"], False, "auto")  # are summed as they are read
late(["pack", "d.tks"], False, "auto")  # some pass
late(["pack", "--length", "512", "two.tks"], False, "auto")  # two streams in a file, of which the end says nothing
late(["pack", "--length", "512", "-M", "40M", "-T", "3", "long.tks"], False, "auto")
for at, what in ((48, "checksum"), (64, "trace")):
    for name in ("c", "e", "d", "long"):
        forge(name + ".tks", "%s.%s.tks" % (name, what), at)
    refused(["pack", "--length", "512", "c.%s.tks" % what])
    refused(["pack", "--length", "512", "c.%s.tks" % what, "e.tks"])
    refused(["pack", "--length", "512", "c.tks", "c.tks", "e.%s.tks" % what])
    refused(["pack", "d.%s.tks" % what])
    refused(["pack", "--length", "512", "-M", "40M", "-T", "3", "long.%s.tks" % what])
sys.exit(failed != 0)
