#include "joint.h"

#include <pthread.h>
#include <stdlib.h>

#include "frame.h"

enum { N_FRAME = 4 };
#define ROOM_BYTE (UINT64_C(8) << 20) /* of payloads that wait, if there are several */

struct slu_joint {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    struct slu_frame frame[N_FRAME]; /* a ring; those that are free keep their memory */
    unsigned first, n;
    uint64_t n_byte;
    bool ended, closed, refused;
};

int slu_joint_new(struct slu_joint **j, struct slu_err *err)
{
    *j = calloc(1, sizeof **j);
    if (!*j)
        return slu_fail_nomem(err, sizeof **j);
    pthread_mutex_init(&(*j)->mu, NULL);
    pthread_cond_init(&(*j)->changed, NULL);
    return SLU_OK;
}

void slu_joint_free(struct slu_joint *j)
{
    if (!j)
        return;
    for (unsigned i = 0; i < N_FRAME; i++)
        slu_frame_release(&j->frame[i]);
    pthread_cond_destroy(&j->changed);
    pthread_mutex_destroy(&j->mu);
    free(j);
}

static void exchange(struct slu_frame *a, struct slu_frame *b)
{
    struct slu_frame t = *a;
    *a = *b;
    *b = t;
}

int slu_joint_put(struct slu_joint *j, struct slu_frame *f, struct slu_err *err)
{
    pthread_mutex_lock(&j->mu);
    while (!j->closed &&
           (j->n == N_FRAME || (j->n && j->n_byte + f->raw_byte > ROOM_BYTE)))
        pthread_cond_wait(&j->changed, &j->mu);
    const bool closed = j->closed;
    if (closed) {
        j->refused = true;
    } else {
        j->n_byte += f->raw_byte;
        exchange(&j->frame[(j->first + j->n++) % N_FRAME], f);
        pthread_cond_broadcast(&j->changed);
    }
    pthread_mutex_unlock(&j->mu);
    return closed ? slu_fail(err, SLU_E_IO, "the next program of the line has ended")
                  : SLU_OK;
}

bool slu_joint_take(struct slu_joint *j, struct slu_frame *f)
{
    pthread_mutex_lock(&j->mu);
    while (!j->n && !j->ended)
        pthread_cond_wait(&j->changed, &j->mu);
    const bool took = j->n;
    if (took) {
        exchange(&j->frame[j->first], f);
        j->first = (j->first + 1) % N_FRAME;
        j->n--;
        j->n_byte -= f->raw_byte;
        pthread_cond_broadcast(&j->changed);
    }
    pthread_mutex_unlock(&j->mu);
    return took;
}

void slu_joint_end(struct slu_joint *j)
{
    pthread_mutex_lock(&j->mu);
    j->ended = true;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->mu);
}

void slu_joint_close(struct slu_joint *j)
{
    pthread_mutex_lock(&j->mu);
    j->closed = true;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->mu);
}

bool slu_joint_refused(struct slu_joint *j)
{
    pthread_mutex_lock(&j->mu);
    const bool refused = j->refused;
    pthread_mutex_unlock(&j->mu);
    return refused;
}
