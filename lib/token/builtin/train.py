#!/usr/bin/env python3
"""train.py: makes lib/token/builtin/merges.zst, the vocabulary named `builtin`.

usage, at the root of the tree:
    tests/corpus/make-corpus --text-max 64 build/corpus-full        (downloads 640 MB)
    python3 -m venv build/venv
    build/venv/bin/pip install tokenizers==0.23.3 tiktoken==0.14.0 regex
    build/venv/bin/python lib/token/builtin/train.py build/corpus-full
    build/venv/bin/python lib/token/builtin/train.py --verify build/corpus-full [NAME=RANKS ...]

The first form writes merges.zst beside this script, the second checks the file and
prints the figures of README.md on text that training never saw; NAME is gpt2 or cl100k,
RANKS its .tiktoken file (npm's gpt-tokenizer has them), for comparison.

The model. A byte-level BPE with 32,768 ids: 0-255 are the bytes by value, 256+k is the
token that merge k makes (k = 0 ... 32,509), 32766 is <|pad|>, 32767 is <|endoftext|>.
merges.zst is one zstd frame, its content size in the header, of 32,510 pairs of
little-endian u16 (left id, right id) in rank order. Text is split by PATTERN below (that
of cl100k). No two merges make the same bytes, and every token's bytes encode to the token
alone, so the merge list and the ranks (tiktoken's way to write a BPE) are both complete
descriptions. No token is longer than 32 bytes.

The text. About 300 MB out of what tests/corpus/make-corpus collects, chosen by a hash of
each document's id, never by order or chance: see BUDGET. One document in fifty is held
out, for the figures. A line that came REPEAT times already (licence headers, navigation)
and what lies beyond the first DOC_MAX bytes of a document are left out.

The packages, from Debian 12 (bookworm), all free software or free documentation, as seen
when the committed file was made:
  linux-source-6.1 (6.1.192-2); gcc-12-source (12.2.0-14+deb12u1); glibc-source
  (2.36-9+deb12u14); golang-1.19-src (1.19.8-2); rust-src (1.63.0+dfsg1-2);
  openjdk-17-source (17.0.21.1+2-1~deb12u1); emacs-el (1:28.2+1-15+deb12u4);
  libboost1.74-dev (1.74.0+ds1-21); libpython3.11-stdlib (3.11.2-6+deb12u9);
  perl-modules-5.36 (5.36.0-7+deb12u4); node-typescript (4.8.4+ds1-2); libstdc++-12-dev
  (12.2.0-14+deb12u1); linux-libc-dev (6.1.192-2); debian-handbook (11.20220922);
  gnome-user-docs (43.0-2); python3.11-doc (3.11.2-6+deb12u9); postgresql-doc-15
  (15.20-0+deb12u1); debian-reference-en (2.100); debian-policy (4.6.2.0); debian-faq
  (11.1); developers-reference (12.18); installation-guide-amd64 (20230508+deb12u1);
  aptitude-doc-en (0.8.13-5); libreoffice-help-en-us (4:7.4.7-1+deb12u14); git-doc
  (1:2.39.5-0+deb12u3); sqlite3-doc (3.40.1-2+deb12u2); apache2-doc (2.4.71-1~deb12u1);
  anarchism (15.3-3); perl-doc (5.36.0-7+deb12u4); python-django-doc
  (3:3.2.25-0+deb12u7); debmake-doc (1.17-7); autoconf-doc (2.71-3); octave-doc
  (7.3.0-2); libreoffice-help-cs libreoffice-help-da libreoffice-help-de
  libreoffice-help-el libreoffice-help-es libreoffice-help-fi libreoffice-help-fr
  libreoffice-help-hi libreoffice-help-hu libreoffice-help-id libreoffice-help-it
  libreoffice-help-ja libreoffice-help-ko libreoffice-help-nl libreoffice-help-pl
  libreoffice-help-pt libreoffice-help-pt-br libreoffice-help-ru libreoffice-help-sv
  libreoffice-help-tr libreoffice-help-vi libreoffice-help-zh-cn libreoffice-help-zh-tw
  (4:7.4.7-1+deb12u14); debian-reference-de debian-reference-es debian-reference-fr
  debian-reference-id debian-reference-it debian-reference-ja debian-reference-pt
  debian-reference-pt-br debian-reference-zh-cn debian-reference-zh-tw (2.100);
  aptitude-doc-cs aptitude-doc-es aptitude-doc-fi aptitude-doc-fr aptitude-doc-it
  aptitude-doc-ja aptitude-doc-nl aptitude-doc-ru (0.8.13-5); debian-faq-de
  debian-faq-fr debian-faq-it debian-faq-ja debian-faq-ko debian-faq-nl debian-faq-pt
  debian-faq-ru debian-faq-zh-cn (11.1); maint-guide-ca maint-guide-de maint-guide-es
  maint-guide-fr maint-guide-it maint-guide-ja maint-guide-ru maint-guide-vi
  maint-guide-zh-cn maint-guide-zh-tw (1.2.53); developers-reference-de
  developers-reference-fr developers-reference-it developers-reference-ja
  developers-reference-ru (12.18); manpages manpages-dev (6.03-2); glibc-doc
  (2.36-9+deb12u14); git-man (1:2.39.5-0+deb12u3); freebsd-manpages (12.2-1);
  manpages-cs manpages-da manpages-de manpages-el manpages-es manpages-fi manpages-fr
  (4.18.1-1); manpages-hu (1:4.18.1-1); manpages-id manpages-it (4.18.1-1); manpages-ja
  (0.5.0.0.20221215+dfsg-1); manpages-nb manpages-nl (4.18.1-1); manpages-pl
  (1:4.18.1-1); manpages-pt-br manpages-ro manpages-ru manpages-sr manpages-sv
  (4.18.1-1); manpages-tr (2.0.6-2); manpages-uk manpages-vi (4.18.1-1); manpages-zh
  (1.6.4.0-1); manpages-de-dev manpages-es-dev manpages-fr-dev manpages-it-dev
  (4.18.1-1); manpages-ja-dev (0.5.0.0.20221215+dfsg-1); manpages-nl-dev (4.18.1-1);
  manpages-pl-dev (1:4.18.1-1); manpages-pt-br-dev manpages-ru-dev manpages-uk-dev
  (4.18.1-1).

Deterministic: the same package versions and the same version of `tokenizers` give the
same file (its trainer orders ties by id). The zstd frame's bytes belong to one version of
zstd (1.5.4, level 19); its content does not.
"""

import collections
import glob
import hashlib
import heapq
import json
import os
import struct
import subprocess
import sys
import time

PATTERN = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
           r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
N_MERGE = 32510
TOKEN_MAX = 32      # bytes
DOC_MAX = 64 << 10  # bytes
REPEAT = 12
HOLD_OUT = 50

# Megabytes of text a class: English, programming languages, other languages.
BUDGET = {
    "en": 120,
    "c": 34, "c++": 12, "python": 8, "go": 8, "rust": 8, "java": 8, "javascript": 5,
    "typescript": 4, "perl": 5, "elisp": 4, "shell": 2, "make": 1, "rst": 4,
    "asm": 2, "ada": 1, "yaml": 2, "devicetree": 1, "fortran": 1, "markdown": 1,
    "texinfo": 2,
    "de": 9, "fr": 9, "es": 9, "ru": 9, "zh": 9, "ja": 9, "pt": 6, "it": 6, "pl": 5,
    "nl": 3, "uk": 3, "ko": 4, "cs": 3, "sv": 2, "tr": 3, "hu": 2, "fi": 2, "da": 2,
    "el": 2, "hi": 3, "vi": 3, "id": 2, "ro": 2, "ar": 2, "he": 1, "fa": 1, "ca": 1,
    "bg": 1, "nb": 1, "th": 1,
}

HERE = os.path.dirname(os.path.abspath(__file__))
MERGES = os.path.join(HERE, "merges.zst")


# ---- the text -------------------------------------------------------------------------

def class_of(record):
    lang = record["lang"]
    if record["domain"] == "code":
        return lang
    lang = lang.lower().replace("_", "-").split("@")[0].split("-")[0]
    return {"nn": "nb", "no": "nb"}.get(lang, lang)


def documents(folder):
    for name in sorted(glob.glob(os.path.join(folder, "*.jsonl.zst"))):
        zstd = subprocess.Popen(["zstd", "-dcq", name], stdout=subprocess.PIPE)
        for line in zstd.stdout:
            yield json.loads(line)
        if zstd.wait() != 0:
            sys.exit("train.py: zstd failed on " + name)


def choose(folder, held_out, scale=1.0):
    """class -> [(hash, id, text)] by hash: within each class's budget, smallest first."""
    heaps = collections.defaultdict(list)
    size = collections.Counter()
    seen = collections.Counter()
    for r in documents(folder):
        c = class_of(r)
        if c not in BUDGET:
            continue
        h = int.from_bytes(hashlib.blake2b(r["id"].encode(), digest_size=8).digest(),
                           "little")
        if (h % HOLD_OUT == 0) != held_out:
            continue
        h //= HOLD_OUT
        budget = BUDGET[c] * 1e6 * scale
        heap = heaps[c]
        if size[c] >= budget and h >= -heap[0][0]:
            continue
        long = 40 if r["domain"] == "code" else 4
        lines, n = [], 0
        for s in r["text"].split("\n"):
            if len(s) >= long:
                key = (c, hash_line(s))
                seen[key] += 1
                if seen[key] > REPEAT:
                    continue
            n += len(s.encode()) + 1
            if n > DOC_MAX:
                break
            lines.append(s)
        text = "\n".join(lines) + "\n"
        heapq.heappush(heap, (-h, r["id"], text))
        size[c] += len(text.encode())
        while size[c] - len(heap[0][2].encode()) >= budget:
            size[c] -= len(heapq.heappop(heap)[2].encode())
    return {c: sorted((-h, i, t) for h, i, t in heaps[c]) for c in sorted(heaps)}, size


def hash_line(s):
    return hashlib.blake2b(s.encode(), digest_size=8).digest()


# ---- training -------------------------------------------------------------------------

def byte_letters():
    """GPT-2's printable letter for each byte, which the trainer's tokens are made of."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    extra = (b for b in range(256) if b not in keep)
    table = {b: chr(b) for b in keep}
    table.update({b: chr(256 + k) for k, b in enumerate(extra)})
    return table


def train(folder):
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
    t0 = time.time()
    text, size = choose(folder, held_out=False)
    print("chosen in %.0f s: %.1f MB" % (time.time() - t0, sum(size.values()) / 1e6))
    print(" ".join("%s=%.1f" % (c, size[c] / 1e6) for c in sorted(size)))
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(
        vocab_size=256 + N_MERGE + 600, min_frequency=2, show_progress=False,
        max_token_length=TOKEN_MAX,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    t0 = time.time()
    tok.train_from_iterator((t for c in text for _, _, t in text[c]), trainer)
    print("trained in %.0f s" % (time.time() - t0))
    unletter = {v: k for k, v in byte_letters().items()}
    pairs = []
    for m in json.loads(tok.to_str())["model"]["merges"]:
        a, b = m if isinstance(m, list) else m.split(" ")
        pairs.append((bytes(unletter[x] for x in a), bytes(unletter[x] for x in b)))
    merges = select(pairs)
    raw = b"".join(struct.pack("<HH", a, b) for a, b in merges)
    with open(MERGES + ".bin", "wb") as f:
        f.write(raw)
    subprocess.run(["zstd", "-19", "-q", "-f", "--content-size", MERGES + ".bin", "-o",
                    MERGES], check=True)
    os.unlink(MERGES + ".bin")
    print("%s: %d bytes, content sha256 %s"
          % (os.path.basename(MERGES), os.path.getsize(MERGES),
             hashlib.sha256(raw).hexdigest()))


def select(pairs):
    """The first N_MERGE merges, as ids, without those whose bytes another merge made
    already, or whose token the list itself does not reach from its bytes."""
    ids = {bytes([b]): b for b in range(256)}
    rank = {}
    merges = []
    dropped = collections.Counter()
    for a, b in pairs:
        if len(merges) == N_MERGE:
            break
        if a not in ids or b not in ids:
            dropped["parts dropped"] += 1
            continue
        if a + b in ids:
            dropped["same bytes"] += 1
            continue
        pair = (ids[a], ids[b])
        new = 256 + len(merges)
        rank[pair] = new
        if encode_piece(a + b, rank) != [new]:
            dropped["not reached"] += 1
            del rank[pair]
            continue
        ids[a + b] = new
        merges.append(pair)
    print("merges left out:", dict(dropped) or "none")
    if len(merges) != N_MERGE:
        sys.exit("train.py: only %d merges" % len(merges))
    return merges


# ---- an independent encoder, and the check --------------------------------------------

def encode_piece(piece, rank):
    """The plain definition: merge the pair of the lowest rank, the leftmost first."""
    ids = list(piece)
    while len(ids) > 1:
        best, at = min((rank.get((ids[i], ids[i + 1]), 1 << 30), i)
                       for i in range(len(ids) - 1))
        if best == 1 << 30:
            break
        ids[at:at + 2] = [best]
    return ids


def load():
    raw = subprocess.run(["zstd", "-dcq", MERGES], stdout=subprocess.PIPE,
                         check=True).stdout
    merges = list(struct.iter_unpack("<HH", raw))
    table = [bytes([b]) for b in range(256)]
    for k, (a, b) in enumerate(merges):
        assert a < 256 + k and b < 256 + k, k
        table.append(table[a] + table[b])
    return merges, table


def verify(folder, others):
    import regex
    import tiktoken
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    merges, table = load()
    assert len(merges) == N_MERGE and len(set(table)) == len(table)
    assert max(map(len, table)) <= TOKEN_MAX
    rank = {p: 256 + k for k, p in enumerate(merges)}
    for i, t in enumerate(table):
        assert encode_piece(t, rank) == [i], i
    split = regex.compile(PATTERN)
    memo = {}

    def encode(s):
        out = []
        for m in split.finditer(s):
            p = m.group().encode()
            if p not in memo:
                memo[p] = encode_piece(p, rank)
            out += memo[p]
        return out

    letter = byte_letters()
    name = ["".join(letter[b] for b in t) for t in table]
    hf = Tokenizer(models.BPE(vocab={n: i for i, n in enumerate(name)},
                              merges=[(name[a], name[b]) for a, b in merges]))
    hf.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    hf.decoder = decoders.ByteLevel()
    ranked = tiktoken.Encoding("builtin", pat_str=PATTERN, special_tokens={},
                               mergeable_ranks={t: i for i, t in enumerate(table)})
    peers = {}
    for n, path in others:
        with open(path) as f:
            import base64
            r = {base64.b64decode(a): int(b) for a, b in (x.split() for x in f)}
        pattern = PATTERN if n == "cl100k" else (
            r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
        peers[n] = tiktoken.Encoding(n, pat_str=pattern, special_tokens={},
                                     mergeable_ranks=r)
    text, _ = choose(folder, held_out=True, scale=0.02)
    n_doc = wrong = by_rank = 0
    print("| held-out text | KB | builtin |" + "".join(" %s |" % p for p in peers))
    print("|---|---:|---:|" + "---:|" * len(peers))
    for c, docs in text.items():
        n_byte = n_tok = 0
        n_peer = collections.Counter()
        for _, _, t in docs:
            mine = encode(t)
            n_doc += 1
            assert b"".join(table[i] for i in mine) == t.encode()
            wrong += mine != hf.encode(t, add_special_tokens=False).ids
            by_rank += mine != ranked.encode_ordinary(t)
            n_byte += len(t.encode())
            n_tok += len(mine)
            for p, e in peers.items():
                n_peer[p] += len(e.encode_ordinary(t))
        print("| %s | %d | %.2f |" % (c, n_byte / 1000, n_byte / n_tok)
              + "".join(" %.2f |" % (n_byte / n_peer[p]) for p in peers))
    print("%d documents: %d differ from tokenizers, %d from tiktoken by ranks"
          % (n_doc, wrong, by_rank))
    if wrong:
        sys.exit(1)


def main():
    args = sys.argv[1:]
    if args[:1] == ["--verify"] and len(args) >= 2:
        verify(args[1], [a.split("=", 1) for a in args[2:]])
    elif len(args) == 1 and not args[0].startswith("-"):
        train(args[0])
    else:
        sys.exit("usage: train.py [--verify] CORPUS [NAME=RANKS ...]")


if __name__ == "__main__":
    main()
