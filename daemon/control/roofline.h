/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What requests about programs that count themselves ask of the store
 */

#include "daemon/control/request.h"
#include "daemon/query/blocks.h"
#include "daemon/query/roofline.h"

/* The words of a request have been looked at. Borrow from it. */
struct roofline_question roofline_question_of(
	const Mperf__RooflineRequest *m, const struct query_filter *filter);
struct blocks_question blocks_question_of(
	const Mperf__BlocksRequest *m, const struct query_filter *filter);
