/* SPDX-License-Identifier: MIT */
/*
 * up.c - from the host to the home
 *
 * Runs in:   front end, between cells
 * Holds:     one open file of each side
 * Trusts:    nothing it finds on the host to be what its name says: a file is
 *            opened without waiting, then looked at
 * Leaves:    files that are whole in the home, or not there
 */
#include "impl.h"

#include "hostfs.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/path.h"
#include "jail/jail.h"
#include "jail/limits.h"
#include "ledger.h"
#include "repl/term/progress.h"
#include "repl/text/lexer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* How many names past files.max_count are looked at, only to count them. */
#define COUNTED 10000

static int copy_to_home(struct transfer *t, int in, const char *from,
	int64_t bytes, const char *path, struct err *e)
{
	struct progress bar;
	uint32_t token;
	int r;
	auto_close int out = jail_home_create(t->jail, path, &token, e);

	if (out < 0)
		return -1;
	progress_begin(&bar, t->term, from, (uint64_t)bytes);
	r = transfer_copy(
		t->signals, &bar, in, out, t->limits->max_file_bytes, e);
	progress_end(&bar);
	if (r < 0) {
		jail_home_abort(t->jail, token, NULL);
		return err_wrap(e, "%s", from);
	}
	return jail_home_commit(t->jail, token, 1, e);
}

/* What a file is called in the home. */
static int home_path(char *out, size_t size, const char *from, const char *to,
	bool to_dir, struct err *e)
{
	const char *base = path_last(from);
	int n;

	if (to[0] == '/')
		return err_set(e, "%s is not in the home", to);
	if (!to[0])
		n = snprintf(out, size, "%s", base);
	else if (to_dir)
		n = snprintf(out, size, "%s%s%s", to,
			to[strlen(to) - 1] == '/' ? "" : "/", base);
	else
		n = snprintf(out, size, "%s", to);
	if (n < 0 || (size_t)n >= size)
		return err_set(e, "%s: the name is too long", from);
	return 0;
}

int transfer_upload_one(
	struct transfer *t, const char *from, const char *to, bool to_dir)
{
	char path[JAIL_PATH_MAX], place[JAIL_PATH_MAX + 8];
	struct err e = {0};
	struct stat st;
	auto_close int in = -1;

	if (transfer_is_full(t))
		return 0;
	if (home_path(path, sizeof(path), from, to, to_dir, &e) < 0)
		return transfer_refuse(t, &e);
	in = hostfs_open_file(t->host, from, &st, &e);
	if (in < 0 && e.code == EISDIR)
		err_hint(&e, "name its files, as in DIR/*");
	if (in < 0 || transfer_check_size(t, from, st.st_size, &e) < 0 ||
		copy_to_home(t, in, from, st.st_size, path, &e) < 0)
		return transfer_refuse(t, &e);
	snprintf(place, sizeof(place), "/home/%s", path);
	transfer_said(t, path_last(path), st.st_size, place);
	return hostfs_names_add(t->arrived, path);
}

/* The names that the words stand for. */
static int collect(struct transfer *t, const struct lexer_word *from, int n,
	struct hostfs_names *names, struct err *e)
{
	size_t max = (size_t)t->limits->max_count + COUNTED;

	for (int i = 0; i < n; i++) {
		struct hostfs_names some = {0};
		auto_free char *path = NULL;

		if (!from[i].is_pattern) {
			path = hostfs_expand(t->host, from[i].s);
			if (!path || hostfs_names_add(names, path) < 0)
				return err_errno(e, "upload");
			continue;
		}
		if (hostfs_glob(t->host, from[i].pattern, max, &some, e) < 0)
			return -1;
		for (size_t k = 0; k < some.n; k++)
			hostfs_names_add(names, some.v[k]);
		if (!some.n) {
			struct err none = {0};

			err_set(&none, "%s matches nothing on the host",
				from[i].s);
			transfer_refuse(t, &none);
		}
		hostfs_names_free(&some);
	}
	return 0;
}

void transfer_note_arrived(struct transfer *t)
{
	struct jail_files files = {0};
	time_t now = time(NULL);

	if (!t->arrived->n || jail_home_list(t->jail, &files, NULL) < 0)
		return;
	for (size_t i = 0; i < t->arrived->n; i++)
		for (size_t k = 0; k < files.n; k++)
			if (!strcmp(files.v[k].path, t->arrived->v[i]))
				ledger_note(t->ledger, &files.v[k],
					LEDGER_UPLOADED, now);
	jail_files_free(&files);
}

int transfer_upload(struct transfer *t, const struct lexer_word *from, int n,
	const char *to, struct err *e)
{
	struct hostfs_names names = {0}, arrived = {0};
	const char *dst = transfer_home_name(to ? to : "");
	size_t len = strlen(dst);
	bool to_dir;
	int r = collect(t, from, n, &names, e);

	t->arrived = &arrived;
	to_dir = (len && dst[len - 1] == '/') || names.n > 1 || n > 1 ||
		 transfer_home_has_dir(t->jail, dst);
	for (size_t i = 0; r == 0 && i < names.n && !t->cancelled; i++)
		transfer_upload_one(t, names.v[i], dst, to_dir);
	transfer_report_left(t);
	transfer_note_arrived(t);
	t->arrived = NULL;
	hostfs_names_free(&names);
	hostfs_names_free(&arrived);
	return r;
}
