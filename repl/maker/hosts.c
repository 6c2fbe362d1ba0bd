/* SPDX-License-Identifier: MIT */
/*
 * hosts.c - several hosts tell each other of people's sessions
 *
 * Runs in:   root: the service; the herald, a child of it that writes down
 *            which sessions there are, and the host; another child, which
 *            answers clients. And a front end, which asks
 * Trusts:    the system's configuration, and the directory maker.hosts, which
 *            root alone of all hosts can change
 * Leaves:    in the directory, of each host:
 *
 *	HOST/.host	how a person comes there, and whether it drains, as
 *			JSON; the file's time is when it was heard of
 *	HOST/ID.PERSON	a session, by its host id: empty; the file's time is
 *			when it began
 *
 * A session has its host id locked (jail/walls/ident.c). The herald removes the
 * files whose ids nobody has locked: of sessions that have ended, or that were
 * there before the host began anew. It alone writes: a session does not wait
 *for the file system of another host.
 */
#include "repl/maker/maker.h"

#include "jail/base/array.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "repl/attach/attach.h"
#include "repl/config/config.h"
#include "repl/lab/lab.h"
#include "repl/text/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define HOST ".host"
#define HOST_MAX 4096
/* How often the herald writes. */
#define BEAT_MS 5000
/* How long an answer may take: a login waits for it, and then goes on without.
 */
#define ANSWER_S 3
/* The directory of people's sockets; and how long a process waits for another
 * that makes one there. */
#define SOCKETS_DIR SERVICE_DIR "/s"
#define LOCK_MS 1000
/* Most sessions that an answer has. */
#define SESSIONS_MOST 10000

/* A host, as it says of itself. */
struct hosts_state {
	char name[64];
	char reach[128];
	char boot[64]; /* another one each time that it starts */
	bool drains;
	int64_t silent_s;
};

/* ---- our own directory ---- */

/* The name of this host, without its domain. 0, or -1 with e. */
static int find_name(char name[static 64], struct err *e)
{
	char full[256] = "";

	gethostname(full, sizeof(full) - 1);
	full[strcspn(full, ".")] = '\0';
	if (!path_is_name(full) || strlen(full) > 63)
		return err_set(e, "maker.hosts: this host has no name");
	memcpy(name, full, strlen(full) + 1);
	return 0;
}

/* Open our directory, and make it. The one that maker.hosts names must be
 * there: where a file system is not mounted, nothing is written. */
static int open_own(const char *hosts, struct err *e)
{
	char name[64], path[PATH_MAX];
	int fd;

	if (find_name(name, e) < 0)
		return -1;
	snprintf(path, sizeof(path), "%.4000s/%s", hosts, name);
	fd = place_walk(path, path + strlen(hosts), e);
	return fd < 0 ? err_wrap(e, "maker.hosts") : fd;
}

/* Read the host's file about itself, which is called `name`: 0, or -1. */
static int read_state(int dir, const char *name, struct hosts_state *h)
{
	auto_free char *text = NULL;
	const char *reach = NULL, *boot = "";
	struct stat st;
	json_t *o;
	size_t n;
	int drains = 0, r;

	if (fstatat(dir, HOST, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		io_read_file(dir, HOST, HOST_MAX, &text, &n) < 0)
		return -1;
	*h = (struct hosts_state){.silent_s = time(NULL) - st.st_mtime};
	if (h->silent_s < 0)
		h->silent_s = 0;
	o = json_loadb(text, n, 0, NULL);
	r = o ? json_unpack(o, "{s?s, s?b, s?s}", "reach", &reach, "drain",
			&drains, "boot", &boot)
	      : -1;
	h->drains = drains;
	snprintf(h->boot, sizeof(h->boot), "%s", boot);
	text_safe(h->name, sizeof(h->name), name, strlen(name));
	if (reach)
		text_safe(h->reach, sizeof(h->reach), reach, strlen(reach));
	else
		snprintf(h->reach, sizeof(h->reach), "ssh %s", h->name);
	json_decref(o);
	return r;
}

static bool is_heard(const struct hosts_state *h)
{
	const struct elsewhere as = {.silent_s = h->silent_s};

	return elsewhere_is_heard(&as);
}

/* ---- what begins ---- */

/* To the herald. */
struct hosts_begun {
	uid_t id;
	char person[NAME_MAX + 1];
};

/* From the service to the herald. */
static int pipe_to_herald[2] = {-1, -1};

void hosts_note(uid_t id, const char *person)
{
	struct hosts_begun begun = {.id = id};

	if (pipe_to_herald[1] < 0)
		return;
	snprintf(begun.person, sizeof(begun.person), "%s", person);
	/* A pipe takes so little whole, or not at all. */
	if (write(pipe_to_herald[1], &begun, sizeof(begun)) < 0)
		syslog(LOG_ERR, "maker.hosts: tell the other hosts of %s: %m",
			person);
}

/* The host id and the person of a file's name: 1, or 0: it is no session's. */
static int split(const char *name, uid_t *id, const char **person)
{
	char *end;
	unsigned long n = strtoul(name, &end, 10);

	if (name[0] < '1' || name[0] > '9' || *end != '.' || !end[1] ||
		n >= UINT32_MAX)
		return 0;
	*id = (uid_t)n;
	*person = end + 1;
	return 1;
}

/* Remove the files of sessions that had this host id before: while it is locked
 * again, sweep() would take them for that session. */
static void remove_earlier(int dir, uid_t id)
{
	DIR *d = io_list(dir);
	const struct dirent *entry;
	const char *person;
	uid_t has;

	while (d && (entry = readdir(d)))
		if (split(entry->d_name, &has, &person) && has == id)
			unlinkat(dir, entry->d_name, 0);
	if (d)
		closedir(d);
}

static int write_begun(int dir, const struct hosts_begun *begun, struct err *e)
{
	char name[NAME_MAX + 16];
	auto_close int fd = -1;

	remove_earlier(dir, begun->id);
	snprintf(name, sizeof(name), "%u.%s", begun->id, begun->person);
	if (!path_is_name(name))
		return 0;
	fd = openat(dir, name,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? err_errno(e, "maker.hosts: write %s", name) : 0;
}

/* ---- the herald ---- */

/* Read the kernel's id of this start of the host. */
static void read_boot(char boot[static 64])
{
	auto_free char *text = NULL;
	size_t n;

	boot[0] = '\0';
	if (io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 63, &text,
		    &n) == 0)
		snprintf(boot, 64, "%.*s", (int)strcspn(text, "\n"), text);
}

/* Check that no other host has our name: each would remove what the other has
 * written. 0, or -1 with e. */
static int check_name(int dir, struct err *e)
{
	struct hosts_state before;
	char name[64], boot[64];

	read_boot(boot);
	if (find_name(name, e) < 0)
		return -1;
	if (read_state(dir, name, &before) < 0 || !strcmp(before.boot, boot) ||
		!is_heard(&before))
		return 0;
	return err_set(e,
		"maker.hosts: another host writes there as %s, too; or this "
		"one has just been started anew",
		name);
}

static int write_state(int dir, const struct config *cfg)
{
	char boot[64];
	json_t *o;
	auto_free char *text = NULL;
	struct io_newfile f;
	int r = -1;

	read_boot(boot);
	o = json_pack("{s:s?, s:b, s:s}", "reach", cfg->reach, "drain",
		cfg->drain, "boot", boot);
	text = o ? json_dumps(o, JSON_ENSURE_ASCII) : NULL;
	json_decref(o);
	if (!text || io_newfile_create(&f, dir, 0600) < 0)
		return -1;
	if (io_write_full(f.fd, text, strlen(text)) == 0)
		r = io_newfile_commit(&f, HOST, true);
	io_newfile_abort(&f);
	return r;
}

bool hosts_is_held(int locks, uid_t id)
{
	struct flock l = {.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = id,
		.l_len = 1};

	return locks >= 0 && fcntl(locks, F_OFD_GETLK, &l) == 0 &&
	       l.l_type != F_UNLCK;
}

/* True if this is the rest of a state that was not written whole. */
static bool is_rest(const char *name)
{
	return name[0] == '.' && !path_is_dots(name) && strcmp(name, HOST) != 0;
}

/* Remove the files of sessions that are over. */
static void sweep(int dir)
{
	auto_close int locks =
		open(HOSTS_LOCKS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = locks < 0 && errno != ENOENT ? NULL : io_list(dir);
	const struct dirent *entry;
	const char *person;
	uid_t id;

	while (d && (entry = readdir(d)))
		if (is_rest(entry->d_name) ||
			(split(entry->d_name, &id, &person) &&
				!hosts_is_held(locks, id)))
			unlinkat(dir, entry->d_name, 0);
	if (d)
		closedir(d);
}

static int load(struct config *cfg, struct err *e)
{
	const struct config_where where = {
		.system_dir = CONFIG_SYSTEM_DIR, .login = true};
	struct config_errors errors = {0};
	int r = config_load(cfg, &where, &errors);

	config_errors_fini(&errors);
	return r < 0 ? err_set(e, "maker.hosts: the configuration is not in "
				  "order")
		     : 0;
}

/* Write down all that has begun; without a directory forget it. */
static int take_begun(int dir, struct err *e)
{
	struct hosts_begun begun;
	int r = 0;

	while (read(pipe_to_herald[0], &begun, sizeof(begun)) ==
		(ssize_t)sizeof(begun))
		r |= dir < 0 ? 0 : write_begun(dir, &begun, e);
	return r;
}

/* Write the sessions that have begun, and with `all`, also those that go on. */
static int beat(bool all, struct err *e)
{
	auto_close int dir = -1;
	struct config cfg = {0};
	int r = load(&cfg, e);

	if (r == 0 && cfg.hosts) {
		dir = open_own(cfg.hosts, e);
		r = dir < 0 ? -1 : check_name(dir, e);
	}
	if (r == 0)
		r = take_begun(dir, e);
	if (r == 0 && dir >= 0 && all) {
		sweep(dir);
		r = write_state(dir, &cfg) < 0
			    ? err_errno(
				      e, "maker.hosts: write to %s", cfg.hosts)
			    : 0;
	}
	config_fini(&cfg);
	return r < 0 ? -1 : 0;
}

static _Noreturn void herald(void)
{
	struct pollfd p = {.fd = pipe_to_herald[0], .events = POLLIN};
	int64_t next_ms = now_ms();
	bool failed = false;

	for (;;) {
		struct err e = {0};
		int64_t left_ms = next_ms - now_ms();
		bool fails = beat(left_ms <= 0, &e) < 0;

		if (fails && !failed)
			syslog(LOG_ERR, "%s", e.msg);
		failed = fails;
		if (left_ms <= 0)
			next_ms = now_ms() + (left_ms = BEAT_MS);
		/* A note that could not be written waits. */
		poll(&p, fails ? 0 : 1, (int)left_ms);
	}
}

void hosts_start(void)
{
	pid_t maker = getpid();
	sigset_t none;

	if (pipe2(pipe_to_herald, O_CLOEXEC | O_NONBLOCK) < 0 || fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_NAME, "cellblock-hosts", 0, 0, 0);
	if (getppid() != maker)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	herald();
}

/* ---- the other hosts ---- */

/* Call `take` with each other host and its directory, until that returns other
 * than 0. 0, what it returned, or -1 with e. */
static int each_other(const char *hosts,
	int (*take)(void *arg, const struct hosts_state *h, int dir), void *arg,
	struct err *e)
{
	auto_close int top = place_walk(hosts, NULL, e);
	DIR *d = top < 0 ? NULL : io_list(top);
	const struct dirent *entry;
	char own[64];
	int r = d ? find_name(own, e) : -1;

	if (top >= 0 && !d)
		err_errno(e, "read %s", hosts);
	while (r == 0 && (entry = readdir(d))) {
		auto_close int dir = -1;
		struct hosts_state h;

		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, own))
			continue;
		dir = openat(top, entry->d_name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dir >= 0 && read_state(dir, entry->d_name, &h) == 0)
			r = take(arg, &h, dir);
	}
	if (d)
		closedir(d);
	return r;
}

/* ---- clients ---- */

bool hosts_is_asked(const struct hosts_ask *ask, size_t n)
{
	return n == sizeof(*ask) && ask->version == HOSTS_VERSION;
}

/* The person whose sessions are wanted, and the sessions found. */
struct hosts_search {
	const char *person; /* NULL: everybody's */
	struct elsewhere *v;
	size_t n;
};

static int add_session(struct hosts_search *s, const struct hosts_state *h,
	int dir, const char *file)
{
	struct elsewhere *v;
	const char *person;
	struct stat st;
	uid_t id;

	if (!split(file, &id, &person) ||
		(s->person && strcmp(s->person, person) != 0) ||
		fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (array_grow(&s->v, s->n, sizeof(*s->v)) < 0)
		return -1;
	v = &s->v[s->n++];
	memset(v, 0, sizeof(*v));
	memcpy(v->host, h->name, sizeof(v->host));
	memcpy(v->reach, h->reach, sizeof(v->reach));
	text_safe(v->user, sizeof(v->user), person, strlen(person));
	v->began = st.st_mtime;
	v->silent_s = h->silent_s;
	v->own = s->person != NULL;
	return 0;
}

static int add_host(void *search, const struct hosts_state *h, int dir)
{
	struct hosts_search *s = search;
	DIR *d = io_list(dir);
	const struct dirent *entry;
	int r = 0;

	while (d && r == 0 && s->n < SESSIONS_MOST && (entry = readdir(d)))
		r = add_session(s, h, dir, entry->d_name);
	if (d)
		closedir(d);
	return r;
}

static bool is_empty(int dir)
{
	DIR *d = io_list(dir);
	const struct dirent *entry;
	bool any = !d;

	while (d && !any && (entry = readdir(d)))
		any = !path_is_dots(entry->d_name);
	if (d)
		closedir(d);
	return !any;
}

/* A file system of the person's own, who could fill that of /run otherwise. It
 * must be empty: another would hide sockets. Where it cannot be mounted, as in
 * some containers, the directory alone is there. */
static int mount_own(int dir, const char *path, uid_t uid)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	auto_close int here =
		open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat ours, above;
	char options[96];

	if (here < 0 || fstat(here, &ours) < 0 || fstat(dir, &above) < 0)
		return -1;
	if (ours.st_dev != above.st_dev || !is_empty(here))
		return 0;
	snprintf(options, sizeof(options),
		"mode=0700,uid=%u,gid=0,size=64k,nr_inodes=%d", (unsigned)uid,
		RUNDIR_IDS + 100);
	if (mount("cellblock", path, "tmpfs", flags, options) == 0)
		return 0;
	return fchown(here, uid, (gid_t)-1);
}

/* Homes may be shared by the hosts, and sockets are of one: a person's lie in a
 * directory of this host. */
static void make_socket_dir(uid_t uid)
{
	auto_close int dir = -1;
	char path[64];

	snprintf(path, sizeof(path), SOCKETS_DIR "/%u", (unsigned)uid);
	if ((mkdir(SOCKETS_DIR, 0711) == 0 || errno == EEXIST) &&
		chmod(SOCKETS_DIR, 0711) == 0)
		dir = open(SOCKETS_DIR,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Two logins at once mount one. Only root can open it to lock it. */
	if (dir < 0 || io_lock(dir, LOCK_MS) < 0 ||
		(mkdir(path, 0700) < 0 && errno != EEXIST) ||
		mount_own(dir, path, uid) < 0)
		syslog(LOG_ERR, "make %s: %m", path);
}

void hosts_answer(
	int conn, const struct config *cfg, uid_t uid, const char *person)
{
	struct hosts_search s = {.person = uid ? person : NULL};
	auto_close int fd = -1;
	struct err e = {0};
	int r;

	alarm(ANSWER_S);
	r = cfg->hosts ? each_other(cfg->hosts, add_host, &s, &e)
		       : err_set(&e, "maker.hosts names no directory");

	if (cfg->hosts)
		make_socket_dir(uid);
	if (r == 0)
		fd = io_sealed_memfd(
			"cellblock-hosts", s.v, s.n * sizeof(*s.v));
	if (r < 0 || fd < 0)
		jail_refuse(conn, &e);
	else
		jail_hand_over(conn, fd);
	free(s.v);
}

static int take_open(void *found, const struct hosts_state *h, int dir)
{
	(void)dir;
	if (h->drains || !is_heard(h))
		return 0;
	*(struct hosts_state *)found = *h;
	return 1;
}

int hosts_check(const struct config *cfg, struct err *e)
{
	struct hosts_state other;
	char own[64] = "";

	if (!cfg->drain)
		return 0;
	if (find_name(own, NULL) < 0)
		snprintf(own, sizeof(own), "this host");
	err_set(e, "%s takes no new sessions now", own);
	if (cfg->hosts && each_other(cfg->hosts, take_open, &other, NULL) > 0)
		err_hint(e, "log in on another host: %s", other.reach);
	else
		err_hint(e, "log in again, on another host");
	return err_kind_set(e, ERR_BUSY);
}

/* ---- a front end asks ---- */

int hosts_find(struct elsewhere **v, size_t *n, struct err *e)
{
	const struct hosts_ask ask = {.version = HOSTS_VERSION};
	auto_close int fd = fetch_socket(&ask, sizeof(ask), e);
	off_t bytes = fd < 0 ? -1 : io_sealed_size(fd);

	*v = NULL;
	*n = 0;
	if (fd < 0)
		return -1;
	if (bytes < 0 || bytes % (off_t)sizeof(**v) ||
		bytes > (off_t)(SESSIONS_MOST * sizeof(**v)))
		return err_set(e, "the maker's answer is malformed");
	if (!bytes)
		return 0;
	*v = malloc((size_t)bytes);
	if (!*v || pread(fd, *v, (size_t)bytes, 0) != bytes) {
		free(*v);
		*v = NULL;
		return err_errno(e, "read the maker's answer");
	}
	*n = (size_t)bytes / sizeof(**v);
	return 0;
}
