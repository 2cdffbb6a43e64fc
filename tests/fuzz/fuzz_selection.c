/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any text as a selection of runs: branches' names, which others choose, come into it. What is accepted has
 * labels that can be read, or a time; a refusal is one line.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/compare/selection.h"

#define NOW (1764000000 * INT64_C(1000000000))

/* Any value as a label's: what is said of it matches it, and so does a star; any value as a wanted one ends. */
static int says_itself(const struct label *label)
{
	struct label wanted = *label;
	char said[2 * LABEL_VALUE_BYTES_MAX + 1];
	(void)label_matches(label, label, 1);
	label_escape(label->value, said, sizeof(said));
	if (strlen(said) > LABEL_VALUE_BYTES_MAX)
		return 1;
	strcpy(wanted.value, said);
	if (!label_matches(&wanted, label, 1))
		return 0;
	strcpy(wanted.value, "*");
	return label_matches(&wanted, label, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct selection s;
	struct selection_fault fault = {""};
	char *text = malloc(size + 1);
	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	(void)selection_is_one(text);
	int r = selection_parse(text, NOW, &s, &fault);
	if (r == SELECTION_WRONG && (!*fault.text || strlen(fault.text) >= sizeof(fault.text)))
		abort();
	if (r == 0) {
		struct label label;
		struct label_fault why;
		for (size_t i = 0; i < s.n_labels; i++)
			if (label_parse(s.label[i], &label, &why) != 0 || !says_itself(&label))
				abort();
		if ((s.n_labels == 0 && s.since_ns <= 0) || s.n_labels > LABELS_MAX ||
			s.n_uids > SELECTION_UIDS_MAX)
			abort();
		selection_clear(&s);
	}
	free(text);
	return 0;
}
