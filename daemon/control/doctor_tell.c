/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include <stdarg.h>
#include <stdio.h>

#include "daemon/control/doctor_private.h"

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
	struct answer_value v[] = {
		{.kind = f.hart < 0 ? ANSWER_ABSENT : ANSWER_INTEGER, .integer = f.hart},
		{.kind = ANSWER_TEXT, .text = f.topic},
		{.kind = ANSWER_TEXT, .text = f.state},
		{.kind = ANSWER_TEXT, .text = text},
		{.kind = ANSWER_TEXT, .text = f.remedy ? f.remedy : ""},
	};
	x->result = x->answer.row(x->answer.userdata, v, sizeof(v) / sizeof(v[0]));
}
