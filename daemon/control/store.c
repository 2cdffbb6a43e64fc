/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * store: not built yet.
 */
#include "daemon/control/request.h"

int control_store(struct request *q, const Mperf__Request *m)
{
	(void)m;
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL, "", "not built yet");
}
