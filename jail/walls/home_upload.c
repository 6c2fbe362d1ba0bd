/* SPDX-License-Identifier: MIT */
/*
 * home_upload.c - files that are written into the home
 *
 * Runs in:   warden
 * Trusts:    nothing in the home: no link is followed, no name stands for the
 *            same thing twice
 * Leaves:    whole files only: what is written is renamed into place
 */
#include "home_impl.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct home_upload {
	uint32_t token;
	int dir; /* where it goes */
	char temp[40];
	char name[256];
};

static void upload_free(struct home_upload **u)
{
	if (!*u)
		return;
	close((*u)->dir);
	free(*u);
	*u = NULL;
}

void home_uploads_fini(struct home *h)
{
	for (int i = 0; i < HOME_TOKENS_MAX; i++)
		upload_free(&h->uploads[i]);
}

int home_is_upload(const struct home *h, const char *name)
{
	for (int i = 0; i < HOME_TOKENS_MAX; i++)
		if (h->uploads[i] && !strcmp(h->uploads[i]->temp, name))
			return 1;
	return 0;
}

/* The directory that will hold `path`, made where it is missing; *name is
 * the last component. */
static int parent_open(
	struct home *h, const char *path, const char **name, struct err *e)
{
	auto_close int dir = home_open_beneath(
		h->root, ".", O_RDONLY | O_DIRECTORY, HOME_RESOLVE_WRITE);
	const char *at = path, *slash;
	char part[256];

	if (dir < 0)
		return home_fail_open(e, "open the home");
	while ((slash = strchr(at, '/'))) {
		size_t n = (size_t)(slash - at);
		int next;

		if (n >= sizeof(part))
			return err_set(e, "%s: name too long", path);
		memcpy(part, at, n);
		part[n] = '\0';
		at = slash + 1;
		if (n == 0 || !strcmp(part, "."))
			continue;
		if (!strcmp(part, ".."))
			return err_set(e, "%s: leads out of the home", path);
		if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			return err_errno(e, "make %s", path);
		next = home_open_beneath(
			dir, part, O_RDONLY | O_DIRECTORY, HOME_RESOLVE_WRITE);
		if (next < 0)
			return home_explain_open(e, path);
		close(dir);
		dir = next;
	}
	if (!*at || !strcmp(at, ".") || !strcmp(at, ".."))
		return err_set(e, "%s: not a file name", path);
	if (strlen(at) > 255)
		return err_set(e, "%s: name too long", path);
	*name = at;
	return fd_take(&dir);
}

int home_create(
	struct home *h, const char *path, uint32_t *token, struct err *e)
{
	auto_close int dir = -1;
	auto_free struct home_upload *u = calloc(1, sizeof(*u));
	const char *name = NULL;
	int slot = 0, fd;

	while (slot < HOME_TOKENS_MAX && h->uploads[slot])
		slot++;
	if (!u || slot == HOME_TOKENS_MAX)
		return err_set(e, "%s: too many files at once", path);
	if (path[0] == '/')
		return err_set(e, "%s: leads out of the home", path);
	dir = parent_open(h, path, &name, e);
	if (dir < 0)
		return -1;
	u->token = ++h->last_token;
	snprintf(u->temp, sizeof(u->temp), ".cellblock-%08x-%u",
		(unsigned)now_ns(), u->token);
	snprintf(u->name, sizeof(u->name), "%s", name);
	fd = openat(dir, u->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_errno(e, "%s", path);
	u->dir = fd_take(&dir);
	*token = u->token;
	h->uploads[slot] = u;
	u = NULL;
	return fd;
}

static struct home_upload **upload_find(struct home *h, uint32_t token)
{
	for (int i = 0; i < HOME_TOKENS_MAX; i++)
		if (h->uploads[i] && h->uploads[i]->token == token)
			return &h->uploads[i];
	return NULL;
}

int home_commit(struct home *h, uint32_t token, int replace, struct err *e)
{
	struct home_upload **u = upload_find(h, token);
	int r;

	if (!u)
		return err_set(e, "no such upload");
	if (replace)
		r = renameat((*u)->dir, (*u)->temp, (*u)->dir, (*u)->name);
	else
		r = sys_renameat2((*u)->dir, (*u)->temp, (*u)->dir, (*u)->name,
			SYS_RENAME_NOREPLACE);
	if (r < 0) {
		err_errno(e, "%s", (*u)->name);
		unlinkat((*u)->dir, (*u)->temp, 0);
	}
	upload_free(u);
	return r;
}

int home_abort(struct home *h, uint32_t token, struct err *e)
{
	struct home_upload **u = upload_find(h, token);

	if (!u)
		return err_set(e, "no such upload");
	unlinkat((*u)->dir, (*u)->temp, 0);
	upload_free(u);
	return 0;
}
