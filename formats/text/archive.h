/* archive.h - the members of a tar or zip archive, one after another, through libarchive.
 *
 * tar is read as a stream, so it may be compressed or come through a pipe. Archives one
 * after another are one; each must end with its two blocks of zeros. A zip file is read
 * by its central directory, which must therefore be whole; a zip through a pipe, by its
 * local headers.
 *
 * Thread safety: one thread at a time on a handle.
 */
#ifndef SLU_ARCHIVE_H
#define SLU_ARCHIVE_H

#include "formats/text/input_private.h"

struct slu_arc;

enum slu_arc_type { SLU_ARC_FILE, SLU_ARC_LINK, SLU_ARC_FOLDER, SLU_ARC_SPECIAL };

struct slu_arc_member {
    const char *path; /* borrowed until the next slu_arc_next */
    enum slu_arc_type type;
    /* tar: the byte offset of its first header; zip: its number, from 0. After
     * SLU_EOF or an error: of what would come next */
    uint64_t place;
    uint64_t size_byte; /* UINT64_MAX: unknown */
};

/* Borrows src, whose bytes it reads. Caller frees with slu_arc_free. */
SLU_MUST_USE int slu_arc_new(struct slu_arc **a, struct slu_input_source *src, bool tar,
                             struct slu_err *err);
/* Goes to the next member. SLU_EOF: there is none, and the archive has its end. Hard
 * links are SLU_ARC_LINK unless they have bytes of their own. */
SLU_MUST_USE int slu_arc_next(struct slu_arc *a, struct slu_arc_member *m,
                              struct slu_err *err);
/* Reads the member's next bytes, n or fewer; *got 0: its end. After an error the archive
 * cannot be read on, and each call fails. The message does not name the archive. */
SLU_MUST_USE int slu_arc_read(void *a, void *p, size_t n, size_t *got,
                              struct slu_err *err);
/* Whether an error has ended the archive. */
bool slu_arc_failed(const struct slu_arc *a);
/* NULL is legal. */
void slu_arc_free(struct slu_arc *a);

/* Recognise archives by name, and by first bytes. */
bool slu_arc_tar_name(const char *name);
bool slu_arc_tar_head(const uint8_t *p, size_t n);
bool slu_arc_zip_name(const char *name);
bool slu_arc_zip_head(const uint8_t *p, size_t n);

#endif
