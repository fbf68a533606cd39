#!/usr/bin/env python3
"""A peer of tests/bench/tokenize, in a process of its own, in the way its README calls the fastest.

    peer.py gigatoken VOCAB PATTERN FILE.txt PASSES bytes|file|jsonl [IDS LENGTHS]
    peer.py quicktok  VOCAB PATTERN FILE.txt PASSES list            [IDS LENGTHS]
    peer.py tiktoken  VOCAB PATTERN FILE.txt PASSES list            [IDS LENGTHS]

gigatoken: from_tiktoken() with the split named and no special tokens (so that <|endoftext|> in a text is text,
as with us and tiktoken's encode_ordinary), on the calling thread; `bytes`: encode_batch(BytesSource) on the
file's content in memory, the documents found by their separator; `file`: encode_files(TextFileSource), reading
included; `jsonl`: encode_files(JsonlFileSource), reading and JSON included. The ids stay in its awkward array:
no Python lists. quicktok: encode_batch(list of str, 1 thread), which gives one numpy array; it has its own copy of the
vocabulary, and the list is made before the clock starts. tiktoken is not a peer but the referee where ids differ.

Prints one JSON object: seconds of the import, of loading the vocabulary, of each pass (the first is cold), each
as [processor, wall], and the ids. The process ends without tearing Python down.
"""
import json, os, sys, time

SEPARATOR = b"<|endoftext|>"


def now():
    return time.process_time(), time.perf_counter()


def since(t):
    return [a - b for a, b in zip(now(), t)]


def gigatoken(vocab, pattern, path, how):
    t = now()
    import gigatoken as gt
    import awkward, numpy  # else it does so within the first pass
    awkward.Array([numpy.zeros(1)])
    took = {"import": since(t)}
    t = now()
    tok = gt.Tokenizer.from_tiktoken(vocab, pattern, {})
    took["load"] = since(t)
    if how == "bytes":
        with open(path, "rb") as f:
            data = f.read()
        return took, lambda: tok.encode_batch(gt.BytesSource(data, separator=SEPARATOR), parallel=False)
    if how == "jsonl":
        path = os.path.splitext(path)[0] + ".jsonl"
        return took, lambda: tok.encode_files(gt.JsonlFileSource([path]), parallel=False)
    return took, lambda: tok.encode_files(gt.TextFileSource([path], separator=SEPARATOR), parallel=False)


def quicktok(vocab, pattern, path, how):
    t = now()
    import quicktok as qt
    import numpy
    numpy.zeros(1)
    took = {"import": since(t)}
    t = now()
    tok = qt.get_encoding(pattern + "_base")
    took["load"] = since(t)
    with open(path, encoding="utf-8", newline="") as f:
        texts = f.read().split(SEPARATOR.decode())
    return took, lambda: tok.encode_batch(texts, 1)


def tiktoken(vocab, pattern, path, how):
    t = now()
    import base64
    import tiktoken as tt
    from tiktoken_ext import openai_public
    took = {"import": since(t)}
    t = now()
    with open(vocab, "rb") as f:
        ranks = {base64.b64decode(k): int(v) for k, v in map(bytes.split, f)}
    openai_public.load_tiktoken_bpe = lambda *a, **k: ranks
    tok = tt.Encoding(**openai_public.ENCODING_CONSTRUCTORS[pattern + "_base"]())
    took["load"] = since(t)
    with open(path, encoding="utf-8", newline="") as f:
        texts = f.read().split(SEPARATOR.decode())
    return took, lambda: [tok.encode_ordinary(x) for x in texts]


def flat(result):
    """(ids, how many each document has) as numpy arrays."""
    import numpy as np
    if isinstance(result, tuple):
        ids, offsets = result
        return ids, np.diff(offsets)
    if isinstance(result, list):
        return np.concatenate([np.array(x, "<u4") for x in result]), np.array([len(x) for x in result])
    import awkward as ak
    return np.asarray(ak.flatten(result)), np.asarray(ak.num(result))


def main():
    name, vocab, pattern, path, passes, how = sys.argv[1:7]
    took, encode = {"gigatoken": gigatoken, "quicktok": quicktok, "tiktoken": tiktoken}[name](vocab, pattern, path, how)
    took["passes"] = []
    result = None
    for _ in range(int(passes)):
        result = None
        t = now()
        result = encode()
        took["passes"].append(since(t))
    if len(sys.argv) > 8:
        ids, lengths = flat(result)
        ids.astype("<u4", copy=False).tofile(sys.argv[7])
        lengths.astype("<u4").tofile(sys.argv[8])
        took["ids"] = int(ids.size)
    print(json.dumps(took), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
