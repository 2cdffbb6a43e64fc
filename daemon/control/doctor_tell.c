/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include <stdarg.h>
#include <stdio.h>

#include "daemon/answer/row.h"
#include "daemon/control/doctor_private.h"

#define FINDING_TABLE(COLUMN, KNOWN_IF)                                                            \
	KNOWN_IF(hart, "hart", number, f.hart >= 0, f.hart)                                        \
	COLUMN(topic, "topic", text, f.topic)                                                      \
	COLUMN(state, "state", text, f.state)                                                      \
	COLUMN(finding, "finding", text, text)                                                     \
	COLUMN(remedy, "how to fix it", text, f.remedy ? f.remedy : "")

int doctor_begin(struct examination *x, struct row_stream *stream)
{
	x->answer = row_stream_answer(stream, x->request);
	return TABLE_BEGIN(&x->answer, NULL, FINDING_TABLE);
}

bool doctor_measures(const struct examination *x)
{
	return x->request->peer->sees_all;
}

void doctor_tell(struct examination *x, struct finding f, const char *format, ...)
{
	if (x->result != 0)
		return;
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	x->result = TABLE_ROW(&x->answer, FINDING_TABLE);
}
