/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as a platform of our own, as somebody else's events, and as the identity in a map; the
 * first byte chooses, as each of them begins anyway. What is refused is complained of in one plain
 * line; what is taken can be laid over itself, built, found and matched.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform-db/draft.h"
#include "platform-db/foreign.h"
#include "platform-db/metric_tree.h"
#include "platform-db/selector.h"

static void must_complain_well(const struct complaints *c, int outcome)
{
	if (outcome < 0 || (outcome == READ_WRONG) != (c->n > 0))
		abort();
	for (size_t i = 0; i < c->n; i++) {
		if (strncmp(c->text[i], "fuzz:", 5) != 0)
			abort();
		for (const char *at = c->text[i]; *at; at++)
			if ((unsigned char)*at < 0x20 || *at == 0x7f)
				abort();
	}
}

/* Each metric is a node at most once, after its parent and one level below it. */
static void must_be_a_tree(const struct platform *p, const char *top)
{
	struct metric_tree *tree = NULL;
	if (metric_tree_new(p, top, 0, &tree) != 0)
		return;
	for (size_t i = 0; i < tree->n_nodes; i++) {
		int parent = tree->node[i].parent;
		if (parent >= (int)i || tree->node[i].level > METRIC_TREE_LEVELS_MAX ||
			tree->node[i].level != (parent < 0 ? 1 : tree->node[parent].level + 1))
			abort();
		for (size_t k = 0; k < i; k++)
			if (tree->node[k].metric == tree->node[i].metric)
				abort();
	}
	metric_tree_free(tree);
}

/* Decodes codes, and composes them again from the text. */
static void must_decode(const struct platform *p)
{
	static const uint64_t codes[] = {1, 0x201, 0x40000002007, 0x8000000300000102, UINT64_MAX};
	char text[SELECTOR_TEXT_BYTES];
	const char *bank;
	for (size_t c = 0; c < sizeof(codes) / sizeof(codes[0]); c++) {
		for (size_t i = 0; i < p->n_fields; i++)
			selector_means(p, &p->field[i], codes[c], text);
		for (size_t i = 0; (bank = selector_bank(p, i)); i++) {
			struct selector_code code = {0, 0};
			struct selector_error error;
			if (*selector_says(p, bank, codes[c], text))
				selector_compose(p, bank, text + strlen(bank) + 1, &code, &error);
		}
	}
}

static void must_answer(const struct platform *p)
{
	must_decode(p);
	for (size_t i = 0; i < p->n_events; i++) {
		const struct platform_event *e = &p->event[i];
		if (platform_event_find(p, e->name) != e)
			abort();
		platform_counters(p, e->code);
		platform_unfiltered(p, e->code);
	}
	must_be_a_tree(p, METRIC_TREE_TOP);
	for (size_t i = 0; i < p->n_metrics; i++) {
		if (platform_metric_find(p, p->metric[i].name) == NULL)
			abort();
		must_be_a_tree(p, p->metric[i].name);
	}
	for (unsigned modes = 0; modes <= PLATFORM_MODES_ALL; modes++)
		platform_leader(p, modes);
	for (size_t i = 0; i < p->n_generics; i++)
		if (platform_event_generic(p, p->generics[i].type, p->generics[i].config) !=
			p->generics[i].event)
			abort();
}

static void match_all(const struct pattern *p)
{
	const struct platform_identity ids[] = {
		{PLATFORM_ARCH_RISCV, true, 0x710, 0x8000000058000001, 0x1000000049772200},
		{PLATFORM_ARCH_ARM64, true, .midr = 0x413fd0c1, .compatible = "a,board b,chip"},
		{PLATFORM_ARCH_X86, true, .vendor = "GenuineIntel", .family = 6, .model = 0x55},
		{PLATFORM_ARCH_X86, true, .vendor = "GenuineIntel", .family = 6, .model = 0x97,
			.pmu = "cpu_atom"},
		{PLATFORM_ARCH_RISCV, false},
		{PLATFORM_ARCH_UNKNOWN, false},
	};
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (pattern_matches(p, &ids[i]) && pattern_is_better(p, p, &ids[i]))
			abort();
}

static void try_own(const struct reader *r, const char *text, size_t n)
{
	_cleanup_(draft_freep) struct draft *d = NULL, *merged = NULL;
	const struct node *root;
	const struct platform *platform;
	int outcome = reader_parse(r, text, n, true, &root);
	if (outcome == 0)
		outcome = draft_read(r, root, NULL, &d);
	must_complain_well(r->complaints, outcome);
	if (outcome != 0)
		return;
	const struct pattern *p = d->cpus.items;
	for (size_t i = 0; i < d->cpus.n; i++) {
		match_all(&p[i]);
		if (pattern_conflicts(&p[i], &p[0]) != pattern_conflicts(&p[0], &p[i]))
			abort();
	}

	outcome = draft_build(r, d, &platform);
	must_complain_well(r->complaints, outcome);
	if (outcome != 0)
		return;
	must_answer(platform);
	size_t n_events = platform->n_events;
	/* Whatever builds, builds again on top of itself, to the same. */
	if (draft_merge(d, d, &merged) != 0 || draft_build(r, merged, &platform) != 0 ||
		platform->n_events != n_events)
		abort();
	must_answer(platform);
}

static void try_foreign(const struct reader *r, const char *text, size_t n)
{
	struct list events[] = {LIST_OF(struct draft_event), LIST_OF(struct draft_event)};
	struct list metrics[] = {LIST_OF(struct platform_metric), LIST_OF(struct platform_metric)};
	const struct foreign_rows standard = {&events[0], &metrics[0], PLATFORM_ARCH_X86};
	const struct foreign_rows to = {&events[1], &metrics[1], PLATFORM_ARCH_X86};
	const struct node *root;
	int outcome = reader_parse(r, text, n, false, &root);
	if (outcome == 0)
		outcome = foreign_events(r, root, &standard, &standard);
	must_complain_well(r->complaints, outcome);
	if (outcome == 0 && foreign_events(r, root, &standard, &to) != 0)
		abort();
	if (outcome == 0 && (events[0].n != events[1].n || metrics[0].n != metrics[1].n))
		abort();
	/* what each kind of hart has of it is a part */
	struct draft whole = {.name = "fuzz", .events = events[1], .metrics = metrics[1]};
	static const char *const pmus[] = {"", "cpu_core", "cpu_atom"};
	for (size_t i = 0; outcome == 0 && i < sizeof(pmus) / sizeof(pmus[0]); i++) {
		_cleanup_(draft_freep) struct draft *kind = NULL;
		if (draft_of_pmu(&whole, pmus[i], &kind) != 0 || kind->events.n > events[1].n ||
			kind->metrics.n > metrics[1].n)
			abort();
	}
	for (int i = 0; i < 2; i++) {
		list_clear(&events[i]);
		list_clear(&metrics[i]);
	}
}

static void try_map(const struct reader *r, const char *text, size_t n)
{
	struct pattern p;
	char *line = calloc(1, n + 1);
	if (!line)
		return;
	memcpy(line, text, n);
	line[strcspn(line, "\n")] = '\0';
	int outcome = pattern_foreign(r, 1, line, &p);
	must_complain_well(r->complaints, outcome);
	if (outcome == 0)
		match_all(&p);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(pool_freep) struct pool *pool = pool_new();
	_cleanup_(freep) struct complaints *complaints = calloc(1, sizeof(*complaints));
	if (!pool || !complaints || size == 0)
		return 0;
	complaints->pool = pool;
	const struct reader r = {pool, pool, complaints, "fuzz"};
	const char *text = (const char *)data;
	if (*text == '[')
		try_foreign(&r, text, size);
	else if (*text == '0' || *text == 'G')
		try_map(&r, text, size);
	else
		try_own(&r, text, size);
	return 0;
}
