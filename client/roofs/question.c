/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/roofs/question.h"

#include <errno.h>
#include <sys/timerfd.h>

#include "proto/base/memory.h"

/* A daemon that greets but does not answer is busy. Do not wait longer for roofs. */
#define PATIENCE_S 5

static void ignore(void *userdata, const Mperf__Failure *f)
{
	(void)userdata, (void)f;
}

static int give_up(void *userdata)
{
	(void)userdata;
	return -ETIMEDOUT;
}

int roofs_question(struct link *l, Mperf__RoofsRequest *roofs,
	int (*answer)(void *userdata, const Mperf__Answer *a), void *userdata)
{
	const struct itimerspec patience = {.it_value.tv_sec = PATIENCE_S};
	_cleanup_(closep) int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct ask k = {.link = l,
		.answer = answer,
		.failed = ignore,
		.userdata = userdata,
		.watch = {{.fd = timer, .ready = give_up}}};
	Mperf__Request request = MPERF__REQUEST__INIT;

	if (timer < 0 || timerfd_settime(timer, 0, &patience, NULL) < 0)
		return -errno;
	request.body_case = MPERF__REQUEST__BODY_ROOFS;
	request.roofs = roofs;
	return ask_run(&k, &request);
}

static int take_row(void *userdata, const Mperf__Answer *a)
{
	return reply_add(userdata, a);
}

int roofs_rows(struct link *l, Mperf__RoofsRequest *roofs, struct reply *reply)
{
	return roofs_question(l, roofs, take_row, reply);
}
