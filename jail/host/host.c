/* SPDX-License-Identifier: MIT */
/*
 * host.c - what this kernel, this host and its Python can do
 *
 * Runs in:   warden, before the plan; front end for --check; the explanations
 *            in any process whose call has failed
 * Trusts:    the host's root file system, as far as the person who named the
 *            interpreter may read it
 * Leaves:    a struct host; a hint in an error
 */
#include "host.h"

#include "jail/base/array.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/base/sys.h"
#include "jail/spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* ---- the kernel and its files ---- */

static const char *const root_paths[HOST_ROOTS] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

/* And every /etc/python3.*, where Debian keeps sitecustomize. */
static const char *const etc_paths[] = {"/etc/ld.so.cache", "/etc/alternatives",
	"/etc/localtime", "/etc/matplotlibrc", "/etc/fonts", "/etc/mime.types"};

/* The new root is attached to one of these, and hides it from the process that
 * builds. The plan takes the first that holds nothing that is to be shown. */
static const char *const attach_paths[] = {
	"/mnt", "/media", "/srv", "/var/tmp", "/tmp", "/opt", "/var"};

static void probe_roots(struct host *h)
{
	char text[PATH_MAX];
	struct stat st;

	for (int i = 0; i < HOST_ROOTS; i++) {
		struct host_root *r = &h->roots[i];
		ssize_t n = readlink(root_paths[i], text, sizeof(text) - 1);

		r->path = root_paths[i];
		r->kind = HOST_ABSENT;
		if (n > 0) {
			text[n] = '\0';
			r->kind = HOST_LINK;
			r->link = strdup(text);
		} else if (stat(r->path, &st) == 0 && S_ISDIR(st.st_mode)) {
			r->kind = HOST_DIR;
		}
	}
}

static void real_add(struct host *h, const char *path)
{
	char real[PATH_MAX];
	struct host_link *l = &h->reals[h->nreals];

	if (h->nreals == HOST_REALS_MAX || !realpath(path, real) ||
		!strcmp(real, path))
		return;
	l->path = strdup(path);
	l->text = strdup(real);
	h->nreals += l->path && l->text;
}

const char *host_real(const struct host *h, const char *path)
{
	for (int i = 0; i < h->nreals; i++)
		if (!strcmp(h->reals[i].path, path))
			return h->reals[i].text;
	return path;
}

void host_resolve(struct host *h, const struct jail_spec *spec)
{
	const char *const *packages = spec->packages, *const * expose;

	for (; packages && *packages; packages++)
		real_add(h, *packages);
	expose = spec->expose;
	for (; expose && *expose; expose++)
		real_add(h, *expose);
}

static void etc_add(struct host *h, const char *path)
{
	char text[1];

	if (h->netc == HOST_LIST_MAX || access(path, R_OK) < 0)
		return;
	h->etc[h->netc++] = strdup(path);
	if (readlink(path, text, sizeof(text)) > 0)
		real_add(h, path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void probe_etc(struct host *h)
{
	char path[PATH_MAX];
	struct dirent *de;
	DIR *d;
	int first;

	for (size_t i = 0; i < COUNT(etc_paths); i++)
		etc_add(h, etc_paths[i]);
	first = h->netc;
	d = opendir("/etc");
	while (d && (de = readdir(d))) {
		if (strncmp(de->d_name, "python3.", 8))
			continue;
		snprintf(path, sizeof(path), "/etc/%s", de->d_name);
		etc_add(h, path);
	}
	if (d)
		closedir(d);
	qsort(h->etc + first, (size_t)(h->netc - first), sizeof(h->etc[0]),
		by_name);
}

static void probe_attach(struct host *h)
{
	struct stat st;

	for (size_t i = 0; i < COUNT(attach_paths); i++)
		if (lstat(attach_paths[i], &st) == 0 && S_ISDIR(st.st_mode))
			h->attach[h->nattach++] = attach_paths[i];
}

/* How many tasks a user has on the whole host. */
static int count_tasks(uid_t uid)
{
	DIR *d = opendir("/proc");
	char path[NAME_MAX + 8];
	struct dirent *de;
	struct stat st;
	int n = 0;

	while (d && (de = readdir(d))) {
		if (de->d_name[0] < '1' || de->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/task", de->d_name);
		if (fstatat(dirfd(d), path, &st, 0) == 0 && st.st_uid == uid &&
			st.st_nlink > 2)
			n += (int)st.st_nlink - 2;
	}
	if (d)
		closedir(d);
	return n;
}

int host_has_swap(void)
{
	FILE *f = fopen("/proc/swaps", "re");
	char line[256];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n++;
	if (f)
		fclose(f);
	return n != 1; /* the heading */
}

int64_t host_available_bytes(void)
{
	static const char key[] = "MemAvailable:";
	FILE *f = fopen("/proc/meminfo", "re");
	int64_t bytes = -1;
	char line[256];

	while (f && bytes < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			bytes = strtoll(line + strlen(key), NULL, 10) * 1024;
	if (f)
		fclose(f);
	return bytes;
}

static void probe_kernel(struct host *h)
{
	struct utsname u;
	int abi = sys_landlock_abi();

	if (uname(&u) == 0)
		sscanf(u.release, "%d.%d", &h->kernel_major, &h->kernel_minor);
	h->landlock_abi = abi > 0 ? abi : 0;
	sys_mount_setattr(-1, 0, 0);
	h->mount_setattr = errno != ENOSYS;
	/* Linux 5.14 counts processes per user namespace. Before that they are
	 * counted per user of the host, and only a session that root started
	 * has a user of its own. */
	h->nproc_own = h->euid == 0 || h->kernel_major > 5 ||
		       (h->kernel_major == 5 && h->kernel_minor >= 14);
	if (!h->nproc_own)
		h->nproc_others = count_tasks(h->euid);
}

/* ---- the interpreter ---- */

/*
 * No program is run to find out what must be shown for a Python to start. The
 * path is walked as the kernel walks it, and every link on the way is noted:
 * the jail gets the same links. The directory above the real "bin" has to be
 * shown. A virtual environment adds its own directory and the one of the
 * interpreter that pyvenv.cfg names.
 */
#define LINKS_MAX 40 /* the kernel's own limit on one path */
#define CFG_MAX (64 * 1024)

/* Packages in a store use each other, so the whole store is shown. */
static const char *const stores[] = {"/nix/store", "/gnu/store"};

static int prefix_add(struct host_python *p, const char *dir, struct err *e)
{
	for (size_t i = 0; i < COUNT(stores); i++)
		if (path_is_beneath(dir, stores[i]))
			dir = stores[i];
	for (int i = 0; i < p->nprefixes; i++)
		if (!strcmp(p->prefixes[i], dir))
			return 0;
	if (p->nprefixes == HOST_LIST_MAX)
		return err_set(e, "%s: needs too many directories", p->path);
	p->prefixes[p->nprefixes] = strdup(dir);
	if (!p->prefixes[p->nprefixes])
		return err_errno(e, "%s", p->path);
	p->nprefixes++;
	return 0;
}

static int link_add(struct host_python *p, const char *path, const char *text,
	struct err *e)
{
	struct host_link *l = &p->links[p->nlinks];

	for (int i = 0; i < p->nlinks; i++)
		if (!strcmp(p->links[i].path, path))
			return 0;
	if (p->nlinks == HOST_LIST_MAX)
		return err_set(e, "%s: too many links on the way", p->path);
	l->path = strdup(path);
	l->text = strdup(text);
	p->nlinks++;
	if (!l->path || !l->text)
		return err_errno(e, "%s", p->path);
	return 0;
}

struct host_walk {
	char real[PATH_MAX]; /* the way so far; "" is the root */
	char rest[PATH_MAX]; /* the way that is left */
	int links;
	const char *path; /* the whole way */
};

static int fail_python(const struct host_python *p, int code, struct err *e)
{
	errno = code;
	return err_errno(e, "%s", p->path);
}

/* Note the link `at`, and go on along its text. */
static int walk_link(struct host_python *p, struct host_walk *w, const char *at,
	const char *text, struct err *e)
{
	char rest[PATH_MAX];

	if (++w->links > LINKS_MAX)
		return fail_python(p, ELOOP, e);
	if (link_add(p, at, text, e) < 0)
		return -1;
	if (text[0] == '/')
		w->real[0] = '\0';
	if (snprintf(rest, sizeof(rest), "%s/%s", text, w->rest) >=
		(int)sizeof(rest))
		return fail_python(p, ENAMETOOLONG, e);
	strcpy(w->rest, rest);
	return 0;
}

/* Walk along the first component of w->rest. */
static int walk_step(struct host_python *p, struct host_walk *w, struct err *e)
{
	char name[NAME_MAX + 1], at[PATH_MAX], text[PATH_MAX];
	const char *rest = w->rest;
	ssize_t got;

	if (path_next(&rest, name) < 0)
		return fail_python(p, ENAMETOOLONG, e);
	memmove(w->rest, rest, strlen(rest) + 1);
	if (!name[0] || !strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..")) {
		char *slash = strrchr(w->real, '/');

		if (slash)
			*slash = '\0';
		return 0;
	}
	if (snprintf(at, sizeof(at), "%s/%s", w->real, name) >= (int)sizeof(at))
		return fail_python(p, ENAMETOOLONG, e);
	got = readlink(at, text, sizeof(text) - 1);
	if (got >= 0) {
		text[got] = '\0';
		return walk_link(p, w, at, text, e);
	}
	if (errno != EINVAL)
		return w->links ? err_errno(e, "%s leads to %s", w->path, at)
				: err_errno(e, "%s", w->path);
	strcpy(w->real, at);
	return 0;
}

/* Write the real path of `path` to `real`, and note the links on the way. */
static int walk_path(struct host_python *p, const char *path,
	char real[PATH_MAX], struct err *e)
{
	struct host_walk w = {.path = path};

	if (strlen(path) >= sizeof(w.rest))
		return fail_python(p, ENAMETOOLONG, e);
	strcpy(w.rest, path);
	while (w.rest[0])
		if (walk_step(p, &w, e) < 0)
			return -1;
	strcpy(real, w.real[0] ? w.real : "/");
	return 0;
}

/* Cut the last component off; "/" stays. */
static void cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		slash[slash == path] = '\0';
}

/* Show the directory of the program in `dir`; of a "bin" the one above. */
static int prefix_add_for(struct host_python *p, const char *dir, struct err *e)
{
	char prefix[PATH_MAX];
	const char *last = path_last(dir);

	strcpy(prefix, dir);
	if (!strcmp(last, "bin") || !strcmp(last, "sbin"))
		cut_last(prefix);
	return strcmp(prefix, "/") ? prefix_add(p, prefix, e) : 0;
}

/* The value of "home = DIR" in pyvenv.cfg, NUL-terminated in place. */
static char *cfg_home(char *text)
{
	char *save = NULL;

	for (char *line = strtok_r(text, "\r\n", &save); line;
		line = strtok_r(NULL, "\r\n", &save)) {
		char *value = strchr(line, '=');
		size_t n = strcspn(line, " \t=");

		if (!value || n != 4 || strncmp(line, "home", 4))
			continue;
		value += 1 + strspn(value + 1, " \t");
		for (n = strlen(value); n && strchr(" \t", value[n - 1]); n--)
			value[n - 1] = '\0';
		return *value == '/' ? value : NULL;
	}
	return NULL;
}

/* If `dir` is a virtual environment, show it and its interpreter. */
static int venv_add(struct host_python *p, const char *dir, struct err *e)
{
	char path[PATH_MAX], real[PATH_MAX];
	auto_free char *text = NULL;
	char *home;
	size_t n;

	if (snprintf(path, sizeof(path), "%s/pyvenv.cfg", dir) >=
		(int)sizeof(path))
		return 0;
	if (io_read_file(AT_FDCWD, path, CFG_MAX, &text, &n) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_errno(e, "%s", path);
	if (walk_path(p, dir, real, e) < 0 || prefix_add(p, real, e) < 0)
		return -1;
	home = cfg_home(text);
	if (!home)
		return 0;
	if (walk_path(p, home, real, e) < 0)
		return err_wrap(e, "%s: home", path);
	return prefix_add_for(p, real, e);
}

/* Refuse what the kernel cannot start by itself: a script (a shim of pyenv's)
 * needs everything that it calls. */
static int check_program(const char *path, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char magic[4];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return err_set(e, "%s: not a program", path);
	if (read(fd, magic, 4) == 4 && !memcmp(magic, "\177ELF", 4))
		return 0;
	err_set(e, "%s: not a program but a script", path);
	return err_hint(e,
		"name the interpreter itself: it is printed by  %s "
		"-c 'import sys; print(sys.executable)'",
		path);
}

static int explain_missing(struct err *e)
{
	if (e && (e->code == ENOENT || e->code == ENOTDIR))
		err_hint(e, "install it (apt install python3), or name "
			    "another with -p PATH");
	return -1;
}

static int resolve_program(struct host_python *p, struct err *e)
{
	char real[PATH_MAX], dir[PATH_MAX];

	if (walk_path(p, p->path, real, e) < 0)
		return explain_missing(e);
	if (check_program(real, e) < 0)
		return -1;
	strcpy(dir, p->path);
	cut_last(dir);
	if (venv_add(p, dir, e) < 0)
		return -1;
	cut_last(dir);
	if (strcmp(dir, "/") && venv_add(p, dir, e) < 0)
		return -1;
	cut_last(real);
	return prefix_add_for(p, real, e);
}

static int walk_start(struct host_python *p, const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, "%.99s is not an absolute path", path);
	if (strlen(path) >= PATH_MAX)
		return err_set(e, "%.99s...: the path is too long", path);
	p->path = strdup(path);
	if (!p->path)
		return err_errno(e, "remember its path");
	return resolve_program(p, e);
}

int host_python_resolve(struct host_python *p, const char *path, struct err *e)
{
	*p = (struct host_python){.nprefixes = 0};
	if (walk_start(p, path, e) == 0)
		return 0;
	host_python_fini(p);
	err_kind_set(e, ERR_JAIL);
	return err_wrap(e, "python");
}

static void links_free(struct host_link *links, int n)
{
	for (int i = 0; i < n; i++) {
		free(links[i].path);
		free(links[i].text);
	}
}

void host_python_fini(struct host_python *p)
{
	free(p->path);
	for (int i = 0; i < p->nprefixes; i++)
		free(p->prefixes[i]);
	links_free(p->links, p->nlinks);
	memset(p, 0, sizeof(*p));
}

/* ---- all of it ---- */

/* Where somebody runs a program rather than a system: LXC's containers have an
 * init, and root in them may make cgroups. */
static int is_contained(void)
{
	return access("/run/.containerenv", F_OK) == 0 ||
	       access("/.dockerenv", F_OK) == 0 ||
	       getenv("KUBERNETES_SERVICE_HOST");
}

int host_probe(struct host *h, const char *python, struct err *e)
{
	*h = (struct host){.euid = geteuid(), .contained = is_contained()};
	probe_kernel(h);
	probe_roots(h);
	probe_etc(h);
	probe_attach(h);
	if (host_python_resolve(&h->python, python, e) == 0)
		return 0;
	host_fini(h);
	return -1;
}

void host_fini(struct host *h)
{
	for (int i = 0; i < HOST_ROOTS; i++)
		free(h->roots[i].link);
	for (int i = 0; i < h->netc; i++)
		free(h->etc[i]);
	links_free(h->reals, h->nreals);
	host_python_fini(&h->python);
	memset(h, 0, sizeof(*h));
}

/* ---- why namespaces are refused, and what to do about it ---- */

/* The first line of a file; "" where it cannot be read. */
static void read_line(const char *path, char *buf, size_t size)
{
	io_read_small(AT_FDCWD, path, buf, size);
	buf[strcspn(buf, "\n")] = '\0';
}

/* The number a file under /proc/sys holds, or `missing`. */
static long read_number(const char *path, long missing)
{
	char buf[32];

	read_line(path, buf, sizeof(buf));
	return buf[0] ? strtol(buf, NULL, 10) : missing;
}

/* True if this process has a seccomp filter, as in most containers. */
static int is_filtered(void)
{
	auto_free char *text = NULL;
	const char *at;
	size_t n;

	if (io_read_file(AT_FDCWD, "/proc/self/status", 64 * 1024, &text, &n) <
		0)
		return 0;
	at = strstr(text, "\nSeccomp:");
	return at && strtol(at + 9, NULL, 10) == 2;
}

static const char restriction[] =
	"/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/* The programs that the profile etc/apparmor.d/cellblock is for. */
static const char *const profiled[] = {
	"/usr/bin/cellblock", "/usr/local/bin/cellblock"};

/* True if the profile is for this program. */
static int is_profiled(void)
{
	char path[64];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n < 0 ? 0 : n] = '\0';
	for (size_t i = 0; i < COUNT(profiled); i++)
		if (!strcmp(path, profiled[i]))
			return 1;
	return 0;
}

/*
 * Under the restriction, a process without a profile gets no user namespace.
 * On a host with the profile unprivileged_userns (Ubuntu) it gets one, but is
 * under that profile there, which allows nothing.
 */
static int explain_apparmor(struct err *e)
{
	char label[128]; /* "unconfined" or "NAME (mode)"; "" without AppArmor
			  */
	int bound;

	read_line("/proc/self/attr/apparmor/current", label, sizeof(label));
	bound = !strncmp(label, "unprivileged_userns", 19);
	if (e->code != EACCES && !(bound && e->code == EPERM))
		return 0;
	if (label[0] && !bound && strcmp(label, "unconfined")) {
		err_hint(e, "this process is under an AppArmor profile, %s",
			label);
		return 1;
	}
	if (read_number(restriction, 0) == 0)
		return 0;
	err_hint(e,
		"AppArmor refuses them to programs without a profile here "
		"(kernel.apparmor_restrict_unprivileged_userns = 1)\n"
		"%s      see cellblock(1), HOSTS",
		is_profiled() ? "install cellblock's:  sudo make "
				"install-apparmor"
			      : "install cellblock, and its profile:  sudo "
				"make install install-apparmor");
	return 1;
}

static const struct {
	const char *path;
	long bad;
	const char *hint;
} switches[] = {
	{"/proc/sys/kernel/unprivileged_userns_clone", 0,
		"this host switches them off "
		"(kernel.unprivileged_userns_clone = 0)\n"
		"allow them:  sudo sysctl -w "
		"kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/user/max_user_namespaces", 0,
		"this host allows none (user.max_user_namespaces = 0)\n"
		"allow them:  sudo sysctl -w user.max_user_namespaces=15000"},
};

static const char container_hint[] =
	"a container's seccomp filter is in the way: start it with  "
	"--security-opt seccomp=unconfined";

int host_explain_userns(struct err *e)
{
	if (!e)
		return -1;
	for (size_t i = 0; i < COUNT(switches); i++)
		if (read_number(switches[i].path, -1) == switches[i].bad)
			return err_hint(e, "%s", switches[i].hint);
	if (explain_apparmor(e))
		return -1;
	if (e->code == ENOSPC)
		return err_hint(e,
			"too many of them are in use (user.max_*_namespaces)");
	if (e->code == EINVAL || e->code == ENOSYS)
		return err_hint(e,
			"this kernel was built without user namespaces "
			"(CONFIG_USER_NS)");
	if (is_filtered())
		return err_hint(e, "%s", container_hint);
	if (e->code == EPERM)
		return err_hint(e, "a process in a chroot, or in a sandbox, "
				   "may not make user namespaces");
	return -1;
}

int host_explain_call(struct err *e)
{
	if (!e || e->hint[0])
		return -1;
	if (e->code == ENOSYS)
		return err_hint(e, "Linux 5.10 has all that is needed, unless "
				   "a container's seccomp filter hides it");
	if (e->code == EPERM && is_filtered())
		return err_hint(e, "%s", container_hint);
	return -1;
}
