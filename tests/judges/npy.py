#!/usr/bin/env python3
"""Files of ids as NumPy writes them and OLMo-core divides them into documents.

What it proves: arrays of ids saved by NumPy (np.save, format 1.0 and 2.0, u2 and u4) and without a header
(tofile, memmap: OLMo-core's layout) are read as the same documents, with the same checksum; the documents are
those of OLMo-core's iter_document_indices, and what follows the last EOS, which OLMo-core leaves out, is one more.
Skipped in part where the package ai2-olmo-core is not there.
"""
import ast
import importlib.util
import json
import os
import subprocess
import tempfile
import typing

import numpy as np

BIN = os.environ.get("BIN", "build/bin") + "/" + os.environ.get("PROGRAM_PREFIX", "")
EOS = 0
failed = False


def result(good, what):
    global failed
    failed |= not good
    print(("ok " if good else "not ok ") + "npy: " + what)


def inspect(*argv):
    return subprocess.run([BIN + "inspect", "-q", "--eos-id", str(EOS), *argv], stdout=subprocess.PIPE, check=True).stdout


def checksum(path, *argv):
    d = json.loads(inspect("--json", path, *argv))
    return d["checksum"], d["trace_checksum"], d["documents"]


def documents(path, *argv):
    for line in inspect("--records", path, *argv).splitlines():
        r = json.loads(line)
        (s,) = r["segments"]
        yield s["document"], s["document"] + s["length"], r["tokens"]


def olmo_documents():
    """OLMo-core's own function, without what its package imports and this needs not (torch). None: not there."""
    spec = importlib.util.find_spec("olmo_core")
    if not spec:
        return None
    tree = ast.parse(open(os.path.join(os.path.dirname(spec.origin), "data/utils.py")).read())
    tree.body = [f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == "iter_document_indices"]
    names = dict(vars(typing), np=np, os=os, PathOrStr=str, is_url=lambda path: False)
    exec(compile(tree, "olmo_core/data/utils.py", "exec"), names)
    return names["iter_document_indices"]


def main(folder):
    os.chdir(folder)
    iter_document_indices = olmo_documents()
    rng = np.random.default_rng(7)
    ids = rng.integers(1, 50000, 300000).astype("<u2")
    ids[rng.integers(0, len(ids), 900)] = EOS
    ids[[0, 5, 6, 7]] = EOS
    ids[-3:] = [EOS, 9, 8]  # open-ended
    ids.tofile("raw.npy")
    np.save("one.npy", ids)
    np.save("wide.npy", ids.astype("<u4"))
    with open("two.npy", "wb") as f:
        np.lib.format.write_array(f, ids, version=(2, 0))
    m = np.memmap("mapped.npy", dtype="<u4", mode="w+", shape=ids.shape)
    m[:] = ids
    m.flush()
    want = checksum("raw.npy", "--token-bytes", "2", "--vocab-size", "50000")
    result(want[2] == int((ids == EOS).sum()) + 1, "%d documents, counted by NumPy" % want[2])
    for path, *argv in (["one.npy"], ["wide.npy"], ["two.npy"], ["mapped.npy", "--token-bytes", "4"]):
        result(checksum(path, "--vocab-size", "50000", *argv) == want, "%s: the same documents" % path)
    for path, dtype, *argv in (["raw.npy", np.uint16, "--token-bytes", "2"], ["mapped.npy", np.uint32, "--token-bytes", "4"]):
        ours = list(documents(path, *argv))
        array = np.fromfile(path, dtype)
        result(all(t == array[a:b].tolist() for a, b, t in ours), "%s: every id" % path)
        if not iter_document_indices:
            print("skip npy: %s: OLMo-core's documents: no ai2-olmo-core" % path)
            continue
        theirs = [(int(a), int(b)) for a, b in iter_document_indices(path, eos_token_id=EOS, dtype=dtype)]
        result([o[:2] for o in ours] == theirs + [(theirs[-1][1], len(array))],
               "%s: OLMo-core's %d documents, and the one without an end" % (path, len(theirs)))


with tempfile.TemporaryDirectory() as scratch:
    BIN = os.path.abspath(BIN) if not os.path.isabs(BIN) else BIN
    main(scratch)
raise SystemExit(failed)
