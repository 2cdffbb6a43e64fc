/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/attribute/label_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

struct label_text *label_text_ref(struct label_text *text)
{
	text->n_refs++;
	return text;
}

void label_text_unref(struct label_text *text)
{
	if (text && --text->n_refs == 0)
		free(text);
}
DEFINE_CLEANUP(struct label_text *, label_text_unref)

static struct label_text *make_text(uid_t uid, const char *labels)
{
	const int n_uid = snprintf(NULL, 0, "%u ", (unsigned)uid);
	const size_t n = strlen(labels) + 1;
	struct label_text *text = malloc(sizeof(*text) + (size_t)n_uid + n);
	if (!text)
		return NULL;
	text->n_refs = 1;
	sprintf(text->key, "%u ", (unsigned)uid);
	text->labels = memcpy(text->key + n_uid, labels, n);
	return text;
}

static struct label_set *find(const struct label_sets *t, const struct label_text *text)
{
	const size_t n = strlen(text->key);
	struct label_set *set;

	HASH_FIND(hh, t->set, text->key, n, set);
	return set;
}

struct label_set *label_set_find(const struct label_sets *t, uid_t uid, const char *labels)
{
	_cleanup_(label_text_unrefp) struct label_text *text = make_text(uid, labels);

	return text ? find(t, text) : NULL;
}

/* NULL: out of memory. */
static struct label_user *user_of(struct label_sets *t, uint32_t uid)
{
	struct label_user *user;

	HASH_FIND(hh, t->users, &uid, sizeof(uid), user);
	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	HASH_ADD(hh, t->users, uid, sizeof(user->uid), user);
	if (!user->hh.tbl) {
		free(user);
		return NULL;
	}
	return user;
}

static void leave(struct label_sets *t, struct label_user *user)
{
	if (user->n_sets > 0)
		return;
	HASH_DEL(t->users, user);
	free(user);
}

/* Add a set of this text, which is taken. NULL: out of memory. */
static struct label_set *add(struct label_sets *t, struct label_user *user, struct label_text *text)
{
	const size_t n = strlen(text->key);
	struct label_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	*set = (struct label_set){
		.labels = text->labels, .uid = user->uid, .n_refs = 1, .n_given = 1};
	HASH_ADD_KEYPTR(hh, t->set, text->key, n, set);
	if (!set->hh.tbl) {
		free(set);
		return NULL;
	}
	set->text = text;
	set->id = ++t->last_id;
	user->n_sets++;
	return set;
}

int label_set_get(struct label_sets *t, uid_t uid, const char *labels, struct label_set **ret_set)
{
	_cleanup_(label_text_unrefp) struct label_text *text = make_text(uid, labels);
	struct label_set *known = text ? find(t, text) : NULL;
	int r = LABEL_SETS_FULL;

	if (known) {
		*ret_set = label_set_ref(known);
		return 0;
	}
	struct label_user *user = text ? user_of(t, uid) : NULL;
	if (!user)
		return -ENOMEM;
	if (HASH_COUNT(t->set) < LABEL_SETS_MAX && user->n_sets < LABEL_SETS_USER_MAX &&
		t->last_id < UINT32_MAX) {
		struct label_set *set = add(t, user, text);
		r = set ? 0 : -ENOMEM;
		if (set) {
			TAKE_PTR(text);
			*ret_set = set;
		}
	}
	leave(t, user);
	return r;
}

struct label_set *label_set_unref(struct label_sets *t, struct label_set *set)
{
	if (!set || --set->n_refs > 0)
		return NULL;
	struct label_user *user = user_of(t, set->uid); /* it is there */
	if (user) {
		user->n_sets--;
		leave(t, user);
	}
	if (set->look.due) {
		t->n_due_freed++;
		t->due_freed_uid = set->uid;
	}
	HASH_DEL(t->set, set);
	label_text_unref(set->text);
	free(set);
	return NULL;
}
