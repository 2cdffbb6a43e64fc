/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The table of options as argp wants it, for parsing and for the help.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "client/options/options_private.h"
#include "proto/base/memory.h"

/* argp's key of a row without a letter: above every character, by its place in the table. */
#define KEY_OF_ROW 0x100

#define WHAT_BYTES_MAX 1000 /* of a command line in titles and in the recording */

void options_fill(Mperf__Request__BodyCase command, struct argp_option *ret_options)
{
	for (size_t i = 0, n = 0; i < n_option_rows && n + 1 < OPTION_ROWS_MAX; i++) {
		const struct option_row *row = &option_rows[i];
		if (options_takes(command, row))
			ret_options[n++] = (struct argp_option){
				.name = row->name,
				.key = row->letter ? row->letter : KEY_OF_ROW + (int)i,
				.arg = row->value,
				.flags = row->store.optional ? OPTION_ARG_OPTIONAL : 0,
				.doc = row->says,
			};
	}
}

const struct option_row *options_row(Mperf__Request__BodyCase command, int key)
{
	for (size_t i = 0; i < n_option_rows; i++)
		if ((option_rows[i].letter == key || (int)i + KEY_OF_ROW == key) &&
			options_takes(command, &option_rows[i]))
			return &option_rows[i];
	return NULL;
}

char *target_text(const struct target *t)
{
	_cleanup_(freep) char *what = NULL;
	size_t size;
	FILE *f = open_memstream(&what, &size);
	if (!f)
		return NULL;
	for (size_t i = 0; t->command_line && t->command_line[i] && ftell(f) < WHAT_BYTES_MAX; i++)
		fprintf(f, "%s%.*s", i > 0 ? " " : "", WHAT_BYTES_MAX, t->command_line[i]);
	if (!t->command_line && t->all)
		fputs("the whole system", f);
	for (size_t i = 0; !t->command_line && i < t->n_pids; i++)
		fprintf(f, "%s%d",
			i > 0           ? ", "
			: t->n_pids > 1 ? "processes "
					: "process ",
			t->pid[i]);
	return fclose(f) == 0 ? TAKE_PTR(what) : NULL;
}

void options_help(Mperf__Request__BodyCase command, FILE *f)
{
	struct argp_option list[OPTION_ROWS_MAX] = {0};
	const struct command_text *text = command_text((int)command);
	_cleanup_(freep) char *doc = NULL;
	char name[64];

	options_fill(command, list);
	if (asprintf(&doc, "%s\v%s", text->says, text->examples) < 0) {
		doc = NULL;
		return;
	}
	snprintf(name, sizeof(name), "mperfctl %s", command_name(command));
	const struct argp argp = {.options = list, .args_doc = text->arguments, .doc = doc};
	argp_help(&argp, f,
		ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG | ARGP_HELP_POST_DOC,
		name);
}
