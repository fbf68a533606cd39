#!/usr/bin/env python3
"""Streams that no program of ours writes: legal ones must be read, illegal ones with valid hashes refused.

What it proves: the C reader follows formats/STREAM.md also where our own writer would never show it: unknown frames,
compressed frames of every kind, sequences cut anywhere, several index frames, members without data. The reader limits
what it reads: every case below has valid hashes, so that only the rule itself can refuse it. The forger is
independent of the C writer; tokstream.py reads the legal streams, too.
"""
import io
import os
import random
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import tokstream  # noqa: E402

try:
    import xxhash
    import zstandard
except ImportError:
    print("skip forged: needs the packages xxhash and zstandard")
    sys.exit(0)

INSPECT = os.path.join(os.environ.get("BIN", "build/bin"), os.environ.get("PROGRAM_PREFIX", "") + "inspect")
NONE = 2**64 - 1
MASK = 2**128 - 1
bad = False


def u64(*v):
    return struct.pack("<%dQ" % len(v), *v)


def u32(*v):
    return struct.pack("<%dI" % len(v), *v)


class Forger:
    """A member, frame by frame. `tweak` maps (frame type, what) to a function that spoils it."""

    def __init__(self, tok_bytes=2, vocab_size=1000, flags=0, buckets=(), steps=(), minor=0, tweak=None):
        self.out = bytearray()
        self.number = 0
        self.tok_bytes, self.flags = tok_bytes, flags
        self.tweak = tweak or {}
        self.rows, self.seqs, self.frames = [], 0, 0
        head = struct.pack("<IIIIQQQQ16sQQ48x", 1, minor, tok_bytes, flags, vocab_size, 2, NONE, 2, b"f" * 16,
                           len(buckets), len(steps)) + u64(*buckets)
        for seed, program, version, arguments in steps:
            s = [x.encode() for x in (program, version, arguments)]
            one = u64(seed) + u32(*map(len, s), 0) + b"".join(s)
            head += one + bytes(-len(one) % 8)
        self.frame(b"HEAD", self.spoil("HEAD", head))

    def spoil(self, what, value):
        f = self.tweak.get(what)
        return f(value) if f else value

    def frame(self, typ, payload=b"", flags=0, aux=0, zstd=False, number=None, raw=None, stored=None, reserved=0,
              content_size=True, pad=b"\0"):
        raw_len = len(payload)
        if zstd:
            payload = zstandard.ZstdCompressor(level=3, write_content_size=content_size).compress(payload)
            flags |= 1
        raw_len = raw if raw is not None else raw_len
        stored_len = stored if stored is not None else len(payload)
        body = payload + pad * (-len(payload) % 64)
        head = b"\xF5TKS" + typ + u32(flags, reserved) + u64(self.number if number is None else number, raw_len,
                                                            stored_len, aux, xxhash.xxh3_64_intdigest(body))
        head += u64(xxhash.xxh3_64_intdigest(head))
        at = len(self.out)
        self.out += head + body
        self.number += 1
        return at

    def names(self, typ, pairs, **k):
        self.frame(typ, self.spoil(typ.decode(), u64(len(pairs)) + b"".join(
            u64(o) + u32(len(n)) + n for o, n in pairs)), **k)

    def data(self, seqs, flags=0, first_is_rest=False, zstd=False, gap=b"\0", **spoiled):
        """seqs: lists of segments (source, document, offset, domain, id, tokens)."""
        segs = [s for q in seqs for s in q]
        tokens = [t for s in segs for t in s[5]]
        col = {
            "counts": u64(len(seqs), len(segs), len(tokens), sum(len(s[4]) for s in segs), 0, 0, 0, 0),
            "seq_segs": u32(*[len(q) for q in seqs]),
            "source": u64(*[s[0] for s in segs]), "document": u64(*[s[1] for s in segs]),
            "offset": u64(*[s[2] for s in segs]), "length": u64(*[len(s[5]) for s in segs]),
            "domain": u32(*[s[3] for s in segs]), "id_bytes": u32(*[len(s[4]) for s in segs]),
            "ids": b"".join(s[4] for s in segs),
            "tokens": b"" if self.flags & 2 else struct.pack(
                "<%d%s" % (len(tokens), "H" if self.tok_bytes == 2 else "I"), *tokens),
        }
        payload = b""
        for name, c in col.items():
            c = spoiled[name](c) if name in spoiled else c
            payload += gap * (-len(payload) % 64) + c
        begins = len(seqs) - (1 if first_is_rest else 0)
        at = self.frame(b"DATA", payload, flags, spoiled.get("aux", begins), zstd=zstd)
        self.rows.append((at, self.seqs + (1 if first_is_rest else 0), begins, len(tokens)))
        self.seqs += begins - (1 if flags & 2 else 0) + (1 if first_is_rest and not (flags & 2 and len(seqs) == 1) else 0)
        if first_is_rest and flags & 2 and len(seqs) == 1:
            self.seqs += 1
        self.frames += 1

    def end(self, whole, index_parts=1, zstd_index=False, aux=None):
        """whole: the sequences as they are, each a list of (source, document, offset, length) and ids."""
        checksum = trace = n_seg = n_tok = n_pad = n_doc = 0
        for segs, ids in whole:
            h = 0
            if not self.flags & 2:
                h = xxhash.xxh3_128_intdigest(u64(len(ids)) + u32(*ids))
            checksum = checksum + h & MASK
            trace = trace + xxhash.xxh3_128_intdigest(
                u64(h & NONE, h >> 64) + b"".join(u64(*s) for s in segs)) & MASK
            n_seg += len(segs)
            n_tok += sum(s[3] for s in segs)
            n_pad += sum(s[3] for s in segs if s[0] == NONE)
            n_doc += sum(1 for s in segs if s[0] != NONE and s[2] == 0)
        ends = u64(len(whole), n_seg, n_tok, n_pad, n_doc, self.frames, checksum & NONE, checksum >> 64,
                   trace & NONE, trace >> 64) + bytes(48)
        self.frame(b"ENDS", self.spoil("ENDS", ends))
        first = len(self.out)
        rows = self.spoil("rows", list(self.rows))
        step = max(1, -(-len(rows) // index_parts))
        chunks = [rows[i:i + step] for i in range(0, len(rows), step)] or [[]]
        for chunk in chunks:
            self.frame(b"INDX", self.spoil("INDX", u64(len(chunk), 0) + b"".join(u64(*r) for r in chunk)), zstd=zstd_index)
        self.frame(b"FOOT", aux=first if aux is None else aux)
        return bytes(self.out)


NODOM = 2**32 - 1
DOC = [(0, 0, 0, NODOM, b"", [5, 6, 7, 2])]
DOC2 = [(1, 77, 0, 0, b"name", [9, 2])]
WHOLE = [([(0, 0, 0, 4)], [5, 6, 7, 2]), ([(1, 77, 0, 2)], [9, 2])]
SOURCES = [(0, b"a.jsonl"), (1, b"b.jsonl")]


def plain(tweak=None, before_data=None, after_data=None, data=None, **head):
    f = Forger(tweak=tweak, **head)
    f.names(b"SRCS", SOURCES)
    f.names(b"DOMS", [(0, b"web")])
    if before_data:
        before_data(f)
    f.data([DOC, DOC2], **(data or {}))
    if after_data:
        after_data(f)
    return f.end(WHOLE)


def read(data):
    p = subprocess.run([INSPECT, "--verify", "-"], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    q = subprocess.run([INSPECT, "--records", "-"], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return p, q


def ours(data):
    r = tokstream.Reader(io.BytesIO(data))
    return [[s.length for s in q.segments] + (q.tokens.tolist() if q.tokens is not None else []) for q in r]


def legal(name, data):
    global bad
    why = None
    try:
        want = ours(data)
    except tokstream.StreamError as e:
        why = "tokstream.py refuses it: %s" % e
    if not why:
        p, q = read(data)
        if p.returncode or q.returncode:
            why = "statuses %d %d: %s" % (p.returncode, q.returncode, (p.stderr or q.stderr).decode())
        else:
            import json
            got = [[s["length"] for s in d["segments"]] + d.get("tokens", []) for d in map(json.loads, q.stdout.splitlines())]
            if got != want:
                why = "read as %r, is %r" % (str(got)[:200], str(want)[:200])
    print("%s forged: legal: %s" % ("not ok" if why else "ok", name))
    if why:
        print("  " + why)
        bad = True


def illegal(name, data):
    global bad
    why = None
    try:
        ours(data)
        why = "tokstream.py accepts it"
    except (tokstream.StreamError, UnicodeDecodeError, zstandard.ZstdError, RuntimeError):
        pass
    p, q = read(data)
    if p.returncode != 1 or p.stderr.count(b"\n") != 1:
        why = "inspect --verify: status %d, %r" % (p.returncode, p.stderr.decode()[:300])
    elif q.returncode != 1:
        why = "inspect --records: status %d" % q.returncode
    print("%s forged: illegal: %s" % ("not ok" if why else "ok", name))
    if why:
        print("  " + why)
        bad = True


def legal_cases():
    legal("a plain stream", plain())
    legal("a frame that may be skipped, with flags of its own",
          plain(before_data=lambda f: f.frame(b"xtra", b"whatever", flags=0xF0, aux=7)))
    legal("a skippable frame of zero bytes at the end of the data", plain(after_data=lambda f: f.frame(b"zero")))
    legal("minor version 9", plain(minor=9))
    legal("compressed data", plain(data={"zstd": True}))
    legal("no data at all", Forger().end([]))
    legal("a member without data between others", plain() + Forger().end([]) + plain())
    legal("three members", plain() * 3)
    f = Forger()
    f.frame(b"SRCS", u64(0))
    f.names(b"SRCS", SOURCES[:1], zstd=True)
    f.data([DOC])
    f.names(b"SRCS", SOURCES[1:])
    f.names(b"DOMS", [(0, "dömäin \u6570".encode())])
    f.data([DOC2])
    legal("names compressed, in several frames, one of them empty", f.end(WHOLE, index_parts=2, zstd_index=True))
    f = Forger(tok_bytes=4, vocab_size=2**32)
    f.names(b"SRCS", [(2**63, b"far")])
    doc = [(2**63, 2**62, 2**40, NODOM, b"", [2**32 - 1, 0])]
    f.data([doc])
    legal("large numbers", f.end([([(2**63, 2**62, 2**40, 2)], [2**32 - 1, 0])]))
    f = Forger(flags=2, buckets=(2, 4))
    f.names(b"SRCS", SOURCES)
    f.names(b"DOMS", [(0, b"web")])
    f.data([DOC, DOC2])
    legal("without tokens", f.end(WHOLE))
    f = Forger(steps=[(3, "a", "1", ""), (4, "b", "2", "--x=\u00e4 --y=1")] * 50, buckets=tuple(2**i for i in range(40)))
    f.names(b"SRCS", SOURCES)
    f.data([DOC])
    legal("a hundred steps, forty buckets", f.end(WHOLE[:1]))
    # one sequence of three segments and padding, cut everywhere, one token a frame
    rng = random.Random(1)
    for trial in range(12):
        segs, ids, whole = [], [], []
        for k in range(rng.randint(1, 5)):
            n = rng.randint(1, 6)
            segs.append((k % 2, 1000 + k, rng.randint(0, 3), NODOM, b"id%d" % k, [rng.randrange(1000) for _ in range(n)]))
        if trial % 2:
            segs.append((NONE, 0, 0, NODOM, b"", [2] * rng.randint(1, 4)))
        ids = [t for s in segs for t in s[5]]
        whole = [([(s[0], s[1], s[2], len(s[5])) for s in segs], ids)]
        # pieces: list of frames, each a list of (segment part); cut at random places
        cuts = sorted(rng.sample(range(1, len(ids)), min(len(ids) - 1, rng.randint(1, 6)))) if len(ids) > 1 else []
        f = Forger()
        f.names(b"SRCS", SOURCES)
        frames, at = [[]], 0
        flags = []
        for s in segs:
            n, done = len(s[5]), 0
            while done < n:
                nxt = min([c for c in cuts if c > at] + [10**9])
                take = min(n - done, nxt - at)
                frames[-1].append((s[0], s[1], 0 if s[0] == NONE else s[2] + done, s[3], s[4] if done == 0 else b"",
                                   s[5][done:done + take]))
                done += take
                at += take
                if at == nxt:
                    flags.append(2 | (4 if done < n else 0))
                    frames.append([])
        flags.append(0)
        for k, (fr, fl) in enumerate(zip(frames, flags)):
            seqs = [fr]
            if k == len(frames) - 1:
                seqs.append([(0, 5, 0, NODOM, b"", [1, 2])])
            f.data(seqs, flags=fl, first_is_rest=k > 0, zstd=trial % 3 == 0)
        # sequences that begin in each frame, and their ordinals, by hand
        first, rows = 0, []
        for k, (at_, _, begins, n_tok) in enumerate(f.rows):
            rows.append((at_, first, begins, n_tok))
            first += begins
        f.rows = rows
        whole.append(([(0, 5, 0, 2)], [1, 2]))
        legal("a sequence in %d frames, trial %d" % (len(frames), trial), f.end(whole))


def illegal_cases():
    def at(offset, value):
        return lambda b: b[:offset] + value + b[offset + len(value):]

    h = {"major 2": at(0, u32(2)), "tok_bytes 3": at(8, u32(3)), "tok_bytes 4 for a small vocabulary": at(8, u32(4)),
         "unknown flags of HEAD": at(12, u32(4)), "an empty vocabulary": at(16, u64(0)),
         "vocab_size 2^32+1": at(16, u64(2**32 + 1)), "eos outside": at(24, u64(1000)), "pad outside": at(40, u64(2**40)),
         "65 buckets that are not there": at(64, u64(65)), "2^61 buckets": at(64, u64(2**61)),
         "2^63 steps": at(72, u64(2**63)), "one step that is not there": at(72, u64(1)),
         "reserved bytes of HEAD": at(100, b"x"), "bytes behind HEAD": lambda b: b + b"\0" * 8,
         "HEAD of 64 bytes": lambda b: b[:64], "an empty HEAD": lambda b: b""}
    for name, f in h.items():
        illegal(name, plain(tweak={"HEAD": f}))
    illegal("buckets that descend", plain(buckets=(512, 256)))
    illegal("equal buckets", plain(buckets=(256, 256)))
    illegal("bucket 0", plain(buckets=(0, 256)))
    illegal("NUL in a step", plain(steps=[(0, "a\0b", "1", "")]))
    steps = [(0, "abc", "1", "")]
    illegal("a step's string longer than HEAD", plain(steps=steps, tweak={"HEAD": at(128 + 8, u32(2**31))}))
    for name, k in {"an unknown mandatory frame": (b"XTRA", {}), "unknown flags": (b"SRCS", {"flags": 8}),
                    "a second HEAD inside": (b"HEAD", {}), "reserved field of the frame header": (b"xtra", {"reserved": 1}),
                    "raw and stored differ": (b"xtra", {"raw": 5}), "a frame number too high": (b"xtra", {"number": 9}),
                    "a frame over the limit": (b"xtra", {"raw": 2**26 + 1, "stored": 2**26 + 1}),
                    "2^63 bytes stored": (b"xtra", {"raw": 2**63, "stored": 2**63}),
                    "a type that is no text": (b"\0\1\2\3", {})}.items():
        payload = u64(0) if k[0] == b"SRCS" else b"abc"
        illegal(name, plain(before_data=lambda f, k=k, p=payload: f.frame(k[0], p, **k[1])))
    illegal("padding that is not zero", plain(before_data=lambda f: f.frame(b"xtra", b"abc", pad=b"!")))
    illegal("a vocabulary behind the names", plain(before_data=lambda f: f.frame(b"vocb", u64(1000) + bytes(9000), zstd=True)))
    for name, payload in {"a vocabulary of another size": u64(999) + bytes(9 * 999),
                          "lengths that exceed the vocabulary": u64(1000) + u64(*[7] * 1000) + bytes(1000) + b"abc",
                          "a vocabulary that ends in its table": u64(1000) + bytes(100)}.items():
        f = Forger()
        f.frame(b"vocb", payload, zstd=True)
        f.names(b"SRCS", SOURCES)
        f.data([DOC])
        illegal(name, f.end(WHOLE[:1]))
    for name, pairs in {"NUL in a name": [(0, b"a\0b"), (1, b"c")],
                        "a name of 2^16+1 bytes": [(0, b"a" * 65537), (1, b"c")]}.items():
        f = Forger()
        f.names(b"SRCS", pairs)
        f.data([DOC])
        illegal(name, f.end(WHOLE[:1]))
    illegal("names that end early", plain(tweak={"SRCS": lambda b: b[:-1]}))
    illegal("bytes behind the names", plain(tweak={"SRCS": lambda b: b + b"x"}))
    illegal("2^60 names", plain(tweak={"SRCS": at(0, u64(2**60))}))
    illegal("domains out of order", plain(tweak={"DOMS": at(8, u64(1))}))
    for name, segs in {"a source without a name": [(5, 0, 0, NODOM, b"", [5, 6, 7, 2])],
                       "a domain without a name": [(0, 0, 0, 3, b"", [5, 6, 7, 2])],
                       "an id that is not below vocab_size": [(0, 0, 0, NODOM, b"", [5, 6, 7, 1000])],
                       "padding with a document": [(0, 0, 0, NODOM, b"", [5, 6]), (NONE, 1, 0, NODOM, b"", [7, 2])],
                       "padding before tokens": [(NONE, 0, 0, NODOM, b"", [5, 6]), (0, 0, 0, NODOM, b"", [7, 2])],
                       "padding with an id": [(0, 0, 0, NODOM, b"", [5, 6]), (NONE, 0, 0, NODOM, b"x", [7, 2])]}.items():
        f = Forger()
        f.names(b"SRCS", SOURCES)
        f.names(b"DOMS", [(0, b"web")])
        f.data([segs])
        illegal(name, f.end([([(s[0], s[1], s[2], len(s[5])) for s in segs], [t for s in segs for t in s[5]])]))
    d = {"seq_segs that do not add up": {"seq_segs": lambda c: u32(2, 1)},
         "a sequence without segments": {"seq_segs": lambda c: u32(2, 0)},
         "lengths that do not add up": {"length": lambda c: u64(4, 3)},
         "lengths that wrap around": {"length": lambda c: u64(NONE - 1, 8)},
         "a segment of 0 tokens": {"length": lambda c: u64(6, 0)},
         "id_bytes that do not add up": {"id_bytes": lambda c: u32(3, 4)},
         "2^40 sequences": {"counts": at(0, u64(2**40))}, "2^61 segments": {"counts": at(8, u64(2**61))},
         "2^63 tokens": {"counts": at(16, u64(2**63))}, "2^60 bytes of ids": {"counts": at(24, u64(2**60))},
         "a reserved count": {"counts": at(40, u64(1))}, "bytes between the columns": {"gap": b"x"},
         "a token too many": {"tokens": lambda c: c + b"\0\0"}, "a token too few": {"tokens": lambda c: c[:-2]},
         "aux of DATA": {"aux": 3}}
    for name, spoiled in d.items():
        illegal(name, plain(data=spoiled))
    illegal("SEG_CONTINUES alone", plain(data={"flags": 4}))
    illegal("a sequence that does not end", plain(data={"flags": 2}))
    f = Forger()
    f.names(b"SRCS", SOURCES)
    f.data([DOC], flags=6)
    f.data([[(0, 1, 4, NODOM, b"", [3])]], first_is_rest=True)
    illegal("a segment that goes on in another document", f.end([([(0, 0, 0, 5)], [5, 6, 7, 2, 3])]))
    f = Forger()
    f.names(b"SRCS", SOURCES)
    f.data([DOC], flags=6)
    f.data([[(0, 0, 5, NODOM, b"", [3])]], first_is_rest=True)
    illegal("a segment that goes on at another place", f.end([([(0, 0, 0, 5)], [5, 6, 7, 2, 3])]))
    n = 2**16 + 1
    f = Forger()
    f.names(b"SRCS", SOURCES)
    f.data([[(0, k, 0, NODOM, b"", [3])] for k in range(n)])
    illegal("2^16+1 sequences in a frame", f.end([([(0, k, 0, 1)], [3]) for k in range(n)]))
    for k, name in enumerate(("n_seq", "n_seg", "n_tok", "n_pad", "n_doc", "n_frame", "checksum", "checksum's high half",
                              "trace_checksum", "trace_checksum's high half", "reserved")):
        illegal("ENDS with another %s" % name,
                plain(tweak={"ENDS": lambda b, k=k: b[:8 * k] + bytes([b[8 * k] ^ 1]) + b[8 * k + 1:]}))
    illegal("ENDS too short", plain(tweak={"ENDS": lambda b: b[:64]}))
    illegal("ENDS too long", plain(tweak={"ENDS": lambda b: b + bytes(8)}))
    for k, name in enumerate(("offset", "first", "n_seq", "n_tok")):
        illegal("an index row with another %s" % name,
                plain(tweak={"rows": lambda r, k=k: [tuple(v + (1 if i == k else 0) for i, v in enumerate(x)) for x in r]}))
    illegal("an index without rows", plain(tweak={"rows": lambda r: []}))
    illegal("2^60 rows", plain(tweak={"INDX": at(0, u64(2**60))}))
    f = Forger()
    f.names(b"SRCS", SOURCES)
    f.data([DOC])
    illegal("FOOT that leads elsewhere", f.end(WHOLE[:1], aux=64))
    f = Forger()
    f.frame(b"SRCS", u64(0), zstd=True, content_size=False)
    f.names(b"SRCS", SOURCES)
    f.data([DOC])
    illegal("zstd without a content size", f.end(WHOLE[:1]))
    f = Forger()
    f.frame(b"SRCS", u64(0), flags=1, raw=8, stored=8)
    f.names(b"SRCS", SOURCES)
    f.data([DOC])
    illegal("zstd that is none", f.end(WHOLE[:1]))
    f = Forger()
    f.frame(b"SRCS", bytes(2**20), zstd=True, raw=8)
    f.names(b"SRCS", SOURCES)
    f.data([DOC])
    illegal("zstd that is larger than said", f.end(WHOLE[:1]))
    whole = plain()
    illegal("one zero byte behind", whole + b"\0")
    illegal("64 zero bytes behind", whole + bytes(64))
    illegal("another tokenizer in the next member", whole + Forger(vocab_size=999).end([]))
    illegal("other buckets in the next member", whole + Forger(buckets=(8,)).end([]))
    illegal("another width in the next member", whole + Forger(tok_bytes=4, vocab_size=70000).end([]))


def main():
    if not os.path.exists(INSPECT):
        print("skip forged: inspect has not been built")
        return
    legal_cases()
    illegal_cases()
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
