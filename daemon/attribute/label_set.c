/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/attribute/label_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/memory.h"

static struct label_set *label_set_free(struct label_set *set)
{
	free(set->key);
	free(set);
	return NULL;
}
DEFINE_CLEANUP(struct label_set *, label_set_free)

static bool has_room(const struct label_sets *t, uid_t uid)
{
	uint32_t n = 0;

	for (const struct label_set *set = t->set; set; set = set->hh.next)
		n += set->uid == uid;
	return HASH_COUNT(t->set) < LABEL_SETS_MAX && n < LABEL_SETS_USER_MAX &&
	       t->last_id < UINT32_MAX;
}

int label_set_get(struct label_sets *t, uid_t uid, const char *labels, struct label_set **ret_set)
{
	_cleanup_(freep) char *key = NULL;
	struct label_set *known;

	int n = asprintf(&key, "%u %s", (unsigned)uid, labels);
	if (n < 0)
		return -ENOMEM;
	HASH_FIND(hh, t->set, key, (size_t)n, known);
	if (known) {
		*ret_set = label_set_ref(known);
		return 0;
	}
	if (!has_room(t, uid))
		return LABEL_SETS_FULL;

	_cleanup_(label_set_freep) struct label_set *set = calloc(1, sizeof(*set));
	if (!set)
		return -ENOMEM;
	set->key = TAKE_PTR(key);
	set->labels = strchr(set->key, ' ') + 1;
	set->uid = uid;
	set->n_refs = set->n_given = 1;
	HASH_ADD_KEYPTR(hh, t->set, set->key, (size_t)n, set);
	if (!set->hh.tbl)
		return -ENOMEM;
	set->id = ++t->last_id;
	*ret_set = TAKE_PTR(set);
	return 0;
}

struct label_set *label_set_unref(struct label_sets *t, struct label_set *set)
{
	if (!set || --set->n_refs > 0)
		return NULL;
	HASH_DEL(t->set, set);
	return label_set_free(set);
}
