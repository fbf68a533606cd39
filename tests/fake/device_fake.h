/* device_fake.h - what tests that are linked with device_fake.c may ask and set. */
#ifndef SLU_TESTS_DEVICE_FAKE_H
#define SLU_TESTS_DEVICE_FAKE_H

#include <stdbool.h>
#include <stddef.h>

enum slu_fake_mode { SLU_FAKE_ONCE, SLU_FAKE_LOST, SLU_FAKE_LATE, SLU_FAKE_MODES };

/* A device as new, whatever the environment says. Call number fail_at (0: none) fails,
 * counted from here. */
void slu_fake_set(long fail_at, enum slu_fake_mode mode, size_t memory_byte);
/* Whoever waits for an event finds the other streams ahead, and not behind. Until the
 * next slu_fake_set. */
void slu_fake_ahead(bool ahead);
/* Calls since slu_fake_set that could have failed. */
long slu_fake_calls(void);
/* Allocations, streams and events that have not been freed. */
size_t slu_fake_held(void);

#endif
