/* SPDX-License-Identifier: MIT */
/*
 * test_systemd.c - systemd is not there, hangs, refuses, lies, sends rubbish or
 * too much, or answers; tests/systemd asks a real one
 */
#include "jail/base/io.h"
#include "jail/base/systemd.h"

#include "own_ns.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* How long a peer that never answers is waited for. */
#define SHORT_MS 300
#define LONG_MS 20000

/* ---- peers ---- */

struct service {
	char runtime[64], at[104];
	int listening;
	pid_t pid;
};

static void open_service(struct service *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char dir[80];

	*s = (struct service){.runtime = "/tmp/cbtest-systemd-XXXXXX"};
	assert_non_null(mkdtemp(s->runtime));
	snprintf(dir, sizeof(dir), "%s/systemd", s->runtime);
	assert_int_equal(mkdir(dir, 0700), 0);
	snprintf(s->at, sizeof(s->at), "%s/private", dir);
	strcpy(a.sun_path, s->at);
	s->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(
		bind(s->listening, (struct sockaddr *)&a, sizeof(a)), 0);
}

static void close_service(struct service *s)
{
	char dir[80];

	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	close(s->listening);
	unlink(s->at);
	snprintf(dir, sizeof(dir), "%s/systemd", s->runtime);
	rmdir(dir);
	rmdir(s->runtime);
}

static int setup(void **state)
{
	static struct service s;

	open_service(&s);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	close_service(*state);
	return 0;
}

/* Answer a caller, in a child. */
static void serve(struct service *s, void (*answer)(int fd, const void *how),
	const void *how)
{
	assert_int_equal(listen(s->listening, 1), 0);
	s->pid = fork();
	if (s->pid == 0) {
		forked_signals();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		answer(accept(s->listening, NULL, NULL), how);
		_exit(0);
	}
	assert_true(s->pid > 0);
}

/* Bytes, and then silence. */
struct bytes {
	const char *text;
	size_t n;
};

static void say_bytes(int fd, const void *how)
{
	const struct bytes *b = how;
	char heard[4096];

	if (read(fd, heard, sizeof(heard)) <= 0)
		_exit(1);
	io_write_full(fd, b->text, b->n);
	for (;;)
		pause();
}

/* A greeting that always has one more byte. */
static void drip(int fd, const void *how)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	while (io_write_full(fd, how, 1) == 0)
		nanosleep(&pause, NULL);
}

/* ---- peers that speak D-Bus, as the library does ---- */

struct bus;
struct message;
union id {
	uint8_t bytes[16];
	uint64_t words[2];
};
static struct {
	int (*new)(struct bus **);
	int (*set_fd)(struct bus *, int in, int out);
	int (*set_server)(struct bus *, int on, union id);
	int (*start)(struct bus *);
	int (*process)(struct bus *, struct message **);
	int (*wait)(struct bus *, uint64_t us);
	int (*flush)(struct bus *);
	int (*get_fd)(struct bus *);
	int (*is_call)(struct message *, const char *, const char *);
	int (*read)(struct message *, const char *types, ...);
	int (*answer)(struct message *, const char *types, ...);
	int (*refuse)(struct message *, const char *name, const char *, ...);
	int (*signal)(struct bus *, const char *path, const char *interface,
		const char *member, const char *types, ...);
} sd;

static void load_library(void)
{
	void *so = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);

	if (!so)
		_exit(1);
	sd.new = dlsym(so, "sd_bus_new");
	sd.set_fd = dlsym(so, "sd_bus_set_fd");
	sd.set_server = dlsym(so, "sd_bus_set_server");
	sd.start = dlsym(so, "sd_bus_start");
	sd.process = dlsym(so, "sd_bus_process");
	sd.wait = dlsym(so, "sd_bus_wait");
	sd.flush = dlsym(so, "sd_bus_flush");
	sd.get_fd = dlsym(so, "sd_bus_get_fd");
	sd.is_call = dlsym(so, "sd_bus_message_is_method_call");
	sd.read = dlsym(so, "sd_bus_message_read");
	sd.answer = dlsym(so, "sd_bus_reply_method_return");
	sd.refuse = dlsym(so, "sd_bus_reply_method_errorf");
	sd.signal = dlsym(so, "sd_bus_emit_signal");
}

static void need_library(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(!dlopen("libsystemd.so.0", RTLD_NOW));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		SKIP("there is no libsystemd");
}

struct speaker {
	void (*hear)(struct bus *, struct message *, const void *how);
	const void *how;
};

static void speak(int fd, const void *how)
{
	const struct speaker *s = how;
	struct message *m;
	struct bus *bus;
	int r;

	load_library();
	r = sd.new(&bus);
	if (r >= 0)
		r = sd.set_fd(bus, fd, fd);
	if (r >= 0)
		r = sd.set_server(bus, 1, (union id){.bytes = {1}});
	if (r >= 0)
		r = sd.start(bus);
	while (r >= 0) {
		m = NULL;
		r = sd.process(bus, &m);
		if (m)
			s->hear(bus, m, s->how);
		if (r == 0)
			r = sd.wait(bus, UINT64_MAX);
	}
}

#define SYSTEMD "org.freedesktop.systemd1.Manager"

static void refuse(struct bus *bus, struct message *m, const void *how)
{
	(void)bus;
	if (sd.is_call(m, SYSTEMD, "StartTransientUnit") > 0)
		sd.refuse(m, "org.freedesktop.DBus.Error.AccessDenied", "%s",
			(const char *)how);
}

static void say_removed(struct bus *bus, const char *unit)
{
	sd.signal(bus, "/org/freedesktop/systemd1", SYSTEMD, "JobRemoved",
		"uoss", 7, "/a/job", unit, "done");
	sd.flush(bus);
}

/* It says that it did what it was asked for. */
static void lie(struct bus *bus, struct message *m, const void *how)
{
	const char *unit, *mode;

	(void)how;
	if (sd.is_call(m, SYSTEMD, "StartTransientUnit") <= 0)
		return;
	sd.read(m, "ss", &unit, &mode);
	sd.answer(m, "o", "/a/job");
	say_removed(bus, "another.scope");
	say_removed(bus, unit);
}

static void flood(struct bus *bus, struct message *m, const void *how)
{
	(void)how;
	sd.answer(m, "o", "/a/job");
	for (;;)
		say_removed(bus, "another.scope");
}

/* Let in, and asked something: whatever these bytes are. */
static void say_raw(struct bus *bus, struct message *m, const void *how)
{
	const struct bytes *b = how;

	(void)m;
	io_write_full(sd.get_fd(bus), b->text, b->n);
	for (;;)
		pause();
}

static void hang_up(struct bus *bus, struct message *m, const void *how)
{
	(void)bus;
	(void)m;
	(void)how;
	_exit(0);
}

/* The configuration of a login manager. */
struct configured {
	int kills;
	const char *only[2], *but[2];
};

static void answer_names(struct message *m, const char *const names[2])
{
	int n = !!names[0] + !!names[1];

	if (n == 0)
		sd.answer(m, "v", "as", 0);
	else if (n == 1)
		sd.answer(m, "v", "as", 1, names[0]);
	else
		sd.answer(m, "v", "as", 2, names[0], names[1]);
}

static void tell_properties(struct bus *bus, struct message *m, const void *how)
{
	const struct configured *c = how;
	const char *interface, *name;

	(void)bus;
	if (sd.is_call(m, "org.freedesktop.DBus", "Hello") > 0)
		sd.answer(m, "s", ":1.7");
	if (sd.is_call(m, "org.freedesktop.DBus.Properties", "Get") <= 0)
		return;
	sd.read(m, "ss", &interface, &name);
	if (!strcmp(name, "KillUserProcesses"))
		sd.answer(m, "v", "b", c->kills);
	else
		answer_names(
			m, strcmp(name, "KillOnlyUsers") ? c->but : c->only);
}

/* A property is not of the type that it should be. */
static void tell_nonsense(struct bus *bus, struct message *m, const void *how)
{
	(void)bus;
	(void)how;
	if (sd.is_call(m, "org.freedesktop.DBus", "Hello") > 0)
		sd.answer(m, "s", ":1.7");
	else
		sd.answer(m, "v", "s", "yes");
}

/* ---- asking ---- */

static int enter(const struct service *s, int ms, struct err *e)
{
	return systemd_enter_scope(
		s->runtime, getpid(), true, now_ms() + ms, e);
}

static int login(const struct service *s, int ms, struct err *e)
{
	return systemd_kills_at_logout(s->at, "ann", now_ms() + ms, e);
}

static void is_because(const struct err *e, const char *why)
{
	if (why ? !strcasestr(e->msg, why) : !!strstr(e->msg, "timed out"))
		fail_msg("not because of \"%s\": %s", why, e->msg);
}

/* Both questions come to nothing, for this reason; NULL: for any but time. */
static void both_fail(struct service *s, void (*answer)(int, const void *),
	const void *how, int ms, const char *why)
{
	struct err e = {0};

	need_library();
	serve(s, answer, how);
	assert_int_equal(enter(s, ms, &e), -1);
	is_because(&e, why);
	close_service(s);
	open_service(s);
	serve(s, answer, how);
	assert_int_equal(login(s, ms, &e), -1);
	is_because(&e, why);
}

static void enter_fails(struct service *s,
	void (*hear)(struct bus *, struct message *, const void *),
	const char *how, const char *why)
{
	struct err e = {0};

	need_library();
	serve(s, speak, &(struct speaker){hear, how});
	assert_int_equal(enter(s, LONG_MS, &e), -1);
	assert_string_equal(e.msg, why);
}

#define BYTES(text) (&(struct bytes){text, sizeof(text) - 1})
#define SAYS(text) (&(struct speaker){say_raw, BYTES(text)})

static void without_a_manager_there_is_nothing_to_say(void **state)
{
	struct service *s = *state, none = {.runtime = "/tmp/cbtest-none",
					    .at = "/tmp/cbtest-none/bus"};
	struct err e = {0};

	assert_int_equal(enter(&none, LONG_MS, &e), 1);
	/* No process listens on its socket any more. */
	need_library();
	assert_int_equal(enter(s, LONG_MS, &e), 1);
	assert_string_equal(e.msg, "");
	assert_int_equal(login(&none, LONG_MS, &e), -1);
	assert_int_equal(login(s, LONG_MS, &e), -1);
}

static void no_variable_names_another_bus(void **state)
{
	static const char *const names[] = {
		"DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"};
	struct service *s = *state, other;
	struct err e = {0};
	char address[128];

	need_library();
	open_service(&other);
	assert_int_equal(listen(other.listening, 8), 0);
	io_set_nonblock(other.listening, 1);
	snprintf(address, sizeof(address), "unix:path=%s", other.at);
	for (size_t i = 0; i < 2; i++)
		setenv(names[i], address, 1);
	assert_int_equal(enter(s, LONG_MS, &e), 1);
	assert_int_equal(login(s, LONG_MS, &e), -1);
	assert_int_equal(accept(other.listening, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	/* The control: this is what a connection there looks like. */
	assert_int_equal(enter(&other, SHORT_MS, &e), -1);
	assert_true(accept(other.listening, NULL, NULL) >= 0);
	for (size_t i = 0; i < 2; i++)
		unsetenv(names[i]);
	close_service(&other);
}

static int is_in_maps(const char *name)
{
	auto_free char *maps = NULL;
	size_t n;

	assert_int_equal(
		io_read_file(AT_FDCWD, "/proc/self/maps", 1 << 20, &maps, &n),
		0);
	return !!strstr(maps, name);
}

static void nothing_stays_in_the_process_that_asks(void **state)
{
	struct service *s = *state;
	int before = dup(0), after;

	close(before);
	assert_true(is_in_maps("libc.so"));
	both_fail(s, say_bytes, BYTES(""), SHORT_MS, "timed out");
	assert_false(is_in_maps("libsystemd"));
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	s->pid = 0;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	after = dup(0);
	close(after);
	assert_int_equal(after, before);
}

/* Where the C library is, the host has its other libraries too. */
static int ask_without_library(void *runtime)
{
	struct link_map *map = NULL;
	struct err e = {0};
	char dir[512];

	own_ns_enter(0);
	CHILD_CHECK(dlinfo(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD),
			    RTLD_DI_LINKMAP, &map) == 0,
		"%s", dlerror());
	snprintf(dir, sizeof(dir), "%s", map->l_name);
	*strrchr(dir, '/') = '\0';
	CHILD_CHECK(mount("none", dir, "tmpfs", 0, NULL) == 0, "mount");
	CHILD_CHECK(systemd_enter_scope(runtime, getpid(), true,
			    now_ms() + LONG_MS, &e) == -1,
		"it went well");
	CHILD_CHECK(strstr(e.msg, "libsystemd.so.0"), "%s", e.msg);
	return 0;
}

static void without_the_library_that_is_said(void **state)
{
	struct service *s = *state;

	own_ns_run(ask_without_library, s->runtime);
}

static void a_peer_that_hangs_is_left(void **state)
{
	both_fail(*state, say_bytes, BYTES(""), SHORT_MS, "timed out");
}

static void a_peer_that_hangs_when_it_is_asked_is_left(void **state)
{
	both_fail(*state, speak, SAYS(""), SHORT_MS, "timed out");
}

static void a_greeting_without_an_end_is_left(void **state)
{
	both_fail(*state, drip, "O", SHORT_MS, "timed out");
}

static void a_peer_that_hangs_up_is_told(void **state)
{
	both_fail(*state, speak, &(struct speaker){hang_up, NULL}, LONG_MS,
		"connect");
}

static void a_peer_that_knows_nobody_is_told(void **state)
{
	both_fail(*state, say_bytes,
		BYTES("REJECTED EXTERNAL\r\nERROR\r\nERROR\r\n"), LONG_MS,
		"not permitted");
}

static void rubbish_is_no_message(void **state)
{
	both_fail(*state, speak,
		SAYS("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
		     "\xff\xff\xff"),
		LONG_MS, NULL);
}

static void a_message_of_4_gigabytes_is_not_read(void **state)
{
	both_fail(*state, speak,
		SAYS("l\2\0\1\xff\xff\xff\xff\1\0\0\0\0\0\0\0"), LONG_MS, NULL);
}

static void a_refusal_is_told_in_its_words(void **state)
{
	enter_fails(*state, refuse, "Access is not for you.",
		"Access is not for you.");
	teardown(state);
	setup(state);
	enter_fails(*state, refuse, "", "no reason given");
}

static void a_refusal_shows_no_control_characters(void **state)
{
	enter_fails(*state, refuse, "no\x1b[2J", "no");
}

static void a_manager_that_only_says_so_is_not_believed(void **state)
{
	enter_fails(*state, lie, NULL, "the process was not moved");
}

static void a_manager_that_never_stops_is_left(void **state)
{
	struct service *s = *state;
	struct err e = {0};

	need_library();
	serve(s, speak, &(struct speaker){flood, NULL});
	assert_int_equal(enter(s, 2 * SHORT_MS, &e), -1);
	assert_non_null(strstr(e.msg, "timed out"));
}

static void a_login_manager_says_who_is_spared(void **state)
{
	static const struct {
		struct configured is;
		int kills;
	} trials[] = {
		{{0}, 0},
		{{.kills = 1}, 1},
		{{.kills = 1, .but = {"root", "ann"}}, 0},
		{{.kills = 1, .but = {"root", "an"}}, 1},
		{{.kills = 1, .only = {"ann"}}, 1},
		{{.kills = 1, .only = {"bob", "anna"}}, 0},
		{{.kills = 1, .only = {"ann"}, .but = {"ann"}}, 0},
		{{.kills = 0, .only = {"ann"}}, 0},
	};
	struct err e = {0};

	need_library();
	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
		serve(*state, speak,
			&(struct speaker){tell_properties, &trials[i].is});
		if (login(*state, LONG_MS, &e) != trials[i].kills)
			fail_msg("%zu: %s", i, e.msg);
		teardown(state);
		setup(state);
	}
}

static void a_login_manager_that_says_nonsense_says_nothing(void **state)
{
	struct err e = {0};

	need_library();
	serve(*state, speak, &(struct speaker){tell_nonsense, NULL});
	assert_int_equal(login(*state, LONG_MS, &e), -1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_manager_there_is_nothing_to_say),
		TEST(no_variable_names_another_bus),
		TEST(nothing_stays_in_the_process_that_asks),
		TEST(without_the_library_that_is_said),
		TEST(a_peer_that_hangs_is_left),
		TEST(a_peer_that_hangs_when_it_is_asked_is_left),
		TEST(a_greeting_without_an_end_is_left),
		TEST(a_peer_that_hangs_up_is_told),
		TEST(a_peer_that_knows_nobody_is_told),
		TEST(rubbish_is_no_message),
		TEST(a_message_of_4_gigabytes_is_not_read),
		TEST(a_refusal_is_told_in_its_words),
		TEST(a_refusal_shows_no_control_characters),
		TEST(a_manager_that_only_says_so_is_not_believed),
		TEST(a_manager_that_never_stops_is_left),
		TEST(a_login_manager_says_who_is_spared),
		TEST(a_login_manager_that_says_nonsense_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
