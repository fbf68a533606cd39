"""The frames of a token stream and their payloads, sections 2 to 6 of formats/STREAM.md; a module of
tokstream.py, which reads members and sequences.
"""
import array
import shutil
import struct
import subprocess
import sys

try:
    import xxhash
except ImportError:
    xxhash = None
try:
    import zstandard
except ImportError:
    zstandard = None

MAGIC = b"\xF5TKS"
NONE64 = 2**64 - 1
NONE32 = 2**32 - 1
PADDING = NONE64
ZSTD, SEQ_CONTINUES, SEG_CONTINUES = 1, 2, 4
LABELS, NO_TOKENS, SCORES, MASKS, INNER_PADDING, METADATA = 1, 2, 4, 8, 16, 32
# Types of metadata: name, struct's code of an element, the element that means null.
TYPES = {1: ("name", "I", NONE32), 2: ("text", "I", NONE32), 3: ("u8", "B", 255), 4: ("u32", "I", NONE32),
         5: ("u64", "Q", NONE64), 6: ("f32", "f", b"\0\0\xc0\x7f"), 7: ("i64", "q", -2**63),
         8: ("f64", "d", b"\0\0\0\0\0\0\xf8\x7f")}
NO_SCORE = 0x7FF8000000000000
LIMIT = 2**26


class StreamError(Exception):
    """The stream breaks the specification, at byte `at` of the file."""

    def __init__(self, at, what):
        super().__init__("byte %d: %s" % (at, what))
        self.at = at


class Header:
    pass


def _array(code, width, data):
    a = array.array(code)
    assert a.itemsize == width
    a.frombytes(data)
    if sys.byteorder == "big":
        a.byteswap()
    return a


def u16s(data):
    return _array("H", 2, data)


def u32s(data):
    return _array("I", 4, data)


def u64s(data):
    return _array("Q", 8, data)


def bytes_le(a):
    if sys.byteorder == "big":
        a = a[:]
        a.byteswap()
    return a.tobytes()


def up64(n):
    return (n + 63) & ~63


class Frame:
    __slots__ = ("at", "type", "flags", "number", "raw", "stored", "aux", "payload", "size")


class Frames:
    """Reads one frame after another, and checks whatever a frame shows by itself.

    header: of the member being read. unchecked: what could not be checked.
    """

    def __init__(self, f, hashes=True):
        self.f = f
        self.at = 0
        self.hashes = hashes and xxhash is not None
        self.header = None
        self.first_header = None
        self.vocab = None
        self.unchecked = set()
        if not self.hashes:
            self.unchecked.add("hashes and checksums (no xxhash)")

    # -- bytes ------------------------------------------------------------------------------

    def _read(self, n, what):
        parts, got = [], 0
        while got < n:
            b = self.f.read(n - got)
            if not b:
                raise StreamError(self.at + got, "the file ends inside %s" % what)
            parts.append(b)
            got += len(b)
        self.at += n
        return b"".join(parts) if len(parts) != 1 else parts[0]

    def _fail(self, what, at=None):
        raise StreamError(self.frame_at if at is None else at, what)

    def _frame(self):
        """The next frame with everything of section 2 checked; payload still as stored."""
        self.frame_at = at = self.at
        head = self._read(64, "a frame header")
        fr = Frame()
        fr.at = at
        if head[:4] != MAGIC:
            self._fail("no frame begins here")
        (typ, fr.flags, reserved, fr.number, fr.raw, fr.stored, fr.aux, payload_hash,
         header_hash) = struct.unpack("<4sIIQQQQQQ", head[4:])
        if self.hashes and xxhash.xxh3_64_intdigest(head[:56]) != header_hash:
            self._fail("the frame header's hash is wrong")
        if not all(65 <= c <= 90 or 97 <= c <= 122 for c in typ):
            self._fail("frame type %r" % typ)
        fr.type = typ.decode("ascii")
        if reserved:
            self._fail("reserved field of the frame header is not zero")
        if fr.raw > LIMIT or fr.stored > LIMIT:
            self._fail("frame payload over the limit")
        if not fr.flags & ZSTD and fr.raw != fr.stored:
            self._fail("raw_bytes and stored_bytes differ without ZSTD")
        fr.size = 64 + up64(fr.stored)
        body = self._read(up64(fr.stored), "a frame's payload")
        if self.hashes and xxhash.xxh3_64_intdigest(body) != payload_hash:
            self._fail("the payload's hash is wrong")
        if any(body[fr.stored:]):
            self._fail("bytes of the padding are not zero")
        fr.payload = body[:fr.stored]
        return fr

    def _open(self, fr, own_flags=0):
        """Payload decompressed; unknown flags refused."""
        if fr.flags & ~(ZSTD | own_flags):
            self._fail("unknown flags 0x%x in a %s frame" % (fr.flags, fr.type))
        if not fr.flags & ZSTD:
            return fr.payload
        if zstandard is not None:
            p = zstandard.get_frame_parameters(fr.payload)
            if p.content_size != fr.raw:
                self._fail("the zstd frame's content size is not raw_bytes")
            d = zstandard.ZstdDecompressor().decompressobj()
            out = d.decompress(fr.payload)
            if d.unused_data:
                self._fail("more than one zstd frame in a payload")
        elif shutil.which("zstd"):
            out = subprocess.run(["zstd", "-dcq"], input=fr.payload, stdout=subprocess.PIPE,
                                 check=True).stdout
            self.unchecked.add("content sizes of zstd frames (no zstandard)")
        else:
            raise RuntimeError("compressed frames need the package zstandard or the program zstd")
        if len(out) != fr.raw:
            self._fail("decompressed length is not raw_bytes")
        return out

    # -- frames -----------------------------------------------------------------------------

    def _head(self, fr):
        if fr.type != "HEAD":
            self._fail("a member begins with HEAD, not with %s" % fr.type)
        if fr.flags:
            self._fail("flags of HEAD")
        if fr.aux:
            self._fail("aux of HEAD")
        p = fr.payload
        if len(p) < 128:
            self._fail("HEAD is too short")
        h = Header()
        (h.major, h.minor, h.tok_bytes, h.flags, h.vocab_size, h.eos, h.bos, h.pad,
         h.fingerprint, n_bucket, n_step) = struct.unpack_from("<IIIIQQQQ16sQQ", p)
        if h.major != 1:
            self._fail("major version %d" % h.major)
        if h.flags & ~(LABELS | NO_TOKENS | SCORES | MASKS | INNER_PADDING | METADATA):
            self._fail("unknown flags of HEAD")
        h.masks, h.inner_padding = bool(h.flags & MASKS), bool(h.flags & INNER_PADDING)
        if h.minor < 1 and (h.masks or h.inner_padding):
            self._fail("flags of version 1.1 in a stream of version 1.0")
        if h.masks and h.vocab_size > 2**31:
            self._fail("MASKS with a vocab_size over 2^31")
        n_field = u64s(p[80:88])[0]
        if bool(n_field) != bool(h.flags & METADATA) or n_field > 16 or n_field and h.minor < 2:
            self._fail("%d fields of metadata, flags %d, minor version %d" % (n_field, h.flags, h.minor))
        if any(p[88:128]):
            self._fail("reserved bytes of HEAD")
        if h.vocab_size == 0 or h.vocab_size > 2**32:
            self._fail("vocab_size %d" % h.vocab_size)
        if h.tok_bytes != (2 if h.vocab_size <= 65536 else 4):
            self._fail("tok_bytes %d with vocab_size %d" % (h.tok_bytes, h.vocab_size))
        for k in ("eos", "bos", "pad"):
            v = getattr(h, k)
            if v != NONE64 and v >= h.vocab_size:
                self._fail("%s %d is not below vocab_size" % (k, v))
        if n_bucket > 64 or n_step > 4096:
            self._fail("too many buckets or steps")
        at = 128
        if len(p) < at + 8 * n_bucket:
            self._fail("HEAD ends inside the buckets")
        h.bucket = list(u64s(p[at:at + 8 * n_bucket]))
        at += 8 * n_bucket
        if any(b < 1 for b in h.bucket) or any(a >= b for a, b in zip(h.bucket, h.bucket[1:])):
            self._fail("buckets are not ascending")
        h.steps = []
        for _ in range(n_step):
            if len(p) < at + 24:
                self._fail("HEAD ends inside a step")
            seed, n1, n2, n3, zero = struct.unpack_from("<QIIII", p, at)
            if zero:
                self._fail("reserved field of a step")
            at += 24
            strings = []
            for n in (n1, n2, n3):
                if len(p) < at + n:
                    self._fail("HEAD ends inside a step's strings")
                s = p[at:at + n]
                if b"\0" in s:
                    self._fail("NUL in a step")
                strings.append(s.decode("utf-8"))
                at += n
            end = (at + 7) & ~7
            if len(p) < end or any(p[at:end]):
                self._fail("padding of a step")
            at = end
            h.steps.append({"program": strings[0], "version": strings[1],
                            "arguments": strings[2], "seed": seed})
        h.fields = []  # (name, type)
        for _ in range(n_field):
            if len(p) < at + 8:
                self._fail("HEAD ends inside a field")
            typ, scope, zero, n = struct.unpack_from("<BBHI", p, at)
            name = p[at + 8:at + 8 + n]
            end = (at + 8 + n + 7) & ~7
            if scope or zero or typ not in TYPES or not 1 <= n <= 255 or len(p) < end or any(p[at + 8 + n:end]):
                self._fail("a field of metadata that is not as it must be")
            if any(c < 32 or c == 127 for c in name) or h.fields and h.fields[-1][0] >= name:
                self._fail("the name of a field of metadata")
            h.fields.append((name, typ))
            at = end
        if at != len(p):
            self._fail("bytes behind the last field of HEAD")
        h.labels, h.no_tokens = bool(h.flags & LABELS), bool(h.flags & NO_TOKENS)
        h.scores = bool(h.flags & SCORES)
        f = self.first_header
        if f is None:
            self.first_header = h
        else:
            for k in ("tok_bytes", "flags", "vocab_size", "eos", "bos", "fingerprint", "bucket"):
                # The members may differ in pad, MASKS, INNER_PADDING and METADATA.
                may = MASKS | INNER_PADDING | METADATA if k == "flags" else 0
                if may and f.flags & ~may == h.flags & ~may:
                    continue
                if getattr(f, k) != getattr(h, k):
                    self._fail("%s differs between the members of the file" % k)
        self.header = h

    def _vocab(self, p):
        if len(p) < 8:
            self._fail("vocb is too short")
        n = struct.unpack_from("<Q", p)[0]
        if n != self.header.vocab_size:
            self._fail("vocb has another size than vocab_size")
        if len(p) < 8 + 9 * n:
            self._fail("vocb ends inside its table")
        length = u64s(p[8:8 + 8 * n])
        flags = p[8 + 8 * n:8 + 9 * n]
        at = 8 + 9 * n
        if sum(length) != len(p) - at:
            self._fail("lengths of vocb do not add up to its bytes")
        table = []
        for n_byte, flag in zip(length, flags):
            if flag & ~3:
                self._fail("unknown flags of a vocabulary entry")
            if flag & 2 and n_byte:
                self._fail("a hole of the vocabulary has bytes")
            table.append(p[at:at + n_byte])
            at += n_byte
        self.vocab = table
        self.vocab_flags = flags

    def _names(self, p, table, what):
        if len(p) < 8:
            self._fail("%s is too short" % what)
        n = struct.unpack_from("<Q", p)[0]
        at = 8
        for _ in range(n):
            if len(p) < at + 12:
                self._fail("%s ends inside an entry" % what)
            ordinal, n_byte = struct.unpack_from("<QI", p, at)
            at += 12
            if n_byte > 65536:
                self._fail("a name over the limit")
            if len(p) < at + n_byte:
                self._fail("%s ends inside a name" % what)
            name = p[at:at + n_byte]
            at += n_byte
            if b"\0" in name:
                self._fail("NUL in a name")
            if ordinal in table:
                self._fail("%s %d is given twice" % (what, ordinal))
            if what != "SRCS" and ordinal != len(table):
                self._fail("the names of %s are not numbered in order" % what)
            if ordinal == NONE64:
                self._fail("a source with the number of padding")
            table[ordinal] = name
        if at != len(p):
            self._fail("bytes behind the last name of %s" % what)

    def _columns(self, p):
        """The columns of a DATA payload; checks layout, sums and zero bytes between."""
        if len(p) < 64:
            self._fail("DATA is too short")
        c = u64s(p[:64])
        n_seq, n_seg, n_tok, n_id = c[:4]
        if any(c[4:]):
            self._fail("reserved counts of DATA")
        if n_seq > LIMIT or n_seg > LIMIT or n_tok > LIMIT or n_id > LIMIT:
            self._fail("counts of DATA over the limit")
        tok_size = 0 if self.header.no_tokens else self.header.tok_bytes
        meta, n_meta = self._metadata(p, 64 + sum(up64(x) for x in (
            4 * n_seq, 8 * n_seg, 8 * n_seg, 8 * n_seg, 8 * n_seg, 4 * n_seg, 4 * n_seg,
            8 * n_seg if self.header.scores else 0, n_id)), n_seg)
        sizes = [64, 4 * n_seq, 8 * n_seg, 8 * n_seg, 8 * n_seg, 8 * n_seg, 4 * n_seg, 4 * n_seg,
                 8 * n_seg if self.header.scores else 0, n_id, *n_meta,
                 (n_tok + 7) // 8 if self.header.masks else 0, tok_size * n_tok]
        at, spans = 0, []
        for size in sizes:
            at = up64(at)
            spans.append((at, at + size))
            at += size
        if len(p) != at and len(p) != up64(at):
            self._fail("DATA has %d bytes, its counts say %d" % (len(p), at))
        for (_, end), (begin, _) in zip(spans, spans[1:] + [(len(p), 0)]):
            if any(p[end:begin]):
                self._fail("bytes between the columns are not zero")
        col = [p[a:b] for a, b in spans]
        segs, source, document = u32s(col[1]), u64s(col[2]), u64s(col[3])
        offset, length, domain, id_bytes = u64s(col[4]), u64s(col[5]), u32s(col[6]), u32s(col[7])
        tokens = None
        if not self.header.no_tokens:
            tokens = u16s(col[-1]) if tok_size == 2 else u32s(col[-1])
            if tokens and max(tokens) >= self.header.vocab_size:
                self._fail("an id is not below vocab_size")
        if sum(segs) != n_seg or any(s < 1 for s in segs):
            self._fail("seq_segs do not add up")
        if sum(length) != n_tok or any(x < 1 for x in length):
            self._fail("lengths do not add up")
        if sum(id_bytes) != n_id or (id_bytes and max(id_bytes) > 65536):
            self._fail("id_bytes do not add up")
        score = u64s(col[8]) if self.header.scores else [NO_SCORE] * n_seg
        for s, b in zip(source, score):
            if b != NO_SCORE and (b >> 52 & 0x7FF == 0x7FF or s == PADDING):
                self._fail("a score that is not finite, or of padding")
        mask = None
        if self.header.masks:
            mask = bytearray(col[-2][t >> 3] >> (t & 7) & 1 for t in range(n_tok))
            if n_tok & 7 and col[-2][-1] >> (n_tok & 7):
                self._fail("a mask bit after the last token")
        if any(m and s == PADDING for s, m in zip(source, meta)):
            self._fail("padding has metadata")
        return (n_seq, n_seg, n_tok, segs, source, document, offset, length, domain, id_bytes,
                score, col[9], meta, mask, tokens)

    def _metadata(self, p, at, n_seg):
        """Of each segment its values that are not null, (name, type, bytes); and the sizes of the columns."""
        out, sizes = [() for _ in range(n_seg)], []
        for name, typ in self.header.fields:
            kind, code, none = TYPES[typ]
            width = struct.calcsize(code)
            if len(p) < at + width * n_seg:
                self._fail("DATA ends inside metadata")
            elements = [p[at + width * i:at + width * (i + 1)] for i in range(n_seg)]
            sizes.append(width * n_seg)
            at += up64(width * n_seg)
            text = at
            for i, e in enumerate(elements):
                v = struct.unpack("<" + code, e)[0]
                if none in (e, v):
                    continue
                if kind == "name":
                    if v not in self.values:
                        self._fail("value %d has no name yet" % v)
                    e = self.values[v]
                elif kind == "text":
                    e = p[text:text + v]
                    text += v
                    if v > 65536 or len(e) != v:
                        self._fail("a text of metadata is too long")
                elif v != v or v in (float("inf"), float("-inf")):
                    self._fail("metadata that is not finite")
                out[i] += ((name, kind, e),)
            if kind == "text":
                sizes.append(text - at)
                at += up64(text - at)
        return out, sizes
