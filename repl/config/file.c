/* SPDX-License-Identifier: MIT */
/*
 * file.c - configuration files: opened with suspicion, read by line
 *
 * Runs in:   front end, before the warden is forked
 * Trusts:    the kernel about the owner of an open file; no path, no content
 * Leaves:    lines, each with its number, and every error that was found
 *
 * The checks use the descriptor that is read, not the path. The open does not
 * wait: a FIFO is refused.
 *
 * inih reads the lines. As it is usually built it gives the handler no line
 * number and the caller only the first error, cuts long lines in two, and
 * joins an indented line to the one before. So we count, trim and check each
 * line before we give it to inih.
 */
#include "config.h"

#include "jail/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <sys/stat.h>

/* Check that only `uid` and root can have written a file. 0, or -1 with an
 * error added. */
static int check_system_owner(const struct stat *st, uid_t uid,
	const char *shown, struct config_errors *errors)
{
	if (st->st_uid != uid)
		return config_errors_add(errors, shown,
			"expected to belong to %s, but belongs to user %u",
			uid ? "the administrator" : "root", st->st_uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return config_errors_add(errors, shown,
			"expected to be writable by its owner alone "
			"(chmod go-w)");
	return 0;
}

static int check_file(const struct config_file *file, const struct stat *st,
	struct config_errors *errors)
{
	if (!S_ISREG(st->st_mode))
		return config_errors_add(errors, file->asked,
			"expected a regular file, not a %s",
			S_ISDIR(st->st_mode)	? "directory"
			: S_ISFIFO(st->st_mode) ? "pipe"
						: "device or socket");
	if (file->trust == CONFIG_TRUST_SYSTEM)
		return check_system_owner(st, file->uid, file->asked, errors);
	if (file->trust == CONFIG_TRUST_OWN && st->st_uid != 0 &&
		st->st_uid != geteuid())
		return config_errors_add(errors, file->asked,
			"expected to belong to you, but belongs to user %u",
			st->st_uid);
	return 0;
}

/* Report that a file could not be opened. A missing file is an error only if
 * the person named it. */
static int report_open_error(
	const struct config_file *file, struct config_errors *errors)
{
	if (errno == ENOENT && file->trust != CONFIG_TRUST_NAMED)
		return 0;
	if (errno == ENOTDIR && file->trust == CONFIG_TRUST_OWN)
		return 0;
	if (errno == ELOOP && file->trust == CONFIG_TRUST_SYSTEM)
		return config_errors_add(errors, file->asked,
			"expected a file, not a symbolic link");
	if (errno == ENXIO)
		return config_errors_add(errors, file->asked,
			"expected a regular file, not a device or socket");
	if (errno == EACCES && file->trust == CONFIG_TRUST_SYSTEM)
		return config_errors_add(errors, file->asked,
			"expected to be readable by everybody (as root: chmod "
			"a+r)");
	return config_errors_add(
		errors, file->asked, "open: %s", strerror(errno));
}

/* Read the whole file into a new, NUL-terminated allocation. 1; 0 when there is
 * none; -1 with an error added. */
static int read_text(const struct config_file *file, char **text, size_t *n,
	struct config_errors *errors)
{
	int link = file->trust == CONFIG_TRUST_SYSTEM ? O_NOFOLLOW : 0;
	auto_close int fd = openat(file->dirfd, file->name,
		O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | link);
	struct stat st;
	ssize_t got;

	if (fd < 0)
		return report_open_error(file, errors);
	if (fstat(fd, &st) < 0)
		return config_errors_add(
			errors, file->asked, "stat: %s", strerror(errno));
	if (check_file(file, &st, errors) < 0)
		return -1;
	*text = malloc(CONFIG_FILE_MAX + 2);
	if (!*text)
		return config_errors_add(errors, file->asked, "out of memory");
	got = io_read_full(fd, *text, CONFIG_FILE_MAX + 1);
	if (got < 0)
		return config_errors_add(
			errors, file->asked, "read: %s", strerror(errno));
	if (got > CONFIG_FILE_MAX)
		return config_errors_add(errors, file->shown,
			"expected at most %d bytes", CONFIG_FILE_MAX);
	(*text)[got] = '\0';
	*n = (size_t)got;
	return 1;
}

int config_file_open_dir(int dirfd, const char *name, const char *shown,
	uid_t uid, int *fd, struct config_errors *errors)
{
	auto_close int dir = openat(
		dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (dir < 0 && errno == ENOENT)
		return 0;
	if (dir < 0 && errno == ENOTDIR)
		return config_errors_add(errors, shown,
			"expected a directory, and no symbolic link");
	if (dir < 0 && errno == EACCES)
		return config_errors_add(errors, shown,
			"expected to be readable by everybody (as root: chmod "
			"a+rx)");
	if (dir < 0 || fstat(dir, &st) < 0)
		return config_errors_add(
			errors, shown, "open: %s", strerror(errno));
	if (check_system_owner(&st, uid, shown, errors) < 0)
		return -1;
	*fd = fd_take(&dir);
	return 1;
}

/* ---- lines ---- */

/* One pass over one file. */
struct file_pass {
	const char *shown;
	bool (*knows)(const char *section);
	const char *next; /* the line to read next */
	int line;
	bool commented; /* a comment follows the value of this line */
	char value[CONFIG_LINE_MAX + 1];
	void (*take)(void *ctx, const struct config_line *line);
	void *ctx;
	struct config_errors *errors;
	char place[PATH_MAX + 16];
};

static const char *format_place(struct file_pass *p)
{
	snprintf(p->place, sizeof(p->place), "%s:%d", p->shown, p->line);
	return p->place;
}

static bool is_comment(const char *line, const char *at)
{
	return *at == ';' && at > line && strchr(" \t", at[-1]);
}

/* Cut a comment, and the blanks before it, off a line. No comment begins
 * between two quotes; an open quote hides no comment. */
static void cut_comment(struct file_pass *p, char *s)
{
	char *quote = NULL; /* the open one */
	char *at;

	for (at = s; *at && (quote || !is_comment(s, at)); at++) {
		if (*at == '"')
			quote = quote ? NULL : at;
		else if (quote && *at == '\\' && at[1])
			at++;
	}
	if (quote)
		for (at = quote; *at && !is_comment(s, at); at++)
			;
	p->commented = *at;
	while (at > s && strchr(" \t", at[-1]))
		at--;
	*at = '\0';
}

/* inih calls this with a key and its section. */
static int handle_pair(
	void *user, const char *section, const char *name, const char *value)
{
	struct file_pass *p = user;
	struct config_line line = {format_place(p), section, name, p->value,
		p->line, p->commented};

	if (!value) /* some builds of inih call this for a section, too */
		return 1;
	if (!section[0])
		config_errors_add(p->errors, line.place,
			"expected a [section] before the first key");
	else if (p->knows(section) && !name[0])
		config_errors_add(
			p->errors, line.place, "expected a key before the =");
	else if (p->knows(section))
		p->take(p->ctx, &line);
	return 1;
}

/* Check a line that starts with a bracket. */
static void check_section(struct file_pass *p, char *s)
{
	char *end = strchr(s, ']');
	const char *rest = end ? end + 1 + strspn(end + 1, " \t") : "";
	const struct config_key *near;

	if (!end || (*rest && *rest != ';' && *rest != '#')) {
		config_errors_add(p->errors, format_place(p),
			"expected [section] alone on its line");
		/* A broken heading still ends the section before it. */
		if (!end)
			strcpy(s, "[?]");
		return;
	}
	*end = '\0';
	near = config_keys_nearest(s + 1, NULL);
	if (!p->knows(s + 1))
		config_errors_add(p->errors, format_place(p),
			"no section [%s]%s%s%s", s + 1,
			near ? "; did you mean [" : "",
			near ? near->section : "", near ? "]?" : "");
	*end = ']';
}

/* True if inih may see these `n` bytes; `room` is the size of its buffer. False
 * for an empty line and a comment, and with an error added. */
static bool check_line(struct file_pass *p, const char *s, size_t n, int room)
{
	if (!n || *s == '#' || *s == ';')
		return false;
	if (n > CONFIG_LINE_MAX || (int)n + 3 > room)
		config_errors_add(p->errors, format_place(p),
			"expected a line of at most %d bytes", CONFIG_LINE_MAX);
	else if (!utf8_is_text(s, n, "\t"))
		config_errors_add(p->errors, format_place(p),
			"expected UTF-8 text without control characters");
	else
		return true;
	return false;
}

/* inih calls this for each line. Give inih the next line, trimmed, or an empty
 * one. Keep the value here: inih would begin a comment at a ; between quotes.
 */
static char *feed_line(char *str, int room, void *stream)
{
	struct file_pass *p = stream;
	const char *s = p->next + strspn(p->next, " \t");
	size_t n = strcspn(s, "\n");
	char *sign;
	const char *at;

	if (!*p->next)
		return NULL;
	p->line++;
	p->next = s + n + (s[n] == '\n');
	while (n && strchr(" \t\r", s[n - 1]))
		n--;
	str[0] = '\0';
	if (!check_line(p, s, n, room))
		return str;
	snprintf(str, (size_t)room, "%.*s", (int)n, s);
	if (*str == '[') {
		check_section(p, str);
		return str;
	}
	cut_comment(p, str);
	sign = strpbrk(str, "=:");
	for (at = str; at < sign && !is_comment(str, at); at++)
		;
	if (at != sign) {
		config_errors_add(p->errors, format_place(p),
			"expected [section], or key = value");
		str[0] = '\0';
		return str;
	}
	strcpy(p->value, sign + 1 + strspn(sign + 1, " \t"));
	sign[1] = '\0';
	return str;
}

static bool is_of_configuration(const char *section)
{
	return config_keys_find(section, NULL);
}

void config_file_read(const struct config_file *file,
	void (*take)(void *ctx, const struct config_line *line), void *ctx,
	struct config_errors *errors)
{
	auto_free char *text = NULL;
	struct file_pass p = {.shown = file->shown,
		.knows = file->knows ? file->knows : is_of_configuration,
		.take = take,
		.ctx = ctx,
		.errors = errors};
	size_t n = 0, nul;

	if (read_text(file, &text, &n, errors) <= 0)
		return;
	p.next = text;
	nul = strlen(text);
	if (nul < n) {
		for (p.line = 1; p.next < text + nul; p.next++)
			p.line += *p.next == '\n';
		config_errors_add(errors, format_place(&p),
			"expected text, not a NUL byte");
		return;
	}
	if (!strncmp(text, "\xef\xbb\xbf", 3)) /* a byte order mark */
		p.next += 3;
	if (ini_parse_stream(feed_line, &p, handle_pair, &p) < 0)
		config_errors_add(errors, file->shown, "out of memory");
	/* A plan has what no jail may have, and jails have copies of our
	 * memory. */
	explicit_bzero(text, n);
	explicit_bzero(&p, sizeof(p));
}
