/* SPDX-License-Identifier: MIT */
/*
 * host.c - what this kernel and this host can do
 *
 * Runs in:   warden, before the plan; front end for --check
 * Trusts:    the host's root file system
 * Leaves:    a struct host
 */
#include "host.h"

#include "jail/base/sys.h"
#include "jail/spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

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
	const char *const *expose = spec->expose;

	if (spec->packages)
		real_add(h, spec->packages);
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

int host_probe(struct host *h, const char *python, struct err *e)
{
	*h = (struct host){.euid = geteuid()};
	probe_kernel(h);
	probe_roots(h);
	probe_etc(h);
	probe_attach(h);
	if (host_python_resolve(&h->python, python, e) < 0) {
		host_fini(h);
		return -1;
	}
	return 0;
}

void host_fini(struct host *h)
{
	for (int i = 0; i < HOST_ROOTS; i++)
		free(h->roots[i].link);
	for (int i = 0; i < h->netc; i++)
		free(h->etc[i]);
	for (int i = 0; i < h->nreals; i++) {
		free(h->reals[i].path);
		free(h->reals[i].text);
	}
	host_python_fini(&h->python);
	memset(h, 0, sizeof(*h));
}
