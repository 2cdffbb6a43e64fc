/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Arbitrary bytes in arbitrary splits: each round takes one byte of input as the length of the
 * piece that follows. What is taken as a message can be put again as one frame.
 */
#include <stdlib.h>

#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_again(const Mperf__Message *m)
{
	struct frame_buffer b = {0};
	Mperf__Message *again;
	if (frame_put(&b, m) == 0) {
		/* protobuf-c packs an unknown field whose number was 0 so that it refuses it later;
		 * one whole frame it must be all the same. */
		int r = frame_take(&b, &again);
		if ((r != 0 && r != FRAME_MALFORMED) || frame_buffer_filled(&b) != 0)
			abort();
		if (r == 0)
			mperf__message__free_unpacked(again, NULL);
	}
	frame_buffer_clear(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_buffer b = {0};
	int r = FRAME_NONE;

	while (size > 0 && r != FRAME_TOO_LARGE) {
		size_t piece = *data++;
		piece = piece < --size ? piece : size;
		if (frame_buffer_append(&b, data, piece) < 0)
			break;
		data += piece;
		size -= piece;

		Mperf__Message *m;
		while ((r = frame_take(&b, &m)) == 0 || r == FRAME_MALFORMED) {
			if (r == FRAME_MALFORMED)
				continue;
			put_again(m);
			mperf__message__free_unpacked(m, NULL);
		}
	}
	frame_buffer_clear(&b);
	return 0;
}
