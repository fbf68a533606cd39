#!/usr/bin/env python3
"""Reads WARC files and samples of WebDataset with the packages that people use: warcio and webdataset.

What it proves: of 400 random crawls, in gzip a member a record or plain, warcio finds the same records, with the same ids,
addresses and contents, at the same places, as tokenize takes or leaves out; and of 200 random archives webdataset makes the
same samples: keys, texts and fields.
"""

import gzip
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "cli"))
import make_warc  # noqa: E402

try:
    import webdataset
    from warcio.archiveiterator import ArchiveIterator
except ImportError as e:
    print("skip inputs: %s" % e)
    raise SystemExit(0) from None

BIN = os.environ.get("BIN", os.path.join(here, "..", "..", "build", "bin"))


def documents(*arguments):
    """(document, id, text) of each."""
    run = [os.path.join(BIN, "tokenize"), "-q", "-t", "bytes", *arguments]
    stream = subprocess.run(run, stdout=subprocess.PIPE, check=True).stdout
    rows = subprocess.run([os.path.join(BIN, "inspect"), "--records"], input=stream, stdout=subprocess.PIPE, check=True).stdout
    for line in rows.splitlines():
        r = json.loads(line)
        s = r["segments"][0]
        yield s["document"], s.get("id"), bytes(r["tokens"][:-1])


def text_of(record):
    """The text that a record of warcio has, or None: the rules of tokenize(1), from warcio's own parts."""
    if record.rec_type in ("conversion", "resource"):
        kind = record.rec_headers.get_header("Content-Type") or ""
        return record.content_stream().read() if kind.split(";")[0].strip().lower() == "text/plain" else None
    if record.rec_type != "response" or not record.http_headers:
        return None
    kind = record.http_headers.get_header("Content-Type") or ""
    if kind.split(";")[0].strip().lower() != "text/plain" or "iso-2022" in kind.lower():
        return None
    for name in ("Transfer-Encoding", "Content-Encoding"):
        if (record.http_headers.get_header(name) or "identity").lower() != "identity":
            return None
    text = record.raw_stream.read()
    try:
        text.decode()
    except UnicodeDecodeError:
        return None
    return text


def random_crawl(rng):
    words = ["WARC/1.0", "\r\n", "\n", "é", "日本", "Content-Length: 5", " ", "x" * 300, "\r\n\r\n"]
    records = []
    for i in range(rng.randrange(1, 30)):
        body = "".join(rng.choice(words) for _ in range(rng.randrange(40))).encode()
        if rng.random() < 0.1:
            body += b"\xff"
        kind = rng.choice(["text/plain", "text/plain; charset=utf-8", "text/html", "TEXT/PLAIN", "application/json", ""])
        version = rng.choice(["1.0", "1.1"])
        what = rng.randrange(5)
        if what == 0:
            records.append(make_warc.record("request", b"GET / HTTP/1.1\r\n\r\n", i, "application/http; msgtype=request"))
        elif what == 1:
            more = rng.choice(["", "", "Transfer-Encoding: chunked\r\n", "Content-Encoding: gzip\r\n", "Content-Encoding: identity\r\n"])
            records.append(make_warc.response(body, i, kind or "text/css", more, version=version))
        elif what == 2:
            records.append(make_warc.record("resource", body, i, kind or None, version=version))
        else:  # WET is UTF-8
            good = body.decode(errors="ignore").encode()
            records.append(make_warc.record("conversion", good, i, "text/plain", version=version))
    return [r for r in records if b"\xff" not in r or b"resource" not in r[:40]]


def warc(folder, rng):
    name = os.path.join(folder, "x.warc" + rng.choice(["", ".gz"]))
    records = random_crawl(rng)
    with open(name, "wb") as f:
        f.write(b"".join(gzip.compress(r, 1) for r in records) if name.endswith("gz") else b"".join(records))
    want, at = [], 0
    with open(name, "rb") as f:
        for record, raw in zip(ArchiveIterator(f), records):
            text = text_of(record)
            if text:
                want.append((at, record.rec_headers.get_header("WARC-Record-ID"), text))
            at += len(raw)
    if not want:
        return 0
    assert list(documents(name)) == want, name
    assert [d[1] for d in documents("--id-field", "url", name)] == [
        "https://example.org/%d" % int(w[1].rsplit("-", 1)[1].rstrip(">")) for w in want]
    return len(want)


def wds(folder, rng):
    name = os.path.join(folder, "x.tar")
    with tarfile.open(name, "w") as t:
        for i in range(rng.randrange(1, 20)):
            key = rng.choice(["%05d", "a/%05d", "./b/c.d/%05d"]) % i
            members = [(".txt", ('Text "%d" é\\\n' % i * rng.randrange(1, 5)).encode()),
                       (rng.choice([".json", ".JSON"]), json.dumps({"n": i, "text": "not this one"}, indent=rng.choice([None, 1])).encode()),
                       (".cls", b"1"), (".seg.png", b"\x89PNG")]
            rng.shuffle(members)
            for suffix, data in members[:]:
                if suffix == ".txt" or rng.random() < 0.7:
                    info = tarfile.TarInfo(key + suffix)
                    info.size = len(data)
                    t.addfile(info, io.BytesIO(data))
    want = [(s["__key__"], s["txt"], json.loads(s["json"])["n"] if "json" in s else None) for s in webdataset.WebDataset(name, shardshuffle=False)]
    got = list(documents("--format", "wds", "--id-field", "__key__", name))
    assert [g[1:] for g in got] == [w[:2] for w in want], (got, want)
    where = [w[0] for w in want if w[2] is not None and w[2] > 5]
    if where:
        assert [g[1] for g in documents("--format", "wds", "--id-field", "__key__", "--where", "n != null and n > 5", name)] == where
    return len(want)


def main():
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        n = sum(warc(folder, rng) for _ in range(400))
        print("ok inputs: WARC, %d texts as warcio has them" % n)
        n = sum(wds(folder, rng) for _ in range(200))
        print("ok inputs: %d samples as webdataset has them" % n)


main()
