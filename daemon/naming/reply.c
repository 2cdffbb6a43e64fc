/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Every length in a reply is checked against the remaining bytes, and every number against its
 * enumeration, before use. Replies that pass are well-formed; the caller checks whether they answer
 * the request.
 */
#include "daemon/naming/reply.h"

static bool is_state(uint32_t state)
{
	switch (state) {
	case STATE_READY:
	case STATE_VANISHED:
	case STATE_REFUSED:
	case STATE_NO_SYMBOLS:
	case STATE_MALFORMED:
	case STATE_OVERSIZE:
	case STATE_FORGOTTEN:
		return true;
	}
	return false;
}

int reply_names_begin(struct reply_names *r, const uint8_t *bytes, size_t n)
{
	struct reply_names names = {.at = bytes + sizeof(names.named), .end = bytes + n};

	if (n < sizeof(names.named))
		return -EBADMSG;
	memcpy(&names.named, bytes, sizeof(names.named));
	names.n_left = names.named.n;
	const struct message_named *m = &names.named;
	if (m->wants_split > 1 || (m->wants_split && !m->last) ||
		m->n_split > MESSAGE_PATH_BYTES_MAX || (!m->wants_split && m->n_split) ||
		m->n_split > n - sizeof(*m) || memchr(bytes + n - m->n_split, 0, m->n_split))
		return -EBADMSG;
	names.end -= m->n_split;
	names.split = names.end;
	if (names.named.head.type != MESSAGE_NAMED || names.named.n > MESSAGE_OFFSETS_MAX ||
		names.named.last > 1 ||
		(names.named.state != STATE_READY && names.named.state != STATE_FORGOTTEN) ||
		(names.named.state == STATE_FORGOTTEN &&
			(names.named.n || !names.named.last || m->wants_split)))
		return -EBADMSG;
	*r = names;
	return 0;
}

static int take(struct reply_names *r, void *ret, size_t n)
{
	if ((size_t)(r->end - r->at) < n)
		return -EBADMSG;
	memcpy(ret, r->at, n);
	r->at += n;
	return 0;
}

static int take_string(struct reply_names *r, uint16_t n, const char **ret_string)
{
	if (n > MESSAGE_NAME_BYTES_MAX || (size_t)(r->end - r->at) < n || memchr(r->at, 0, n))
		return -EBADMSG;
	*ret_string = (const char *)r->at;
	r->at += n;
	return 0;
}

static int take_place(struct reply_names *r, struct reply_place *ret_place)
{
	struct message_place p;

	if (take(r, &p, sizeof(p)) < 0 || p.inlined > 1 || p.split_missing > 1)
		return -EBADMSG;
	*ret_place = (struct reply_place){
		.n_function = p.n_function,
		.n_source = p.n_source,
		.line = p.line,
		.inlined = p.inlined,
		.split_missing = p.split_missing,
	};
	int error = take_string(r, p.n_function, &ret_place->function);
	return error < 0 ? error : take_string(r, p.n_source, &ret_place->source);
}

int reply_names_next(struct reply_names *r, struct reply_naming *ret_naming)
{
	struct message_naming n;

	if (r->n_left == 0)
		return r->at == r->end ? REPLY_END : -EBADMSG;
	if (take(r, &n, sizeof(n)) < 0 || n.outcome < NAMING_NAMED || n.outcome > NAMING_PLACED ||
		n.n_places > MESSAGE_PLACES_MAX || (n.outcome == NAMING_PLACED && n.n_places) ||
		n.from > n.to)
		return -EBADMSG;
	ret_naming->addr = n.addr;
	ret_naming->outcome = n.outcome;
	ret_naming->n_places = n.n_places;
	ret_naming->from = n.from;
	ret_naming->to = n.to;
	for (uint8_t i = 0; i < n.n_places; i++) {
		int error = take_place(r, &ret_naming->place[i]);
		if (error < 0)
			return error;
	}
	r->n_left--;
	return 0;
}

int reply_opened(
	const uint8_t *bytes, size_t n, struct message_opened *ret_opened, const char **ret_path)
{
	struct message_opened m;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.head.type != MESSAGE_OPENED || m.n_path > MESSAGE_PATH_BYTES_MAX ||
		n != sizeof(m) + m.n_path || !is_state(m.state) || m.state == STATE_FORGOTTEN ||
		m.copied > 1 || m.first > UINT8_MAX || memchr(bytes + sizeof(m), 0, m.n_path))
		return -EBADMSG;
	*ret_opened = m;
	*ret_path = (const char *)bytes + sizeof(m);
	return 0;
}

int reply_loaded(const uint8_t *bytes, size_t n, struct message_loaded *ret_loaded)
{
	struct message_loaded m;

	if (n != sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.head.type != MESSAGE_LOADED || !is_state(m.state) ||
		m.n_build_id > sizeof(m.build_id) || m.n_alt_build_id > sizeof(m.alt_build_id) ||
		!memchr(m.debuglink, 0, sizeof(m.debuglink)) ||
		!memchr(m.alt_link, 0, sizeof(m.alt_link)))
		return -EBADMSG;
	*ret_loaded = m;
	return 0;
}

int reply_done(const uint8_t *bytes, size_t n, struct message_done *ret_done)
{
	struct message_done m;

	if (n != sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.head.type != MESSAGE_DONE || m.error > 0)
		return -EBADMSG;
	*ret_done = m;
	return 0;
}

int reply_unwound(const uint8_t *bytes, size_t n, struct reply_unwound *ret_unwound)
{
	struct message_unwound m;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.head.type != MESSAGE_UNWOUND || m.outcome < UNWINDING_DONE ||
		m.outcome > UNWINDING_NO_SPACE || m.truncated > 1 || m.n > MESSAGE_FRAMES_MAX ||
		(m.outcome != UNWINDING_DONE && m.n > 0) ||
		n != sizeof(m) + m.n * sizeof(struct message_frame))
		return -EBADMSG;
	ret_unwound->unwound = m;
	memcpy(ret_unwound->frame, bytes + sizeof(m), n - sizeof(m));
	return 0;
}

static bool is_change(const struct message_change *c, uint32_t after, uint32_t order)
{
	return c->start < c->end && c->order > after && c->order <= order;
}

int reply_grown(const uint8_t *bytes, size_t n, struct reply_grown *ret_grown)
{
	struct message_grown m;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	if (m.head.type != MESSAGE_GROWN || !is_state(m.state) || m.n > MESSAGE_CHANGES_MAX ||
		(m.state != STATE_READY && m.n > 0) ||
		n != sizeof(m) + m.n * sizeof(struct message_change))
		return -EBADMSG;
	ret_grown->grown = m;
	memcpy(ret_grown->change, bytes + sizeof(m), n - sizeof(m));
	for (uint32_t i = 0; i < m.n; i++)
		if (!is_change(
			    &ret_grown->change[i], i ? ret_grown->change[i - 1].order : 0, m.order))
			return -EBADMSG;
	return 0;
}

int reply_tabled(const uint8_t *bytes, size_t n, struct message_tabled *ret_tabled,
	const uint8_t **ret_piece)
{
	struct message_tabled m;

	if (n < sizeof(m))
		return -EBADMSG;
	memcpy(&m, bytes, sizeof(m));
	const bool is_made = m.outcome == TABLE_MADE;
	if (m.head.type != MESSAGE_TABLED || m.outcome < TABLE_MADE ||
		m.outcome > TABLE_FORGOTTEN || m.last > 1 || n != sizeof(m) + m.n ||
		is_made != (m.n > 0) || (!is_made && !m.last))
		return -EBADMSG;
	*ret_tabled = m;
	*ret_piece = bytes + sizeof(m);
	return 0;
}
