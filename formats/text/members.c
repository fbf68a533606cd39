#include "members.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "formats/text/archive.h"

/* Whether a part of the path has a dot in front, or is what macOS adds. */
static bool is_hidden(const char *path)
{
    for (const char *p = path; *p; p += strspn(p, "/")) {
        const size_t n = strcspn(p, "/");
        if ((*p == '.' && n > 1 && strncmp(p, "..", n)) ||
            (n == 8 && !strncmp(p, "__MACOSX", 8)))
            return true;
        p += n;
    }
    return false;
}

/* Whether glob[0, n) has the name of an archive. */
static bool is_of_archives(const char *glob, size_t n)
{
    char name[256];
    return n < sizeof name && snprintf(name, sizeof name, "%.*s", (int)n, glob) > 0 &&
           slu_input_is_archive(name);
}

/* Whether the globs choose among members. */
static bool are_of_members(const char *globs)
{
    for (const char *g = globs; g; g = strchr(g, ','), g += g != NULL)
        if (!is_of_archives(g, strcspn(g, ",")) && *g && *g != ',')
            return true;
    return false;
}

static bool matches(const char *globs, const char *archive, const char *path,
                    uint64_t *used)
{
    char whole[4096];
    if (!strncmp(path, "./", 2))
        path += 2;
    bool yes = slu_globs_match(globs, path, used);
    if (snprintf(whole, sizeof whole, "%s/%s", archive, path) < (int)sizeof whole)
        yes |= slu_globs_match(globs, whole, used);
    return yes;
}

static bool leave(struct slu_members *m, struct slu_members_state *s,
                  enum slu_member_left why, const char *archive, const char *path)
{
    s->n_left++;
    if (!m->left[why].n++)
        snprintf(m->left[why].first, sizeof m->left[why].first, "%s: %s", archive,
                 path);
    return false;
}

bool slu_members_take_sample(struct slu_members *m, struct slu_members_state *s,
                             const char *archive, const struct slu_arc_member *member)
{
    const char *path = member->path;
    if (is_hidden(path))
        return leave(m, s, SLU_MEMBER_HIDDEN, archive, path);
    if ((are_of_members(m->include) &&
         !matches(m->include, archive, path, &m->included)) ||
        (m->exclude && matches(m->exclude, archive, path, &m->excluded))) {
        m->n_not_chosen++;
        s->n_not_chosen++;
        return false;
    }
    return member->type == SLU_ARC_FILE ||
           leave(m, s,
                 member->type == SLU_ARC_LINK ? SLU_MEMBER_LINK : SLU_MEMBER_SPECIAL,
                 archive, path);
}

bool slu_members_take(struct slu_members *m, struct slu_members_state *s,
                      const char *archive, const struct slu_arc_member *member)
{
    const char *path = member->path;
    if (member->type == SLU_ARC_FOLDER ||
        !slu_members_take_sample(m, s, archive, member))
        return false;
    const unsigned rank = are_of_members(m->include) ? UINT_MAX : slu_input_rank(path);
    s->rank = rank;
    if (!rank)
        return leave(m, s, SLU_MEMBER_OTHER, archive, path);
    return rank >= s->record || leave(m, s, SLU_MEMBER_LOWER, archive, path);
}

int slu_members_note(struct slu_members *m, struct slu_members_state *s,
                     const char *path, bool records, struct slu_err *err)
{
    const unsigned rank = s->rank;
    m->n_read++;
    if (rank == UINT_MAX) {
        s->n_read++;
        return SLU_OK;
    }
    if ((records || s->record) && s->n_read && s->lowest < rank)
        return slu_advise(err, SLU_ADVISE_MEMBERS,
                          slu_fail(err, SLU_E_FORMAT,
                                   "%s has the name of data, and %s before it, which a "
                                   "folder would leave out, has been read",
                                   path, s->low));
    if (!s->n_read++ || rank < s->lowest) {
        s->lowest = rank;
        snprintf(s->low, sizeof s->low, "%s", path);
    }
    if (records && rank > s->record)
        s->record = rank;
    return SLU_OK;
}
