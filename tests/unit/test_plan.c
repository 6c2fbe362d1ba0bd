/* SPDX-License-Identifier: MIT */
/*
 * test_plan.c - the promises of every plan, and the golden files in tests/plan
 *
 * A NAME.spec describes a host and a session. NAME.plan beside it holds the
 * expected plan, or NAME.err the expected error. host_usual() gives the values
 * that a file leaves out.
 */
#include "jail/base/io.h"
#include "jail/base/sys.h"
#include "jail/host/host.h"
#include "jail/plan/plan.h"
#include "jail/spec.h"

#include "golden.h"
#include "tests/lib/defaults.h"

#include <glob.h>
#include <sys/resource.h>

#define LIST_MAX 8

/* A host and a session, with room for what a file adds. */
struct world {
	struct host host;
	struct jail_spec spec;
	const char *packages[LIST_MAX + 1], *expose[LIST_MAX + 1];
	const char *require[LIST_MAX + 1];
	int npackages, nexpose, nrequire, nroots;
};

static char *copy(const char *s)
{
	char *r = strdup(s);

	assert_non_null(r);
	return r;
}

static void root_add(struct world *w, const char *path,
	enum host_root_kind kind, const char *link)
{
	assert_in_range(w->nroots, 0, HOST_ROOTS - 1);
	w->host.roots[w->nroots++] = (struct host_root){
		.path = path, .kind = kind, .link = link ? copy(link) : NULL};
}

static void python_is(struct world *w, const char *path, const char *prefix)
{
	host_python_fini(&w->host.python);
	w->host.python.path = copy(path);
	w->host.python.prefixes[0] = copy(prefix);
	w->host.python.nprefixes = 1;
	w->spec.python = w->host.python.path;
}

/* An ordinary user on a Debian with a recent kernel. */
static void host_usual(struct world *w)
{
	struct host *h = &w->host;

	h->euid = 1001;
	h->kernel_major = 6;
	h->kernel_minor = 12;
	h->mount_setattr = 1;
	h->landlock_abi = 6;
	h->nproc_own = 1;
	root_add(w, "/usr", HOST_DIR, NULL);
	root_add(w, "/bin", HOST_LINK, "usr/bin");
	root_add(w, "/lib", HOST_LINK, "usr/lib");
	root_add(w, "/lib64", HOST_LINK, "usr/lib64");
	h->etc[h->netc++] = copy("/etc/ld.so.cache");
	h->etc[h->netc++] = copy("/etc/localtime");
	h->attach[h->nattach++] = "/mnt";
	h->attach[h->nattach++] = "/srv";
	python_is(w, "/usr/bin/python3", "/usr");
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->spec.limits = default_limits();
	w->spec.packages = w->packages;
	w->spec.expose = w->expose;
	w->spec.require = w->require;
	host_usual(w);
	return w;
}

static void world_free(struct world *w)
{
	host_fini(&w->host);
	free(w);
}

/* ---- reading a .spec ---- */

static void set_python(struct world *w, char *v)
{
	char *prefix = strchr(v, ' ');

	assert_non_null(prefix);
	*prefix++ = '\0';
	python_is(w, v, prefix);
}

static void set_prefix(struct world *w, char *v)
{
	w->host.python.prefixes[w->host.python.nprefixes++] = copy(v);
}

static void set_link(struct world *w, char *v)
{
	char *text = strchr(v, ' ');
	struct host_link *l = &w->host.python.links[w->host.python.nlinks++];

	assert_non_null(text);
	*text++ = '\0';
	l->path = copy(v);
	l->text = copy(text);
}

static void set_real(struct world *w, char *v)
{
	char *real = strchr(v, ' ');
	struct host_link *l = &w->host.reals[w->host.nreals++];

	assert_non_null(real);
	*real++ = '\0';
	l->path = copy(v);
	l->text = copy(real);
}

static void set_expose(struct world *w, char *v)
{
	assert_in_range(w->nexpose, 0, LIST_MAX - 1);
	w->expose[w->nexpose++] = v;
}

static void set_require(struct world *w, char *v)
{
	assert_in_range(w->nrequire, 0, LIST_MAX - 1);
	w->require[w->nrequire++] = v;
}

static void set_packages(struct world *w, char *v)
{
	assert_in_range(w->npackages, 0, LIST_MAX - 1);
	w->packages[w->npackages++] = v;
}

static void set_network(struct world *w, char *v)
{
	assert_string_equal(v, "loopback");
	w->spec.limits.network = NETWORK_LOOPBACK;
}

static void set_side(struct world *w, char *v)
{
	assert_string_equal(v, "yes");
	w->spec.side = 1;
}

static void set_user(struct world *w, char *v)
{
	w->host.euid = (uid_t)atoi(v);
}

static void set_landlock(struct world *w, char *v)
{
	w->host.landlock_abi = atoi(v);
}

static void set_kernel(struct world *w, char *v)
{
	assert_int_equal(sscanf(v, "%d.%d", &w->host.kernel_major,
				 &w->host.kernel_minor),
		2);
}

/* Features that the host lacks. */
static void set_without(struct world *w, char *v)
{
	if (!strcmp(v, "mount_setattr"))
		w->host.mount_setattr = 0;
	else if (!strcmp(v, "proc"))
		w->host.no_proc = 1;
	else if (!strcmp(v, "nproc")) {
		w->host.nproc_own = 0;
		w->host.nproc_others = 100;
	} else if (!strcmp(v, "links"))
		for (int i = 0; i < w->nroots; i++)
			w->host.roots[i].kind = HOST_DIR;
	else
		fail_msg("without %s?", v);
}

static void set_cgroup(struct world *w, char *v)
{
	w->host.cgroup_memory = strstr(v, "memory") != NULL;
	w->host.own_nodes = strstr(v, "nodes") != NULL;
}

static const struct {
	const char *key;
	void (*set)(struct world *, char *);
} keys[] = {
	{"beside", set_side},
	{"cgroup", set_cgroup},
	{"expose", set_expose},
	{"kernel", set_kernel},
	{"landlock", set_landlock},
	{"link", set_link},
	{"network", set_network},
	{"packages", set_packages},
	{"prefix", set_prefix},
	{"python", set_python},
	{"real", set_real},
	{"require", set_require},
	{"user", set_user},
	{"without", set_without},
};

static void world_line(struct world *w, char *line)
{
	char *value = strchr(line, ' ');

	if (!*line || *line == '#')
		return;
	assert_non_null(value);
	*value++ = '\0';
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(line, keys[i].key)) {
			keys[i].set(w, value);
			return;
		}
	fail_msg("unknown key %s", line);
}

/* Values point into *text, which the caller frees after the world. */
static struct world *world_read(const char *path, char **text)
{
	struct world *w = world_new();
	char *save = NULL;
	size_t n;

	assert_int_equal(io_read_file(AT_FDCWD, path, 65536, text, &n), 0);
	for (char *line = strtok_r(*text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save))
		world_line(w, line);
	return w;
}

/* ---- golden files ---- */

static void with_suffix(
	char *to, size_t size, const char *spec, const char *suffix)
{
	snprintf(to, size, "%.*s%s", (int)(strlen(spec) - strlen(".spec")),
		spec, suffix);
}

static char *plan_text(const struct plan *p)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	plan_print(p, f);
	fclose(f);
	return text;
}

static void plan_equals_its_golden_file(void **state)
{
	const char *spec = *state;
	char path[512], *text, *got = NULL;
	struct world *w = world_read(spec, &text);
	struct err e = {0};
	struct plan p;

	if (plan_make(&p, &w->spec, &w->host, &e) == 0) {
		with_suffix(path, sizeof(path), spec, ".plan");
		got = plan_text(&p);
		plan_fini(&p);
	} else {
		with_suffix(path, sizeof(path), spec, ".err");
		assert_true(asprintf(&got, "%s\n%s%s", e.msg, e.hint,
				    e.hint[0] ? "\n" : "") > 0);
	}
	golden_check(path, got);
	free(got);
	world_free(w);
	free(text);
}

/* ---- promises of every plan ---- */

static size_t find(const struct plan *p, enum plan_op_type type)
{
	size_t i = 0;

	while (i < p->n && p->ops[i].type != type)
		i++;
	assert_true(i < p->n);
	return i;
}

static struct plan make(struct world *w)
{
	struct err e = {0};
	struct plan p;

	if (plan_make(&p, &w->spec, &w->host, &e) < 0)
		fail_msg("%s", e.msg);
	return p;
}

static int is_device(const struct plan_op *op)
{
	return !strncmp(op->source, "/dev/", 5);
}

static void host_directories_are_shown_read_only(void **state)
{
	struct world *w = world_new();
	struct plan p;
	int shown = 0;

	(void)state;
	w->expose[0] = "/data";
	w->packages[0] = "/opt/packages";
	w->packages[1] = "/srv/packages";
	p = make(w);
	for (size_t i = 0; i < p.n; i++) {
		const struct plan_op *op = &p.ops[i];

		if (op->type != PLAN_BIND && op->type != PLAN_SHOW)
			continue;
		assert_true(op->attrs & SYS_ATTR_NOSUID);
		if (is_device(op))
			continue;
		shown++;
		assert_true(op->attrs & SYS_ATTR_RDONLY);
		assert_true(op->attrs & SYS_ATTR_NODEV);
	}
	/* /usr, two of /etc, /data, two of packages */
	assert_int_equal(shown, 6);
	plan_fini(&p);
	world_free(w);
}

static void every_new_file_system_is_nosuid(void **state)
{
	struct world *w = world_new();
	struct plan p = make(w);
	int seen = 0;

	(void)state;
	for (size_t i = 0; i < p.n; i++)
		if (p.ops[i].options) {
			seen++;
			assert_true(p.ops[i].attrs & SYS_ATTR_NOSUID);
		}
	assert_int_equal(seen, 6); /* home, root, /tmp, shm, pts, proc */
	plan_fini(&p);
	world_free(w);
}

static void nothing_is_mounted_after_the_root_is_switched(void **state)
{
	struct world *w = world_new();
	struct plan p = make(w);

	(void)state;
	for (size_t i = find(&p, PLAN_PIVOT) + 1; i < p.n; i++) {
		assert_null(p.ops[i].options);
		assert_null(p.ops[i].source);
	}
	assert_int_equal(p.ops[find(&p, PLAN_PIVOT) - 1].type, PLAN_RESTRICT);
	plan_fini(&p);
	world_free(w);
}

static void walls_are_built_in_order(void **state)
{
	struct world *w = world_new();
	struct plan p = make(w);

	(void)state;
	assert_true(find(&p, PLAN_HOME_COPY) < find(&p, PLAN_ROOT));
	assert_true(find(&p, PLAN_PIVOT) < find(&p, PLAN_DROP));
	assert_true(find(&p, PLAN_DROP) < find(&p, PLAN_LANDLOCK));
	assert_true(find(&p, PLAN_LANDLOCK) < find(&p, PLAN_SECCOMP));
	assert_int_equal(p.ops[p.n - 1].type, PLAN_SECCOMP);
	assert_int_equal(p.ops[p.n - 1].stage, PLAN_GUEST);
	plan_fini(&p);
	world_free(w);
}

static void stages_are_in_order(void **state)
{
	struct world *w = world_new();
	struct plan p = make(w);

	(void)state;
	for (size_t i = 1; i < p.n; i++)
		assert_true(p.ops[i].stage >= p.ops[i - 1].stage);
	plan_fini(&p);
	world_free(w);
}

static void the_process_limit_leaves_room_for_checkpoints(void **state)
{
	struct world *w = world_new();
	int64_t own = 0;
	struct plan p;

	(void)state;
	w->spec.limits.processes = 10;
	w->spec.limits.undo = 3;
	p = make(w);
	/* pid 1, the middle of a parking, undo + 1 checkpoints */
	assert_int_equal(p.ops[find(&p, PLAN_RLIMIT)].number, 16);
	assert_int_equal(p.processes_hard, 16);
	plan_fini(&p);
	/* A program has no checkpoints: its own limit is exact. */
	w->spec.mode = SPEC_PROGRAM;
	p = make(w);
	for (size_t i = 0; i < p.n; i++)
		if (p.ops[i].type == PLAN_RLIMIT &&
			p.ops[i].stage == PLAN_GUEST &&
			p.ops[i].which == RLIMIT_NPROC)
			own = p.ops[i].number;
	assert_int_equal(own, 11);
	plan_fini(&p);
	world_free(w);
}

/* The home that is shown there, once more; or NULL. */
static const char *find_home(const struct plan *p, const char *target)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->ops[i].type == PLAN_HOME_SHOW &&
			!strcmp(p->ops[i].target, target))
			return p->ops[i].source;
	return NULL;
}

static void one_cell_finds_its_home_under_another_name(void **state)
{
	static const char *const list[] = {"/workspace/x", NULL};
	struct world *w = world_new();
	struct plan p = make(w);

	(void)state;
	assert_null(find_home(&p, "/workspace"));
	plan_fini(&p);
	w->spec.mode = SPEC_CELL;
	p = make(w);
	assert_string_equal(find_home(&p, "/workspace"), "/home");
	plan_fini(&p);
	/* A directory of the host that is shown there comes first. */
	w->spec.expose = list;
	p = make(w);
	assert_null(find_home(&p, "/workspace"));
	plan_fini(&p);
	world_free(w);
}

/* ---- paths to show ---- */

/* Plan a jail with `path` in jail.expose. */
static int expose(const char *path, struct err *e)
{
	const char *const list[] = {path, NULL};
	struct world *w = world_new();
	struct plan p;
	int r;

	w->spec.expose = list;
	r = plan_make(&p, &w->spec, &w->host, e);
	if (r == 0)
		plan_fini(&p);
	world_free(w);
	return r;
}

static void paths_that_would_hide_the_jails_own_files_are_refused(void **state)
{
	static const char *const bad[] = {"/", "/proc", "/proc/self", "/sys",
		"/sys/fs/cgroup", "/dev", "/dev/sda", "/run", "/run/user/1000",
		"/var/run/docker.sock", "/home", "/tmp", "/etc", "/etc/passwd",
		"/var"};
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&e, 0, sizeof(e));
		if (expose(bad[i], &e) == 0)
			fail_msg("%s was let through", bad[i]);
		assert_non_null(strstr(e.msg, bad[i]));
	}
}

static void paths_with_dots_or_extra_slashes_are_refused(void **state)
{
	static const char *const bad[] = {"", "data", "./data", "../data",
		"/data/..", "/data/../etc", "/data/.", "/data//x", "/data/",
		"//data", "/./data"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (expose(bad[i], NULL) == 0)
			fail_msg("'%s' was let through", bad[i]);
}

static void ordinary_paths_can_be_shown(void **state)
{
	static const char *const good[] = {"/data", "/home/me", "/home/me/x",
		"/opt", "/etc/ssl", "/tmp/venv", "/runner", "/developer",
		"/processed", "/var/lib/x", "/a/..b/.c", "/etc/passwd2"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (expose(good[i], NULL) < 0)
			fail_msg("%s was refused", good[i]);
}

static void paths_beneath_another_are_dropped(void **state)
{
	static const char *const list[] = {
		"/data/b/c", "/data/a", "/data/b", "/data/b-side", NULL};
	static const char *const want[] = {
		"/data/a", "/data/b", "/data/b-side", NULL};
	struct world *w = world_new();
	struct plan p;
	size_t n = 0;

	(void)state;
	w->spec.expose = list;
	w->host.python.prefixes[w->host.python.nprefixes++] = copy("/data/b");
	p = make(w);
	for (size_t i = 0; i < p.n; i++) {
		if (p.ops[i].type != PLAN_SHOW ||
			strncmp(p.ops[i].target, "/data/", 6) != 0)
			continue;
		assert_non_null(want[n]);
		assert_string_equal(p.ops[i].target, want[n]);
		/* Python comes first: a path it needs is not the person's. */
		assert_int_equal(p.ops[i].flags,
			strcmp(want[n], "/data/b") ? PLAN_F_EXPOSED : 0);
		n++;
	}
	assert_null(want[n]);
	plan_fini(&p);
	world_free(w);
}

static void too_many_paths_are_an_error(void **state)
{
	enum { MAX = 64 - 4 }; /* /usr, Python's prefix, two of /etc */
	char name[MAX + 1][16];
	const char *list[MAX + 2] = {NULL};
	struct world *w = world_new();
	struct plan p;
	struct err e = {0};

	(void)state;
	for (int i = 0; i < MAX; i++) {
		snprintf(name[i], sizeof(name[i]), "/d%d", i);
		list[i] = name[i];
	}
	w->spec.expose = list;
	assert_int_equal(plan_make(&p, &w->spec, &w->host, &e), 0);
	plan_fini(&p);
	list[MAX] = "/one/more";
	assert_int_equal(plan_make(&p, &w->spec, &w->host, &e), -1);
	assert_non_null(strstr(e.msg, "more than 64"));
	world_free(w);
}

static void too_many_homes_are_an_error(void **state)
{
	static const char *const some[] = {"/home/a/x", "/home/b/x",
		"/home/c/x", "/home/d/x", "/home/e/x", "/home/f/x", "/home/g/x",
		"/home/h/x", "/home/i/x", NULL};
	struct world *w = world_new();
	struct err e = {0};
	struct plan p;

	(void)state;
	w->spec.expose = some;
	assert_int_equal(plan_make(&p, &w->spec, &w->host, &e), -1);
	assert_non_null(strstr(e.msg, "too large"));
	w->spec.expose = some + 1;
	assert_int_equal(plan_make(&p, &w->spec, &w->host, &e), 0);
	plan_fini(&p);
	world_free(w);
}

/* ---- running ---- */

static const struct CMUnitTest promises[] = {
	cmocka_unit_test(host_directories_are_shown_read_only),
	cmocka_unit_test(every_new_file_system_is_nosuid),
	cmocka_unit_test(nothing_is_mounted_after_the_root_is_switched),
	cmocka_unit_test(walls_are_built_in_order),
	cmocka_unit_test(stages_are_in_order),
	cmocka_unit_test(the_process_limit_leaves_room_for_checkpoints),
	cmocka_unit_test(one_cell_finds_its_home_under_another_name),
	cmocka_unit_test(paths_that_would_hide_the_jails_own_files_are_refused),
	cmocka_unit_test(paths_with_dots_or_extra_slashes_are_refused),
	cmocka_unit_test(ordinary_paths_can_be_shown),
	cmocka_unit_test(paths_beneath_another_are_dropped),
	cmocka_unit_test(too_many_paths_are_an_error),
	cmocka_unit_test(too_many_homes_are_an_error),
};

#define GOLDEN_MAX 64

int main(void)
{
	struct CMUnitTest tests[GOLDEN_MAX];
	glob_t g;
	int failed;

	failed = cmocka_run_group_tests_name("plan", promises, NULL, NULL);
	if (glob("tests/plan/*.spec", 0, NULL, &g) != 0 || g.gl_pathc == 0 ||
		g.gl_pathc > GOLDEN_MAX) {
		fprintf(stderr, "no tests/plan/*.spec: run this from the top "
				"directory\n");
		return 1;
	}
	for (size_t i = 0; i < g.gl_pathc; i++)
		tests[i] = (struct CMUnitTest){.name = g.gl_pathv[i],
			.test_func = plan_equals_its_golden_file,
			.initial_state = g.gl_pathv[i]};
	failed += _cmocka_run_group_tests(
		"tests/plan", tests, g.gl_pathc, NULL, NULL);
	globfree(&g);
	return failed;
}
