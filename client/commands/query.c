/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The source is closed before the answer is shown: quitting the pager must leave nothing behind.
 */
#include "client/commands/query.h"

#include "client/show/csv.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/show/table.h"
#include "client/show/unnamed.h"

static int show(
	const struct options *o, const struct reply *reply, const char *const *hide, FILE *f)
{
	struct table_options look = {.raw = o->look.raw, .hide = hide};

	if (o->look.json)
		return reply_write_json(reply, f);
	if (o->look.csv)
		return csv_write(reply, f);
	table_look(stdout, o->look.no_color, &look);
	int r = table_print(reply, &look, f);
	if (r == 0 && !o->look.raw) {
		reply_write_provenance(reply->provenance, f);
		unnamed_write(&package_places_debian, reply, f);
	}
	return r;
}

int query_command(const struct options *o, const struct source_request *from, Mperf__Request *query,
	const char *const *hide, void (*say_empty)(const struct options *o, bool kept))
{
	struct reply reply = {0};
	struct print p;
	bool kept;
	int exit_status = source_query(from, query, reply_take, &reply, &kept);
	if (exit_status == 0) {
		int r = o->sort ? reply_sort(&reply, reply_column(&reply, o->sort)) : 0;
		if (o->sort && o->limit > 0)
			reply_cut(&reply, o->limit);
		if (r == 0)
			r = print_open_answer(&p, options_ask_data(o));
		if (r == 0)
			r = show(o, &reply, hide, p.file);
		exit_status = print_close_answer(&p, r);
		if (exit_status == 0 && reply.n_rows == 0)
			say_empty(o, kept);
	}
	reply_clear(&reply);
	return exit_status;
}
