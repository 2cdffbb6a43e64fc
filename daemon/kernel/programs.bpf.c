/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

/* Lists the BPF programs of the kernel, with their subprograms: the address and name of their code. The kernel calls
 * this program for each of them while the iterator is read. It needs the kernel's BTF.
 */

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "daemon/kernel/programs_layout.h"

/* Subprograms that are listed of one program: all entries must fit the kernel's buffer of eight pages. The kernel
 * allows 256. Source:
 * kernel/bpf/bpf_iter.c, bpf_seq_read. */
#define SUBPROGRAMS_MAX 100

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Only the fields used here; the loader relocates them for this kernel. */
struct bpf_ksym {
	unsigned long start, end;
	char name[128];
} __attribute__((preserve_access_index));

struct bpf_prog;
struct bpf_prog_aux {
	__u32 func_cnt;
	struct bpf_prog **func;
	struct bpf_ksym ksym;
	__u64 load_time;
} __attribute__((preserve_access_index));

struct bpf_prog {
	struct bpf_prog_aux *aux;
} __attribute__((preserve_access_index));

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__bpf_prog {
	struct bpf_iter_meta *meta;
	struct bpf_prog *prog;
} __attribute__((preserve_access_index));

static __always_inline void tell(struct seq_file *seq, struct bpf_prog *program, __u64 loaded_ns)
{
	struct program_told t = {.loaded_ns = loaded_ns};
	struct bpf_prog_aux *aux = BPF_CORE_READ(program, aux);

	t.start = BPF_CORE_READ(aux, ksym.start);
	t.end = BPF_CORE_READ(aux, ksym.end);
	bpf_core_read_str(t.name, sizeof(t.name), &aux->ksym.name);
	if (t.start < t.end)
		bpf_seq_write(seq, &t, sizeof(t));
}

SEC("iter/bpf_prog")
int list(struct bpf_iter__bpf_prog *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct bpf_prog *program = ctx->prog;

	if (!program)
		return 0;
	struct bpf_prog_aux *aux = BPF_CORE_READ(program, aux);
	const __u64 loaded_ns = BPF_CORE_READ(aux, load_time);
	struct bpf_prog **func = BPF_CORE_READ(aux, func);
	const __u32 n = BPF_CORE_READ(aux, func_cnt);

	tell(seq, program, loaded_ns);
	for (__u32 i = 0; i < SUBPROGRAMS_MAX && func; i++) {
		struct bpf_prog *sub = NULL;
		if (i >= n)
			break;
		bpf_probe_read_kernel(&sub, sizeof(sub), func + i);
		if (sub && sub != program)
			tell(seq, sub, loaded_ns);
	}
	return 0;
}
