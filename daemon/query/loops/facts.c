/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Threads and sums, and the beginning and end of a question.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/loops/facts_private.h"

int loop_facts_who(struct loop_facts *f, const struct fact_who_key *key, uint32_t *ret_who)
{
	uint32_t i;
	const struct key content = {{(uint64_t)(uint32_t)key->pid << 32 | (uint32_t)key->tid,
		key->start_ns, f->loaded.boot}};
	int r = facts_outcome(key_get(&f->whos.keys, &content, &i));
	if (r == 0)
		r = array_grow(&f->whos.who, &f->whos.size, i + 1, sizeof(*f->whos.who));
	if (r != 0)
		return r;
	f->whos.who[i].pid = key->pid;
	f->whos.who[i].tid = key->tid;
	*ret_who = i + 1;
	return facts_text(f, key->comm, &f->whos.who[i].comm);
}

int loop_facts_task(struct loop_facts *f, uint32_t task, uint32_t *ret_who)
{
	const struct loaded_task *t = &f->loaded.task[task];
	const char *comm = text_of(&f->texts, t->comm);
	char copy[TASK_COMM_BYTES + 1]; /* the table that contains it may move */
	snprintf(copy, sizeof(copy), "%s", comm ? comm : "[unknown]");
	const struct fact_who_key key = {
		.pid = t->pid, .tid = t->tid, .start_ns = (uint64_t)t->start_ns, .comm = copy};
	return loop_facts_who(f, &key, ret_who);
}

void loop_facts_was_in(struct loop_facts *f, uint32_t who, bool in_region)
{
	if (who == 0)
		return;
	f->whos.who[who - 1].counted_inside |= in_region;
	f->whos.who[who - 1].counted_outside |= !in_region;
}

int loop_facts_get(struct loop_facts *f, const struct key *key, struct fact **ret_fact)
{
	uint32_t i;
	int r = facts_outcome(key_get(&f->table.keys, key, &i));
	if (r == 0 && i >= LOOP_FACTS_MAX)
		r = -EOVERFLOW;
	if (r == 0)
		r = array_grow(&f->table.fact, &f->table.size, i + 1, sizeof(*f->table.fact));
	if (r == 0)
		*ret_fact = &f->table.fact[i];
	return r;
}

/* --- sums that may have to be taken back ------------------------------------------------------ */

struct loop_facts_kept {
	struct fact *fact;
	uint32_t n, size;
	struct facts_taken taken;
	struct provenance provenance;
};

int loop_facts_keep(void *facts)
{
	struct loop_facts *f = facts;
	if (!f->kept)
		f->kept = calloc(1, sizeof(*f->kept));
	struct loop_facts_kept *k = f->kept;
	if (!k)
		return -ENOMEM;
	k->n = f->table.keys.n_keys;
	int r = array_grow(&k->fact, &k->size, k->n, sizeof(*k->fact));
	if (r < 0)
		return r;
	if (k->n > 0)
		memcpy(k->fact, f->table.fact, k->n * sizeof(*k->fact));
	k->taken = f->samples.taken;
	k->provenance = f->provenance;
	return 0;
}

void loop_facts_take_back(void *facts)
{
	struct loop_facts *f = facts;
	const struct loop_facts_kept *k = f->kept;
	if (k->n > 0)
		memcpy(f->table.fact, k->fact, k->n * sizeof(*k->fact));
	if (f->table.size > k->n)
		memset(f->table.fact + k->n, 0, (f->table.size - k->n) * sizeof(*f->table.fact));
	f->samples.taken = k->taken;
	f->provenance = k->provenance;
}

/* ---------------------------------------------------------------------------------------------- */

void loop_facts_begin(struct loop_facts *f, const struct facts_question *q, enum query_by by)
{
	static const struct query_filter everything = {0};
	f->q = *q;
	f->q.filter = q->filter ? q->filter : &everything;
	provenance_expect(
		&f->provenance, &(struct query_question){.by = by, .filter = f->q.filter});
}

void loop_facts_clear(struct loop_facts *f)
{
	text_table_clear(&f->texts);
	fact_sites_clear(&f->sites);
	key_table_clear(&f->whos.keys);
	key_table_clear(&f->table.keys);
	facts_regions_clear(&f->regions);
	free(f->whos.who);
	free(f->table.fact);
	if (f->kept)
		free(f->kept->fact);
	free(f->kept);
	*f = (struct loop_facts){0};
}
