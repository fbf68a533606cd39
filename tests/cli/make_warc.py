"""make_warc.py - WARC records for tests: record() makes one from the text of the standard, ISO 28500; as a program, for
tokenize_warc.sh: make_warc.py OUT KIND writes a file."""

import gzip
import sys


def record(kind, content, number, content_type=None, version="1.0", length=None, end="\r\n", **more):
    fields = {"WARC-Type": kind, "WARC-Record-ID": f"<urn:uuid:00000000-0000-0000-0000-{number:012d}>",
              "WARC-Date": f"2026-01-{1 + number % 28:02d}T00:00:00Z"}
    if kind != "warcinfo":
        fields["WARC-Target-URI"] = f"https://example.org/{number}"
    if content_type:
        fields["Content-Type"] = content_type
    fields.update({k.replace("_", "-"): v for k, v in more.items()})
    fields["Content-Length"] = str(len(content) if length is None else length)
    head = f"WARC/{version}{end}" + "".join(f"{k}: {v}{end}" for k, v in fields.items())
    return (head + end).encode() + content + b"\r\n\r\n"


def http(body, content_type="text/plain", more=""):
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{more}\r\n".encode() + body


def response(body, number, content_type="text/plain", more="", **fields):
    return record("response", http(body, content_type, more), number, "application/http; msgtype=response", **fields)


def wet():
    """Two texts of a WET file, of which one has what looks like a record."""
    return [record("warcinfo", b"Software-Info: x\r\n", 0, "application/warc-fields"),
            record("conversion", "Ein schöner Tag.\n".encode(), 1, "text/plain",
                   WARC_Identified_Content_Language="deu,eng"),
            record("conversion", b"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n", 2, "text/plain",
                   WARC_Identified_Content_Language="eng")]


def crawl():
    """(record, the text that is taken or the reason) of what a crawl has."""
    t = "Plain text, with é.\n".encode()
    html = b"<!DOCTYPE html><p>a</p>"
    return [
        (record("warcinfo", b"isPartOf: x\r\n", 0, "application/warc-fields", version="1.1"), "warc-record"),
        (record("request", b"GET / HTTP/1.1\r\n\r\n", 1, "application/http; msgtype=request"), "warc-record"),
        (response(t, 2), t),
        (response(t, 3, "Text/Plain; charset=utf-8", version="1.1"), t),
        (response(t, 4, more="transfer-encoding: chunked\r\n"), "warc-encoded"),
        (response(t, 5, more="Content-Encoding: gzip\r\n"), "warc-encoded"),
        (response(t, 6, more="Content-Encoding: identity\r\n"), t),
        (response("schön".encode("latin-1"), 7, "text/plain; charset=iso-8859-1"), "warc-encoded"),
        (response("日本".encode("iso-2022-jp"), 8, "text/plain; charset=iso-2022-jp"), "warc-encoded"),
        (response(html, 9, "text/html; charset=UTF-8"), "warc-html"),
        (response(html, 10, "application/xhtml+xml"), "warc-html"),
        (response(b"\x89PNG", 11, "image/png"), "warc-no-text"),
        (record("response", b"dns: x\n", 12, "text/dns"), "warc-no-text"),
        (record("resource", t, 13, "text/plain"), t),
        (record("resource", html, 14, "text/html"), "warc-html"),
        (record("resource", b"{}", 15, "application/json"), "warc-no-text"),
        (record("metadata", b"{}", 16, "application/json"), "warc-record"),
        (record("revisit", http(b""), 17, "application/http; msgtype=response"), "warc-record"),
        (record("conversion", t, 18, "text/plain", version="1.1", end="\n"), t),
        (record("conversion", b"cut", 19, "text/plain", WARC_Truncated="length"), b"cut"),
        (record("conversion", t * 40000, 20, "text/plain"), t * 40000),
        (response(t, 21, more="X-Long: " + "x" * 20000 + "\r\n folded\r\n"), t),
        (record("conversion", b"", 22, "text/plain"), b""),
    ]


if __name__ == "__main__":
    out, kind, *rest = sys.argv[1:]
    records = wet() if kind == "wet" else [r for r, _ in crawl()]
    if out.endswith(".gz"):  # a member a record, as all writers do
        records = [gzip.compress(r, mtime=0) for r in records]
    with open(out, "wb") as f:
        f.write(b"".join(records))
