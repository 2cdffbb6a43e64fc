/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The more conditions a pattern has, the more specific it is, and the more specific one wins: an
 * architecture alone is its generic platform, a vendor's registers are a core, and registers with a
 * device-tree compatible are that core on that chip, where three cores share one identity.
 */
#include "platform-db/pattern.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/digit.h"

#define REGEX_BYTES_MAX 255 /* Linux' longest has 60 */
#define REGEX_REPEATS_MAX 8 /* more than one for each register */
#define ANY UINT32_MAX
#define N(table) (sizeof(table) / sizeof(table[0]))

/* Parse "[1-9a-e]"; *at is after the bracket. 0: malformed. */
static uint16_t set_parse(const char **at)
{
	unsigned set = 0;
	while (**at && **at != ']') {
		int low = digit_value(*(*at)++), high = low;
		if (**at == '-') {
			high = digit_value((*at)[1]);
			*at += (*at)[1] ? 2 : 1;
		}
		if (low < 0 || high < low)
			return 0;
		for (int d = low; d <= high; d++)
			set |= 1u << d;
	}
	if (**at != ']')
		return 0;
	(*at)++;
	return (uint16_t)set;
}

static bool digits_parse(const char *text, struct digits *ret_digits)
{
	uint16_t read[PATTERN_DIGITS];
	int n = 0;
	if (strncmp(text, "0x", 2) != 0)
		return false;
	for (const char *at = text + 2; *at; n++) {
		if (n == PATTERN_DIGITS)
			return false;
		char c = *at++;
		read[n] = c == '?'              ? 0xffff
			  : c == '['            ? set_parse(&at)
			  : digit_value(c) >= 0 ? (uint16_t)(1u << digit_value(c))
						: 0;
		if (!read[n])
			return false;
	}
	if (n == 0)
		return false;

	struct digits d = {.given = true};
	for (int i = 0; i < PATTERN_DIGITS; i++)
		d.allowed[i] = i < n ? read[n - 1 - i] : 1; /* missing digits are 0 */
	*ret_digits = d;
	return true;
}

static bool digits_match(const struct digits *d, uint64_t value)
{
	for (int i = 0; d->given && i < PATTERN_DIGITS; i++)
		if (!(d->allowed[i] >> (value >> 4 * i & 15) & 1))
			return false;
	return true;
}

static bool digits_meet(const struct digits *a, const struct digits *b)
{
	for (int i = 0; a->given && b->given && i < PATTERN_DIGITS; i++)
		if (!(a->allowed[i] & b->allowed[i]))
			return false;
	return true;
}

/* --- our own ---------------------------------------------------------------------------------- */

struct row {
	int arch;
	const char *mvendorid, *marchid, *mimpid, *midr, *vendor, *pmu, *compatible;
	const char *source, *verified;
	uint64_t family, stepping;
	struct code_range model;
};

#define AT(member) offsetof(struct row, member)
static const struct field row_fields[] = {
	{"arch", FIELD_CHOICE, AT(arch), true, 0, platform_arch_names},
	{"mvendorid", FIELD_TEXT, AT(mvendorid)},
	{"marchid", FIELD_TEXT, AT(marchid)},
	{"mimpid", FIELD_TEXT, AT(mimpid)},
	{"midr", FIELD_TEXT, AT(midr)},
	{"vendor", FIELD_NAME, AT(vendor)},
	{"family", FIELD_CODE, AT(family)},
	{"model", FIELD_RANGE, AT(model)},
	{"stepping", FIELD_CODE, AT(stepping)},
	{"pmu", FIELD_NAME, AT(pmu)},
	{"compatible", FIELD_TEXT, AT(compatible)},
	{"source", FIELD_TEXT, AT(source), true},
	{"verified", FIELD_TEXT, AT(verified), true},
};

/* The keys of each architecture. */
static const struct {
	const char *key;
	enum platform_arch arch;
} key_archs[] = {
	{"mvendorid", PLATFORM_ARCH_RISCV},
	{"marchid", PLATFORM_ARCH_RISCV},
	{"mimpid", PLATFORM_ARCH_RISCV},
	{"midr", PLATFORM_ARCH_ARM64},
	{"vendor", PLATFORM_ARCH_X86},
	{"family", PLATFORM_ARCH_X86},
	{"model", PLATFORM_ARCH_X86},
	{"stepping", PLATFORM_ARCH_X86},
	{"pmu", PLATFORM_ARCH_X86},
};

static int take_digits(const struct reader *r, const struct node *row, const char *key,
	const char *text, struct digits *ret_digits)
{
	if (!text || digits_parse(text, ret_digits))
		return 0;
	return reader_wrong(r, node_get(row, key)->line,
		"'%s' is not a pattern of hexadecimal digits such as 0x5b7, 0x410fd49? or "
		"0x80[1-9]07: '%s'",
		key, text);
}

/* Refuse a number that no core has and that here means any. */
static int check_number(
	const struct reader *r, const struct node *row, const char *key, uint64_t number)
{
	const struct node *n = node_get(row, key);
	return !n || number < ANY
		       ? 0
		       : reader_wrong(r, n->line, "'%s' is larger than any core has", key);
}

int pattern_take(const struct reader *r, const struct node *row, struct pattern *ret_pattern)
{
	struct row v = {.family = ANY, .model = {0, ANY}, .stepping = ANY};
	const struct grammar grammar = GRAMMAR("a row of cpus", row_fields);
	int error = reader_fields(r, row, &grammar, &v);
	if (!error)
		error = check_number(r, row, "family", v.family);
	if (!error)
		error = check_number(r, row, "stepping", v.stepping);
	if (error)
		return error;

	struct pattern p = {
		.arch = (enum platform_arch)(v.arch + 1),
		.vendor = v.vendor,
		.family = v.family < ANY ? (uint32_t)v.family : ANY,
		.model = v.model,
		.stepping = v.stepping < ANY ? (uint32_t)v.stepping : ANY,
		.pmu = v.pmu,
		.compatible = v.compatible,
		.origin = {v.source, v.verified, r->file, row->line},
	};
	for (size_t i = 0; i < N(key_archs); i++) {
		const struct node *key = node_get(row, key_archs[i].key);
		if (key && key_archs[i].arch != p.arch)
			return reader_wrong(r, key->line, "'%s' does not exist on %s cores",
				key->key, platform_arch_names[v.arch]);
		p.n_keys += key != NULL;
	}
	p.n_keys += v.compatible != NULL;

	const struct {
		const char *key, *text;
		struct digits *to;
	} registers[] = {
		{"mvendorid", v.mvendorid, &p.mvendorid},
		{"marchid", v.marchid, &p.marchid},
		{"mimpid", v.mimpid, &p.mimpid},
		{"midr", v.midr, &p.midr},
	};
	for (size_t i = 0; i < N(registers); i++) {
		error = take_digits(r, row, registers[i].key, registers[i].text, registers[i].to);
		if (error)
			return error;
	}
	*ret_pattern = p;
	return 0;
}

/* --- mapfile.csv ------------------------------------------------------------------------------ */

/* Constructs that make the C library's matcher slow or large: repetition counts, back references,
 * and repetition of a group or of a repetition, which doubles the expression. */
static bool is_costly(const char *text)
{
	size_t n_repeats = 0, n = strlen(text);
	if (n > REGEX_BYTES_MAX || strpbrk(text, "{\\"))
		return true;
	for (size_t i = 0; i < n; i++) {
		if (!strchr("+*?", text[i]))
			continue;
		n_repeats++;
		if (i > 0 && strchr("+*?)", text[i - 1]))
			return true;
	}
	return n_repeats > REGEX_REPEATS_MAX;
}

static int foreign_regex(
	const struct reader *r, int line, const char *text, struct pattern *ret_pattern)
{
	if (is_costly(text))
		return reader_wrong(r, line,
			"the pattern '%.64s' is too long or too complex for a mapfile", text);
	regex_t compiled;
	int error = regcomp(&compiled, text, REG_EXTENDED | REG_NOSUB);
	if (error == REG_ESPACE)
		return -ENOMEM;
	if (error)
		return reader_wrong(r, line, "'%.64s' is not a regular expression", text);
	regfree(&compiled);

	ret_pattern->kind = PATTERN_REGEX;
	ret_pattern->arch = strncmp(text, "0x", 2) == 0 ? PLATFORM_ARCH_RISCV : PLATFORM_ARCH_X86;
	ret_pattern->regex = pool_text(r->pool, text);
	return ret_pattern->regex ? 0 : -ENOMEM;
}

int pattern_foreign(const struct reader *r, int line, const char *text, struct pattern *ret_pattern)
{
	struct pattern p = {
		.n_keys = 3,
		.family = ANY,
		.model = {0, ANY},
		.stepping = ANY,
		.origin = {r->file, "no", r->file, line},
	};
	if (strncmp(text, "0x", 2) == 0 && code_parse(text, &p.number)) {
		/* Linux writes Arm's register with sixteen digits; a merged 32-bit id has at most
		 * eight. Source: tools/perf/pmu-events/arch/arm64/mapfile.csv, Linux 6.12. */
		bool midr = strlen(text) > 10;
		p.kind = midr ? PATTERN_MIDR_FROM : PATTERN_MERGED;
		p.arch = midr ? PLATFORM_ARCH_ARM64 : PLATFORM_ARCH_RISCV;
	} else {
		int error = foreign_regex(r, line, text, &p);
		if (error)
			return error;
	}
	*ret_pattern = p;
	return 0;
}

/* Does the expression match the whole text? */
static bool regex_holds(const regex_t *regex, const char *text)
{
	regmatch_t m;
	return regexec(regex, text, 1, &m, 0) == 0 && m.rm_so == 0 &&
	       (size_t)m.rm_eo == strlen(text);
}

/* Write the identity as perf does. Source: get_cpuid() of tools/perf/arch/riscv/util/header.c and
 * arch/x86/util/header.c, Linux 6.12. */
static bool regex_matches(const struct pattern *p, const struct platform_identity *id)
{
	char text[96], shorter[96] = "";
	regex_t regex;
	if (regcomp(&regex, p->regex, REG_EXTENDED) != 0)
		return false;
	if (id->arch == PLATFORM_ARCH_RISCV) {
		snprintf(text, sizeof(text), "0x%llx-0x%llx-0x%llx",
			(unsigned long long)id->mvendorid, (unsigned long long)id->marchid,
			(unsigned long long)id->mimpid);
	} else {
		/* An expression without a stepping matches all of them. */
		snprintf(text, sizeof(text), "%s-%u-%X-%X", id->vendor, id->family, id->model,
			id->stepping);
		snprintf(shorter, sizeof(shorter), "%s-%u-%X", id->vendor, id->family, id->model);
	}
	bool holds = regex_holds(&regex, text) || (*shorter && regex_holds(&regex, shorter));
	regfree(&regex);
	return holds;
}

/* The same part, in that variant and revision or a later one. Source: Arm ARM, MIDR_EL1: Variant is
 * bits 23:20, Revision bits 3:0. */
static bool midr_from(uint64_t from, uint64_t midr)
{
	const uint64_t version = 0xf0000f;
	uint64_t from_version = (from >> 20 & 15) << 4 | (from & 15);
	uint64_t midr_version = (midr >> 20 & 15) << 4 | (midr & 15);
	return (from & ~version) == (midr & ~version) && midr_version >= from_version;
}

/* --- matching --------------------------------------------------------------------------------- */

/* Index of the word in the list, from 0; -1: none. */
static int compatible_position(const char *list, const char *wanted)
{
	size_t n = strlen(wanted);
	for (int i = 0; *list; i++) {
		size_t word = strcspn(list, " ");
		if (word == n && strncmp(list, wanted, n) == 0)
			return i;
		list += word + (list[word] == ' ');
	}
	return -1;
}

static bool own_matches(const struct pattern *p, const struct platform_identity *id)
{
	return digits_match(&p->mvendorid, id->mvendorid) &&
	       digits_match(&p->marchid, id->marchid) && digits_match(&p->mimpid, id->mimpid) &&
	       digits_match(&p->midr, id->midr) &&
	       (!p->vendor || strcmp(p->vendor, id->vendor) == 0) &&
	       (p->family == ANY || p->family == id->family) && id->model >= p->model.first &&
	       id->model <= p->model.last && (p->stepping == ANY || p->stepping == id->stepping) &&
	       (!p->pmu || strcmp(p->pmu, id->pmu) == 0) &&
	       (!p->compatible || compatible_position(id->compatible, p->compatible) >= 0);
}

/* Does the pattern need a register? Unread registers match nothing. */
static bool needs_registers(const struct pattern *p)
{
	return p->kind != PATTERN_DIGITS_OF_REGISTERS || p->n_keys > (p->compatible != NULL);
}

bool pattern_matches(const struct pattern *p, const struct platform_identity *id)
{
	if (p->arch != id->arch || (!id->read && needs_registers(p)))
		return false;
	switch (p->kind) {
	case PATTERN_REGEX:
		return regex_matches(p, id);
	case PATTERN_MIDR_FROM:
		return midr_from(p->number, id->midr);
	case PATTERN_MERGED:
		/* Source: Domingos et al., CARRV 2021, figure 4. */
		return ((id->marchid & 0xffffff) << 8 | (id->mimpid & 0xff)) == p->number;
	case PATTERN_DIGITS_OF_REGISTERS:
		break;
	}
	return own_matches(p, id);
}

bool pattern_is_better(
	const struct pattern *p, const struct pattern *than, const struct platform_identity *id)
{
	if (p->n_keys != than->n_keys)
		return p->n_keys > than->n_keys;
	if (p->layer != than->layer)
		return p->layer > than->layer;
	/* A device tree lists the most specific name first. Source: Devicetree Specification 0.4,
	 * section 2.3.1. */
	return p->compatible && than->compatible &&
	       compatible_position(id->compatible, p->compatible) <
		       compatible_position(id->compatible, than->compatible);
}

static bool numbers_meet(uint32_t a, uint32_t b)
{
	return a == ANY || b == ANY || a == b;
}

bool pattern_conflicts(const struct pattern *a, const struct pattern *b)
{
	if (a->kind != PATTERN_DIGITS_OF_REGISTERS || b->kind != a->kind || a->arch != b->arch ||
		a->n_keys != b->n_keys)
		return false;
	/* A device tree names its board and its chip: the more specific name comes first and
	 * decides. */
	if (a->compatible && b->compatible && strcmp(a->compatible, b->compatible) != 0)
		return false;
	return digits_meet(&a->mvendorid, &b->mvendorid) && digits_meet(&a->marchid, &b->marchid) &&
	       digits_meet(&a->mimpid, &b->mimpid) && digits_meet(&a->midr, &b->midr) &&
	       (!a->vendor || !b->vendor || strcmp(a->vendor, b->vendor) == 0) &&
	       numbers_meet(a->family, b->family) && a->model.first <= b->model.last &&
	       b->model.first <= a->model.last && numbers_meet(a->stepping, b->stepping) &&
	       (!a->pmu || !b->pmu || strcmp(a->pmu, b->pmu) == 0);
}
