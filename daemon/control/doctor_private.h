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

/* May this peer have the cost measured? Measuring opens events on all harts for half a second, which slows all
 * programs. In a service only root and the group may. */
bool doctor_measures(const struct examination *x);
/* Report the service's measurements on that hart, and the work that it gave up because of them. */
void doctor_cost(struct examination *x, int hart);
/* Report the cost of records of forks, execs and mappings: measured now for root and the group, and
 * as last measured for others. */
void doctor_sideband(struct examination *x);
