/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Reading the database costs milliseconds on a PC and tenths of a second on a small board, and most
 * commands of a private daemon never open an event. So nothing is read before it is needed.
 *
 * An offline hart cannot be read, so its known identity is kept; it is read again when the hart
 * comes online.
 *
 * A newly read database replaces the old one completely or not at all. A file that was already
 * wrong does not prevent this, since it is left out of both; one that has become wrong does, since
 * mperfd would lose its former contents.
 */
#include "daemon/pmu/cores.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pmu/identity.h"

/* Events that may lead: of each mode, and of all. */
#define BASIS_LEADERS 4

/* The properties of a platform that a sampling plan depends on. */
struct basis {
	enum platform_overflow overflow;
	bool leads[BASIS_LEADERS];
	uint64_t leader[BASIS_LEADERS];
};

struct cores {
	char builtin[PATH_MAX], overrides[PATH_MAX];
	struct platform_db *db;    /* NULL: not read yet */
	struct platform_db *wrong; /* failed to replace it; kept for its errors. NULL: none */
	int n_harts;               /* of the arrays */
	struct platform_identity *identity;
	const struct platform **platform;
	struct basis *basis;    /* as of reading the hart's identity */
	struct hart_set online; /* when last read */
	struct trials *trials;
	struct hart_groups *groups;
	uint64_t held[HARTS_MAX];
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
	_cleanup_(cores_freep) struct cores *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->trials = calloc(1, sizeof(*c->trials));
	c->groups = hart_groups_new();
	if (!c->trials || !c->groups)
		return -ENOMEM;
	if (!overrides)
		overrides = PLATFORM_FOLDER_OVERRIDES;
	if (strlen(overrides) >= sizeof(c->overrides) ||
		(builtin && strlen(builtin) >= sizeof(c->builtin)))
		return -ENAMETOOLONG;
	snprintf(c->overrides, sizeof(c->overrides), "%s", overrides);
	int r = 0;
	if (builtin)
		snprintf(c->builtin, sizeof(c->builtin), "%s", builtin);
	else
		r = platform_folder_find(c->builtin, sizeof(c->builtin));
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
	platform_db_free(c->wrong);
	free(c->identity);
	free(c->platform);
	free(c->basis);
	free(c->trials);
	hart_groups_free(c->groups);
	free(c);
	return NULL;
}

static int room(struct cores *c, int n_harts)
{
	if (n_harts <= c->n_harts)
		return 0;
	struct platform_identity *identity =
		reallocarray(c->identity, (size_t)n_harts, sizeof(*identity));
	if (identity)
		c->identity = identity;
	const struct platform **platform =
		reallocarray(c->platform, (size_t)n_harts, sizeof(*platform));
	if (platform)
		c->platform = platform;
	struct basis *basis = reallocarray(c->basis, (size_t)n_harts, sizeof(*basis));
	if (basis)
		c->basis = basis;
	if (!identity || !platform || !basis)
		return -ENOMEM;
	for (; c->n_harts < n_harts; c->n_harts++) {
		c->identity[c->n_harts] = nobody;
		c->platform[c->n_harts] = &nothing;
		c->basis[c->n_harts] = (struct basis){0};
	}
	return 0;
}

static struct basis basis_of(const struct platform *p)
{
	const struct platform_event *const leader[BASIS_LEADERS] = {
		p->leader_user, p->leader_kernel, p->leader_machine, platform_all_modes(p)};
	struct basis b = {.overflow = p->overflow};
	for (int i = 0; i < BASIS_LEADERS; i++) {
		b.leads[i] = leader[i] != NULL;
		b.leader[i] = leader[i] ? leader[i]->code : 0;
	}
	return b;
}

static bool same_basis(const struct basis *a, const struct basis *b)
{
	bool same = a->overflow == b->overflow;
	for (int i = 0; i < BASIS_LEADERS; i++)
		same &= a->leads[i] == b->leads[i] && a->leader[i] == b->leader[i];
	return same;
}

static int load(const struct cores *c, struct platform_db **ret_db)
{
	const char *const folders[] = {c->builtin, c->overrides};
	return platform_db_load(folders, c->overrides[0] ? 2 : 1, ret_db);
}

int cores_read(struct cores *c, const struct kernel *k, const struct machine *m)
{
	if (!c || (c->db && m->n_harts <= c->n_harts &&
			  memcmp(&c->online, &m->online, sizeof(c->online)) == 0))
		return 0;
	_cleanup_(freep) struct platform_identity *now = calloc((size_t)m->n_harts, sizeof(*now));
	if (!now)
		return -ENOMEM;
	int r = c->db ? 0 : load(c, &c->db);
	if (r == 0)
		r = room(c, m->n_harts);
	if (r == 0)
		r = identity_read(k, m, now);
	for (int hart = 0; hart < m->n_harts && r == 0; hart++) {
		if (!now[hart].read && c->identity[hart].read)
			continue;
		c->identity[hart] = now[hart];
		c->platform[hart] = platform_match(c->db, &now[hart]);
		if (!hart_set_has(&c->online, hart)) /* harts that stayed online keep their plans */
			c->basis[hart] = basis_of(c->platform[hart]);
	}
	if (r == 0)
		c->online = m->online;
	return r;
}

static bool has_error(const struct platform_db *db, const char *error)
{
	const char *had;
	for (size_t i = 0; (had = platform_db_error(db, i)); i++)
		if (strcmp(had, error) == 0)
			return true;
	return false;
}

/* Does it have an error that the other does not? */
static bool is_worse(const struct platform_db *db, const struct platform_db *than)
{
	const char *error;
	for (size_t i = 0; (error = platform_db_error(db, i)); i++)
		if (!has_error(than, error))
			return true;
	return false;
}

struct platform_db *cores_database(const struct cores *c)
{
	return c ? platform_db_ref(c->db) : NULL;
}

int cores_reload(struct cores *c)
{
	_cleanup_(platform_db_freep) struct platform_db *db = NULL;
	if (!c || !c->db)
		return 0;
	int r = load(c, &db);
	if (r < 0)
		return r;
	platform_db_free(c->wrong);
	c->wrong = NULL;
	if (is_worse(db, c->db)) {
		c->wrong = TAKE_PTR(db);
		return CORES_WRONG;
	}
	for (int hart = 0; hart < c->n_harts; hart++)
		if (c->platform[hart] != &nothing)
			c->platform[hart] = platform_match(db, &c->identity[hart]);
	platform_db_free(c->db);
	c->db = TAKE_PTR(db);
	*c->trials = (struct trials){0};
	return 0;
}

struct hart_set cores_outdated(const struct cores *c)
{
	struct hart_set harts = {0};
	for (int i = 0; c && i < c->n_harts; i++) {
		const struct basis now = basis_of(c->platform[i]);
		if (hart_set_has(&c->online, i) && !same_basis(&now, &c->basis[i]))
			hart_set_add(&harts, i);
	}
	return harts;
}

const struct platform *cores_platform(const struct cores *c, int hart)
{
	return c && hart >= 0 && hart < c->n_harts ? c->platform[hart] : &nothing;
}

const struct platform *cores_platform_named(const struct cores *c, const char *name)
{
	return c && c->db ? platform_db_find(c->db, name) : NULL;
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

void cores_hold(struct cores *c, int hart, uint64_t counters)
{
	if (c)
		c->held[hart] = counters;
}

uint64_t cores_held(const struct cores *c, const struct hart_set *harts)
{
	uint64_t held = 0;
	for (int hart = 0; c && hart < HARTS_MAX; hart++)
		held |= hart_set_has(harts, hart) ? c->held[hart] : 0;
	return held;
}

struct trials *cores_trials(const struct cores *c)
{
	return c ? c->trials : NULL;
}

struct hart_groups *cores_groups(const struct cores *c)
{
	return c ? c->groups : NULL;
}

const char *cores_error(const struct cores *c, size_t i)
{
	if (!c || !c->db)
		return NULL;
	return platform_db_error(c->wrong ? c->wrong : c->db, i);
}

bool cores_are_older(const struct cores *c)
{
	return c && c->wrong;
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
