/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the files of this room only
 *
 * Each file owns a struct, whose members it alone touches; the others call its functions. struct namer holds
 * these structs. A file calls only files below it:
 *
 *      namer.c                       the calls from outside; when workers start, end and are killed
 *      parse.c    struct parsing     what the parser does next for a slot: load, join debug files, name a batch
 *      open.c     struct opening     which file the opener opens next
 *      unwind.c   struct unwinding   copied stacks: walked by tables, and on their way to the parser (stacks.h)
 *      callers.c  struct walking     callers by tables of unwinding
 *      table_ask.c struct arriving   the table that the parser makes
 *      gather.c   struct gathering  names that are asked for together (gather.h)
 *      grow.c     struct growing     files of generated code that were sampled, and may have grown
 *      renew.c                       debug files that came later, or are wanted from servers
 *      blame.c    struct blames      which files killed the parser, and whose files are refused for it
 *      slot.c     struct slots       files at the namer, and their descriptors
 *      answers.c                     answers that hold for a function (answers.h)
 *      frames.c   struct frames      frames that wait for a name
 *      tables.c   struct tables      tables of unwinding, by slot
 *      request.c  struct request     the request that the parser has, and what it has seen
 *      queue.c    struct queues      slots by next step and by user
 *      user.c     struct naming_users  which user is served next, and what each has used up
 *      strings.c  struct strings     names
 *      worker.c   struct worker      one process
 *
 * A worker has one request at a time, so that a failure is caused by that request.
 *
 * A slot is a file at the namer: its next step, its open descriptors, and the frames to name. A
 * slot is in at most one queue:
 *
 *      (none) ──namer_name──▶ to_name ──no descriptor──▶ to_open ──opened──▶ to_name ──▶ (none)
 *                                ▲──────────────── wants debug file ──┘
 *
 * Each user has separate queues; of the waiting users, the one who has used the least of the
 * worker's time is served. A wish is the set of frames of a slot that one user wants named.
 */

#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/namer/message.h"
#include "daemon/naming/answers.h"
#include "daemon/naming/gather.h"
#include "daemon/naming/growth.h"
#include "daemon/naming/namer.h"
#include "daemon/naming/quota.h"
#include "daemon/naming/stacks.h"
#include "daemon/naming/strings.h"
#include "daemon/naming/user.h"
#include "daemon/naming/worker.h"

/* hung opens of a user, after which no separate debug files are opened: their file system is dead */
#define NAMER_DEBUG_HANGS_MAX 3u
#define NAMER_IMAGES_BYTES_MAX (1ull << 30)    /* total size of files loaded in the parser */
#define NAMER_COPIES_BYTES_MAX (128ull << 20)  /* copies of remote files in memory */
#define NAMER_STRINGS_BYTES_MAX (128ull << 20) /* names; beyond it frames are FRAME_UNNAMED */
#define NAMER_FAULTY_MAX 1024u /* files that killed the parser; the oldest is forgotten */
#define NAMER_SEEN_MAX 4u      /* remembered users whose files one parser received */
/* for which answers are kept while their file is not sampled */
#define NAMER_ANSWERS_KEPT_NS 60000000000u
#define NAMER_HURRIED_MAX 4096u /* frames queued twice because a second user wanted them */
/* stacks searched per user for one that need not wait for the opener; … */
#define NAMER_JOBS_LOOKED_AT 16u
#define NAMER_JOBS_USERS_MAX 4u /* … for this many users */
/* changes of a file's status before it has names; a file that changes more often is not named */
#define NAMER_PROVED_MAX 8u
/* files that the parser wants for one offset: a package, a .dwo, or neither, and again after it forgot */
#define NAMER_SPLITS_MAX 16u
#define NAMER_ROUNDS_MAX 64u /* answers handled in one dispatch; the loop has other work */
/* before a missing perf map is looked up again, and the late frames of a perf map that has grown; and before a jitdump that
 * has grown has another table */
#define NAMER_RETRY_NS 1000000000u
/* Time after which a copied file that was found the same is looked up again. It doubles each time, up to the maximum.
 * Each time costs a copy, and the naming of its frames again. */
#define NAMER_SEEN_NS 1000000000u
#define NAMER_SEEN_MAX_NS 300000000000u
#define NAMER_ABSENT_NS                                                                            \
	5000000000u /* before a file that was not found is looked for in a new process */
/* … and again for the frames that wait for it, at most this many times, each time after twice as
 * long */
#define NAMER_RETRY_ABSENT_NS 100000000u
#define NAMER_ABSENT_MAX 6u
/* Time for which an unused file that is not on our root file system stays open: the longest wait of
 * an unmount */
#define NAMER_HELD_NS 1000000000u
/* files of generated code that were sampled since the last look: one fstat each */
#define NAMER_SAMPLED_MAX 1024u

/* --- files ------------------------------------------------------------------------------------ */

/* Identity of a file, from the opener. */
struct origin {
	uint64_t device, inode, bytes;
	int64_t changed_ns;
	uid_t owner;
	bool sole; /* certainly only its owner (and root) can write to it */
};

/* A file that killed the parser. */
struct faulty {
	struct origin origin;
	enum file_state state;
};

/* Frames of a slot that one user wants named. */
struct wish {
	TAILQ_ENTRY(wish) of_user; /* while the slot is to be named */
	TAILQ_ENTRY(wish) of_slot;
	struct slot *slot;
	struct naming_user *user;
	struct frame **frame;
	size_t n, size;
};

enum place_of_slot {
	QUEUE_NONE,
	QUEUE_OPEN,
	QUEUE_NAME,
	QUEUE_OPENER, /* the opener has it */
	QUEUE_PARSER, /* the parser has it, or its frames */
};

struct slot {
	TAILQ_ENTRY(slot) by_use; /* least recently used first */
	TAILQ_ENTRY(slot) held;   /* while its file is open; in the same order */
	TAILQ_ENTRY(slot) queued; /* to be opened */
	enum place_of_slot queue;
	struct file *file;
	struct naming_user *opens; /* the user for whom it is to be opened; NULL: not queued */
	uid_t asker;               /* the user for whom it was opened last */
	struct origin origin[N_PARTS];
	bool no_debug;    /* the parser died on it and its debug file */
	bool completes;   /* while renew.c chooses, */
	bool has_unnamed; /* of the frames */
	bool paused;      /* its frames are late until its author is no longer refused */
	int fd[N_PARTS];
	uint64_t bytes[N_PARTS];
	uint64_t copied_bytes;
	/* of the file, when it was opened or looked at last; 0: unknown */
	int64_t written_ns, status_ns;
	uint32_t tried;         /* bit per part: the opener was asked, or need not be */
	enum message_part part; /* the part for the opener to find */
	uint32_t first;         /* first candidate to try */
	/* path of the split unit that the parser wants next, "": unknown; NULL: it wants none */
	char *split;
	uint32_t n_splits; /* wanted since the last name */
	char *found; /* path of the debug file, for its alt link; NULL: use the file's own path */

	uint32_t given;              /* parser generation that has the descriptor; 0: none */
	uint32_t loaded;             /* … that has loaded the image */
	uint32_t joined;             /* bit per part: sent since it was loaded */
	uint32_t forgotten;          /* consecutive times that the parser forgot it */
	uint32_t retries;            /* after a worker was killed from outside */
	struct message_loaded wants; /* valid while loaded */
	uint64_t retry_ns;
	uint64_t used_ns; /* when it was touched last */
	bool leaves; /* its file keeps a file system from being unmounted: held for NAMER_HELD_NS */
	bool absent; /* not found; its frames are late, until another process runs it */
	uint8_t n_absent;

	struct growth growth; /* of generated code */
	struct naming_answers answers;

	struct wish_list wishes; /* no wish is empty, unless the file must be read on */
	size_t n_frames;         /* in all of them */
	uint64_t n_samples;      /* of frames of the file, since it has a slot */
	/* of generated code without a description yet, or of a slot that is paused; bounded by
	 * FRAMES_MAX */
	struct frame **late;
	size_t n_late, size_late;
	bool unproved;    /* its status changed since it was opened: its contents may have, too */
	uint8_t n_proved; /* number of status changes while a frame waits for it */
	/* of unwinding; NULL unless TABLE_HELD */
	struct unwind_table *table;
	TAILQ_ENTRY(slot) tabled; /* while it has one */
	uid_t table_author;       /* slot_author when it came */
	enum table_state table_state;
	/* of generated code: ranges that the parser knew when the table came, and the time; */
	uint32_t table_order;
	uint64_t table_ns;
	uint64_t replaced_from, replaced_to; /* where other code came since; */
	bool all_replaced;                   /* or perhaps everywhere */
	bool stale;                          /* must be opened again before the next request */
	bool renewing;                       /* … and if that fails, the old descriptor is used */
};

/* --- what each file owns ---------------------------------------------------------------------- */

/* queue.c */
struct queues {
	size_t n_entries;    /* of frames in wishes; some may wait twice */
	bool changed;        /* something was queued since the last dispatch */
	struct slot *loaded; /* just now: named before other slots evict it */
	/* the parser died on it, but another file may have been the cause: it is tried first, and alone */
	struct slot *trial;
};

/* request.c */
struct request {
	enum message_type type; /* of the parser's request, or of its last */
	uint32_t *forget;       /* files for the parser to forget */
	size_t n_forget, size_forget;
	/* users whose files and stacks this parser received; not root */
	uid_t seen[NAMER_SEEN_MAX];
	uint32_t n_seen; /* above the limit: there were more than these */
};

/* slot.c */
struct slots {
	struct slot_list all; /* least recently used first */
	/* slots whose file is open, in the same order: candidates for closing */
	struct slot_list held;
	uint32_t n_fds;
	uint64_t copied_bytes;
	uint64_t leave_ns; /* when slots_leave looks next */
	uint32_t n_answers;
};

/* frames.c */
struct frames {
	size_t n_waiting; /* late frames are not */
	uint64_t n_named, n_placed;
};

/* blame.c */
struct blames {
	struct faulty faulty[NAMER_FAULTY_MAX];
	uint32_t n_faulty, next_faulty;
	uint64_t wake_ns;  /* time of the first check of a paused slot, or UINT64_MAX */
	uint64_t n_deaths; /* of workers, during a request */
};

/* grow.c */
struct growing {
	struct file *sampled[NAMER_SAMPLED_MAX]; /* since the last look */
	uint32_t n_sampled;
};

/* open.c */
struct opening {
	struct slot *slot;  /* the opener's request; NULL: it has none */
	uint64_t missed_ns; /* when a file was last not found */
};

/* unwind.c */
struct unwinding {
	struct snapshot *snapshots; /* uthash by generation */
	struct job *job;            /* the parser's request; NULL: it has none, or one for a slot */
	struct job *trial;          /* as in struct queues */
	uint32_t n_asked_maps;      /* in the request */
	uint64_t job_bytes, job_bytes_max;
	size_t n_waiting; /* stacks */
	uint64_t n_unwound;
	struct barred barred[NAMER_BARRED_MAX];
	uint32_t n_barred, next_barred;
	struct message_map maps[MESSAGE_MAPS_MAX]; /* being sent */
};

/* callers.c */
struct walking {
	struct unwound unwound; /* of the last walk */
	uint64_t n;             /* walks that found a caller */
};

/* tables.c */
struct tables {
	struct slot_list held; /* slots with a table, least recently used first */
	struct quota authors;  /* bytes of each author's tables */
	size_t n_bytes, n_bytes_max;
	bool changed; /* since the last tables_take_change */
};

/* table_ask.c */
struct arriving {
	struct unwind_table *table;
	size_t n; /* bytes of its memory that are here */
};

/* parse.c */
struct parsing {
	struct slot *slot; /* the parser's request; NULL: it has none, or one for a stack */
	struct frame *batch[MESSAGE_OFFSETS_MAX];
	uint32_t n_batch, n_answered;
	bool stacks_first; /* stacks and names alternate */
};

struct namer {
	/* set by namer.c alone, for all */
	struct namer_options options;
	uint64_t now_ns;
	bool off;    /* a worker does not start: names are not awaited until it does */
	bool ending; /* namer_ask_again was called: unnamed frames are final */
	bool patient;

	char *binary;
	struct worker opener, parser;
	struct graves graves;
	struct strings strings;
	struct naming_users users;
	struct queues queues;
	struct gathering gathering;
	struct request request;
	struct frames frames;
	struct slots slots;
	struct blames blames;
	struct growing growing;
	struct opening opening;
	struct unwinding unwinding;
	struct walking walking;
	struct tables tables;
	struct arriving arriving;
	struct parsing parsing;
	uint8_t buffer[MESSAGE_BYTES_MAX]; /* being received */
};

static inline uint64_t namer_timeout(uint64_t wanted_ns, uint64_t limit_ns)
{
	return wanted_ns ? wanted_ns : limit_ns;
}

/* --- queue.c ---------------------------------------------------------------------------------- */

void slot_enqueue_open(
	struct namer *n, struct slot *s, enum message_part part, struct naming_user *u);
/* Queue its wishes at the end of their users' queues, or before all others. */
void slot_enqueue_name(struct namer *n, struct slot *s);
void slot_enqueue_first(struct namer *n, struct slot *s);
/* Take it out of its queue, or back from a worker. */
void slot_dequeue(struct namer *n, struct slot *s);
/* Note that the slot goes to a worker: QUEUE_OPENER or QUEUE_PARSER. */
void slot_send(struct namer *n, struct slot *s, enum place_of_slot to);
/* Add a waiting frame, whether or not the slot is queued. -ENOMEM. */
int slot_push(struct namer *n, struct slot *s, struct frame *frame, struct naming_user *u);
/* Queue the slot for this user, with no frame. -ENOMEM. */
int slot_push_none(struct namer *n, struct slot *s, struct naming_user *u);
/* The user's wish of a slot that is to be named; NULL: none. */
struct wish *slot_wish(const struct slot *s, const struct naming_user *u);
/* The first slot in the user's queues; NULL: they are empty. */
struct slot *slot_queued(const struct naming_user *u);
/* The next slot to open, for the user who is served first; NULL: none, or all must wait. */
struct slot *queue_next_open(const struct namer *n);
/* A wish of the slot that comes first. NULL: no slot does, from now on. */
struct wish *queue_first(struct namer *n);
/* The next wish of the user who is served first; NULL: none, or all must wait. */
struct wish *queue_next(const struct namer *n);
/* Put the slot before all others: it was just loaded; or it is on trial (NULL: none is). */
void queue_put_first(struct namer *n, struct slot *s);
void queue_put_on_trial(struct namer *n, struct slot *s);
bool queue_has_first(const struct namer *n);
bool queue_is_on_trial(const struct namer *n, const struct slot *s);
/* No longer put any slot first; this slot; the slot that was just loaded, if it is s (NULL: any). */
void queue_drop_first(struct namer *n);
void queue_drop(struct namer *n, const struct slot *s);
void queue_drop_loaded(struct namer *n, const struct slot *s);
/* Something was queued, or may go on: dispatch again. */
void queue_note(struct namer *n);
/* Was queue_note called since the last queue_take_note? */
bool queue_is_noted(const struct namer *n);
bool queue_take_note(struct namer *n);
/* Frames in all wishes; some may wait twice. */
size_t queue_entries(const struct namer *n);
/* Take the newest frames of the wish, at most n_max, except those that another user has taken over. The wish may have
 * none left. Returns their number. */
uint32_t wish_take(struct namer *n, struct wish *w, struct frame **ret_frame, uint32_t n_max);
struct wish *wish_free(struct namer *n, struct wish *w);
/* Is the wish's entry still valid for its frame? Another user may have taken the frame over. */
bool wish_holds(const struct wish *w, const struct frame *frame);
/* Make room for one more frame. -ENOMEM. */
int frames_reserve(struct frame ***frames, size_t n, size_t *size);

/* --- request.c -------------------------------------------------------------------------------- */

/* More answers to this request will come. */
enum { PARSER_MORE = 100 };

/* -errno as of worker_ask */
int parser_ask(struct namer *n, enum message_type type, struct iovec *iov, size_t n_iov, int fd);
/* The type of the parser's request. */
enum message_type parser_asked(const struct namer *n);
/* Have the parser forget a file that it was given, before the next request for a slot. -ENOMEM. */
int parser_forget(struct namer *n, const struct file *file);
bool parser_has_to_forget(const struct namer *n);
/* Have the parser forget a file now. Returns as parser_ask. */
int parser_ask_forget(struct namer *n);
/* Note that the parser receives data of that user. */
void parser_saw(struct namer *n, uid_t uid);
/* Did the parser receive only files and stacks of users for whom `is_of` holds? Also false if there
 * were too many users to remember. */
bool parser_saw_only(const struct namer *n, bool (*is_of)(const void *userdata, uid_t uid),
	const void *userdata);
/* Another parser starts: it has nothing to forget, and has seen nobody's files. */
void parser_begins(struct namer *n);
void request_clear(struct request *r);

/* --- frames.c --------------------------------------------------------------------------------- */

/* Push a frame that waits from now on. -ENOMEM. */
int slot_await(struct namer *n, struct slot *s, struct frame *frame, struct naming_user *u);
/* Note that the frame waits no longer: it has its outcome, or is late. */
void frame_finish(struct namer *n, struct frame *f, enum frame_state state);
/* Give a frame that does not wait its outcome. */
void frame_settle(struct namer *n, struct frame *f, enum frame_state state);
/* Every waiting frame becomes FRAME_UNNAMED. */
void slot_finish(struct namer *n, struct slot *s);
/* Make its frames late; make them wait again. -ENOMEM. */
int slot_postpone(struct namer *n, struct slot *s);
int slot_resume(struct namer *n, struct slot *s);
/* Late frames wait again, for the file to be opened again. -ENOMEM. */
int slot_ask_again(struct namer *n, struct slot *s);
/* Await the name of a frame that has an outcome. -ENOMEM. */
int frame_ask_anew(struct namer *n, struct frame *frame);
/* Frames that wait, and those that were named. */
size_t frames_waiting(const struct namer *n);
uint64_t frames_named(const struct namer *n);
uint64_t frames_placed(const struct namer *n);
/* For a sweep: mark frames that wait; forget late ones that are not marked. */
void slot_sweep_mark_frames(const struct slot *s, struct file_marks *m);
void slot_sweep_late(struct slot *s, const struct file_marks *m);

/* --- vdso.c ----------------------------------------------------------------------------------- */

/* Negative: it is not available. */
int vdso_copy(int *ret_fd, uint64_t *ret_bytes);

/* --- slot.c ----------------------------------------------------------------------------------- */

void slots_begin(struct slots *s);
void slots_free(struct namer *n);
/* The slot of a file, made if it has none. -ENOMEM. */
int slot_get(struct namer *n, struct file *file, struct slot **ret_slot);
/* The slot after s; NULL as s: the first; NULL: s was the last. */
struct slot *slots_next(const struct namer *n, const struct slot *s);
/* Note that the slot is used now. */
void slot_touch(struct namer *n, struct slot *s);
/* Store the open descriptor of a part, with its size, and close the former one; this is a use. */
void slot_hold(struct namer *n, struct slot *s, enum message_part part, int fd, uint64_t bytes);
/* Note that a part held by the slot is a copy in memory, of that size. */
void slot_note_copy(struct namer *n, struct slot *s, uint64_t bytes);
/* Note that the slot holds no copies any more. */
void slot_forget_copies(struct namer *n, struct slot *s);
/* Bytes of all copies. */
uint64_t slots_copied_bytes(const struct namer *n);
int slot_release(struct namer *n, struct slot *s);
/* Is the slot dead: nothing in it can be named, or not any more? */
bool slot_is_dead(const struct slot *s);
/* May its code be named by call frame information, which stripped files keep? */
bool slot_has_starts(const struct slot *s);
/* Can it be opened? */
bool slot_is_openable(const struct slot *s);
/* Ask the opener for the file unless it is already open, or hopeless. */
int slot_want(struct namer *n, struct slot *s, struct naming_user *u);
/* Must the opener still answer for the file? */
bool slot_is_awaited(const struct slot *s);
/* Does the file describe generated code, growing by a line for each new function? */
static inline bool slot_grows(const struct slot *s)
{
	return file_grows(s->file);
}
/* The user responsible for the contents of the slot's part: the only one who can write to it, else
 * the user of the process that runs it; 0: root. */
uid_t slot_author(const struct slot *s, enum message_part part);
/* Give the parser a part. As parser_ask. */
int slot_give(struct namer *n, struct slot *s, enum message_part part);
/* Does the present parser have the slot's file? Has it loaded the file? */
bool slot_is_given(const struct namer *n, const struct slot *s);
bool slot_is_loaded(const struct namer *n, const struct slot *s);
void slot_note_loaded(const struct namer *n, struct slot *s);
/* Late frames of all slots wait again, for the files to be opened again. -ENOMEM. */
int slots_ask_again(struct namer *n);
/* Open it again; the parser forgets the old contents. -ENOMEM. */
int slot_renew(struct namer *n, struct slot *s);
/* Was the open file written to since it was opened? SLOT_REWRITTEN: yes, and it is marked replaced. SLOT_TOUCHED:
 * perhaps, since its status changed; each change is reported once. */
enum { SLOT_SAME, SLOT_TOUCHED, SLOT_REWRITTEN };
int slot_look(struct slot *s);
/* After SLOT_TOUCHED: compare the file's contents before it names another frame. -ENOMEM. */
int slot_prove(struct namer *n, struct slot *s);
/* Does the file lack what a separate debug file may have? */
bool slot_may_be_completed(const struct slot *s);
/* Look for its debug files again, with the next name. -ENOMEM. */
int slot_complete(struct namer *n, struct slot *s);
/* Does the part come from a server, so that no user is to blame for it? */
bool slot_part_is_fetched(const struct slot *s, enum message_part part);
/* Mark the file and finish. -ENOMEM. */
int slot_fail(struct namer *n, struct slot *s, enum file_state state);
/* Close the descriptor of a part, if it is held. */
void slot_drop(struct namer *n, struct slot *s, enum message_part part);
/* Note the path, of n_path bytes, of the split unit that is wanted; NULL: none is. 0 or -ENOMEM */
int slot_want_split(struct slot *s, const uint8_t *path, size_t n_path);
/* Close the least recently used idle slot with a descriptor; else one that waits only for users who
 * are served after this one. O(open files): usually the first of them. False: none can be closed.
 * Exported for tests. */
bool slot_evict(struct namer *n, struct naming_user *u);
/* Make room for one more descriptor, and for a copy. False: there is none. */
bool slots_make_room(struct namer *n, const struct slot *s);
/* Have the parser forget the oldest files, until this one can be loaded. -ENOMEM. */
int slots_make_room_to_load(struct namer *n, const struct slot *s);
/* Close files on file systems that somebody may want to unmount, once the files are idle for NAMER_HELD_NS. Cheap if
 * called often. -ENOMEM. */
int slots_leave(struct namer *n);
/* Keep the answer for [from, to), which names or places the frame. Without room, or with lines, it is not kept. */
void slot_keep_answer(struct namer *n, struct slot *s, uint64_t from, uint64_t to,
	const struct frame *frame, enum frame_state state);
/* Name a new frame by an answer that was kept. False: there is none, or its file may have changed. */
bool slot_knows_answer(struct namer *n, struct slot *s, struct frame *frame);
void slot_forget_answers(struct namer *n, struct slot *s);
/* For a sweep: keep the names of answers, but for files that were not used for a while. */
void slots_keep_names(struct namer *n);
/* For a sweep: mark files and frames that are queued or in progress; release unkept files. */
void slots_sweep_mark(const struct namer *n, struct file_marks *m);
int slots_sweep(struct namer *n, const struct file_marks *m);

/* --- blame.c ---------------------------------------------------------------------------------- */

/* A worker died over a request. */
void blame_count(struct namer *n);
/* The parser died on the slot or the job. True: its authors are to blame. False: another user's
 * file in the same parser may have been the cause. */
bool slot_is_proven(const struct namer *n, const struct slot *s);
bool job_is_proven(const struct namer *n, const struct job *j);
/* Is a file with that identity known to kill the parser? */
bool origin_is_faulty(const struct namer *n, const struct origin *o, enum file_state *ret_state);
/* Charge the death to the user responsible; the file is not parsed again. -ENOMEM. */
int slot_blame(struct namer *n, struct slot *s, enum file_state state);
/* Are files of the slot's author refused now? Then pause the slot: its frames are late. */
bool slot_is_refused(const struct namer *n, const struct slot *s);
int slot_pause(struct namer *n, struct slot *s);
/* Queue paused slots again if they may continue. -ENOMEM. */
int slots_wake(struct namer *n);
/* When to call slots_wake next; UINT64_MAX: no slot is paused. */
uint64_t slots_wake_ns(const struct namer *n);
/* Look at all paused slots at the next call. */
void slots_wake_soon(struct namer *n);
void blames_begin(struct blames *b);
void blames_status(const struct blames *b, struct namer_status *status);

/* --- grow.c ----------------------------------------------------------------------------------- */

/* namer_look, for the files that were sampled. 0 or -ENOMEM. */
int growing_look(struct namer *n);
void growing_sweep_mark(const struct namer *n, struct file_marks *m);
/* Note that the parser loaded the file, and must read on before the first name. */
void slot_begin_growth(struct slot *s);
/* Must the parser read on before the next name? Checks the file by one fstat, unless the parser has just read on:
 * then names are next, even if the file grows fast. */
bool slot_must_read_on(struct slot *s);
/* Have the parser read on, and take its answer. They return as parser_ask and parser_hear do. */
int slot_ask_grow(struct namer *n, struct slot *s);
int slot_hear_grown(struct namer *n, struct slot *s, const uint8_t *bytes, size_t n_bytes);
/* The range of code by which the parser names the frame. */
uint32_t slot_order(const struct slot *s, const struct frame *frame);

/* --- open.c ----------------------------------------------------------------------------------- */

int opener_feed(struct namer *n, bool *ret_fed);
int opener_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes, int fd);
int opener_ended(struct namer *n, enum worker_end end);
bool opener_is_asked(const struct namer *n);

/* --- unwind.c --------------------------------------------------------------------------------- */

/* Ask the parser for the next stack's sake; or give the slot's wish, for which the caller asks: its table is wanted. */
int job_feed(struct namer *n, struct wish **ret_wish, bool *ret_fed);
/* Walk stacks whose tables have come, or will not come. */
void jobs_walk(struct namer *n);
int job_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes);
void job_step_done(struct namer *n, int error);
void job_ended(struct namer *n, enum worker_end end);
/* Does the parser have a request for a stack? Must a stack be tried alone? */
bool job_is_asked(const struct namer *n);
bool job_is_on_trial(const struct namer *n);
/* Stacks that wait, and those that were unwound. */
size_t jobs_waiting(const struct namer *n);
uint64_t jobs_unwound(const struct namer *n);
void jobs_sweep_mark(const struct namer *n, struct file_marks *m);
void jobs_begin(struct unwinding *w);
void jobs_fail(struct namer *n);
void jobs_free(struct namer *n);

/* --- parse.c ---------------------------------------------------------------------------------- */

int parser_feed(struct namer *n, bool *ret_fed);
int parser_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes);
int parser_ended(struct namer *n, enum worker_end end);
/* Does the parser have a request for a slot or a stack? */
bool parser_is_asked(const struct namer *n);
void parsing_sweep_mark(const struct namer *n, struct file_marks *m);

/* --- namer.c: the two halves of namer_name. 0 or -ENOMEM; for tests --------------------------- */

/* Request a file early, while the process that mapped it is alive, on behalf of that process's
 * user. Idempotent. Exported for tests. */
int namer_open(struct namer *n, struct file *file, uid_t uid);
/* Take over a FRAME_ASKED frame that another user asked for first, so that it need not wait until that user is
 * served. The frame stays in that user's wish, too; if the users ask for it alternately, it is in both wishes several
 * times. Exported for tests. */
int namer_hurry(struct namer *n, struct frame *frame, uid_t uid);
