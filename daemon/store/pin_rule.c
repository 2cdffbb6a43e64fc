/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/store/pin_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/pin.h"

#define KEEP "keep="
/* The maximum of the client's --keep. */
#define KEEP_MAX STORE_PINS_MAX
#define PART_BYTES (LABEL_KEY_BYTES_MAX + 2 * LABEL_VALUE_BYTES_MAX + 2)

static int take_keep(struct pin_rule *rule, const char *value)
{
	char *end;
	if (rule->keep > 0 || *value < '1' || *value > '9')
		return LABELS_WRONG;
	unsigned long n = strtoul(value, &end, 10);
	if (*end || n > KEEP_MAX)
		return LABELS_WRONG;
	rule->keep = (uint32_t)n;
	return 0;
}

static int take_part(struct pin_rule *rule, const char *part)
{
	struct label_fault fault;
	struct label *to = &rule->label[rule->n_labels];
	if (strncmp(part, KEEP, strlen(KEEP)) == 0)
		return take_keep(rule, part + strlen(KEEP));
	if (rule->n_labels == PIN_RULE_LABELS_MAX || label_parse(part, to, &fault) != 0)
		return LABELS_WRONG;
	for (size_t i = 0; i < rule->n_labels; i++)
		if (strcmp(rule->label[i].key, to->key) == 0)
			return LABELS_WRONG;
	rule->n_labels++;
	return 0;
}

/* Length of the item at text, up to an unescaped comma, a space, or the end. */
static size_t part_length(const char *text)
{
	size_t n = 0;
	for (; text[n] && text[n] != ',' && text[n] != ' '; n++)
		if (text[n] == '\\' && text[n + 1] && text[n + 1] != ' ')
			n++;
	return n;
}

/* *text moves past the rule. */
static int take_rule(struct pin_rule *rule, const char **text)
{
	char part[PART_BYTES];
	bool more = true;
	int r = 0;
	*rule = (struct pin_rule){.keep = 0};
	while (more && r == 0) {
		size_t n = part_length(*text);
		if (n == 0 || n >= sizeof(part))
			return LABELS_WRONG;
		snprintf(part, sizeof(part), "%.*s", (int)n, *text);
		r = take_part(rule, part);
		more = (*text)[n] == ',';
		*text += n + more;
	}
	return r == 0 && (rule->n_labels == 0 || rule->keep == 0) ? LABELS_WRONG : r;
}

int pin_rules_parse(const char *text, struct pin_rules *ret)
{
	struct pin_rules rules = {.n = 0};
	int r = 0;
	if (strcmp(text, "none") == 0)
		text += strlen(text);
	for (; *text && r == 0; text += strspn(text, " "))
		r = rules.n < PIN_RULES_MAX ? take_rule(&rules.rule[rules.n++], &text)
					    : LABELS_WRONG;
	if (r == 0)
		*ret = rules;
	return r;
}

/* The group: the labels named by the rule, out of n, as JSON. NULL: no memory. */
static char *group_of(const struct pin_rule *rule, const struct label *label, size_t n)
{
	struct label of[PIN_RULE_LABELS_MAX];
	struct label_fault fault;
	char *group = NULL;
	for (size_t i = 0; i < rule->n_labels; i++)
		for (size_t k = 0; k < n; k++)
			if (strcmp(label[k].key, rule->label[i].key) == 0)
				of[i] = label[k];
	return labels_write(of, rule->n_labels, &group, &fault) == 0 ? group : NULL;
}

const struct pin_rule *pin_rules_find(
	const struct pin_rules *rules, const char *labels, char **ret_group)
{
	struct label label[LABELS_MAX];
	const size_t n = rules->n > 0 ? labels_read(labels, label) : 0;
	for (size_t i = 0; i < rules->n; i++) {
		const struct pin_rule *rule = &rules->rule[i];
		if (!labels_match(rule->label, rule->n_labels, label, n))
			continue;
		*ret_group = group_of(rule, label, n);
		return rule;
	}
	return NULL;
}
