/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the parts of the answer to `doctor`: its findings */

#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/kernel/machine.h"

struct examination {
	struct request *request;
	struct machine machine;
	struct answer answer;
	int result;     /* first trouble while sending */
	int n_sampling; /* harts on some rung */
};

struct finding {
	int hart; /* -1: the machine */
	const char *topic, *state, *remedy;
};

/* Begin the table of findings, in an answer to x->request. As the callbacks of an answer. */
int doctor_begin(struct examination *x, struct row_stream *stream);
/* Send one finding; its sentence is formatted. */
__attribute__((format(printf, 3, 4))) void doctor_tell(
	struct examination *x, struct finding f, const char *format, ...);

/* Does it measure for this peer? That opens events on all harts for half a second, for which all programs pay: of
 * a service only root and the group have it done. */
bool doctor_measures(const struct examination *x);
/* Report what the service measured on that hart, and what it gave up because of it. */
void doctor_cost(struct examination *x, int hart);
/* The cost of records of forks, execs and mappings: measured now for root and the group; for others,
 * as last measured. */
void doctor_sideband(struct examination *x);
