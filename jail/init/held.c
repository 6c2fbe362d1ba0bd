/* SPDX-License-Identifier: MIT */
/*
 * held.c - Python, started before it is known what it runs
 *
 * Runs in:   init; held_begin(): its child up to exec
 * Holds:     the child as its tracer, until it lets it go
 * Trusts:    the kernel, the dynamic linker, and constructors of libraries that
 *            the interpreter is linked with: they are the host's, and no other
 *            code has run in the child
 * Leaves:    a process as execve() would have made it, without a tracer
 *
 * The kernel and the dynamic linker need a part of the time that a program
 * takes: they map it, ask the processor what it can do, and relocate. This work
 * does not depend on arguments, variables (but those that the linker reads,
 * which are the same) and descriptors. So a jail that is made ahead has it
 * done, and the child stops at the address where the linker hands over
 * (AT_ENTRY). There the System V ABI says where a program finds what it is
 * started with: on its stack.
 *
 * Init writes these when they are known:
 *
 *   a stack as execve() lays it out, below the old one: strings, the
 *   auxiliary vector, variables, arguments, their number. The program begins
 *   there;
 *   the old list of variables: the linker has shown it to the C library;
 *   the kernel's own idea of where the strings are (PR_SET_MM_MAP), which
 *   /proc/PID/cmdline shows. The guests' filter lets nobody but a tracer do it.
 *
 * Then the child takes its descriptors from a socket, closes that, and runs.
 * These still tell it from a program of execve(): its start time, the CPU time
 * it has used (1 ms), half a megabyte of memory that it might not have asked
 * for, the old strings above its stack, and what constructors of libraries get
 * as arguments: the name alone.
 */
#include "jail/init/init.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/prefault.h"
#include "jail/base/procstat.h"
#include "regs.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* For strings and lists, and below them for what calls point to. The kernel has
 * given the stack 128 KiB below its top. */
#define ROOM (32 * 1024)
#define SCRATCH 512
#define ALIGN 16
/* The number of its descriptor, the first that is not stdio. */
#define SOCK 3

/* ---- one that is stopped ---- */

void held_forget(struct held *h)
{
	if (h->t.pid > 0) {
		fd_drop(&h->t.mem);
		fd_drop(&h->sock);
	}
	*h = (struct held){0};
}

void held_drop(struct held *h)
{
	if (h->t.pid > 0) {
		kill(h->t.pid, SIGKILL);
		waitpid(h->t.pid, NULL, __WALL);
	}
	held_forget(h);
}

/* ---- holding ---- */

int held_begin(int sock, struct err *e)
{
	if (sock == SOCK ? fcntl(sock, F_SETFD, 0) < 0 : dup2(sock, SOCK) < 0)
		return err_errno(e, "set up a socket");
	for (int fd = 0; fd < SOCK; fd++)
		close(fd);
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0
		       ? err_errno(e, "be traced")
		       : 0;
}

/* Walk the stack as execve() has left it. */
static int read_stack(struct held *h, uintptr_t sp)
{
	uintptr_t word, name[3]; /* argc, argv[0], NULL */
	uintptr_t at = sp + sizeof(name);

	if (traced_read(&h->t, sp, name, sizeof(name)) < 0 || name[0] != 1 ||
		name[2])
		return -1;
	h->env = at;
	for (h->nenv = 0;; h->nenv++, at += sizeof(word))
		if (traced_read(&h->t, at, &word, sizeof(word)) < 0)
			return -1;
		else if (!word)
			break;
	at += sizeof(word);
	for (h->nauxv = 0; h->nauxv < 2 * HELD_AUXV_MAX; h->nauxv += 2) {
		uintptr_t *pair = h->auxv + h->nauxv;

		if (traced_read(&h->t, at, pair, 2 * sizeof(*pair)) < 0)
			return -1;
		at += 2 * sizeof(*pair);
		if (pair[0] == AT_ENTRY)
			h->t.entry = pair[1];
		if (pair[0] == AT_NULL) {
			h->nauxv += 2;
			return h->t.entry ? 0 : -1;
		}
	}
	return -1;
}

/* Where the kernel says that everything is. */
static int read_map(struct held *h, const struct regs *at, int proc_fd)
{
	struct procstat st;
	char path[32];
	long brk = traced_call(&h->t, at, SYS_brk, 0, 0, 0, 0);

	snprintf(path, sizeof(path), "%d/stat", (int)h->t.pid);
	if (brk < 0 || procstat_read(proc_fd, path, &st) < 0)
		return -1;
	h->map = (struct prctl_mm_map){.start_code = st.code,
		.end_code = st.code_end,
		.start_data = st.data,
		.end_data = st.data_end,
		.start_brk = st.brk,
		.brk = (uintptr_t)brk,
		.start_stack = st.stack,
		.arg_start = st.args,
		.arg_end = st.args_end,
		.env_start = st.env,
		.env_end = st.env_end,
		.exe_fd = (uint32_t)-1};
	return 0;
}

static uintptr_t scratch_address(const struct held *h)
{
	return h->top - ROOM;
}

static int set_map(const struct held *h, const struct regs *at,
	const struct prctl_mm_map *map)
{
	const struct prctl_mm_map m = *map;

	return traced_write(&h->t, scratch_address(h), &m, sizeof(m)) < 0 ||
			       traced_call(&h->t, at, SYS_prctl, PR_SET_MM,
				       PR_SET_MM_MAP, scratch_address(h),
				       sizeof(m)) != 0
		       ? -1
		       : 0;
}

static int stop_at_entry(struct held *h, struct regs *at)
{
	if (traced_keep_text(&h->t) < 0 ||
		traced_put_text(&h->t, REGS_STOP_TEXT, REGS_STOP_BITS) < 0 ||
		traced_run(&h->t) < 0 || regs_get(h->t.pid, at) < 0 ||
		regs_pc(at) != h->t.entry + REGS_AFTER_STOP)
		return -1;
	return traced_put_text(&h->t, REGS_CALL_TEXT, REGS_CALL_BITS);
}

struct prefault {
	const struct held *h;
	const struct regs *at;
};

static int prefault_mapping(
	unsigned long from, unsigned long to, const char *may, void *arg)
{
	const struct prefault *p = arg;

	return may[0] == 'r' && traced_call(&p->h->t, p->at, SYS_madvise, from,
					to - from,
					may[1] == 'w' ? PREFAULT_WRITE
						      : PREFAULT_READ,
					0) == -ESRCH
		       ? -1
		       : 0;
}

/*
 * Map what it would map page by page, and copy what it would copy: its program
 * and libraries, the variables of those, its stack. Where the kernel cannot
 * (before Linux 5.14), it will.
 */
static int prefault_child(struct held *h, const struct regs *at, int proc_fd)
{
	return traced_visit_maps(
		&h->t, proc_fd, prefault_mapping, &(struct prefault){h, at});
}

static int run_to_entry(struct held *h, int proc_fd, const char **why)
{
	struct regs at;
	int status;

	*why = "wait for its exec";
	if (waitpid(h->t.pid, &status, __WALL) != h->t.pid ||
		!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP ||
		ptrace(PTRACE_SETOPTIONS, h->t.pid, NULL,
			(void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP)) <
			0 ||
		regs_get(h->t.pid, &at) < 0)
		return -1;
	*why = "open its memory";
	if (traced_open(&h->t, proc_fd) < 0)
		return -1;
	*why = "read its stack";
	if (read_stack(h, regs_sp(&at)) < 0)
		return -1;
	*why = "stop it";
	if (stop_at_entry(h, &at) < 0)
		return -1;
	h->top = regs_sp(&at);
	/* Check that the kernel sets the map, while that changes nothing. */
	*why = "set its memory map";
	return read_map(h, &at, proc_fd) < 0 ||
			       prefault_child(h, &at, proc_fd) < 0 ||
			       set_map(h, &at, &h->map) < 0 ||
			       regs_set(h->t.pid, &at) < 0
		       ? -1
		       : 0;
}

int held_take(struct held *h, pid_t child, int proc_fd, int sock, struct err *e)
{
	const char *why;

	*h = (struct held){.t = {.pid = child, .mem = -1}, .sock = sock};
	if (run_to_entry(h, proc_fd, &why) == 0)
		return 0;
	err_errno(e, "hold Python: %s", why);
	held_drop(h);
	return -1;
}

/* ---- letting go ---- */

/* A stack in the making. */
struct stack {
	char bytes[ROOM]; /* what will be below h->top */
	size_t used;	  /* from the end */
	uintptr_t *env;	  /* the variables, a list in it */
	struct prctl_mm_map map;
};

static uintptr_t stack_pointer(const struct held *h, const struct stack *s)
{
	return h->top - s->used;
}

static void *stack_bytes(struct stack *s)
{
	return s->bytes + sizeof(s->bytes) - s->used;
}

/* More of it, so that it stays aligned. 0, or -1: it is full. */
static int stack_take(struct stack *s, size_t n)
{
	n += -n % ALIGN;
	if (n > sizeof(s->bytes) - SCRATCH - s->used)
		return -1;
	s->used += n;
	return 0;
}

static size_t strings_size(const char *const *v, size_t *n)
{
	size_t bytes = 0;

	for (*n = 0; v[*n]; ++*n)
		bytes += strlen(v[*n]) + 1;
	return bytes;
}

/* Put strings at `*to`, which will be at address `*at`, and where each will be
 * into a list that ends with 0. Both move on; the end of the list. */
static uintptr_t *put_strings(
	char **to, uintptr_t *at, const char *const *v, uintptr_t *list)
{
	for (; *v; v++) {
		size_t n = strlen(*v) + 1;

		memcpy(*to, *v, n);
		*list++ = *at;
		*to += n;
		*at += n;
	}
	*list++ = 0;
	return list;
}

/* As execve() has it. 0, or -1: there is no room for it. */
static int lay_out(const struct held *h, struct stack *s,
	const char *const *argv, const char *const *env)
{
	size_t argc, nenv,
		bytes = strings_size(argv, &argc) + strings_size(env, &nenv);
	size_t words = 1 + argc + 1 + nenv + 1 + h->nauxv;
	uintptr_t at, *w;
	char *text;

	s->used = 0;
	if (nenv != h->nenv || stack_take(s, bytes) < 0)
		return -1;
	at = stack_pointer(h, s);
	text = stack_bytes(s);
	if (stack_take(s, words * sizeof(*w)) < 0)
		return -1;
	w = stack_bytes(s);
	s->map = h->map;
	s->map.start_stack = stack_pointer(h, s);
	*w++ = argc;
	s->map.arg_start = at;
	s->env = put_strings(&text, &at, argv, w);
	s->map.arg_end = s->map.env_start = at;
	w = put_strings(&text, &at, env, s->env);
	s->map.env_end = at;
	memcpy(w, h->auxv, h->nauxv * sizeof(*w));
	return 0;
}

static int give_stdio(
	const struct held *h, const struct regs *at, const int stdio[3])
{
	/* In its memory, one behind the other. */
	struct {
		struct msghdr m;
		struct iovec v;
		_Alignas(struct cmsghdr) char control[CMSG_SPACE(
			3 * sizeof(int))];
		char byte;
	} in = {0};
	uintptr_t where = scratch_address(h);
	const int wanted[3] = {0, 1, 2};

	_Static_assert(sizeof(in) <= SCRATCH, "it fits");
	if (io_send_fds(h->sock, "", 1, stdio, 3, 0) < 0)
		return -1;
	in.m.msg_iov = (void *)(where + offsetof(__typeof__(in), v));
	in.m.msg_iovlen = 1;
	in.m.msg_control = (void *)(where + offsetof(__typeof__(in), control));
	in.m.msg_controllen = sizeof(in.control);
	in.v.iov_base = (void *)(where + offsetof(__typeof__(in), byte));
	in.v.iov_len = 1;
	/* Its descriptors 0 to 2 are closed: these take their places, unless a
	 * library has something open there. */
	return traced_write(&h->t, where, &in, sizeof(in)) < 0 ||
			       traced_call(&h->t, at, SYS_recvmsg, SOCK, where,
				       0, 0) != 1 ||
			       traced_read(&h->t, where, &in, sizeof(in)) < 0 ||
			       in.m.msg_flags & MSG_CTRUNC ||
			       memcmp(CMSG_DATA((struct cmsghdr *)in.control),
				       wanted, sizeof(wanted)) != 0 ||
			       traced_call(
				       &h->t, at, SYS_close, SOCK, 0, 0, 0) != 0
		       ? -1
		       : 0;
}

static int start_program(struct held *h, const char *const *argv,
	const char *const *env, const int stdio[3])
{
	static struct stack s;
	struct regs at;
	uintptr_t sp;

	if (lay_out(h, &s, argv, env) < 0 || regs_get(h->t.pid, &at) < 0)
		return -1;
	sp = stack_pointer(h, &s);
	if (traced_write(&h->t, sp, stack_bytes(&s), s.used) < 0 ||
		traced_write(&h->t, h->env, s.env, h->nenv * sizeof(*s.env)) <
			0 ||
		give_stdio(h, &at, stdio) < 0 || set_map(h, &at, &s.map) < 0 ||
		traced_put_text(&h->t, h->t.text, -1) < 0)
		return -1;
	regs_go(&at, h->t.entry, sp);
	return regs_set(h->t.pid, &at) < 0 ||
			       ptrace(PTRACE_DETACH, h->t.pid, NULL, NULL) < 0
		       ? -1
		       : 0;
}

pid_t held_release(struct held *h, const char *const *argv,
	const char *const *env, const int stdio[3])
{
	pid_t pid = h->t.pid;

	if (start_program(h, argv, env, stdio) < 0) {
		held_drop(h);
		return -1;
	}
	held_forget(h);
	return pid;
}
