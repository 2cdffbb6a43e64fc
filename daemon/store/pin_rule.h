/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rules of pins: jobs to pin without a request (pin-jobs of mperf.conf)
 *
 *      branch=main,keep=20 branch=release-*,job=bench,keep=5
 *
 * Rules are separated by spaces. A rule has labels as for `mperfctl job run --pin`, whose values
 * may have * and ?, and keep=N. Jobs that differ in the values of the rule's labels form separate
 * groups: branch=* keeps N of each branch.
 */

#include <stdint.h>

#include "proto/syntax/label.h"

/* Limits: one line of a configuration needs no more. */
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

/* "none": no rules. 0; LABELS_WRONG: the text is not a list of rules. */
int pin_rules_parse(const char *text, struct pin_rules *ret);

/* The first rule that a job of these labels (JSON) matches; NULL: none. *ret_group is then the group: the rule's
 * labels with the job's values, as JSON, which the caller frees; NULL without memory. */
const struct pin_rule *pin_rules_find(
	const struct pin_rules *rules, const char *labels, char **ret_group);
