#!/usr/bin/env python3
"""Compares our token ids with those of `tokenizers` and `tiktoken`, document by document.

    tests/judges/ids.py [--full] [--megabytes N] [--levels LIST] [--only NAME] [--json FILE]

Compared are: real text (build/judges/corpus), every code point but the surrogates in eight
contexts, random bytes repaired to UTF-8, corner cases of splits, long runs, and added tokens
whole and broken (parts/texts.py), with special tokens as text and parsed, for every
vocabulary that fetch-vocabularies found in a package and for GPT-2's merges behind other
components (parts/vocabularies.py). Pieces of pre-tokenizers are compared too, as ids need not
show where a cut is.

The ids come from build/judges/encode (one thread), once with each document cut wherever it may
be (slu_tokenizer_cut), and at each of --levels, values of SLUICE_SIMD
("best": what the program chooses; "all": that and those that this CPU has), and from the program
itself with -T1 and -T2. A vocabulary is built once and then read as it was compiled.

Without --full (or JUDGES_FULL=1), the first vocabulary of each family (those that are split by the same
scanner) is compared on 1 MB of text and on all other texts, but on each code point in two of the
contexts, on one in 16 of the unassigned and private ones, and on a third of the random bytes. Most time
is the references' own. --full alone compares:

  - 10 MB of text (50 take over two hours), every unassigned and private code point, each in all contexts, and all random bytes;
  - all of the texts with each vocabulary, not a part of them (LATER; other ones for each
    vocabulary) where it is not the first of its family; of white space also with special tokens parsed;
  - with variants all of the texts, not a part of them (SHORT): of the corpus a fiftieth;
  - levels other than the best on code points and random bytes, with variants, and for all but the
    first of a family on anything but text and long runs; the best level also by its name;
  - all pieces of pre-tokenizers, not a third (of code points a ninth).

--jobs vocabularies are compared side by side. What the references say is kept in
build/judges/ids-cache as a hash a document.

Prints "ok", "not ok" or "skip" and the vocabulary, and the first difference of each.
"""
import argparse
import contextlib
import hashlib
import io
import json
import multiprocessing
import os
import platform
import struct
import subprocess
import sys
import tempfile

import numpy
import xxhash

from parts import texts as made_of
from parts.vocabularies import vocabularies, Json

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../props"))
import tokstream  # noqa: E402

# Refused as yet, with what the message says.
REFUSED = {}


def levels_of_cpu():
    if platform.machine() in ("aarch64", "arm64"):
        return ["portable", "neon"]
    flags = open("/proc/cpuinfo").read().split()
    return ["portable"] + ["avx2"] * ("avx2" in flags) + ["avx512"] * ("avx512_vbmi2" in flags)


class Texts:
    """Documents of one kind: as str, and as our encoder reads them."""

    def __init__(self, kind, documents):
        self.kind, self.documents = kind, documents
        raw = [t.encode() for t in documents]
        self.blob = b"".join(struct.pack("<I", len(t)) + t for t in raw)
        self.key = hashlib.sha256(self.blob).hexdigest()


def digest(ids):
    return xxhash.xxh3_64_intdigest(ids)


# Of a kind's texts, a variant of a vocabulary is compared on one in so many, each variant on others.
SHORT = {"code points": 96, "soup": 48, "white": 6, "mixes": 9, "long runs": 9, "added": 3, "marks": 6, "capitals": 4, "blocks": 4}
# The same of the first vocabulary of a family, and of another.
FIRST = {"code points": 4, "soup": 3}
LATER = {"code points": 64, "soup": 36, "white": 6, "mixes": 6, "long runs": 6, "corpus": 4, "added": 3}


class Judge:
    def __init__(self, args, folder):
        """folder: for temporary files, which goes when we do."""
        self.args, self.folder = args, folder
        self.compiled = os.path.join(folder, "compiled")
        self.cache = os.path.join(args.judges, "ids-cache")
        os.makedirs(self.cache, exist_ok=True)

    # -- what the references say ------------------------------------------------------------

    def theirs(self, v, texts, parse):
        """A hash a document, and the number of ids."""
        if not hasattr(v, "hash"):
            v.hash = hashlib.sha256(open(v.file, "rb").read()).hexdigest()
        what = "%s %s %d %s %s" % (v.library, v.hash, parse, texts.key, getattr(v, "more", 0))
        path = os.path.join(self.cache, hashlib.sha256(what.encode()).hexdigest()[:32] + ".npy")
        if os.path.exists(path):
            a = numpy.load(path)
            if len(a) == len(texts.documents) + 1:
                return a[1:].tolist(), int(a[0])
        self.open(v)
        n, hashes = 0, []
        for ids in v.encode(texts.documents, parse):
            n += len(ids)
            hashes.append(digest(numpy.asarray(ids, "<u4").tobytes()))
        part = path + ".%d.npy" % os.getpid()
        numpy.save(part, numpy.array([n] + hashes, "u8"))
        os.rename(part, path)
        return hashes, n

    @staticmethod
    def open(v):
        if not hasattr(v, "opened"):
            v.open()
            v.opened = True

    # -- what we say ------------------------------------------------------------------------

    def ours(self, v, blob, n, *options, level="best"):
        """A view of ids a document."""
        env = dict(os.environ)
        if level != "best":
            env["SLUICE_SIMD"] = level
        r = subprocess.run([self.args.encode] + v.args + ["--compiled", self.compiled] + list(options), input=blob, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                           check=False)
        if r.returncode:
            raise RuntimeError(r.stderr.decode(errors="replace").strip() or "exit status %d" % r.returncode)
        pos, got, out = 0, [], memoryview(r.stdout)
        for _ in range(n):
            count, = struct.unpack_from("<I", out, pos)
            got.append(out[pos + 4:pos + 4 + 4 * count])
            pos += 4 + 4 * count
        assert pos == len(out)
        return got

    def program(self, v, documents):
        """Ids a document by the program, -T1 and -T2, which have to write the same bytes."""
        streams, folder = [], self.folder
        with open(os.path.join(folder, "in.jsonl"), "w") as f:
            for t in documents:
                f.write(json.dumps({"text": t}, ensure_ascii=False) + "\n")
        for threads in ("-T1", "-T2"):
            out = os.path.join(folder, "out%s.tks" % threads)
            r = subprocess.run([os.path.join(self.args.bin, "tokenize"), "-q", threads, "--no-eos", "--no-vocab", "--no-provenance", "-f",
                                "-t"] + v.args + ["-o", out, f.name], stderr=subprocess.PIPE,
                               check=False, env={**os.environ, "SLUICE_CACHE_DIR": self.compiled})
            if r.returncode:
                raise RuntimeError(r.stderr.decode(errors="replace").strip())
            streams.append(open(out, "rb").read())
        if streams[0] != streams[1]:
            raise RuntimeError("-T1 and -T2 write different streams")
        got = []
        for q in tokstream.Reader(open(out, "rb"), hashes=False):
            got.append(numpy.asarray(q.tokens, "<u4").tobytes())
        return got

    # -- comparing --------------------------------------------------------------------------

    def same(self, v, how, texts, parse, mine, theirs):
        if len(mine) != len(theirs):
            print("%s, %s: %d documents, not %d" % (v.name, how, len(mine), len(theirs)))
            return False
        for text, a, b in zip(texts, mine, theirs):
            if digest(a) == b:
                continue
            self.open(v)
            a, b = numpy.frombuffer(a, "<u4").tolist(), list(next(iter(v.encode([text], parse))))
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            print("%s, %s, %s: differs at id %d\n  text  %s\n  ours  %s\n  theirs %s" % (
                v.name, how, "parse" if parse else "ordinary", at, ascii(text[:2000]), a[max(0, at - 4):at + 8], b[max(0, at - 4):at + 8]))
            return False
        return True

    def same_pieces(self, v, documents):
        self.open(v)
        documents = [t for t in documents if t]
        mine = self.ours(v, b"".join(struct.pack("<I", len(t)) + t for t in (x.encode() for x in documents)), len(documents), "--pieces")
        for text, a in zip(documents, mine):
            if list(struct.unpack("<%dI" % (len(a) // 4), a)) != v.pieces(text):
                print("%s: pieces differ\n  text  %s\n  ours  %s\n  theirs %s" % (
                    v.name, ascii(text[:300]), struct.unpack("<%dI" % (len(a) // 4), a)[:60], v.pieces(text)[:60]))
                return False
        return True

    def some(self, v, texts, first, turn):
        """What of a kind's texts a vocabulary is compared on."""
        kind = texts.kind
        if v.short and kind == "corpus":
            return self.thin(texts, 50, 25)
        if self.args.full:
            return texts
        if v.short:
            by = 24 if kind == "code points" and v.tok.normalizer else SHORT.get(kind, 1)  # each may have another form
            return self.thin(texts, by, turn)
        return self.thin(texts, (FIRST if first else LATER).get(kind, 1), turn)

    def levels(self, v, kind, first):
        """Those beyond the one that is compared on everything."""
        if self.args.full:
            return self.args.levels[1:]
        if v.short or kind not in (("white", "mixes", "long runs", "added", "corpus") if first else ("long runs", "corpus")):
            return []
        return [x for x in self.args.levels[1:] if x != self.args.best]

    def judge(self, v, kinds, first, turn):
        """Total of ids compared, or None; `first` of its family: all code points; turn: its place among all vocabularies."""
        total, good = 0, True
        self.open(v)
        for texts in kinds + [Texts("added", list(made_of.with_added(v.added)))]:
            kind, texts = texts.kind, self.some(v, texts, first, turn)
            documents, blob = texts.documents, texts.blob
            parsed = kind in ("added", "mixes") or kind == "white" and (first or self.args.full)
            for parse in (False, True) if parsed else (False,):
                theirs, n = self.theirs(v, texts, parse)
                total += n
                for level in self.args.levels[:1] + self.levels(v, kind, first):
                    mine = self.ours(v, blob, len(documents), *(["--parse"] if parse else []), level=level)
                    good &= self.same(v, kind + " at " + level, documents, parse, mine, theirs)
                mine = self.ours(v, blob, len(documents), "--cuts", *(["--parse"] if parse else []))
                good &= self.same(v, kind + ", cut", documents, parse, mine, theirs)
                if kind in ("corpus", "mixes") and not parse and not v.short:
                    keep = [i for i, t in enumerate(documents) if t]
                    mine = self.program(v, [documents[i] for i in keep])
                    good &= self.same(v, kind + " by tokenize", [documents[i] for i in keep], parse, mine, [theirs[i] for i in keep])
            if kind in ("white", "mixes", "code points") and v.pre and first and "add_prefix_space\":true" not in v.pre:
                good &= self.same_pieces(v, documents[::1 if self.args.full else 3 if kind != "code points" else 9])
        return total if good else None

    def thin(self, texts, by, turn):
        if by == 1:
            return texts
        if not hasattr(texts, "thinner"):
            texts.thinner = {}
        at = turn % by
        if (by, at) not in texts.thinner:
            texts.thinner[by, at] = Texts(texts.kind, texts.documents[at::by])
        return texts.thinner[by, at]


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--judges", default=os.path.join(os.environ.get("O", "build"), "judges"))
    p.add_argument("--bin", default=os.environ.get("BIN", "build/bin"))
    p.add_argument("--encode", help="default: encode in --judges")
    p.add_argument("--full", action="store_true", default=os.environ.get("JUDGES_FULL") == "1")
    p.add_argument("--megabytes", type=float)
    p.add_argument("--levels")
    p.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--only")
    p.add_argument("--json", action="append", default=[], help="one more tokenizer.json to compare")
    args = p.parse_args()
    args.encode = args.encode or args.judges + "/encode"
    # "best" comes first, it is compared on everything.
    levels = args.levels or "all"
    args.levels = ["best"] + levels_of_cpu() if levels == "all" else levels.split(",")
    args.best = levels_of_cpu()[-1]
    args.megabytes = args.megabytes or (10 if args.full else 1)
    args.vocab = args.judges + "/vocab"
    return args


def kinds(args):
    made = [Texts("code points", list(made_of.code_points(1 if args.full else 16))), Texts("soup", list(made_of.soup())),
            Texts("white", list(made_of.white())), Texts("long runs", list(made_of.long_runs())), Texts("mixes", list(made_of.mixes()))]
    if os.path.isdir(args.judges + "/corpus"):
        made.append(Texts("corpus", list(made_of.corpus(args.judges + "/corpus", int(args.megabytes * 1e6)))))
        print("corpus: %d documents, %d bytes" % (len(made[-1].documents), len(made[-1].blob) - 4 * len(made[-1].documents)), flush=True)
    return made


def judge_one(i):
    """Compares vocabulary i of what was made before the processes parted. (good, what is to be printed)"""
    judge, some, texts, firsts = SHARED
    v = some[i]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            n = judge.judge(v, texts, i in firsts, i)
        except RuntimeError as e:
            if v.name in REFUSED and REFUSED[v.name] in str(e):
                return True, "skip %s: %s\n" % (v.name, e)
            print("%s: %s" % (v.name, e))
            n = None
        print("%s %s%s" % ("not ok" if n is None else "ok", v.name, "" if n is None else ": %d ids compared" % n))
    v.__dict__.clear()
    return n is not None, said.getvalue()


def into_own_folder(folder):
    """A process has files of its own, but for the compiled vocabularies."""
    judge = SHARED[0]
    judge.folder = tempfile.mkdtemp(dir=folder)


def run(args, some, texts):
    """Exit status."""
    global SHARED
    some = list(some)
    families, firsts = set(), set()
    for i, v in enumerate(some):
        if v.short or v.family not in families:
            firsts.add(i)
        families.add(v.family)
    wanted = [i for i, v in enumerate(some) if not args.only or args.only in v.name]
    good = True
    print("%s; %g MB, levels %s" % (Json.library, args.megabytes, " ".join(args.levels)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "compiled"), 0o700)
        SHARED = (Judge(args, folder), some, texts, firsts)
        # The references' own threads would be too many.
        os.environ["RAYON_NUM_THREADS"] = "1" if args.jobs > 1 else str(len(os.sched_getaffinity(0)))
        with multiprocessing.get_context("fork").Pool(args.jobs, into_own_folder, (folder,)) as pool:
            for fine, said in pool.imap(judge_one, wanted, chunksize=1):
                good &= fine
                print(said, end="", flush=True)
    return 0 if good else 1


def main():
    args = arguments()
    return run(args, vocabularies(args.vocab, args.json), kinds(args))


if __name__ == "__main__":
    sys.exit(main())
