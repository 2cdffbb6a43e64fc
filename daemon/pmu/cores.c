/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Reading the database costs milliseconds on a PC and tenths of a second on a small board, and most
 * commands of a private daemon never open an event. So nothing is read before it is needed.
 *
 * A hart that is offline tells nothing, and what was known of it is kept: it may be asked about
 * while it is away, and is asked anew when it comes.
 */
#include "daemon/pmu/cores.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/identity.h"

struct cores {
	char builtin[PATH_MAX], overrides[PATH_MAX];
	struct platform_db *db; /* NULL: not read yet */
	int n_harts;            /* of the arrays */
	struct platform_identity *identity;
	const struct platform **platform;
	struct hart_set online; /* when last read */
};

static const struct platform nothing = {
	.name = "generic",
	.title = "generic core",
	.generic = true,
	.origin = {.source = "", .verified = "no", .file = ""},
};
static const struct platform_identity nobody;

int cores_new(const char *builtin, const char *overrides, struct cores **ret_cores)
{
	_cleanup_(cores_freep) struct cores *c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	if (!overrides)
		overrides = PLATFORM_FOLDER_OVERRIDES;
	if (strlen(overrides) >= sizeof c->overrides ||
		(builtin && strlen(builtin) >= sizeof c->builtin))
		return -ENAMETOOLONG;
	snprintf(c->overrides, sizeof c->overrides, "%s", overrides);
	int r = 0;
	if (builtin)
		snprintf(c->builtin, sizeof c->builtin, "%s", builtin);
	else
		r = platform_folder_find(c->builtin, sizeof c->builtin);
	if (r < 0)
		return r;
	*ret_cores = TAKE_PTR(c);
	return 0;
}

struct cores *cores_free(struct cores *c)
{
	if (!c)
		return NULL;
	platform_db_free(c->db);
	free(c->identity);
	free(c->platform);
	free(c);
	return NULL;
}

static int room(struct cores *c, int n_harts)
{
	if (n_harts <= c->n_harts)
		return 0;
	struct platform_identity *identity =
		reallocarray(c->identity, (size_t)n_harts, sizeof *identity);
	if (identity)
		c->identity = identity;
	const struct platform **platform =
		reallocarray(c->platform, (size_t)n_harts, sizeof *platform);
	if (platform)
		c->platform = platform;
	if (!identity || !platform)
		return -ENOMEM;
	for (; c->n_harts < n_harts; c->n_harts++) {
		c->identity[c->n_harts] = nobody;
		c->platform[c->n_harts] = &nothing;
	}
	return 0;
}

static int load(struct cores *c)
{
	const char *const folders[] = {c->builtin, c->overrides};
	return c->db ? 0 : platform_db_load(folders, c->overrides[0] ? 2 : 1, &c->db);
}

int cores_read(struct cores *c, const struct kernel *k, const struct machine *m)
{
	if (!c || (c->db && m->n_harts <= c->n_harts &&
			  memcmp(&c->online, &m->online, sizeof c->online) == 0))
		return 0;
	_cleanup_(freep) struct platform_identity *now = calloc((size_t)m->n_harts, sizeof *now);
	if (!now)
		return -ENOMEM;
	int r = load(c);
	if (r == 0)
		r = room(c, m->n_harts);
	if (r == 0)
		r = identity_read(k, m, now);
	for (int hart = 0; hart < m->n_harts && r == 0; hart++) {
		if (!now[hart].read && c->identity[hart].read)
			continue;
		c->identity[hart] = now[hart];
		c->platform[hart] = platform_match(c->db, &now[hart]);
	}
	if (r == 0)
		c->online = m->online;
	return r;
}

const struct platform *cores_platform(const struct cores *c, int hart)
{
	return c && hart >= 0 && hart < c->n_harts ? c->platform[hart] : &nothing;
}

const struct platform_identity *cores_identity(const struct cores *c, int hart)
{
	return c && hart >= 0 && hart < c->n_harts ? &c->identity[hart] : &nobody;
}

static bool first_of_kind(const struct cores *c, int hart)
{
	for (int i = 0; i < hart; i++)
		if (hart_set_has(&c->online, i) && c->platform[i] == c->platform[hart])
			return false;
	return true;
}

int cores_kind(const struct cores *c, int hart)
{
	for (; c && hart < c->n_harts; hart++)
		if (hart_set_has(&c->online, hart) && first_of_kind(c, hart))
			return hart;
	return -1;
}

bool cores_differ(const struct cores *c)
{
	int first = cores_kind(c, 0);
	return first >= 0 && cores_kind(c, first + 1) >= 0;
}

struct hart_set cores_of(const struct cores *c, const struct platform *p)
{
	struct hart_set harts = {0};
	for (int i = 0; c && i < c->n_harts; i++)
		if (hart_set_has(&c->online, i) && c->platform[i] == p)
			hart_set_add(&harts, i);
	return harts;
}

const char *cores_error(const struct cores *c, size_t i)
{
	return c && c->db ? platform_db_error(c->db, i) : NULL;
}

const char *hart_set_says(const struct hart_set *s, char *buffer, size_t size)
{
	size_t n = 0;
	buffer[0] = '\0';
	for (int i = 0; i < HARTS_MAX && n < size; i++) {
		if (!hart_set_has(s, i))
			continue;
		int end = i;
		while (end + 1 < HARTS_MAX && hart_set_has(s, end + 1))
			end++;
		n += (size_t)snprintf(buffer + n, size - n, end > i ? "%s%d-%d" : "%s%d",
			n > 0 ? "," : "", i, end);
		i = end;
	}
	return buffer;
}
