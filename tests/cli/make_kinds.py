#!/usr/bin/env python3
"""make_kinds.py FOLDER - a file of each kind that people have, in FOLDER/NAME/NAME, and what tokenize must make of it.

Prints a line a file: NAME, a tab, the documents that are read or "refused", a tab, and for refused files a word of the
message; a fourth field "head" says that the first bytes tell, whatever the name. None of the files was copied: each is
made here, as short as its kind allows.
"""

import bz2
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import struct
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import make_warc

TEXT = "A text, of two sentences. It is short.\n"
LINES = "".join(json.dumps({"text": f"{TEXT}{i}"}) + "\n" for i in range(2))


def zipped(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in members:
            z.writestr(name, data)
    return out.getvalue()


def tarred(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def sqlite() -> bytes:
    db = sqlite3.connect(":memory:")
    db.execute("create table t (a)")
    return db.serialize() if hasattr(db, "serialize") else b"SQLite format 3\0" + bytes(4080)


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(b"IEND", b"")


def npy() -> bytes:
    head = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(8)


def safetensors() -> bytes:
    head = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    return struct.pack("<Q", len(head)) + head + bytes(4)


HTML = f"<!DOCTYPE html>\n<html><body><p>{TEXT}</p></body></html>\n".encode()
XML = f"<?xml version='1.0'?>\n<a>{TEXT}</a>\n".encode()
OFFICE = ("[Content_Types].xml", XML)
KINDS: list[tuple[str, bytes, int | str, bool]] = [  # name, bytes, documents or a word of the message, by first bytes too
    ("a.jsonl", LINES.encode(), 2, True),
    ("a.ndjson", LINES.encode(), 2, True),
    ("a.json", LINES.encode(), 2, True),
    ("bom.jsonl", b"\xef\xbb\xbf" + LINES.encode(), 2, True),
    ("a.txt", TEXT.encode(), 1, True),
    ("a.text", TEXT.encode(), 1, True),
    ("a.md", f"# A title\n\n{TEXT}".encode(), 1, True),
    ("a.py", b"print('a')\n", 1, True),
    ("a.log", TEXT.encode() * 3, 1, True),
    ("README", TEXT.encode(), 1, True),
    ("magic.txt", b"GIF8 is no image here, nor is ID3 a sound.\n", 1, True),
    ("lines.txt", LINES.encode(), 2, True),
    ("lines.text", LINES.encode(), 2, True),
    ("a.jsonl.gz", gzip.compress(LINES.encode()), 2, True),
    ("a.jsonl.bz2", bz2.compress(LINES.encode()), 2, True),
    ("a.jsonl.xz", lzma.compress(LINES.encode()), 2, True),
    ("a.txt.gz", gzip.compress(TEXT.encode()), 1, True),
    ("text.tar", tarred(("a.txt", TEXT.encode()), ("b.txt", TEXT.encode())), 2, True),
    ("text.zip", zipped(("a.txt", TEXT.encode()), ("b.txt", TEXT.encode())), 2, True),
    ("lines.tar", tarred(("a.jsonl", LINES.encode()), ("b.jsonl.gz", gzip.compress(LINES.encode()))), 4, True),
    ("lines.zip", zipped(("a.jsonl", LINES.encode()), ("README.md", TEXT.encode())), 2, True),
    ("a.warc", b"".join(make_warc.wet()), 2, True),
    ("a.warc.wet.gz", b"".join(map(gzip.compress, make_warc.wet())), 2, True),
    ("wet.txt", b"".join(make_warc.wet()), 2, True),
    ("html.warc", make_warc.response(b"<p>", 1, "text/html"), "warc-html 1", True),
    ("a.warc.wat.gz", gzip.compress(make_warc.record("metadata", b"{}", 1, "application/json")), "WAT", False),
    ("a.arc", b"filedesc://a.arc 0.0.0.0 20260101000000 text/plain 69\n1 0 X\n", "ARC", True),
    ("kinds.tar", tarred(("a.png", b"\x89PNG\r\n\x1a\n"), ("b.csv", b"a,b\n")), "none of its 2 files", True),
    ("nested.zip", zipped(("a.tar", tarred(("a.txt", TEXT.encode())))), "archive in an archive", True),
    ("a.csv", b"text,id\nA text,1\n", "CSV", False),
    ("a.csv.gz", gzip.compress(b"text,id\nA text,1\n"), "CSV", False),
    ("a.tsv", b"text\tid\nA text\t1\n", "TSV", False),
    ("a.html", HTML, "HTML", True),
    ("page.txt", HTML, "HTML", True),
    ("a.xml", XML, "XML", True),
    ("a.svg", XML, "XML", True),
    ("a.pdf", b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "PDF", True),
    ("a.docx", zipped(OFFICE, ("word/document.xml", XML)), "office document", True),
    ("a.xlsx", zipped(OFFICE, ("xl/workbook.xml", XML)), "office", True),
    ("a.pptx", zipped(OFFICE, ("ppt/presentation.xml", XML)), "office", True),
    ("a.odt", zipped(("mimetype", b"application/vnd.oasis.opendocument.text"), ("content.xml", XML)), "office", False),
    ("a.epub", zipped(("mimetype", b"application/epub+zip"), ("a.xhtml", XML)), "e-book", False),
    ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504), "office document", True),
    ("a.rtf", b"{\\rtf1\\ansi A text.}", "RTF", True),
    ("a.ps", b"%!PS-Adobe-3.0\nshowpage\n", "PostScript", True),
    ("a.ipynb", b'{"cells": [],\n "nbformat": 4}\n', "notebook", False),
    ("a.arrow", b"ARROW1\0\0" + bytes(64), "Arrow", True),
    ("a.feather", b"FEA1" + bytes(64), "Arrow|Feather", True),
    ("a.orc", b"ORC\x0a\x0b\x00" + bytes(64), "ORC|binary", True),
    ("a.avro", b"Obj\x01\x04\x14avro.codec\x00", "Avro", True),
    ("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(64), "HDF5", True),
    ("a.npy", npy(), "NumPy", True),
    ("a.npz", zipped(("a.npy", npy())), "NumPy", True),
    ("a.safetensors", safetensors(), "safetensors", True),
    ("a.gguf", b"GGUF\x03\0\0\0" + bytes(64), "GGUF", True),
    ("a.pkl", pickle.dumps({"text": [TEXT]}, 4), "pickle", True),
    ("a.pt", zipped(("archive/data.pkl", pickle.dumps([1], 2))), "PyTorch", True),
    ("a.sqlite", sqlite(), "SQLite", True),
    ("a.idx", b"MMIDIDX\0\0" + bytes(64), "index of a file of ids", True),
    ("a.bin", struct.pack("<4H", 5, 6, 7, 0), "ids|binary", True),
    ("a.png", png(), "image", True),
    ("a.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image", True),
    ("a.webp", b"RIFF\x1a\0\0\0WEBPVP8L", "image", True),
    ("a.mp3", b"ID3\x04\0\0\0\0\0\0", "sound", True),
    ("a.mp4", b"\0\0\0\x18ftypmp42\0\0\0\0", "video", True),
    ("a.so", b"\x7fELF\x02\x01\x01" + bytes(64), "program", True),
    ("a.7z", b"7z\xbc\xaf\x27\x1c\0\x04", "7z", True),
    ("a.rar", b"Rar!\x1a\x07\x01\0", "RAR", True),
    ("a.txt.br", b"\x0b\x02\x80abc\x03", "brotli", False),
    ("a.txt.Z", b"\x1f\x9d\x90\x61\xc4", "compress", True),
    ("utf16.txt", b"\xff\xfe" + TEXT.encode("utf-16-le"), "UTF-16", True),
    ("utf16be.jsonl", b"\xfe\xff" + LINES.encode("utf-16-be"), "UTF-16", True),
    ("nobom.txt", TEXT.encode("utf-16-le"), "NUL", True),
    ("utf32.txt", TEXT.encode("utf-32"), "UTF-32", True),
    ("latin1.txt", "Ein schöner Tag.\n".encode("latin-1"), "not valid UTF-8", True),
]


def main() -> None:
    top = Path(sys.argv[1])
    for name, data, what, head in KINDS:
        folder = top / name
        folder.mkdir(parents=True)
        (folder / name).write_bytes(data)
        read = isinstance(what, int)
        print(name, what if read else "refused", "-" if read else what, "head" if head else "name", sep="\t")


main()
