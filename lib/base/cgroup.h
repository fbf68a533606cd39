/* cgroup.h - the memory that the control groups of this process allow it.
 *
 * Thread safety: any thread may call at any time; files are read anew each time.
 */
#ifndef SLU_CGROUP_H
#define SLU_CGROUP_H

#include <stdint.h>

/* Returns the least memory limit, in bytes, of the process's control group and of the
 * groups above it, of version 1 and of version 2: Slurm and systemd set limits on the
 * job or the unit, not on the group that the process is in. UINT64_MAX: no limit is
 * known. Reads ROOT/proc/self/cgroup and ROOT/sys/fs/cgroup; root is "" except in
 * tests. */
uint64_t slu_cgroup_memory(const char *root);

#endif
