/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Descriptors that a child makes and sends
 *
 * libbpf reads all types of the kernel to find the few fields that a program needs, 11 MB for 15 ms. In the daemon
 * they would be a large part of its peak, so a child loads each BPF program.
 */

/* The child that loads the program takes 11 MB for a moment, as much as all of mperf on a board of 256 MB. A machine of
 * 512 MiB has some 450 besides the kernel. */
#define BPF_MEMORY_KB_MIN (384u << 10)

#define LOAD_FDS_MAX 8

/* Called in the child, which ends after it, so that nothing need be freed. Fills in the descriptors, which stay its own. 0 or
 * -errno */
typedef int load_function(const void *userdata, int ret_fd[]);

/* Run `load` in a child that has our rights, and receive the n_fds (1 … LOAD_FDS_MAX) descriptors that it makes,
 * closed on exec. Takes as long as it. ret_fd: the caller's; untouched on failure. 0; what `load` returned; -ENOMEM:
 * also if the child was killed, since memory is short then; -EMFILE, -ENFILE, -EAGAIN. */
int load_in_child(load_function *load, const void *userdata, int n_fds, int ret_fd[]);
