/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tables as a client gets them.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "daemon/answer/row.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "tests/unit/test.h"

static struct control_options options;
static struct peer peer;
static struct request request;

static void begin(void)
{
	peer = (struct peer){.options = &options, .fd = -1};
	request = (struct request){.peer = &peer, .id = 7};
}

static void end(void)
{
	frame_buffer_clear(&peer.out);
}

EACH_TEST(.begin = begin, .end = end);

static const int64_t moments[] = {0, INT64_C(1700000000000000000), INT64_MAX};

#define MOMENT_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(moment, "Moment", time, moments[i])                                                 \
	COLUMN(says, "Says", text, "\xff")

static Mperf__Message *take(Mperf__Answer__BodyCase wanted)
{
	Mperf__Message *m;
	ck_assert_int_eq(frame_take(&peer.out, &m), 0);
	ck_assert_int_eq(m->answer->body_case, wanted);
	return m;
}

TEST(a_time_has_its_offset_and_is_absent_if_not_known)
{
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, &request);
	setenv("TZ", "HERE-05:30", 1);
	tzset();
	ck_assert_int_eq(TABLE_BEGIN(&to, "moments", MOMENT_TABLE), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(TABLE_ROW(&to, MOMENT_TABLE), 0);
	ck_assert_int_eq(row_stream_done(&stream, 0), 0);

	Mperf__Message *m = take(MPERF__ANSWER__BODY_COLUMNS);
	ck_assert_str_eq(m->answer->columns->table, "moments");
	ck_assert_int_eq(m->answer->columns->column[0]->unit, MPERF__UNIT__UNIT_TIME);
	mperf__message__free_unpacked(m, NULL);

	m = take(MPERF__ANSWER__BODY_ROWS);
	Mperf__Row **row = m->answer->rows->row;
	ck_assert_int_eq(row[0]->value[0]->is_case, MPERF__VALUE__IS__NOT_SET);
	ck_assert_str_eq(row[1]->value[0]->text, "2023-11-15T03:43:20+05:30");
	ck_assert_int_eq(row[2]->value[0]->is_case, MPERF__VALUE__IS__NOT_SET);
	ck_assert_str_eq(row[1]->value[1]->text, "\\xff");
	mperf__message__free_unpacked(m, NULL);
	mperf__message__free_unpacked(take(MPERF__ANSWER__BODY_DONE), NULL);
}

TEST(an_answer_that_failed_is_not_done)
{
	struct row_stream stream;
	(void)row_stream_answer(&stream, &request);
	ck_assert_int_eq(row_stream_done(&stream, ANSWER_FULL), 0);
	ck_assert_int_eq(row_stream_done(&stream, -ENOMEM), -ENOMEM);
	ck_assert_uint_eq(frame_buffer_filled(&peer.out), 0);
}
