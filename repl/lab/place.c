/* SPDX-License-Identifier: MIT */
/*
 * place.c - the directory that keeps what is handed in, and the records there
 *
 * Runs in:   root: a child of the service, or --collect
 * Trusts:    the system's configuration, and directories that root alone can
 *            change. Names and bytes of files are a stranger's
 * Leaves:    whole versions; what a killed process leaves, the person's next
 *            hand-in removes
 *
 * A version gets its number by a rename, when its files and its record are on
 * the disk. The lock of a file in the person's directory gives two hand-ins two
 * numbers, also on two hosts: NFS keeps locks of files that are open for
 * writing, and none of directories.
 */
#include "repl/lab/lab.h"

#include "jail/base/io.h"
#include "jail/base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The version that is not finished. */
#define TEMP ".new"
/* The file that is locked during a hand-in. */
#define LOCK ".lock"
/* The least that a file, or a directory, takes on the disk. */
#define BLOCK 4096
/* The most that a file's name takes in the directory of a version and in its
 * record, however often the file itself is shared. */
#define NAME_ROOM 1024
#define RECORD_MAX (1 << 20)
#define COURSE "{course}"

/* ---- names ---- */

int place_name(const struct config_lab *lab, const char *course,
	char path[static PATH_MAX], struct err *e)
{
	const char *from = lab->submit, *at;
	size_t n = 0;

	if (!from)
		return err_set(e, "lab.submit names no directory");
	if (strstr(from, COURSE) && !course)
		return err_set(e, "lab.submit needs a course, and lab.course "
				  "names none");
	for (; (at = strstr(from, COURSE)); from = at + strlen(COURSE))
		n += (size_t)snprintf(path + n, n < PATH_MAX ? PATH_MAX - n : 0,
			"%.*s%s", (int)(at - from), from, course);
	n += (size_t)snprintf(
		path + n, n < PATH_MAX ? PATH_MAX - n : 0, "%s", from);
	return n < PATH_MAX ? 0 : err_set(e, "lab.submit is too long");
}

/* ---- directories ---- */

/* Check that nobody but root can put something else in its place. */
static int check_owner(int fd, bool last, const char *path, struct err *e)
{
	struct stat st;
	mode_t others = S_IWGRP | S_IWOTH;

	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", path);
	if (st.st_uid != geteuid())
		return err_set(e, "%s belongs to uid %u", path, st.st_uid);
	/* In a directory such as /tmp nobody renames root's. */
	if (st.st_mode & others && (last || !(st.st_mode & S_ISVTX)))
		return err_set(
			e, "%s can be changed by others than root", path);
	return 0;
}

int place_walk(const char *path, const char *from, struct err *e)
{
	auto_close int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *rest = path;
	/* `here` is the directory reached so far: an error names that. */
	char name[NAME_MAX + 1], here[PATH_MAX] = "/";
	int more = 1;

	while (dir >= 0 && (more = path_next(&rest, name)) > 0) {
		struct path_walk how = {.mode = from && rest > from ? 0700 : 0};
		int next = path_enter(dir, name, &how);

		fd_drop(&dir);
		dir = next;
		snprintf(here, sizeof(here), "%.*s", (int)(rest - path), path);
		if (dir >= 0 && check_owner(dir, !*rest, here, e) < 0)
			return -1;
	}
	if (dir >= 0 && more == 0)
		return fd_take(&dir);
	if (errno == ELOOP || errno == ENOTDIR)
		return err_set(
			e, "%s: no directory, or a link is in the way", here);
	return err_errno(e, "%s", more < 0 ? path : here);
}

/* The number that a name is; 0: it is none. */
static uint32_t number_of(const char *name)
{
	size_t n = strspn(name, "0123456789");

	if (name[n] || !n || n > PLACE_DIGITS || name[0] == '0')
		return 0;
	return (uint32_t)strtoul(name, NULL, 10);
}

int64_t place_newest(int dir)
{
	DIR *d = io_list(dir);
	const struct dirent *entry;
	int64_t newest = 0;

	if (!d)
		return -1;
	while ((entry = readdir(d)))
		if (number_of(entry->d_name) > newest)
			newest = number_of(entry->d_name);
	closedir(d);
	return newest;
}

/* Remove a directory of files. */
static void remove_version(int dir, const char *name)
{
	DIR *d = io_list_taken(openat(
		dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	const struct dirent *entry;

	if (!d)
		return;
	while ((entry = readdir(d)))
		if (!path_is_dots(entry->d_name))
			unlinkat(dirfd(d), entry->d_name, 0);
	closedir(d);
	unlinkat(dir, name, AT_REMOVEDIR);
}

/* Remove what a killed process has left. */
static void remove_rest(int dir)
{
	DIR *d = io_list(dir);
	const struct dirent *entry;

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] == '.' && !path_is_dots(entry->d_name) &&
			!number_of(entry->d_name + 1) &&
			strcmp(entry->d_name, LOCK) != 0 &&
			unlinkat(dir, entry->d_name, 0) < 0)
			remove_version(dir, entry->d_name);
	if (d)
		closedir(d);
}

/* ---- records ---- */

static int take_file(const json_t *o, struct place_file *f)
{
	const char *name, *hash, *receipt;
	json_int_t version, bytes, when;

	if (json_unpack((json_t *)o, "{s:s, s:s, s:s, s:I, s:I, s:I}", "name",
		    &name, "sha256", &hash, "receipt", &receipt, "version",
		    &version, "bytes", &bytes, "when_s", &when) < 0 ||
		!asked_may_be_name(name))
		return -1;
	*f = (struct place_file){
		.version = (uint32_t)version, .bytes = bytes, .when_s = when};
	snprintf(f->name, sizeof(f->name), "%s", name);
	snprintf(f->sha256, sizeof(f->sha256), "%s", hash);
	snprintf(f->receipt, sizeof(f->receipt), "%s", receipt);
	return 0;
}

static int take_record(const json_t *o, struct place_record *r)
{
	json_int_t version, when, kept;
	json_t *files;

	if (json_unpack((json_t *)o, "{s:I, s:I, s:I, s:o}", "version",
		    &version, "when_s", &when, "kept", &kept, "files",
		    &files) < 0 ||
		json_array_size(files) > PLACE_FILES)
		return -1;
	*r = (struct place_record){.version = (uint32_t)version,
		.when_s = when,
		.kept = kept,
		.n = json_array_size(files)};
	for (size_t i = 0; i < r->n; i++)
		if (take_file(json_array_get(files, i), &r->files[i]) < 0)
			return -1;
	return 0;
}

int place_read(
	int dir, uint32_t version, struct place_record *record, struct err *e)
{
	auto_free char *text = NULL;
	char name[16];
	json_t *o;
	size_t n;
	int r;

	*record = (struct place_record){.version = version};
	if (!version)
		return 0;
	snprintf(name, sizeof(name), ".%" PRIu32, version);
	if (io_read_file(dir, name, RECORD_MAX, &text, &n) < 0)
		return err_errno(
			e, "read the record of version %" PRIu32, version);
	o = json_loadb(text, n, 0, NULL);
	r = o ? take_record(o, record) : -1;
	json_decref(o);
	return r < 0 ? err_set(e, "the record of version %" PRIu32 " is broken",
			       version)
		     : 0;
}

static json_t *make_record(const struct place_draft *p)
{
	const struct place_record *r = &p->record;
	json_t *files = json_array();
	int failed = !files;

	for (size_t i = 0; i < r->n; i++) {
		const struct place_file *f = &r->files[i];

		failed |= json_array_append_new(files,
			json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name",
				f->name, "sha256", f->sha256, "receipt",
				f->receipt, "version", (json_int_t)f->version,
				"bytes", (json_int_t)f->bytes, "when_s",
				(json_int_t)f->when_s));
	}
	if (failed) {
		json_decref(files);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "course",
		p->course, "exercise", p->exercise, "person", p->person,
		"version", (json_int_t)r->version, "when_s",
		(json_int_t)r->when_s, "kept", (json_int_t)r->kept, "files",
		files);
}

static int write_record(const struct place_draft *p)
{
	json_t *o = make_record(p);
	auto_free char *text = o ? json_dumps(o, JSON_INDENT(1)) : NULL;
	struct io_newfile f;
	char name[16];
	int r = -1;

	json_decref(o);
	if (!text) {
		errno = ENOMEM;
		return -1;
	}
	snprintf(name, sizeof(name), ".%" PRIu32, p->record.version);
	if (io_newfile_create(&f, p->dir, 0600) < 0)
		return -1;
	if (io_write_full(f.fd, text, strlen(text)) == 0 && fsync(f.fd) == 0)
		r = io_newfile_commit(&f, name, true);
	io_newfile_abort(&f);
	return r;
}

/* ---- a person's directory ---- */

/* The part of lab.submit from which on we make directories: a file system that
 * is not mounted leaves an empty directory, in which nothing is made. */
static const char *made_from(const struct config_lab *lab, const char *path)
{
	const char *course = strstr(lab->submit, COURSE);
	size_t n = strlen(lab->submit);

	if (course)
		for (n = (size_t)(course - lab->submit);
			lab->submit[n - 1] != '/'; n--)
			;
	return path + n;
}

int place_course(const struct config_lab *lab)
{
	char path[PATH_MAX];

	if (place_name(lab, lab->course, path, NULL) < 0)
		return -1;
	return place_walk(path, made_from(lab, path), NULL);
}

static int open_person(
	struct place_draft *p, const struct config_lab *lab, struct err *e)
{
	char path[PATH_MAX], full[PATH_MAX + 512];

	if (place_name(lab, lab->course, path, e) < 0)
		return -1;
	snprintf(full, sizeof(full), "%s/%s/%s", path, p->exercise, p->person);
	p->dir = place_walk(full, full + (made_from(lab, path) - path), e);
	return p->dir;
}

static int lock_person(struct place_draft *p, int lock_ms, struct err *e)
{
	p->lock = openat(
		p->dir, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (p->lock < 0)
		return err_errno(e, "lock what was handed in before");
	if (io_lock(p->lock, lock_ms) < 0)
		return err_set(e, "you are handing in something else, and that "
				  "has not ended");
	return 0;
}

int place_open(struct place_draft *p, const struct config *cfg,
	const char *person, int lock_ms, struct err *e)
{
	const struct config_lab *lab = &cfg->lab;
	int64_t newest;

	*p = (struct place_draft){
		.dir = -1, .lock = -1, .temp = -1, .quota = lab->quota};
	if (!lab->exercise)
		return err_set(
			e, "lab.exercise does not say what is handed in");
	if (!path_is_name(person) || person[0] == '.')
		return err_set(e, "no directory can have the name of the "
				  "account");
	snprintf(p->course, sizeof(p->course), "%s",
		lab->course ? lab->course : "");
	snprintf(p->exercise, sizeof(p->exercise), "%s", lab->exercise);
	snprintf(p->person, sizeof(p->person), "%s", person);
	if (open_person(p, lab, e) < 0 || lock_person(p, lock_ms, e) < 0)
		return -1;
	remove_rest(p->dir);
	newest = place_newest(p->dir);
	if (newest < 0)
		return err_errno(e, "look at what was handed in before");
	return place_read(p->dir, (uint32_t)newest, &p->record, e);
}

void place_close(struct place_draft *p)
{
	if (p->temp >= 0)
		remove_version(p->dir, TEMP);
	fd_drop(&p->temp);
	fd_drop(&p->lock);
	fd_drop(&p->dir);
}

/* ---- a new version ---- */

static int64_t blocks(int64_t bytes)
{
	return (bytes + BLOCK - 1) / BLOCK * BLOCK + BLOCK;
}

static int fail(struct err *e, const char *name)
{
	err_errno(e, "%s: keep it", name);
	if (e->code == ENOSPC || e->code == EDQUOT)
		err_hint(e, "the host has no room for it: tell the "
			    "administrator; what you handed in before is kept");
	return -1;
}

/* Begin the version, and take the room that its directory needs. */
static int begin_version(struct place_draft *p, struct err *e)
{
	if (p->temp >= 0)
		return 0;
	if (p->record.version >= 999999999)
		return err_set(e, "there are too many versions");
	if (mkdirat(p->dir, TEMP, 0700) < 0)
		return fail(e, "a new version");
	p->temp = openat(
		p->dir, TEMP, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->temp < 0)
		return fail(e, "a new version");
	p->record.version++;
	p->record.kept += BLOCK + NAME_ROOM * (int64_t)p->record.n;
	return 0;
}

/* Take the room of a file, whose name is new in the record or not. */
static int check_quota(struct place_draft *p, struct place_incoming *in,
	bool is_new, struct err *e)
{
	const char *name = in->file.name;
	int64_t bytes = in->file.bytes, left = p->quota - p->record.kept;
	char size[TEXT_HUMAN], quota[TEXT_HUMAN], rest[TEXT_HUMAN];

	if (bytes <= p->quota) {
		in->room = blocks(bytes) + (is_new ? NAME_ROOM : 0);
		if (in->room <= left) {
			p->record.kept += in->room;
			return 0;
		}
	}
	return err_set(e,
		"%s has %s: all versions together may have %s, and %s is left",
		name, text_size(size, (uint64_t)bytes),
		text_size(quota, (uint64_t)p->quota),
		text_size(rest, left > 0 ? (uint64_t)left : 0));
}

/* Where the record has a file of this name, or has room for it; PLACE_FILES:
 * nowhere. */
static size_t find_file(const struct place_record *r, const char *name)
{
	size_t i = 0;

	while (i < r->n && strcmp(r->files[i].name, name) != 0)
		i++;
	return i;
}

static int hash_file(int fd, char digits[static PLACE_SHA256])
{
	char piece[16 << 10];
	SHA2_CTX hash;
	ssize_t n;

	SHA256Init(&hash);
	while ((n = io_read_full(fd, piece, sizeof(piece))) > 0)
		SHA256Update(&hash, (const uint8_t *)piece, (size_t)n);
	SHA256End(&hash, digits);
	return n < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

bool place_has(struct place_draft *p, const char *name, int fd)
{
	size_t i = find_file(&p->record, name);
	char digits[PLACE_SHA256];
	struct stat st;

	if (i == p->record.n || fstat(fd, &st) < 0 ||
		st.st_size != p->record.files[i].bytes ||
		hash_file(fd, digits) < 0 ||
		strcmp(digits, p->record.files[i].sha256) != 0)
		return false;
	p->came[i] = true;
	return true;
}

int place_begin(struct place_draft *p, struct place_incoming *in,
	const char *name, int64_t bytes, struct err *e)
{
	size_t i = find_file(&p->record, name);

	*in = (struct place_incoming){
		.fd = -1, .left = bytes, .file = {.bytes = bytes}};
	snprintf(in->file.name, sizeof(in->file.name), "%s", name);
	if (i == PLACE_FILES)
		return err_set(e,
			"you have handed in %d files, and there may "
			"be no more",
			PLACE_FILES);
	if (p->came[i])
		return err_set(e,
			"%s comes twice: files that are handed in "
			"together have different names",
			name);
	if (begin_version(p, e) < 0 ||
		check_quota(p, in, i == p->record.n, e) < 0)
		return -1;
	in->fd = openat(p->temp, name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (in->fd < 0) {
		p->record.kept -= in->room;
		return fail(e, name);
	}
	in->hash = malloc(sizeof(SHA2_CTX));
	if (!in->hash)
		return fail(e, name);
	SHA256Init(in->hash);
	return 0;
}

int place_add(
	struct place_incoming *in, const void *buf, size_t n, struct err *e)
{
	if ((int64_t)n > in->left)
		return err_set(e, "%s: more came than was said", in->file.name);
	in->left -= (int64_t)n;
	SHA256Update(in->hash, buf, n);
	return io_write_full(in->fd, buf, n) < 0 ? fail(e, in->file.name) : 0;
}

void place_withdraw(struct place_draft *p, struct place_incoming *in)
{
	if (unlinkat(p->temp, in->file.name, 0) == 0)
		p->record.kept -= in->room;
}

int place_end(struct place_draft *p, struct place_incoming *in, struct err *e)
{
	struct place_record *r = &p->record;
	size_t i = find_file(r, in->file.name);

	SHA256End(in->hash, in->file.sha256);
	if (fsync(in->fd) < 0)
		return fail(e, in->file.name);
	r->files[i] = in->file;
	p->came[i] = p->fresh[i] = true;
	r->n += i == r->n;
	return 0;
}

void place_drop(struct place_incoming *in)
{
	fd_drop(&in->fd);
	free(in->hash);
	in->hash = NULL;
}

/* Make the receipt of a file: a few digits of a hash of all that root's record
 * says of it. */
static void give_receipt(const struct place_draft *p, struct place_file *f)
{
	char text[1024], digits[PLACE_SHA256];

	snprintf(text, sizeof(text), "%s/%s/%s/%" PRIu32 "/%" PRId64 "/%s/%s",
		p->course, p->exercise, p->person, f->version, f->when_s,
		f->sha256, f->name);
	SHA256Data((const uint8_t *)text, strlen(text), digits);
	snprintf(f->receipt, sizeof(f->receipt), "%.4s-%.2s", digits,
		digits + 4);
}

/* Put the files of the version before, which were not handed in again, into
 * this one. */
static int link_old(const struct place_draft *p)
{
	auto_close int old = -1;
	char name[16];

	if (p->record.version == 1)
		return 0;
	snprintf(name, sizeof(name), "%" PRIu32, p->record.version - 1);
	old = openat(
		p->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (old < 0)
		return -1;
	for (size_t i = 0; i < p->record.n; i++)
		if (!p->fresh[i] &&
			linkat(old, p->record.files[i].name, p->temp,
				p->record.files[i].name, 0) < 0)
			return -1;
	return 0;
}

int place_commit(struct place_draft *p, int64_t when_s, struct err *e)
{
	struct place_record *r = &p->record;
	char name[16];

	r->when_s = when_s;
	for (size_t i = 0; i < r->n; i++) {
		if (!p->fresh[i])
			continue;
		r->files[i].version = r->version;
		r->files[i].when_s = when_s;
		give_receipt(p, &r->files[i]);
	}
	snprintf(name, sizeof(name), "%" PRIu32, r->version);
	if (link_old(p) < 0 || fsync(p->temp) < 0 || write_record(p) < 0 ||
		renameat(p->dir, TEMP, p->dir, name) < 0)
		return fail(e, "a new version");
	fd_drop(&p->temp);
	return fsync(p->dir) < 0 ? fail(e, "a new version") : 0;
}
