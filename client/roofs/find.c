/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the service gives is checked like a file from anybody: it was measured by a client. It knows
 * neither kinds of harts nor what is stale, so both are judged here.
 */
#include "client/roofs/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/roofs/keep.h"
#include "client/roofs/question.h"
#include "proto/base/memory.h"

struct receiving {
	char *text; /* ROOFS_SHARED_BYTES_MAX */
	size_t n;
};

static int take(void *userdata, const Mperf__Answer *a)
{
	struct receiving *g = userdata;
	if (a->body_case != MPERF__ANSWER__BODY_BYTES)
		return 0;
	const ProtobufCBinaryData *data = &a->bytes->data;
	if (data->len > ROOFS_SHARED_BYTES_MAX - g->n)
		return -EFBIG;
	memcpy(g->text + g->n, data->data, data->len);
	g->n += data->len;
	return 0;
}

static int receive(struct link *l, char *name, struct receiving *g)
{
	Mperf__RoofsRequest roofs = MPERF__ROOFS_REQUEST__INIT;
	roofs.name = name;
	return roofs_question(l, &roofs, take, g);
}

/* Those of the service. As keep_find_own; ROOFS_NONE also without a service. */
static int find_shared(
	const struct machine *m, struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES])
{
	char name[ROOFS_NAME_BYTES];
	struct roofs ours = {.kinds = (struct roofs_kind *)m->kind, .n_kinds = m->n_kinds};
	_cleanup_(freep) char *text = malloc(ROOFS_SHARED_BYTES_MAX);
	struct receiving g = {.text = text};
	struct link l;
	memcpy(ours.machine, m->id, sizeof(ours.machine));
	memcpy(ours.kernel, m->kernel, sizeof(ours.kernel));
	int r = text ? roofs_name(&ours, name) : -ENOMEM;
	if (r < 0)
		return r;
	if (link_try_service(&l) != 0)
		return ROOFS_NONE;
	r = receive(&l, name, &g);
	link_close(&l);
	if (r == -ENOMEM)
		return r;
	if (r == 0)
		r = roofs_parse(text, g.n, ret_roofs, fault);
	else
		r = ROOFS_NONE;
	if (r != 0)
		return r;
	roofs_compare(ret_roofs, m);
	ret_roofs->keeper = ROOFS_OF_SERVICE;
	return 0;
}

/* Choose the better of two answers, and free the other: fresh before stale, the machine's before
 * the user's, the newer of two stale ones. */
static int choose(int shared, struct roofs *of_all, int own, struct roofs *of_user)
{
	bool all = shared == 0 &&
		   (own != 0 || !of_all->stale ||
			   (of_user->stale && of_all->measured_s >= of_user->measured_s));
	if (all && own == 0)
		roofs_clear(of_user);
	if (!all && shared == 0)
		roofs_clear(of_all);
	if (!all && own == 0)
		*of_all = *of_user;
	return all || own == 0 ? 0 : own;
}

int roofs_find(struct roofs *ret_roofs, char fault[static ROOF_NOTE_BYTES])
{
	struct roofs of_all = {.n = 0}, of_user = {.n = 0};
	struct machine m;
	char shared_fault[ROOF_NOTE_BYTES] = "";
	int r = machine_look(&m);
	if (r < 0)
		return r;
	int shared = find_shared(&m, &of_all, shared_fault);
	int own = shared == 0 && !of_all.stale ? ROOFS_NONE : keep_find_own(&m, &of_user, fault);
	machine_clear(&m);
	/* report the service's error if the user has no roofs */
	if (shared > 0 && shared != ROOFS_NONE && own == ROOFS_NONE) {
		memcpy(fault, shared_fault, ROOF_NOTE_BYTES);
		return shared;
	}
	r = choose(shared, &of_all, own, &of_user);
	if (r == 0)
		*ret_roofs = of_all;
	return r;
}

const char *roofs_keeper_says(enum roofs_keeper keeper)
{
	return keeper == ROOFS_OF_SERVICE ? "the machine's, kept by mperfd"
	       : keeper == ROOFS_OF_USER  ? "your own"
					  : "";
}
