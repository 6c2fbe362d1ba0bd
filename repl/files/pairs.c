/* SPDX-License-Identifier: MIT */
/*
 * pairs.c - what is copied unasked: the skeleton, -u and -d
 *
 * Runs in:   front end, before the first cell or program and after the last
 * Trusts:    the administrator about the skeleton: its place is not the
 *            person's to choose, so the directories of a locked session do not
 *            bind it
 */
#include "impl.h"

#include "hostfs.h"
#include "jail/base/err.h"
#include "jail/base/io.h"
#include "jail/base/newfile.h"
#include "jail/limits.h"
#include "repl/text/lexer.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* 0, or -1: something was refused, and that was said. */
static int result(struct transfer *t, int r, const struct err *e)
{
	if (r < 0)
		t->refuse(t->arg, e);
	return r < 0 || t->failed ? -1 : 0;
}

static void say_nothing(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

int transfer_skeleton(const struct transfer *with, const char *dir)
{
	struct transfer t = *with;
	struct hostfs free_host = {0};
	struct limits limits = *with->limits;

	if (!dir)
		return 0;
	limits.max_count = INT_MAX;
	limits.max_file_bytes = INT64_MAX;
	t.limits = &limits;
	t.host = &free_host;
	t.say = say_nothing;
	transfer_upload_tree(&t, dir);
	return result(&t, 0, NULL);
}

int transfer_upload_pair(
	const struct transfer *with, const char *from, const char *to)
{
	struct transfer t = *with;
	struct lexer_word w = {.s = (char *)from, .pattern = (char *)from};
	struct err e = {0};
	int r = transfer_upload(&t, &w, 1, to, &e);

	return result(&t, r, &e);
}

int transfer_download_pair(
	const struct transfer *with, const char *from, const char *to)
{
	struct transfer t = *with;
	struct lexer_word w = {.s = (char *)from,
		.pattern = (char *)from,
		.is_pattern = strpbrk(from, "*?[") != NULL};
	struct err e = {0};
	int r = transfer_download(&t, &w, 1, to, &e);

	return result(&t, r, &e);
}

int transfer_check_target(
	const struct hostfs *host, const char *to, struct err *e)
{
	auto_free char *path = hostfs_expand(host, to ? to : ".");
	auto_close int dir = -1;
	struct newfile f;

	if (!path)
		return err_errno(e, "download");
	dir = hostfs_open_dir(host, HOSTFS_WRITE, path, e);
	if (dir < 0)
		return err_wrap(e, "download to");
	if (hostfs_create(&f, dir, NULL, e) < 0)
		return err_wrap(e, "download to %s", path);
	newfile_abort(&f);
	return 0;
}
