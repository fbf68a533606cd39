/* in_wds.c - samples of WebDataset in tar archives (--format wds): the members whose
 * paths are equal up to the first dot of the name are one record.
 *
 * The record is a JSON object: the fields of the member `json`, if there is one;
 * "__key__", the path up to that dot; and the text, which is the member of the extension
 * cfg->member, under the name of the text's field. Other members are passed over. So
 * filters, ids and reports of samples are those of JSON lines. The document is the place
 * of the sample's first member, as in other archives. Members of a sample must lie one
 * after another: readers of WebDataset take such groups for samples of their own.
 */
#include "archive.h"

#include <stdlib.h>
#include <string.h>

#include "formats/text/members.h"
#include "lib/base/hash.h"
#include "lib/base/map.h"

struct wds {
    struct slu_arc *arc;
    struct slu_members_state state;
    struct slu_map seen; /* hashes of keys */
    struct slu_buf key;  /* of the sample whose members are read */
    bool open;           /* there is one */
    bool has_text, has_json;
    struct slu_buf text, json;
    uint64_t document;
    /* The member that comes next: its path up to the dot is key_len bytes. */
    struct slu_buf path;
    size_t key_len;
    struct slu_arc_member at;
    bool has_next, ended;
};

static bool never_named(const char *name)
{
    (void)name;
    return false;
}

static bool never_headed(const uint8_t *p, size_t n)
{
    (void)p;
    (void)n;
    return false;
}

static int wds_open(struct slu_input_source *src, struct slu_err *err)
{
    struct wds *w = calloc(1, sizeof *w);
    if (!w)
        return slu_fail_nomem(err, sizeof *w);
    src->state = w;
    return slu_arc_new(&w->arc, src, true, err);
}

/* Goes to the next member of a sample. */
static int look_ahead(struct slu_input_source *src, struct wds *w, struct slu_err *err)
{
    const char *name, *dot;
    int rc;
    do {
        rc = slu_arc_next(w->arc, &w->at, err);
        if (rc == SLU_EOF) {
            w->ended = true;
            return SLU_OK;
        }
        if (rc)
            return rc;
        name = strrchr(w->at.path, '/');
        name = name ? name + 1 : w->at.path;
        dot = strchr(name, '.');
    } while (
        w->at.type == SLU_ARC_FOLDER || !dot || dot == name ||
        !slu_members_take_sample(src->cfg->members, &w->state, src->src->name, &w->at));
    w->key_len = (size_t)(dot - w->at.path);
    w->has_next = true;
    slu_buf_clear(&w->path);
    return slu_buf_append(&w->path, w->at.path, strlen(w->at.path) + 1, err);
}

static const char *path_of(const struct wds *w)
{
    return (const char *)w->path.data;
}

static bool same_sample(const struct wds *w)
{
    return w->key.len == w->key_len && !memcmp(w->key.data, path_of(w), w->key_len);
}

static int begin_sample(struct slu_input_source *src, struct wds *w,
                        struct slu_err *err)
{
    const uint64_t hash = slu_hash64(path_of(w), w->key_len);
    uint64_t before;
    if (slu_map_get(&w->seen, hash, &before))
        return slu_fail(err, SLU_E_FORMAT,
                        "%s: %s: another member of this sample is at byte %llu, with "
                        "others between them; a sample's members must lie one after "
                        "another, as tar --sort=name packs them",
                        slu_input_name(src), path_of(w), (unsigned long long)before);
    int rc = slu_map_set(&w->seen, hash, w->at.place, err);
    slu_buf_clear(&w->key);
    if (!rc)
        rc = slu_buf_append(&w->key, path_of(w), w->key_len, err);
    slu_buf_clear(&w->text);
    slu_buf_clear(&w->json);
    w->has_text = w->has_json = false;
    w->document = w->at.place;
    w->open = true;
    return rc;
}

static int read_member(struct slu_input_source *src, struct wds *w, struct slu_buf *to,
                       struct slu_err *err)
{
    size_t got = 1;
    int rc = SLU_OK;
    while (!rc && got) {
        if (to->len > src->cfg->max_record_byte)
            return slu_advise(
                err, SLU_ADVISE_MEMORY,
                slu_fail(err, SLU_E_LIMIT,
                         "%s: %s: the member is larger than %llu bytes, the most that "
                         "memory allows",
                         slu_input_name(src), path_of(w),
                         (unsigned long long)src->cfg->max_record_byte));
        rc = slu_buf_reserve(to, 1 << 16, err);
        if (!rc)
            rc = slu_arc_read(w->arc, to->data + to->len, 1 << 16, &got, err);
        if (rc && slu_arc_failed(w->arc))
            rc = slu_err_at(err, "%s: %s", slu_input_name(src), path_of(w));
        to->len += rc ? 0 : got;
    }
    return rc;
}

/* Takes the next member into its sample. */
static int take(struct slu_input_source *src, struct wds *w, struct slu_err *err)
{
    const char *ext = path_of(w) + w->key_len + 1;
    const bool is_text = !strcasecmp(ext, src->cfg->member),
               is_json = !is_text && !strcasecmp(ext, "json");
    bool *has = is_text ? &w->has_text : &w->has_json;
    w->has_next = false;
    if (!is_text && !is_json)
        return SLU_OK;
    if (*has)
        return slu_fail(err, SLU_E_FORMAT, "%s: %s: is in its sample twice",
                        slu_input_name(src), path_of(w));
    *has = true;
    return read_member(src, w, is_text ? &w->text : &w->json, err);
}

/* Bytes of a JSON string. What is not UTF-8 stays so, for the record's check. */
static size_t escaped(const uint8_t *p, size_t n, uint8_t *out)
{
    static const char digit[] = "0123456789abcdef";
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const bool quoted = p[i] == '"' || p[i] == '\\', control = p[i] < ' ';
        if (out && control) {
            memcpy(out + len, "\\u00", 4);
            out[len + 4] = (uint8_t)digit[p[i] >> 4];
            out[len + 5] = (uint8_t)digit[p[i] & 15];
        } else if (out) {
            out[len] = '\\';
            out[len + quoted] = p[i];
        }
        len += control ? 6 : quoted ? 2 : 1;
    }
    return len;
}

static void put(struct slu_buf *b, const void *p, size_t n)
{
    memcpy(b->data + b->len, p, n);
    b->len += n;
}

static void put_string(struct slu_buf *b, const void *p, size_t n)
{
    put(b, "\"", 1);
    b->len += escaped(p, n, b->data + b->len);
    put(b, "\"", 1);
}

/* Adds the sample's record to the block. A `json` that is no object is the record, and
 * is rejected as one. */
static int end_sample(struct slu_input_source *src, struct wds *w, struct slu_block *b,
                      struct slu_err *err)
{
    const char *field = src->cfg->field[SLU_FIELD_TEXT];
    const uint8_t *json = w->json.data;
    size_t from = 0, n = w->json.len, begin = b->raw.len, member = b->members.len + 1;
    w->open = false;
    src->document = w->document;
    while (n && memchr(" \t\r\n", json[n - 1], 4))
        n--;
    while (from < n && memchr(" \t\r\n", json[from], 4))
        from++;
    const bool object = n - from >= 2 && json[from] == '{' && json[n - 1] == '}';
    const size_t more = n + escaped(w->key.data, w->key.len, NULL) +
                        escaped(w->text.data, w->text.len, NULL) + 6 * strlen(field) +
                        32;
    int rc = slu_block_room(src, b, more, begin, w->document, err);
    if (!rc)
        rc = slu_buf_append(&b->members, w->key.data, w->key.len, err);
    if (!rc)
        rc = slu_buf_append(&b->members, "", 1, err);
    if (rc)
        return rc;
    if (w->has_json && !object) {
        put(&b->raw, json + from, n - from);
    } else {
        put(&b->raw, "{\"__key__\":", 11);
        put_string(&b->raw, w->key.data, w->key.len);
        if (w->has_json) {
            size_t in = from + 1;
            while (memchr(" \t\r\n", json[in], 4))
                in++;
            if (in < n - 1)
                put(&b->raw, ",", 1);
            put(&b->raw, json + from + 1, n - from - 2);
        }
        if (w->has_text) {
            put(&b->raw, ",", 1);
            put_string(&b->raw, field, strlen(field));
            put(&b->raw, ":", 1);
            put_string(&b->raw, w->text.data, w->text.len);
        }
        put(&b->raw, "}", 1);
    }
    struct slu_record_ref rec = {.source = src->ordinal,
                                 .document = w->document,
                                 .off = begin,
                                 .len = b->raw.len - begin,
                                 .member = member};
    src->begin = b->raw.len;
    return slu_block_add(b, rec, err);
}

static int wds_fetch(struct slu_input_source *src, struct slu_block *b,
                     struct slu_err *err)
{
    struct wds *w = src->state;
    int rc = SLU_OK;
    while (!rc) {
        if (!w->has_next && !w->ended)
            rc = look_ahead(src, w, err);
        if (!rc && w->open && (w->ended || !same_sample(w))) {
            rc = end_sample(src, w, b, err);
            if (!rc && b->raw.len >= src->cfg->block_byte)
                return SLU_OK;
        }
        if (!rc && w->ended)
            return SLU_EOF;
        if (!rc && !w->open)
            rc = begin_sample(src, w, err);
        src->document = w->open ? w->document : w->at.place;
        if (!rc)
            rc = take(src, w, err);
    }
    return rc;
}

static void wds_close(struct slu_input_source *src)
{
    struct wds *w = src->state;
    if (!w)
        return;
    slu_arc_free(w->arc);
    slu_map_release(&w->seen);
    slu_buf_release(&w->key);
    slu_buf_release(&w->text);
    slu_buf_release(&w->json);
    slu_buf_release(&w->path);
    free(w);
}

const struct slu_input_format slu_in_wds = {
    .name = "wds",
    .json = true,
    .name_matches = never_named,
    .head_matches = never_headed,
    .open = wds_open,
    .fetch = wds_fetch,
    .close = wds_close,
};
