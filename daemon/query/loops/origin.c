/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The sources of an answer about loops: of the many files of a store, damaged ones are left out; a segment or a
 * program's own file is read as it is.
 */
#include "daemon/query/loops/facts.h"

int loop_facts_read(
	struct loop_facts *f, const struct loop_origin *from, struct query_error *ret_error)
{
	const struct source_reader reader = {
		f, loop_facts_add_segment, loop_facts_keep, loop_facts_take_back, &f->provenance};
	if (from->output)
		return loop_facts_add_file(f, from->output, ret_error);
	return from->db ? sources_read_open(&reader, &from->db, 1, ret_error)
			: sources_read(&reader, from->source, from->n_sources, ret_error);
}
