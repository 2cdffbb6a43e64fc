/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * argp's own messages are off, since they take two lines and name no remedy. We find the mistake
 * again from where argp stopped, and report it in one sentence.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "client/options/options_private.h"
#include "client/show/say.h"
#include "proto/syntax/nearest.h"

int options_wrong(struct parse *p, const char *format, ...)
{
	char what[512], remedy[64];
	va_list arguments;

	if (p->said)
		return EINVAL;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	snprintf(remedy, sizeof(remedy), "See `mperfctl help %s`", command_name(p->command));
	say_failure(what, remedy);
	p->said = true;
	return EINVAL;
}

bool options_takes(Mperf__Request__BodyCase command, const struct option_row *row)
{
	return row->commands & 1u << command;
}

static int wrong_long(struct parse *p, const char *arg)
{
	const char *names[OPTION_ROWS_MAX];
	char typed[64];
	size_t n = 0, prefixed = 0, length = strcspn(arg, "=");
	const struct option_row *found = NULL;

	snprintf(typed, sizeof(typed), "%.*s", (int)length, arg);
	for (size_t i = 0; i < n_option_rows && n < OPTION_ROWS_MAX; i++) {
		const struct option_row *row = &option_rows[i];
		if (!row->name || !options_takes(p->command, row))
			continue;
		names[n++] = row->name;
		if (strncmp(row->name, typed, strlen(typed)) != 0)
			continue;
		prefixed++;
		found = row;
		if (strcmp(row->name, typed) == 0) {
			prefixed = 1;
			break;
		}
	}

	if (prefixed > 1)
		return options_wrong(p, "'--%s' matches more than one option", typed);
	if (found)
		return options_wrong(p, "option '--%s' %s", found->name,
			found->value ? "needs a value" : "takes no value");
	const char *near = nearest_name(typed, names, n);
	return options_wrong(p, "%s has no option '--%s'%s%s%s", command_name(p->command), typed,
		near ? "; did you mean '--" : "", near ? near : "", near ? "'?" : "");
}

/* Find the letter of a cluster like -agx at which getopt stopped. */
static int wrong_short(struct parse *p, const char *cluster)
{
	for (; *cluster; cluster++) {
		const struct option_row *found = NULL;
		for (size_t i = 0; i < n_option_rows; i++)
			if (option_rows[i].letter == *cluster &&
				options_takes(p->command, &option_rows[i]))
				found = &option_rows[i];
		if (!found)
			return options_wrong(
				p, "%s has no option '-%c'", command_name(p->command), *cluster);
		if (found->value && !found->store.optional)
			return options_wrong(
				p, "option '-%c' needs a value (%s)", *cluster, found->value);
	}
	return options_wrong(p, "an option is not valid");
}

int options_slip(struct parse *p, int argc, char **argv)
{
	/* getopt stops after a whole argument, or inside one with remaining letters. */
	for (int i = p->stopped - 1; i <= p->stopped; i++) {
		if (i < 1 || i >= argc || argv[i][0] != '-')
			continue;
		if (argv[i][1] == '-')
			return wrong_long(p, argv[i] + 2);
		return wrong_short(p, argv[i] + 1);
	}
	return options_wrong(p, "an option is not valid");
}
