/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The program is loaded in a child, which sends the descriptors and ends: libbpf reads all types of the kernel to
 * find the few fields that the program needs, 11 MB for 15 ms. In the daemon they would be
 * a large part of its peak.
 */

#include "daemon/kernel/exec_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/exec.skel.h"
#include "daemon/kernel/quiet_bpf.h"
#include "proto/base/memory.h"

/* Inode of the kernel's first user namespace. Source: PROC_USER_INIT_INO in include/linux/proc_ns.h of Linux
 * 6.12. */
#define USER_NAMESPACE_INIT 0xEFFFFFFDu

struct exec_bpf {
	int outputs_fd, program_fd;
	int link_fd; /* while harts are watched; else -1 */
	int n_harts, n_watched;
	bool *watched; /* by hart */
};

DEFINE_CLEANUP(struct exec_bpf *, exec_bpf_free)

static bool in_first_namespace(void)
{
	struct stat s;
	return stat("/proc/self/ns/user", &s) == 0 && s.st_ino == USER_NAMESPACE_INIT;
}

/* --- the child -------------------------------------------------------------------------------- */

/* Descriptors that the child sends, and the message that carries them. */
enum { OUTPUTS, PROGRAM, N_SENT };
union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(N_SENT * sizeof(int))];
};

static int load(int n_harts, int ret_sent[static N_SENT])
{
	struct exec_bpf_program *p = exec_bpf_program__open();
	if (!p)
		return -errno;
	p->rodata->sees_users = in_first_namespace();
	int r = bpf_map__set_max_entries(p->maps.outputs, (uint32_t)n_harts);
	if (r == 0)
		r = exec_bpf_program__load(p);
	if (r < 0)
		return r;
	ret_sent[OUTPUTS] = bpf_map__fd(p->maps.outputs);
	ret_sent[PROGRAM] = bpf_program__fd(p->progs.on_exec);
	return 0; /* p ends with the process */
}

/* Send the result and, if it is 0, the descriptors. */
static noreturn void child(int fd, int n_harts)
{
	int sent[N_SENT];
	union control control = {0};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "mperfd-bpf");
	bpf_be_quiet();
	int result = load(n_harts, sent);
	struct iovec piece = {.iov_base = &result, .iov_len = sizeof(result)};
	struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
	if (result == 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(sent));
		memcpy(CMSG_DATA(head), sent, sizeof(sent));
	}
	_exit(sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* --- the parent ------------------------------------------------------------------------------- */

/* The child's result. A child that was killed gives -ENOMEM: memory is short. */
static int receive(struct exec_bpf *b, int fd)
{
	int result = 0, sent[N_SENT] = {-1, -1};
	union control control = {0};
	struct iovec piece = {.iov_base = &result, .iov_len = sizeof(result)};
	struct msghdr message = {.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n;
	do
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 || result != 0)
		return n < 0 ? -errno : result;
	if (n != sizeof(result))
		return -ENOMEM;
	/* If our table is full, only some arrive. */
	const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	const size_t n_bytes = head ? head->cmsg_len - CMSG_LEN(0) : 0;
	if (head)
		memcpy(sent, CMSG_DATA(head), n_bytes);
	if (n_bytes != sizeof(sent)) {
		for (size_t i = 0; i < n_bytes / sizeof(sent[0]); i++)
			close(sent[i]);
		return -EMFILE;
	}
	b->outputs_fd = sent[OUTPUTS];
	b->program_fd = sent[PROGRAM];
	return 0;
}

static int load_in_child(struct exec_bpf *b)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	const pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]); /* so that it does not outlive the parent in a read */
		child(pair[1], b->n_harts);
	}
	int r = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (r == 0)
		r = receive(b, pair[0]);
	close(pair[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return r;
}

int exec_bpf_new(int n_harts, struct exec_bpf **ret_bpf, int *ret_error)
{
	_cleanup_(exec_bpf_freep) struct exec_bpf *b = calloc(1, sizeof(*b));
	if (!b || n_harts <= 0) {
		free(TAKE_PTR(b));
		return n_harts > 0 ? -ENOMEM : -EINVAL;
	}
	*b = (struct exec_bpf){
		.outputs_fd = -1, .program_fd = -1, .link_fd = -1, .n_harts = n_harts};
	b->watched = calloc((size_t)n_harts, sizeof(*b->watched));
	if (!b->watched)
		return -ENOMEM;
	int r = load_in_child(b);
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0) {
		*ret_error = -r;
		return EXEC_BPF_REFUSED;
	}
	*ret_bpf = TAKE_PTR(b);
	return 0;
}

static void detach(struct exec_bpf *b)
{
	if (b->link_fd >= 0)
		close(b->link_fd);
	b->link_fd = -1;
}

int exec_bpf_watch(struct exec_bpf *b, int hart, int output_fd)
{
	if (hart < 0 || hart >= b->n_harts)
		return -EINVAL;
	if (b->link_fd < 0)
		b->link_fd = bpf_raw_tracepoint_open(NULL, b->program_fd);
	if (b->link_fd < 0)
		return -errno;
	uint32_t key = (uint32_t)hart;
	int r = bpf_map_update_elem(b->outputs_fd, &key, &output_fd, BPF_ANY);
	if (r == 0 && !b->watched[hart]) {
		b->watched[hart] = true;
		b->n_watched++;
	}
	if (b->n_watched == 0)
		detach(b);
	return r;
}

void exec_bpf_forget(struct exec_bpf *b, int hart)
{
	if (hart < 0 || hart >= b->n_harts || !b->watched[hart])
		return;
	uint32_t key = (uint32_t)hart;
	(void)bpf_map_delete_elem(b->outputs_fd, &key);
	b->watched[hart] = false;
	if (--b->n_watched == 0)
		detach(b);
}

struct exec_bpf *exec_bpf_free(struct exec_bpf *b)
{
	if (!b)
		return NULL;
	detach(b);
	if (b->outputs_fd >= 0)
		close(b->outputs_fd);
	if (b->program_fd >= 0)
		close(b->program_fd);
	free(b->watched);
	free(b);
	return NULL;
}
