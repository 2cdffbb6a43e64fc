/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rules of pins: which jobs are pinned without being asked for (pin-jobs of mperf.conf)
 *
 *      branch=main,keep=20 branch=release-*,job=bench,keep=5
 *
 * Rules are separated by spaces. A rule is what `mperfctl job run --pin` takes, labels whose values may have *
 * and ?, and keep=N. Jobs of a rule that differ in the values of its labels are groups of their own: branch=*
 * keeps N of each branch.
 */

#include <stdint.h>

#include "proto/syntax/label.h"

/* Maxima: more are not written into one line of a configuration. */
#define PIN_RULES_MAX 8
#define PIN_RULE_LABELS_MAX 8

struct pin_rule {
	struct label label[PIN_RULE_LABELS_MAX];
	size_t n_labels; /* from 1 */
	uint32_t keep;   /* from 1 */
};

struct pin_rules {
	struct pin_rule rule[PIN_RULES_MAX];
	size_t n;
};

/* "none" are no rules. 0; LABELS_WRONG: it is none of that form. */
int pin_rules_parse(const char *text, struct pin_rules *ret);

/* The first rule that a job of these labels (JSON) matches; NULL: none. *ret_group is then the group: the rule's
 * labels with the job's values, as JSON, which the caller frees; NULL without memory. */
const struct pin_rule *pin_rules_find(
	const struct pin_rules *rules, const char *labels, char **ret_group);
