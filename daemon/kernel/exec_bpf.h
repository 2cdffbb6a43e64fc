/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A BPF program on execs: arguments and owner of each new program, in a ring of each hart
 *
 * Without it, a process must be read from /proc before it ends, which needs a wake-up for each exec. With it, there
 * is a record of STREAM_EXEC_BPF for each exec (exec_layout.h), which may be read later. It is loaded through libbpf,
 * once for each session, and unloaded with it. It needs the kernel's BTF, CAP_BPF and CAP_PERFMON. Called only
 * through struct kernel: absent if built without BPF (make BPF=no).
 */

struct exec_bpf;

/* The kernel has no BPF, or we lack the right to use it. */
enum { EXEC_BPF_REFUSED = 1 };

/* Load the program, attached to nothing yet, in a child. 0;
 * EXEC_BPF_REFUSED with *ret_error, a positive errno; -ENOMEM, -EMFILE, -ENFILE. */
int exec_bpf_new(int n_harts, struct exec_bpf **ret_bpf, int *ret_error);

/* Write execs on that hart to that PERF_COUNT_SW_BPF_OUTPUT event from now on. The descriptor is borrowed for the
 * call; the program keeps the event alive until exec_bpf_forget. The program is attached with the first hart. 0 or
 * -errno, with nothing changed. */
int exec_bpf_watch(struct exec_bpf *b, int hart, int output_fd);

/* Write no execs of that hart any more. The program is detached with the last one. */
void exec_bpf_forget(struct exec_bpf *b, int hart);

struct exec_bpf *exec_bpf_free(struct exec_bpf *b);
