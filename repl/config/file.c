/* SPDX-License-Identifier: MIT */
/*
 * file.c - configuration files: opened with suspicion, read by line
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    the kernel's word on who owns an open file; no path, no content
 * Leaves:    lines, each with its number, and every error that was found
 *
 * The file is checked by its descriptor, so that what is read is what was
 * checked. It is opened without waiting: a FIFO is refused, not waited for.
 *
 * inih parses the lines, and is given one at a time: as it is usually built
 * it tells neither the handler the line number nor the caller more than the
 * first error, cuts long lines in two, and joins an indented line to the one
 * before it. So the reader counts, refuses and trims, and whatever it handed
 * over that did not come back through the handler was not KEY = VALUE.
 */
#include "file.h"

#include "config.h"
#include "jail/base/io.h"
#include "repl/text/utf8.h"
#include "value.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether only `uid` and root can have written this. */
static int check_system_owner(const struct stat *st, uid_t uid,
	const char *shown, struct config_errors *errors)
{
	if (st->st_uid != uid) {
		config_errors_add(errors, shown,
			"expected to belong to %s, but belongs to user %u",
			uid ? "the administrator" : "root", st->st_uid);
		return -1;
	}
	if (st->st_mode & (S_IWGRP | S_IWOTH)) {
		config_errors_add(errors, shown,
			"expected to be writable by its owner alone "
			"(chmod go-w)");
		return -1;
	}
	return 0;
}

static int check_file(const struct config_file *file, const struct stat *st,
	struct config_errors *errors)
{
	if (!S_ISREG(st->st_mode)) {
		config_errors_add(errors, file->shown,
			"expected a regular file, not a %s",
			S_ISDIR(st->st_mode)	? "directory"
			: S_ISFIFO(st->st_mode) ? "pipe"
						: "device or socket");
		return -1;
	}
	switch (file->trust) {
	case CONFIG_TRUST_SYSTEM:
		return check_system_owner(st, file->uid, file->shown, errors);
	case CONFIG_TRUST_OWN:
		if (st->st_uid == 0 || st->st_uid == geteuid())
			return 0;
		config_errors_add(errors, file->shown,
			"expected to belong to you, but belongs to user %u",
			st->st_uid);
		return -1;
	case CONFIG_TRUST_NAMED:
		return 0;
	}
	return -1;
}

/* A missing file is no error, but where the person named it. */
static int open_failed(
	const struct config_file *file, struct config_errors *errors)
{
	if (errno == ENOENT && file->trust != CONFIG_TRUST_NAMED)
		return 0;
	if (errno == ENOTDIR && file->trust == CONFIG_TRUST_OWN)
		return 0;
	if (errno == ELOOP && file->trust == CONFIG_TRUST_SYSTEM)
		config_errors_add(errors, file->shown,
			"expected a file, not a symbolic link");
	else if (errno == ENXIO)
		config_errors_add(errors, file->shown,
			"expected a regular file, not a device or socket");
	else
		config_errors_add(
			errors, file->shown, "open: %s", strerror(errno));
	return -1;
}

static int read_bounded(
	int fd, const char *shown, char *text, struct config_errors *errors)
{
	ssize_t n = io_read_full(fd, text, CONFIG_FILE_MAX + 1);

	if (n < 0)
		config_errors_add(errors, shown, "read: %s", strerror(errno));
	else if (n > CONFIG_FILE_MAX)
		config_errors_add(errors, shown, "expected at most %d bytes",
			CONFIG_FILE_MAX);
	else
		return (int)n;
	return -1;
}

int config_file_read(const struct config_file *file, char **text, size_t *n,
	struct config_errors *errors)
{
	int link = file->trust == CONFIG_TRUST_SYSTEM ? O_NOFOLLOW : 0;
	auto_close int fd = openat(file->dirfd, file->name,
		O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | link);
	auto_free char *buf = NULL;
	struct stat st;
	int got;

	if (fd < 0)
		return open_failed(file, errors);
	if (fstat(fd, &st) < 0) {
		config_errors_add(
			errors, file->shown, "stat: %s", strerror(errno));
		return -1;
	}
	if (check_file(file, &st, errors) < 0)
		return -1;
	buf = malloc(CONFIG_FILE_MAX + 2);
	if (!buf) {
		config_errors_add(errors, file->shown, "out of memory");
		return -1;
	}
	got = read_bounded(fd, file->shown, buf, errors);
	if (got < 0)
		return -1;
	buf[got] = '\0';
	*n = (size_t)got;
	*text = buf;
	buf = NULL;
	return 1;
}

int config_dir_open(int dirfd, const char *name, const char *shown, uid_t uid,
	int *fd, struct config_errors *errors)
{
	auto_close int dir = openat(
		dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (dir < 0 && errno == ENOENT)
		return 0;
	if (dir < 0 && errno == ENOTDIR) {
		config_errors_add(errors, shown,
			"expected a directory, and no symbolic link");
		return -1;
	}
	if (dir < 0 || fstat(dir, &st) < 0) {
		config_errors_add(errors, shown, "open: %s", strerror(errno));
		return -1;
	}
	if (check_system_owner(&st, uid, shown, errors) < 0)
		return -1;
	*fd = fd_take(&dir);
	return 1;
}

/* One pass over one file. */
struct pass {
	const char *shown;
	const char *next; /* what is not read yet */
	const char *end;
	int line;
	bool pending; /* inih has a line that it must bring back */
	bool commented;
	void (*take)(void *ctx, const struct config_line *line);
	void *ctx;
	struct config_errors *errors;
	char place[PATH_MAX + 16];
};

static const char *place(struct pass *p)
{
	snprintf(p->place, sizeof(p->place), "%s:%d", p->shown, p->line);
	return p->place;
}

/* inih would begin a comment at a ; within quotes. It never sees one: a
 * control character, which no line has, stands for it on the way. */
#define QUOTED_SEMICOLON '\x01'

static void show_quoted(char *s)
{
	for (; *s; s++)
		if (*s == QUOTED_SEMICOLON)
			*s = ';';
}

static bool is_comment(const char *line, const char *at)
{
	return *at == ';' && at > line && strchr(" \t", at[-1]);
}

/* Take a comment off a line, and hide what only looks like one. A quote that
 * nothing closes hides nothing. */
static void hide_quoted(struct pass *p, char *s)
{
	char *quote = NULL; /* the one that is open */
	char *at;

	for (at = s; *at && (quote || !is_comment(s, at)); at++) {
		if (*at == '"')
			quote = quote ? NULL : at;
		else if (quote && *at == '\\' && at[1])
			at++;
		else if (quote && *at == ';')
			*at = QUOTED_SEMICOLON;
	}
	if (quote) {
		show_quoted(quote);
		for (at = quote; *at && !is_comment(s, at); at++)
			;
	}
	p->commented = *at;
	*at = '\0';
}

/* A line came back. */
static int handle(
	void *user, const char *section, const char *name, const char *value)
{
	struct pass *p = user;
	char text[CONFIG_LINE_MAX + 1] = "";
	struct config_line line = {
		place(p), section, name, text, p->line, p->commented};

	if (!value)
		return 1;
	snprintf(text, sizeof(text), "%s", value);
	show_quoted(text);
	p->pending = false;
	if (!section[0])
		config_errors_add(p->errors, line.place,
			"expected a [section] before the first key");
	else if (!config_section_exists(section))
		return 1; /* said where it began */
	else if (!name[0])
		config_errors_add(
			p->errors, line.place, "expected a key before the =");
	else
		p->take(p->ctx, &line);
	return 1;
}

/* A line did not come back. */
static void settle(struct pass *p)
{
	if (p->pending)
		config_errors_add(p->errors, place(p),
			"expected [section], or key = value");
	p->pending = false;
}

/* Judge "[section]"; `s` has `n` bytes and starts with the bracket. */
static void check_section(struct pass *p, const char *s, size_t n)
{
	char name[CONFIG_LINE_MAX + 1];
	const char *end = memchr(s, ']', n), *near;
	size_t len = end ? (size_t)(end - s) + 1 : n;
	const char *rest = s + len + strspn(s + len, " \t");

	if (!end || (rest < s + n && *rest != ';' && *rest != '#')) {
		config_errors_add(p->errors, place(p),
			"expected [section] alone on its line");
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)len - 2, s + 1);
	if (config_section_exists(name))
		return;
	near = config_section_nearest(name);
	config_errors_add(p->errors, place(p), "no section [%s]%s%s%s", name,
		near ? "; did you mean [" : "", near ? near : "",
		near ? "]?" : "");
}

/* Whether the line, trimmed, is something for inih; what is not has been
 * said. */
static bool check_line(struct pass *p, const char *s, size_t n, int room)
{
	if (!n || *s == '#' || *s == ';')
		return false;
	if (n > CONFIG_LINE_MAX || (int)n + 3 > room) {
		config_errors_add(p->errors, place(p),
			"expected a line of at most %d bytes", CONFIG_LINE_MAX);
		return false;
	}
	if (!utf8_is_text(s, n, "\t")) {
		config_errors_add(p->errors, place(p),
			"expected UTF-8 text without control characters");
		return false;
	}
	return true;
}

/* inih asks for a line: hand it one, trimmed, or an empty one. */
static char *feed(char *str, int num, void *stream)
{
	struct pass *p = stream;
	const char *s = p->next, *eol;
	size_t n;

	settle(p);
	if (p->next >= p->end || num < 4)
		return NULL;
	p->line++;
	eol = memchr(s, '\n', (size_t)(p->end - s));
	p->next = eol ? eol + 1 : p->end;
	n = (size_t)((eol ? eol : p->end) - s);
	for (; n && (*s == ' ' || *s == '\t'); n--)
		s++;
	while (n && strchr(" \t\r", s[n - 1]))
		n--;
	str[0] = '\0';
	if (!check_line(p, s, n, num))
		return str;
	if (*s == '[')
		check_section(p, s, n);
	p->pending = *s != '[';
	/* A broken heading still ends the section before it. */
	if (*s == '[' && !memchr(s, ']', n))
		snprintf(str, (size_t)num, "[?]");
	else
		snprintf(str, (size_t)num, "%.*s", (int)n, s);
	if (p->pending)
		hide_quoted(p, str);
	return str;
}

void config_file_parse(const char *shown, const char *text, size_t n,
	void (*take)(void *ctx, const struct config_line *line), void *ctx,
	struct config_errors *errors)
{
	struct pass p = {
		.shown = shown,
		.next = text,
		.end = text + n,
		.take = take,
		.ctx = ctx,
		.errors = errors,
	};
	const char *nul = memchr(text, '\0', n);

	if (nul) {
		for (p.line = 1; p.next < nul; p.next++)
			p.line += *p.next == '\n';
		config_errors_add(
			errors, place(&p), "expected text, not a NUL byte");
		return;
	}
	if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		p.next += 3;
	if (ini_parse_stream(feed, &p, handle, &p) < 0)
		config_errors_add(errors, shown, "out of memory");
	settle(&p);
}
