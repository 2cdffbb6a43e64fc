/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as mperf.conf. What is taken prints and reads back the same, and its rules of jobs to pin can be
 * applied; what is refused says so in one plain line and changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/conf/conf.h"
#include "daemon/store/pin_rule.h"

static char *printed(const struct conf *c)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		abort();
	conf_print(c, f);
	if (fclose(f) != 0)
		abort();
	return text;
}

static void must_read_back(const struct conf *c)
{
	struct conf again;
	struct conf_error error;
	char *text = printed(c);
	if (conf_parse(text, strlen(text), "printed", &again, &error) != 0)
		abort();
	char *text_again = printed(&again);
	if (strcmp(text, text_again) != 0)
		abort();
	free(text_again);
	free(text);
}

/* A rule that matches a job has a group, with labels of the job. */
static void must_have_rules(const struct conf *c)
{
	static const char *const job[] = {"{\"branch\":\"main\",\"job\":\"bench\",\"run\":\"1\"}",
		"{\"a\":\"x,y\\\\z\",\"b\":\"*\",\"c\":\"\"}", "{}", "no labels"};
	struct pin_rules rules;
	if (pin_rules_parse(c->pin_jobs, &rules) != 0)
		abort();
	for (size_t i = 0; i < sizeof(job) / sizeof(*job); i++) {
		struct label label[LABELS_MAX];
		char *group = NULL;
		const struct pin_rule *rule = pin_rules_find(&rules, job[i], &group);
		if (rule &&
			(!group || rule->keep == 0 || labels_read(group, label) != rule->n_labels))
			abort();
		free(group);
	}
}

static void must_be_a_line(const struct conf_error *error)
{
	size_t n = strnlen(error->text, sizeof(error->text));
	if (n == 0 || n == sizeof(error->text))
		abort();
	for (size_t i = 0; i < n; i++)
		if (error->text[i] < 0x20 || error->text[i] > 0x7e)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf c, before;
	struct conf_error error = {""};
	memset(&c, 0x5a, sizeof(c));
	before = c;
	int r = conf_parse((const char *)data, size, "mperf.conf", &c, &error);
	if (r == 0) {
		must_read_back(&c);
		must_have_rules(&c);
	} else if (r != CONF_WRONG || memcmp(&c, &before, sizeof(c)) != 0)
		abort();
	else
		must_be_a_line(&error);
	return 0;
}
