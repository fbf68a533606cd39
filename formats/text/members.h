/* members.h - which members of archives are read: as files of a folder are, by the names
 * that data has, by --include and --exclude.
 *
 * Left out, and counted, are names with a dot in front, links, devices, names of kinds
 * that are no text (kinds.h), and names of a lower rank than a member with records had
 * before (slu_input_rank). An archive is read once, from the front, so a higher rank may
 * come too late: what a folder would leave out has been read by then, which is an error.
 * Texts alone are all read, whatever their names.
 *
 * With `include`, members are read that match one of its globs, and are not left out
 * because of a rank or kind. Globs with the name of an archive, as *.tar.gz, choose
 * archives in folders and no members; if there are no others, include is as if NULL.
 * A glob with a slash is compared with the path in the archive, and with that path behind
 * the archive's name; any other with the member's own name.
 *
 * Thread safety: one thread at a time.
 */
#ifndef SLU_MEMBERS_H
#define SLU_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

SLU_BEGIN_DECLS

struct slu_arc_member; /* archive.h */

enum slu_member_left {
    SLU_MEMBER_HIDDEN,
    SLU_MEMBER_OTHER, /* by its name no text */
    SLU_MEMBER_LOWER,
    SLU_MEMBER_LINK,
    SLU_MEMBER_SPECIAL,
    SLU_MEMBER_LEFT_N,
};

struct slu_members {
    const char *include, *exclude; /* as in struct slu_sources_cfg; borrowed */
    /* bit i: the i-th glob matched a member */
    uint64_t included, excluded;
    uint64_t n_read, n_not_chosen; /* not_chosen: by include and exclude */
    struct {
        uint64_t n;
        char first[256]; /* "ARCHIVE: MEMBER" of the first, cut if it is longer */
    } left[SLU_MEMBER_LEFT_N];
};

/* Of one archive. */
struct slu_members_state {
    uint64_t n_read, n_left, n_not_chosen;
    unsigned rank;   /* of the last that was taken; UINT_MAX: chosen */
    unsigned lowest; /* rank of what was read */
    char low[256];   /* the first member of that rank */
    unsigned record; /* highest rank of a member with records; 0: none was */
};

/* Whether a member is read, by its name and type. Counts those that are not. */
bool slu_members_take(struct slu_members *m, struct slu_members_state *s,
                      const char *archive, const struct slu_arc_member *member);
/* As slu_members_take, for members of samples, which no rank leaves out. */
bool slu_members_take_sample(struct slu_members *m, struct slu_members_state *s,
                             const char *archive, const struct slu_arc_member *member);
/* Notes the member that was taken last, and is going to be read: with records, or as one
 * text. SLU_E_FORMAT if its rank comes too late; messages do not name the archive. */
SLU_MUST_USE int slu_members_note(struct slu_members *m, struct slu_members_state *s,
                                  const char *path, bool records, struct slu_err *err);

SLU_END_DECLS

#endif
