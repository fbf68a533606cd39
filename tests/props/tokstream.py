#!/usr/bin/env python3
"""An independent reader of the token stream, written from formats/STREAM.md alone.

What it proves: that the specification is enough to read a stream, and that what sluice's programs
write is what the specification says. It checks everything that a reader can check: magic, hashes,
frame numbers, limits, reserved fields, zero padding, columns, names before their use, the end
frame's counts and both checksums, the index, the footer; with --cuts also the rule by which a
writer must cut frames.

    tokstream.py FILE...            one JSON object a sequence, as `inspect --records`
    tokstream.py --summary FILE     one JSON object: counts and checksums of the whole file
    tokstream.py --check FILE       nothing but the exit status (and what could not be checked)

It needs tokstream_frames.py beside it, and the standard library. Hashes need the package xxhash,
compressed frames the package zstandard (or the program zstd); what is missing is said on stderr,
and --need-all makes it an error.
Exit status: 0 fine, 1 the stream is wrong, 2 usage.
"""
import array
import json
import struct
import sys

from tokstream_frames import (
    NO_SCORE, NONE32, NONE64, PADDING, SEG_CONTINUES, SEQ_CONTINUES, ZSTD, Frames, StreamError, bytes_le, u64s,
    xxhash)

FRAME_TOKENS, FRAME_SEQS, FRAME_SEGS, FRAME_IDS = 2**20, 2**16, 2**17, 2**24
MASK128 = 2**128 - 1


class Segment:
    __slots__ = ("source", "document", "offset", "length", "domain", "id", "score", "meta")

    def __init__(self, source, document, offset, length, domain, id_, score, meta=()):
        self.meta = meta  # of metadata that is not null: (name, type, bytes)
        self.source, self.document, self.offset = source, document, offset
        self.length, self.domain, self.id = length, domain, id_
        self.score = score  # its bits


class Sequence:
    """tokens is an array of ids ('H' or 'I'), or None in a stream without tokens. mask is a
    bytearray of 0 and 1 for each token, or None in a stream without masks."""

    __slots__ = ("segments", "tokens", "length", "mask")

    def __init__(self):
        self.segments, self.tokens, self.length, self.mask = [], None, 0, None


class Totals:
    def __init__(self):
        self.n_seq = self.n_seg = self.n_tok = self.n_pad = self.n_doc = 0
        self.n_frame = self.n_loss = 0
        self.checksum = self.trace = self.masks = self.meta = 0

    def add(self, o):
        for k in ("n_seq", "n_seg", "n_tok", "n_pad", "n_doc", "n_frame", "n_loss"):
            setattr(self, k, getattr(self, k) + getattr(o, k))
        self.checksum = (self.checksum + o.checksum) & MASK128
        self.trace = (self.trace + o.trace) & MASK128
        self.masks = (self.masks + o.masks) & MASK128
        self.meta = (self.meta + o.meta) & MASK128


COUNTS = ("tokens", "n_tok"), ("sequences", "n_seq"), ("documents", "n_doc")  # in acct, in ENDS


class Reader(Frames):
    """Iterates over the sequences of a file of one or several members.

    header: of the member being read. members: list of (Header, Totals) of those that ended.
    sources, domains: names of the current member, by ordinal. unchecked: what could not be.
    """

    def __init__(self, f, cuts=False, hashes=True):
        super().__init__(f, hashes)
        self.cuts = cuts
        self.members = []
        self.sources, self.domains, self.values = {}, {}, {}
        self.all_sources = {}
        self.unknown_frames = 0
        self.total = Totals()

    def _finish_sequence(self, q, t):
        last, at, before = len(q.segments) - 1, 0, False
        for i, s in enumerate(q.segments):
            padding = s.source == PADDING
            if padding:
                inner = i != last and not self.header.inner_padding
                if inner or before or s.document or s.offset or s.domain is not None or s.id:
                    self._fail("padding that is not as it must be")
                if q.mask is not None and any(q.mask[at:at + s.length]):
                    self._fail("padding that is trained on")
                t.n_pad += s.length
            elif s.offset == 0:
                t.n_doc += 1
            at, before = at + s.length, padding
        if q.mask is not None:
            t.n_loss += sum(q.mask)
        t.n_seq += 1
        t.n_seg += len(q.segments)
        t.n_tok += q.length
        if self.hashes:
            h = 0
            if q.tokens is not None:
                ids = q.tokens if q.tokens.typecode == "I" else array.array("I", q.tokens)
                h = xxhash.xxh3_128_intdigest(struct.pack("<Q", q.length) + bytes_le(ids))
            t.checksum = (t.checksum + h) & MASK128
            own = struct.pack("<QQ", h & NONE64, h >> 64)
            prefix = own
            if q.mask is not None:
                bits = bytearray((q.length + 7) // 8)
                for i, v in enumerate(q.mask):
                    bits[i >> 3] |= v << (i & 7)
                m = xxhash.xxh3_128_intdigest(bytes(bits) + own)
                t.masks = (t.masks + m) & MASK128
                if sum(q.mask) < q.length - sum(s.length for s in q.segments if s.source == PADDING):
                    prefix += struct.pack("<QQ", m & NONE64, m >> 64)
            meta = own
            for i, s in enumerate(q.segments):
                if s.meta:
                    b = b"".join(struct.pack("<QI", xxhash.xxh3_64_intdigest(n), len(v)) + v for n, _, v in s.meta)
                    meta += struct.pack("<QQ", i, len(b)) + b
            if len(meta) > len(own):
                t.meta = (t.meta + xxhash.xxh3_128_intdigest(meta)) & MASK128
            rows = array.array("Q")
            for s in q.segments:
                rows.extend((s.source, s.document, s.offset, s.length))
            t.trace = (t.trace + xxhash.xxh3_128_intdigest(prefix + bytes_le(rows))) & MASK128

    def __iter__(self):
        first = True
        while True:
            self.frame_at = self.at
            b = self.f.read(1)
            if not b:
                if first:
                    raise StreamError(0, "an empty file is a truncated stream")
                return
            self.f = _Pushback(self.f, b)
            first = False
            yield from self._member()

    def _member(self):
        start = self.at
        fr = self._frame()
        if fr.number != 0:
            self._fail("the first frame's number is %d" % fr.number)
        self._head(fr)
        self.sources, self.domains, self.values, self.vocab = {}, {}, {}, None
        t = Totals()
        number = 0
        state = "body"
        rest = None          # the sequence that goes on, with its flags
        rest_flags = 0
        rows = []            # what the index must say
        got_rows = []
        first_indx = steps = None
        shapes = []          # segment lengths of each sequence, for --cuts
        frames = []          # (n_seq in frame, n_tok in frame, flags)
        while True:
            fr = self._frame()
            number += 1
            if fr.number != number:
                self._fail("frame number %d where %d is due" % (fr.number, number))
            typ = fr.type
            if state == "ended" and typ not in ("INDX",):
                self._fail("%s between ENDS and INDX" % typ)
            if state == "body" and steps is not None and typ != "ENDS":
                self._fail("%s between acct and ENDS" % typ)
            if state == "indexed" and typ not in ("INDX", "FOOT"):
                self._fail("%s after INDX" % typ)
            if typ == "DATA":
                p = self._open(fr, SEQ_CONTINUES | SEG_CONTINUES)
                if fr.flags & SEG_CONTINUES and not fr.flags & SEQ_CONTINUES:
                    self._fail("SEG_CONTINUES without SEQ_CONTINUES")
                (n_seq, n_seg, n_tok, segs, source, document, offset, length, domain, id_bytes,
                 score, ids, meta, mask, tokens) = self._columns(p)
                if n_seq < 1:
                    self._fail("DATA without sequences")
                begins = n_seq - (1 if rest is not None else 0)
                if fr.aux != begins:
                    self._fail("aux is %d, but %d sequences begin in the frame" % (fr.aux, begins))
                if n_tok > FRAME_TOKENS or n_seq > FRAME_SEQS or n_seg > FRAME_SEGS:
                    self._fail("a DATA frame holds more than it may")
                rows.append((fr.at - start, t.n_seq + (1 if rest is not None else 0), begins, n_tok))
                frames.append((n_seq, n_tok, fr.flags & 6))
                t.n_frame += 1
                at_seg = at_tok = at_id = 0
                for i in range(n_seq):
                    join_seg = False
                    if i == 0 and rest is not None:
                        q = rest
                        join_seg = bool(rest_flags & SEG_CONTINUES)
                        rest = None
                    else:
                        q = Sequence()
                    first_tok = at_tok
                    for j in range(at_seg, at_seg + segs[i]):
                        n_id = id_bytes[j]
                        id_ = ids[at_id:at_id + n_id]
                        at_id += n_id
                        src, n = source[j], length[j]
                        if src != PADDING and src not in self.sources:
                            self._fail("source %d has no name yet" % src)
                        dom = None
                        if domain[j] != NONE32:
                            if domain[j] not in self.domains:
                                self._fail("domain %d has no name yet" % domain[j])
                            dom = self.domains[domain[j]]
                        if join_seg:
                            join_seg = False
                            s = q.segments[-1]
                            want = 0 if src == PADDING else s.offset + s.length
                            if (src, document[j]) != (s.source, s.document) or offset[j] != want:
                                self._fail("a segment goes on as another one")
                            if n_id:
                                self._fail("the id of a segment is repeated")
                            if dom != s.domain:
                                self._fail("the domain changes within a segment")
                            if score[j] != s.score or meta[j] != s.meta:
                                self._fail("the score or the metadata changes within a segment")
                            s.length += n
                        else:
                            q.segments.append(Segment(src, document[j], offset[j], n, dom, id_, score[j], meta[j]))
                        at_tok += n
                    at_seg += segs[i]
                    if tokens is not None:
                        part = tokens[first_tok:at_tok]
                        if q.tokens is None:
                            q.tokens = part
                        else:
                            q.tokens.extend(part)
                    if mask is not None:
                        q.mask = (q.mask or bytearray()) + mask[first_tok:at_tok]
                    q.length += at_tok - first_tok
                    if i == n_seq - 1 and fr.flags & SEQ_CONTINUES:
                        rest, rest_flags = q, fr.flags
                    else:
                        self._finish_sequence(q, t)
                        if self.cuts:
                            shapes.append([(s.length, len(s.id or b""), sum(12 + len(v) for _, _, v in s.meta))
                                           for s in q.segments])
                        yield q
            elif typ in ("SRCS", "DOMS", "VALS"):
                if fr.aux:
                    self._fail("aux of %s" % typ)
                table = {"SRCS": self.sources, "DOMS": self.domains, "VALS": self.values}[typ]
                self._names(self._open(fr), table, typ)
                if len(self.values) > 2**16 or sum(map(len, self.values.values())) > 2**24:
                    self._fail("too many names of metadata")
                self.all_sources.update(self.sources)
            elif typ == "vocb":
                if number != 1 or self.vocab is not None:
                    self._fail("vocb is not frame 1")
                if fr.aux or not fr.flags & ZSTD:
                    self._fail("aux or flags of vocb")
                self._vocab(self._open(fr))
            elif typ == "acct":
                if steps is not None or rest is not None:
                    self._fail("acct twice, or within a sequence")
                if fr.aux or self.header.minor < 1:
                    self._fail("aux of acct, or acct in a stream of version 1.0")
                steps = self._steps(self._open(fr))
            elif typ == "ENDS":
                if rest is not None:
                    self._fail("the last sequence does not end")
                if steps and any(steps[-1][k]["out"] != getattr(t, n) for k, n in COUNTS):
                    self._fail("the last step of acct wrote other counts than ENDS has")
                self._ends(fr, t)
                took = steps[0].get("sources", ()) if steps and len(steps) == 1 else ()
                if took and len(took) < 1000 and (
                        sum(r["tokens"] for r in took) != t.n_tok or sum(r["documents"] for r in took) != t.n_doc or
                        self.hashes and sum(int(r["stream_checksum"], 16) for r in took) & MASK128 != t.checksum):
                    self._fail("the sources of acct are not what the stream has")
                state = "ended"
            elif typ == "INDX":
                if state == "body":
                    self._fail("INDX before ENDS")
                if first_indx is None:
                    first_indx = fr.at
                if fr.aux:
                    self._fail("aux of INDX")
                p = self._open(fr)
                if len(p) < 16:
                    self._fail("INDX is too short")
                n, zero = struct.unpack_from("<QQ", p)
                if zero or n > 2**20 or len(p) != 16 + 32 * n:
                    self._fail("INDX is not as long as it must be")
                v = u64s(p[16:])
                got_rows += [tuple(v[i:i + 4]) for i in range(0, 4 * n, 4)]
                state = "indexed"
            elif typ == "FOOT":
                if state != "indexed":
                    self._fail("FOOT before INDX")
                if fr.flags or fr.raw:
                    self._fail("FOOT has flags or a payload")
                if fr.aux != first_indx - start:
                    self._fail("FOOT does not lead to the index")
                break
            elif typ[0].islower():
                self.unknown_frames += 1
            else:
                self._fail("unknown frame %s" % typ)
        if rows != got_rows:
            self._fail("the index does not agree with the frames")
        if self.cuts:
            want = expected_cuts(shapes)
            if want != frames:
                for i, (a, b) in enumerate(zip(want + [None], frames + [None])):
                    if a != b:
                        self._fail("DATA frame %d is cut as %r, must be %r" % (i, b, a))
        self.total.add(t)
        self.members.append((self.header, t))

    def _steps(self, payload):
        steps = json.loads(bytes(payload))
        for s in steps:
            if not all(isinstance(s[k], str) for k in ("program", "version", "arguments")) or type(s["seed"]) is not int:
                self._fail("a step of acct is not as it must be")
            if not any(kind in s for kind, _ in COUNTS):
                if "uncounted" in s or "sources" in s:
                    self._fail("a step of acct has more than its name, and no counts")
                continue
            if s.get("uncounted", True) is not True:
                self._fail("uncounted of a step of acct is not true")
            for kind, _ in COUNTS:
                n = s[kind]
                came = n["in"] + n.get("from_work", 0) + n["created"] + n["repeated"] + n.get("padding", 0)
                if came != n["out"] + n.get("to_work", 0) + sum(n["dropped"].values()):
                    self._fail("%s of a step of acct do not balance" % kind)
        return steps

    def _ends(self, fr, t):
        if fr.flags or fr.aux:
            self._fail("flags or aux of ENDS")
        p = fr.payload
        if len(p) != 128:
            self._fail("ENDS has %d bytes" % len(p))
        v = struct.unpack_from("<15Q", p)
        if any(p[120:128]):
            self._fail("reserved bytes of ENDS")
        names = ("n_seq", "n_seg", "n_tok", "n_pad", "n_doc", "n_frame", "n_loss")
        for name, said in zip(names, v[:6] + v[12:13]):
            if said != getattr(t, name):
                self._fail("ENDS says %s = %d, read %d" % (name, said, getattr(t, name)))
        checksum, trace, masks, meta = (v[i] | v[i + 1] << 64 for i in (6, 8, 10, 13))
        if self.hashes:
            if checksum != t.checksum:
                self._fail("checksum is wrong")
            if trace != t.trace:
                self._fail("trace_checksum is wrong")
            if masks != t.masks:
                self._fail("mask_checksum is wrong")
            if meta != t.meta:
                self._fail("meta_checksum is wrong")
        else:
            if self.header.no_tokens and checksum:
                self._fail("a checksum without tokens")
            if masks and not self.header.masks:
                self._fail("a mask_checksum without masks")
            if meta and not self.header.fields:
                self._fail("a meta_checksum without metadata")
            t.checksum, t.trace, t.masks, t.meta = checksum, trace, masks, meta


class _Pushback:
    """A file with one byte put back."""

    def __init__(self, f, b):
        while isinstance(f, _Pushback):
            f = f.f
        self.f, self.b = f, b

    def read(self, n):
        if self.b and n:
            b, self.b = self.b, b""
            return b
        return self.f.read(n)


def expected_cuts(shapes):
    """Section 6, "Where frames are cut", as (n_seq, n_tok, flags 2|4) of each frame; shapes are
    the lists of the sequences' segments as (tokens, bytes of id, bytes of metadata)."""
    frames = []
    n_seq = n_seg = n_tok = n_id = 0
    for segments in shapes:
        tok, seg, ids = sum(s[0] for s in segments), len(segments), sum(s[1] + s[2] for s in segments)
        fits = (n_seq + 1 <= FRAME_SEQS and n_tok + tok <= FRAME_TOKENS
                and n_seg + seg <= FRAME_SEGS and n_id + ids <= FRAME_IDS)
        if not fits and n_seq:
            frames.append((n_seq, n_tok, 0))
            n_seq = n_seg = n_tok = n_id = 0
        at, done = 0, 0  # segment, and how much of it lies in frames that are written
        while tok > FRAME_TOKENS or seg - at > FRAME_SEGS or ids > FRAME_IDS:
            room, segs, id_room = FRAME_TOKENS, 0, FRAME_IDS
            while room and segs < FRAME_SEGS:
                length, id_bytes, meta = segments[at]
                n_byte = meta if done else id_bytes + meta
                if n_byte > id_room:
                    break
                id_room, ids = id_room - n_byte, ids - n_byte
                take = min(room, length - done)
                room, done, segs = room - take, done + take, segs + 1
                if done == length:
                    at, done = at + 1, 0
            frames.append((1, FRAME_TOKENS - room,
                           SEQ_CONTINUES | (SEG_CONTINUES if done else 0)))
            tok -= FRAME_TOKENS - room
            ids += segments[at][2] if done else 0  # a segment that goes on has its metadata again
        n_seq, n_seg, n_tok, n_id = n_seq + 1, n_seg + seg - at, n_tok + tok, n_id + ids
    if n_seq:
        frames.append((n_seq, n_tok, 0))
    return frames


def open_stream(path):
    return sys.stdin.buffer if path == "-" else open(path, "rb", buffering=1 << 20)


def text(b):
    return b.decode("utf-8", "surrogateescape")


def value(kind, b):
    if kind in ("name", "text"):
        return text(b)
    v = struct.unpack("<" + {"u8": "B", "u32": "I", "u64": "Q", "f32": "f", "i64": "q", "f64": "d"}[kind], b)[0]
    return int(v) if v == int(v) and abs(v) < 2**53 else v


def record_json(reader, q):
    segments = []
    for s in q.segments:
        if s.source == PADDING:
            segments.append({"padding": True, "length": s.length})
            continue
        o = {"source": text(reader.sources[s.source]), "source_number": s.source, "document": s.document, "offset": s.offset, "length": s.length}
        if s.id:
            o["id"] = text(s.id)
        if s.domain is not None:
            o["domain"] = text(s.domain)
        if s.score != NO_SCORE:
            o["score"] = struct.unpack("<d", struct.pack("<Q", s.score))[0]
        if s.meta:
            o["metadata"] = {text(n): value(kind, v) for n, kind, v in s.meta}
        segments.append(o)
    o = {"segments": segments}
    if q.tokens is not None:
        o["tokens"] = q.tokens.tolist()
    if q.mask is not None:
        o["mask"] = list(q.mask)
    return o


def main(argv):
    mode, need_all, cuts, paths = "records", False, False, []
    for a in argv:
        if a in ("--summary", "--check", "--records"):
            mode = a[2:]
        elif a == "--need-all":
            need_all = True
        elif a == "--cuts":
            cuts = True
        elif a.startswith("-") and a != "-":
            sys.stderr.write(__doc__)
            return 2
        else:
            paths.append(a)
    total, unchecked, headers = Totals(), set(), []
    for path in paths or ["-"]:
        r = Reader(open_stream(path), cuts=cuts)
        try:
            for q in r:
                if mode == "records":
                    sys.stdout.write(json.dumps(record_json(r, q), separators=(",", ":")) + "\n")
        except StreamError as e:
            sys.stderr.write("tokstream.py: %s: %s\n" % (path, e))
            return 1
        total.add(r.total)
        unchecked |= r.unchecked
        headers += [h for h, _ in r.members]
    if mode == "summary":
        h = headers[0]
        print(json.dumps({
            "members": len(headers), "token_bytes": h.tok_bytes, "vocab_size": h.vocab_size,
            "sequences": total.n_seq, "segments": total.n_seg, "tokens": total.n_tok,
            "padding": total.n_pad, "documents": total.n_doc, "frames": total.n_frame,
            "eos_id": None if h.eos == NONE64 else h.eos, "buckets": h.bucket,
            "labels": h.labels, "checksum": "%032x" % total.checksum,
            "trace_checksum": "%032x" % total.trace, "masks": any(h.masks for h in headers),
            "loss_tokens": total.n_loss, "mask_checksum": "%032x" % total.masks,
            "metadata": [[text(n), t] for n, t in h.fields], "metadata_checksum": "%032x" % total.meta,
            "provenance": h.steps}))
    for what in sorted(unchecked):
        sys.stderr.write("tokstream.py: not checked: %s\n" % what)
    return 1 if unchecked and need_all else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        sys.exit(1)
