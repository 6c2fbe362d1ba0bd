/* SPDX-License-Identifier: MIT */
/*
 * reload.c - a process that reads the configuration and the tokens again
 *
 * Runs in:   a child that the server forked before it was confined; reload_*()
 *            in the server
 * Holds:     what the server held at its start: it can open those files
 * Trusts:    the files as far as config_load() and tokens_read() do. From the
 *            server, which may have been taken over, it takes only the request
 * Leaves:    nothing: it ends with its own socket
 *
 * The child makes its answer in memory of its own, copies it into memory that
 * both share, and writes a byte to the socket. It never reads the shared
 * memory: a server that was taken over may write there.
 */
#include "repl/serve/reload/reload.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/sys.h"
#include "repl/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Keys that change while the server runs. For some, everything was sized at the
 * start: they change up to the number that they had then. */
static const struct {
	const char *name;
	bool bounded;
} changing[] = {
	{"serve.concurrent", true},
	{"serve.queue", true},
	{"serve.spare", true},
	{"serve.sessions", true},
	{"serve.per_client", false},
	{"serve.sessions_per_client", false},
	{"serve.storage", false},
	{"serve.keep", false},
	{"serve.answers", false},
	{"serve.answers_size", false},
	{"serve.answers_keep", false},
	{"serve.away", false},
	{"serve.drain", false},
	{"serve.log", false},
};

struct reload {
	int sock;
	pid_t pid;
	bool busy;		      /* an answer is due */
	struct reload_answer *answer; /* shared; only the child writes it */
};

/* ---- the child ---- */

struct reader {
	int sock;
	struct reload_source source;
	struct reload_answer *answer, *shared;
	const struct config *start; /* the configuration at the start */
	struct config now;	    /* and as the server has it now */
	char path[PATH_MAX];	    /* of the tokens; "": it asks for none */
};

static void say(struct reader *r, const char *line)
{
	struct reload_answer *a = r->answer;
	size_t n = strlen(a->words);

	if (*line)
		snprintf(a->words + n, sizeof(a->words) - n, "%s\n", line);
}

static int load(struct reader *r, struct config *fresh)
{
	struct config_errors errors = {0};
	int result = r->source.load(r->source.arg, fresh, &errors);

	for (size_t i = 0; i < errors.list.n; i++)
		say(r, errors.list.items[i]);
	config_errors_fini(&errors);
	return result;
}

static bool is_same_value(const struct config *a, const struct config *b,
	const struct config_key *k)
{
	struct strbuf x = {0}, y = {0};
	bool same;

	config_value_write(a, k, &x);
	config_value_write(b, k, &y);
	same = x.n == y.n && !memcmp(strbuf_text(&x), strbuf_text(&y), x.n);
	strbuf_free(&x);
	strbuf_free(&y);
	return same;
}

/* Say that a key has another value, which we do not take. */
static void say_kept(struct reader *r, const struct config *fresh,
	const struct config_key *k, const char *why)
{
	char name[64], line[PATH_MAX + 256];

	snprintf(name, sizeof(name), "%s.%s", k->section, k->name);
	snprintf(line, sizeof(line), "%s (%s): %s", name,
		config_source(fresh, name), why);
	say(r, line);
}

static bool may_change(const struct reader *r, const struct config *fresh,
	const struct config_key *k, const char **why)
{
	*why = "it changes when the server starts again";
	for (size_t i = 0; i < COUNT(changing); i++) {
		if (config_keys_find_full(changing[i].name) != k)
			continue;
		*why = "it grows beyond what it was when the server started "
		       "only when that starts again";
		return !changing[i].bounded ||
		       config_value_number(fresh, k) <=
			       config_value_number(r->start, k);
	}
	return false;
}

/* Take the keys that may change, and say which others did. */
static void take_keys(struct reader *r, const struct config *fresh)
{
	const struct config_key *file =
		config_keys_find_full("serve.token_file");
	const char *why;

	for (size_t i = 0; i < CONFIG_NKEYS; i++) {
		const struct config_key *k = &config_keys[i];

		if (k == file || is_same_value(&r->now, fresh, k))
			continue;
		if (may_change(r, fresh, k, &why))
			config_value_copy(&r->now, fresh, k);
		else
			say_kept(r, fresh, k, why);
	}
	if (!fresh->serve.token_file != !r->path[0])
		say_kept(r, fresh, file,
			"whether clients need a token is decided when the "
			"server starts");
	else if (r->path[0])
		snprintf(r->path, sizeof(r->path), "%s",
			fresh->serve.token_file);
}

/* Read the tokens, and see whether they are in order. */
static int read_tokens(struct reader *r, const char *path, struct err *e)
{
	struct reload_answer *a = r->answer;
	struct tokens tokens;
	char *text;

	if (tokens_read(path, &text, &a->ntokens, e) < 0)
		return -1;
	memcpy(a->tokens, text, a->ntokens);
	if (tokens_parse(&tokens, text, a->ntokens, e) < 0)
		return -1;
	tokens_free(&tokens);
	return 0;
}

/* Read everything again. On a mistake the server keeps all that it has. */
static void read_again(struct reader *r)
{
	struct reload_answer *a = r->answer;
	struct config fresh = {0};
	const char *path = r->path;
	struct err e = {0};

	a->words[0] = '\0';
	a->ntokens = 0;
	a->failed = load(r, &fresh) < 0;
	if (!a->failed && *path && fresh.serve.token_file)
		path = fresh.serve.token_file;
	if (!a->failed && *path && read_tokens(r, path, &e) < 0) {
		say(r, e.msg);
		say(r, e.hint);
		a->failed = true;
	}
	if (!a->failed)
		take_keys(r, &fresh);
	a->serve = r->now.serve;
	config_fini(&fresh);
}

/* Keep nothing of the server's but the one socket, and leave its session: no
 * key of the terminal ends us before the server. */
static int detach(int sock, int servers)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			return -1;
	close(servers);
	/* The filter of a container may forbid it. Then sockets that a service
	 * manager passed stay open here, too. */
	(void)sys_close_range(3, (unsigned)sock - 1, 0);
	(void)sys_close_range((unsigned)sock + 1, ~0U, 0);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "cellblock-conf");
	return prctl(PR_SET_DUMPABLE, 0);
}

static _Noreturn void serve_reader(struct reader *r, int servers)
{
	char asks;

	r->answer = calloc(1, sizeof(*r->answer));
	if (!r->answer || detach(r->sock, servers) < 0)
		_exit(1);
	while (io_read_full(r->sock, &asks, 1) == 1) {
		read_again(r);
		memcpy(r->shared, r->answer, sizeof(*r->answer));
		if (io_write_full(r->sock, "", 1) < 0)
			break;
	}
	_exit(0);
}

/* ---- the server ---- */

int reload_open(struct reload **out, const struct config *cfg,
	const struct reload_source *source, struct err *e)
{
	struct reload *r = calloc(1, sizeof(*r));
	struct reader reader = {.source = *source, .start = cfg, .now = *cfg};
	int pair[2];

	if (!r)
		return err_errno(e, "serve");
	r->answer = mmap(NULL, sizeof(*r->answer), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r->answer == MAP_FAILED ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, "start the reader of the configuration");
	if (cfg->serve.token_file)
		snprintf(reader.path, sizeof(reader.path), "%s",
			cfg->serve.token_file);
	reader.shared = r->answer;
	reader.sock = pair[1];
	r->sock = pair[0];
	r->pid = fork();
	if (r->pid == 0)
		serve_reader(&reader, r->sock);
	close(pair[1]);
	*out = r;
	return r->pid < 0
		       ? err_errno(e, "start the reader of the configuration")
		       : 0;
}

void reload_close(struct reload *r)
{
	if (!r)
		return;
	fd_drop(&r->sock);
	while (r->pid > 0 && waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	munmap(r->answer, sizeof(*r->answer));
	free(r);
}

int reload_fd(const struct reload *r)
{
	return r->busy ? r->sock : -1;
}

bool reload_is_busy(const struct reload *r)
{
	return r->busy;
}

void reload_ask(struct reload *r)
{
	r->busy = true;
	/* If the process is gone, reload_take() finds that out. */
	(void)!send(r->sock, "", 1, MSG_NOSIGNAL);
}

int reload_take(struct reload *r, const struct reload_answer **out)
{
	char done;
	ssize_t n = recv(r->sock, &done, 1, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return 0;
	r->busy = false;
	if (n <= 0) {
		fd_drop(&r->sock);
		return -1;
	}
	*out = r->answer;
	return 1;
}
