/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any user can make the parser die, so log lines are limited: we log a refused user once in some
 * seconds, with the number of other users; files for which no user was refused, once in some
 * minutes. If a worker does not start, no user caused it, and we log when that begins and ends.
 */
#include "daemon/service/naming_news.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>

#define SECOND_NS 1000000000u

static int say_off(const struct namer_status *s, char *text, size_t size)
{
	bool opener = s->opener.pid == 0;
	int error = opener ? s->opener.error : s->parser.error;

	if (!s->off) {
		snprintf(text, size, "functions get names again");
		return LOG_NOTICE;
	}
	snprintf(text, size,
		"functions have no names for now: the namer's %s does not start%s%s; mperfd keeps "
		"trying, and names appear once it starts",
		opener ? "opener" : "parser", error ? ": " : "", error ? strerror(error) : "");
	return LOG_WARNING;
}

static int say_refused(struct naming_said *said, const struct namer_status *s, uint64_t now_ns,
	char *text, size_t size)
{
	const struct namer_refused *first = NULL;
	uint32_t n_more = 0;

	for (uint32_t i = 0; i < s->n_refused && i < NAMER_REFUSED_SHOWN_MAX; i++) {
		const struct namer_refused *r = &s->refused[i];
		if (r->since_ns <= said->refused_ns)
			continue;
		n_more += first != NULL;
		first = first ? first : r;
	}
	if (!first || now_ns < said->next_ns)
		return NAMING_NO_NEWS;
	said->refused_ns = now_ns;
	said->next_ns = now_ns + NAMING_SAY_NS;
	said->n_deaths = s->n_deaths;
	char who[32] = "unknown users", more[48] = "";
	if (first->uid != (uid_t)-1)
		snprintf(who, sizeof(who), "user %u", (unsigned)first->uid);
	if (n_more > 0)
		snprintf(more, sizeof(more), "; the same for %u more", n_more);
	snprintf(text, size,
		"naming is paused for %s (%s) for %llu s, since workers of the namer ended %u "
		"times; other users are not affected%s",
		who, first->what,
		(unsigned long long)((first->until_ns - first->since_ns) / SECOND_NS),
		first->deaths, more);
	return LOG_WARNING;
}

int naming_news(struct naming_said *said, const struct namer_status *s, uint64_t now_ns, char *text,
	size_t size)
{
	if (s->off != said->off) {
		said->off = s->off;
		return say_off(s, text, size);
	}
	int level = say_refused(said, s, now_ns, text, size);
	if (level != NAMING_NO_NEWS)
		return level;
	if (s->n_deaths == said->n_deaths || now_ns < said->next_deaths_ns)
		return NAMING_NO_NEWS;
	snprintf(text, size,
		"%llu files or stacks stopped a worker of the namer since the last such message; "
		"mperfd does not try these files again. See `mperfctl status`",
		(unsigned long long)(s->n_deaths - said->n_deaths));
	said->n_deaths = s->n_deaths;
	said->next_deaths_ns = now_ns + NAMING_DEATHS_NS;
	return LOG_NOTICE;
}
