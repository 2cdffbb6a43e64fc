/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Execs by BPF: their records come with the side band, so that nothing has to wake up for them. The program is
 * loaded once, when the first hart opens; a refusal is remembered, so that not every hart tries again.
 */

#include <errno.h>

#include "daemon/kernel/exec_bpf.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

static int load(struct sampler *s)
{
	const struct kernel *k = s->kernel;
	int error = 0;

	if (s->exec_bpf)
		return 0;
	if (s->exec_error == 0 && !k->exec_new)
		s->exec_error = ENOTSUP;
	if (s->exec_error)
		return HART_REFUSED;
	int r = k->exec_new(k->userdata, s->machine.n_harts, &s->exec_bpf, &error);
	if (r > 0)
		s->exec_error = error ? error : EIO;
	return r > 0 ? HART_REFUSED : r;
}

int exec_bpf_open(struct sampler *s, int hart)
{
	const struct kernel *k = s->kernel;
	struct perf_event_attr attr;
	struct stream output = {
		.role = STREAM_EXEC_BPF,
		.rung = s->plan[hart].rung,
		.hart = hart,
		.event = -1,
		.period = 1,
	};

	int r = load(s);
	if (r != 0)
		return r;
	attr_bpf_output(s, &attr);
	r = stream_open(s, &attr, -1, -1, &output);
	if (r < 0)
		return r;
	r = k->exec_watch(k->userdata, s->exec_bpf, hart, output.fd);
	if (r < 0) {
		stream_table_remove(&s->streams, output.id);
		k->event_close(k->userdata, output.fd);
		return r;
	}
	hart_set_add(&s->exec_records, hart);
	return 0;
}

void exec_bpf_close(struct sampler *s, int hart)
{
	if (!hart_set_has(&s->exec_records, hart))
		return;
	s->kernel->exec_forget(s->kernel->userdata, s->exec_bpf, hart);
	hart_set_remove(&s->exec_records, hart);
}
