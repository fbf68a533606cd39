#include "kinds.h"

#include <string.h>
#include <strings.h>

#include "lib/base/le.h"

#define DUCKDB                                                                         \
    "make JSON lines of it, as with duckdb -c \"COPY 'FILE' TO 'x.jsonl' (FORMAT "     \
    "json)\""
#define EXTRACT     "extract its text first"
#define DOCUMENT    "extract its text first, as with pandoc -t plain"
#define IDS         "give files of ids to inspect, dedup, pack or shuffle"
#define ARRAYS      "it has numbers, not text"
#define MEDIA       "it has no text"
#define PROGRAM     "it has code of a machine, not text"
#define UNPACK      "unpack it first"
#define PYTHON      "write its texts as JSON lines, in Python"
#define ICONV(FROM) "make UTF-8 of it, as with iconv -f " FROM " -t UTF-8"

/* Suffixes are separated by spaces. Of `head` (n bytes at offset `at`), a file of any
 * name. The order counts: the first row that fits is taken. */
static const struct row {
    struct slu_kind kind;
    const char *suffix;
    const char *head;
    uint8_t n, at;
    bool
        text; /* `head` is text; other heads count only in front of bytes that are not */
} rows[] = {
    {{"a CSV table", DUCKDB}, ".csv .psv", NULL, 0, 0},
    {{"a TSV table", DUCKDB}, ".tsv .tab", NULL, 0, 0},
    {{"an HTML page", "extract its text first, as with trafilatura"},
     ".html .htm .xhtml .mhtml",
     NULL,
     0,
     0},
    {{"XML", EXTRACT}, ".xml .xsd .xsl .svg .rss .atom .tmx .ttml .xlf", NULL, 0, 0},
    {{"a PDF document", "extract its text first, as with pdftotext"},
     ".pdf",
     "%PDF-",
     5,
     0,
     true},
    {{"an office document", DOCUMENT},
     ".docx .docm .dotx .odt .fodt .doc .dot .pages",
     NULL,
     0,
     0},
    {{"an office table", EXTRACT},
     ".xlsx .xlsm .xlsb .ods .fods .xls .numbers",
     NULL,
     0,
     0},
    {{"an office presentation", EXTRACT}, ".pptx .pptm .odp .ppt .key", NULL, 0, 0},
    {{"an office document", DOCUMENT}, NULL, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 8, 0},
    {{"an RTF document", DOCUMENT}, ".rtf", "{\\rtf", 5, 0, true},
    {{"an e-book", DOCUMENT}, ".epub .mobi .azw .azw3 .fb2", NULL, 0, 0},
    {{"PostScript", "extract its text first, as with ps2ascii"},
     ".ps .eps",
     "%!PS",
     4,
     0,
     true},
    {{"a DjVu document", "extract its text first, as with djvutxt"},
     ".djvu",
     "AT&TFORM",
     8,
     0},
    {{"a Jupyter notebook", "make text of it, as with jupyter nbconvert --to markdown"},
     ".ipynb",
     NULL,
     0,
     0},
    {{"a WAT file, which has metadata of web pages and not their text",
      "take the WET files"},
     ".wat",
     NULL,
     0,
     0},
    {{"an ARC file", "make WARC of it, as with warcio recompress"},
     ".arc",
     "filedesc://",
     11,
     0,
     true},
    {{"an Arrow table", DUCKDB " after pyarrow has made Parquet of it"},
     ".arrow .ipc .feather",
     "ARROW1",
     6,
     0},
    {{"an Arrow stream", "make Parquet of it with pyarrow"},
     ".arrows",
     "\xFF\xFF\xFF\xFF",
     4,
     0},
    {{"a Feather table", "make Parquet of it with pyarrow"}, NULL, "FEA1", 4, 0},
    {{"an ORC table", "make Parquet of it with pyarrow"}, ".orc", "ORC\n", 4, 0},
    {{"an Avro file", "make JSON lines of it, as with avro-tools tojson"},
     ".avro",
     "Obj\x01",
     4,
     0},
    {{"a TFRecord file", PYTHON}, ".tfrecord .tfrecords", NULL, 0, 0},
    {{"an HDF5 file", PYTHON}, ".h5 .hdf5", "\x89HDF\r\n\x1A\n", 8, 0},
    {{"a NumPy array", ARRAYS "; " IDS}, ".npy", "\x93NUMPY", 6, 0},
    {{"an archive of NumPy arrays", ARRAYS}, ".npz", NULL, 0, 0},
    {{"a safetensors file", ARRAYS}, ".safetensors", NULL, 0, 0},
    {{"a GGUF model", ARRAYS}, ".gguf", "GGUF", 4, 0},
    {{"an ONNX model", ARRAYS}, ".onnx", NULL, 0, 0},
    {{"a pickle of Python", PYTHON}, ".pkl .pickle .joblib", NULL, 0, 0},
    {{"a PyTorch file", PYTHON}, ".pt .pth .ckpt", NULL, 0, 0},
    {{"an SQLite database", DUCKDB},
     ".sqlite .sqlite3 .db .db3",
     "SQLite format 3\0",
     16,
     0},
    {{"a DuckDB database", DUCKDB}, ".duckdb", "DUCK", 4, 8},
    {{"an LMDB database", PYTHON}, ".mdb .lmdb", NULL, 0, 0},
    {{"an index of a file of ids", IDS}, ".idx", "MMIDIDX\0", 8, 0},
    {{"a file of ids or other numbers", IDS}, ".bin .ds", NULL, 0, 0},
    {{"a shard of MDS", IDS}, ".mds", NULL, 0, 0},
    {{"an image", MEDIA},
     ".png .jpg .jpeg .gif .webp .bmp .tif .tiff .ico .heic .avif .psd .jp2",
     "\x89PNG\r\n",
     6,
     0},
    {{"an image", MEDIA}, NULL, "\xFF\xD8\xFF", 3, 0},
    {{"an image", MEDIA}, NULL, "GIF8", 4, 0},
    {{"an image", MEDIA}, NULL, "II*\0", 4, 0},
    {{"an image", MEDIA}, NULL, "MM\0*", 4, 0},
    {{"an image", MEDIA}, NULL, "WEBP", 4, 8},
    {{"a sound", MEDIA}, ".mp3 .wav .flac .ogg .opus .m4a .aac .wma", "ID3", 3, 0},
    {{"a sound", MEDIA}, NULL, "fLaC", 4, 0},
    {{"a sound", MEDIA}, NULL, "WAVE", 4, 8},
    {{"a video", MEDIA},
     ".mp4 .mov .mkv .webm .avi .wmv .flv .m4v .mpg .mpeg",
     "ftyp",
     4,
     4},
    {{"a sound or a video", MEDIA}, NULL, "OggS", 4, 0},
    {{"a video", MEDIA}, NULL, "\x1A\x45\xDF\xA3", 4, 0},
    {{"a video", MEDIA}, NULL, "AVI ", 4, 8},
    {{"a font", MEDIA}, ".ttf .otf .woff .woff2 .eot", "wOF", 3, 0},
    {{"a program", PROGRAM},
     ".exe .dll .so .dylib .o .a",
     "\x7F"
     "ELF",
     4,
     0},
    {{"a program", PROGRAM}, ".class .pyc .wasm", "\xCA\xFE\xBA\xBE", 4, 0},
    {{"a program", PROGRAM}, NULL, "\0asm", 4, 0},
    {{"an archive of programs", UNPACK},
     ".jar .war .apk .whl .egg .deb .rpm",
     NULL,
     0,
     0},
    {{"a 7z archive", UNPACK}, ".7z", "7z\xBC\xAF\x27\x1C", 6, 0},
    {{"a RAR archive", UNPACK}, ".rar", "Rar!\x1A\x07", 6, 0},
    {{"an image of a disk", UNPACK}, ".iso .dmg .img", NULL, 0, 0},
    {{"compressed by brotli", "decompress it first, as with brotli -d"},
     ".br",
     NULL,
     0,
     0},
    {{"compressed by snappy", "decompress it first"},
     ".snappy .sz",
     "\xFF\x06\0\0sNaPpY",
     10,
     0},
    {{"compressed by lzip", "decompress it first, as with lzip -d"},
     ".lz",
     "LZIP\x01",
     5,
     0},
    {{"compressed by lzop", "decompress it first, as with lzop -d"},
     ".lzo",
     "\x89LZO\0",
     5,
     0},
    {{"compressed by compress", "decompress it first, as with gzip -d"},
     ".z",
     "\x1F\x9D",
     2,
     0},
    {{"encrypted by age", "decrypt it first"},
     ".age",
     "age-encryption.org",
     18,
     0,
     true},
    {{"encrypted by PGP", "decrypt it first"}, ".gpg .pgp", NULL, 0, 0},
    {{"UTF-32", ICONV("UTF-32")}, NULL, "\xFF\xFE\0\0", 4, 0},
    {{"UTF-32", ICONV("UTF-32")}, NULL, "\0\0\xFE\xFF", 4, 0},
    {{"UTF-16", ICONV("UTF-16")}, NULL, "\xFF\xFE", 2, 0, true},
    {{"UTF-16", ICONV("UTF-16")}, NULL, "\xFE\xFF", 2, 0, true},
};
enum { N_ROW = sizeof rows / sizeof *rows };

static const struct slu_kind stream = {
    "a token stream already",
    "give it to dedup, decompose, pack or shuffle, and only texts to tokenize"};
/* Bytes of no row that are no text all the same. */
static const struct slu_kind binary = {"binary, as it has NUL bytes",
                                       "make UTF-8 text or JSON lines of it first"};

/* Whether `list` has the suffix, in lower case. */
static bool has(const char *list, const char *suffix)
{
    const size_t n = strlen(suffix);
    for (const char *s = list; s && (s = strstr(s, suffix)); s += n)
        if (!s[n] || s[n] == ' ')
            return true;
    return false;
}

const struct slu_kind *slu_kind_named(const char *name)
{
    const char *dot = strrchr(name, '.');
    char suffix[16];
    size_t n = 0;

    if (!dot)
        return NULL;
    for (; n < sizeof suffix - 1 && dot[n]; n++)
        suffix[n] = dot[n] >= 'A' && dot[n] <= 'Z' ? (char)(dot[n] + 32) : dot[n];
    suffix[n] = 0;
    for (size_t i = 0; i < N_ROW && !dot[n]; i++)
        if (has(rows[i].suffix, suffix))
            return &rows[i].kind;
    return NULL;
}

/* Whether p begins with this word of HTML or XML, whatever its case. */
static bool begins(const uint8_t *p, size_t n, const char *word)
{
    const size_t len = strlen(word);
    return n > len && !strncasecmp((const char *)p, word, len) &&
           memchr(" \t\r\n>[", p[len], 6);
}

/* Markup behind white space and a byte order mark. */
static const struct slu_kind *markup(const uint8_t *p, size_t n)
{
    size_t i = n >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3) ? 3 : 0;
    while (i < n && memchr(" \t\r\n", p[i], 4))
        i++;
    if (i == n || p[i] != '<')
        return NULL;
    if (begins(p + i, n - i, "<!doctype html") || begins(p + i, n - i, "<html"))
        return slu_kind_named("x.html");
    return begins(p + i, n - i, "<?xml") || begins(p + i, n - i, "<!doctype")
               ? slu_kind_named("x.xml")
               : NULL;
}

/* A zip file that is a document, arrays or a model, by its first member. */
static const struct slu_kind *zipped(const uint8_t *p, size_t n)
{
    static const struct {
        const char *begin, *end, *is;
    } first[] = {
        {"[Content_Types].xml", "", "x.docx"},
        {"_rels/", "", "x.docx"},
        {"word/", "", "x.docx"},
        {"xl/", "", "x.xlsx"},
        {"ppt/", "", "x.pptx"},
        {"mimetypeapplication/epub", "", "x.epub"},
        {"mimetypeapplication/", "", "x.odt"},
        {"META-INF/", "", "x.jar"},
        {"", ".npy", "x.npz"},
        {"", "/data.pkl", "x.pt"},
    };
    if (n < 30 || memcmp(p, "PK\3\4", 4))
        return NULL;
    const char *name = (const char *)p + 30;
    const size_t len = slu_le16(p + 26);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        const size_t b = strlen(first[i].begin), e = strlen(first[i].end);
        if (30 + len <= n && len >= e && 30 + b <= n &&
            !memcmp(name, first[i].begin, b) &&
            !memcmp(name + len - e, first[i].end, e))
            return slu_kind_named(first[i].is);
    }
    return NULL;
}

/* Whether the bytes could be text: none is a control that texts do not have. */
static bool is_plain(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] < ' ' && !(p[i] >= '\t' && p[i] <= '\r') && p[i] != 0x1B)
            return false;
    return true;
}

const struct slu_kind *slu_kind_headed(const uint8_t *p, size_t n)
{
    const bool plain = is_plain(p, n < SLU_KIND_BYTE ? n : SLU_KIND_BYTE);
    for (const struct row *r = rows; r < rows + N_ROW; r++) {
        if ((r->text || !plain) && r->head && n >= (size_t)r->at + r->n &&
            !memcmp(p + r->at, r->head, r->n))
            return &r->kind;
    }
    if (plain)
        return markup(p, n);
    if (n >= 3 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5 &&
        memchr("c}](KX\x95", p[2], 7))
        return slu_kind_named("x.pkl");
    if (n >= 10 && slu_le64(p) < UINT64_C(1) << 28 && !memcmp(p + 8, "{\"", 2))
        return slu_kind_named("x.safetensors");
    return zipped(p, n);
}

const struct slu_kind *slu_kind_binary(const uint8_t *p, size_t n)
{
    return n && memchr(p, 0, n) ? &binary : NULL;
}

const struct slu_kind *slu_kind_stream(const uint8_t *p, size_t n)
{
    return n >= 8 && !memcmp(p, "\xF5TKSHEAD", 8) ? &stream : NULL;
}
