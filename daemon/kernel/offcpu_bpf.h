/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The BPF iterator over threads without a hart (offcpu.bpf.c)
 *
 * It needs Linux 5.18 with BTF, and the rights to load BPF programs that trace (CAP_BPF, CAP_PERFMON).
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct offcpu_bpf {
	int link_fd, state_fd, barred_fd;
	int told_fd; /* what is remembered of threads, for wakers_bpf.h */
};

enum { OFFCPU_BPF_REFUSED = 1 };

#ifdef MPERF_BPF

/* Load the program, which takes some 90 ms, mostly in a child. 0; OFFCPU_BPF_REFUSED: *ret_error, an errno, says why;
 * -errno: no memory or descriptors. */
int offcpu_bpf_load(struct offcpu_bpf *ret_bpf, int *ret_error);
void offcpu_bpf_close(struct offcpu_bpf *b);

/* Begin a look: the first read is of what threads did when the caller got its hart, so it comes right after a sleep. *ret_fd is read to its end, which comes after a record with OFFCPU_END. One look at a time. In any
 * process that has the descriptor. 0 or -errno. */
int offcpu_bpf_look(int link_fd, int *ret_fd);

/* If the look under way has copied one stack for longer than that: copy no more stacks of those processes (of that
 * user, or of that process of root). True: it has. */
bool offcpu_bpf_bar(const struct offcpu_bpf *b, uint64_t longer_ns, uint64_t now_ns);
/* A look was lost on its way: ask for full records again of the threads in it. */
void offcpu_bpf_tell_again(const struct offcpu_bpf *b);

#else

static inline int offcpu_bpf_load(struct offcpu_bpf *ret_bpf, int *ret_error)
{
	*ret_bpf = (struct offcpu_bpf){-1, -1, -1, -1};
	*ret_error = ENOTSUP;
	return OFFCPU_BPF_REFUSED;
}

static inline void offcpu_bpf_close(struct offcpu_bpf *b)
{
	(void)b;
}

static inline int offcpu_bpf_look(int link_fd, int *ret_fd)
{
	(void)link_fd;
	*ret_fd = -1;
	return -ENOTSUP;
}

static inline bool offcpu_bpf_bar(const struct offcpu_bpf *b, uint64_t longer_ns, uint64_t now_ns)
{
	(void)b, (void)longer_ns, (void)now_ns;
	return false;
}

static inline void offcpu_bpf_tell_again(const struct offcpu_bpf *b)
{
	(void)b;
}

#endif
