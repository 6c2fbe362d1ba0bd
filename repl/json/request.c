/* SPDX-License-Identifier: MIT */
/*
 * request.c - one JSON request: two forms, checked in every field
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: a request is a client's
 * Leaves:    a request in which every field is valid, or a refusal
 *
 * snekbox checks with Python's jsonschema, which finds all mistakes and reports
 * one: of the least deep mistakes the one whose path is last in the alphabet.
 * Its clients get the same mistake here, in the same words.
 */
#include "repl/json/json.h"

#include "jail/base/array.h"
#include "jail/spec.h"
#include "repl/text/text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kernel's limit on one argument; ours on their number (wire.h), and on all
 * of them together, which is below the kernel's. */
#define ARG_BYTES_MAX (128 << 10)
#define ARGS_MAX 4096
#define ARGS_BYTES_MAX (1 << 20)
/* Most stars in one name of a pattern: fnmatch(3) tries everything that each of
 * them can match. */
#define STARS_MAX 2
/* Most bytes of code and variables together: less than wire.c takes. */
#define SOURCE_MAX (32 << 20)

static const char invalid[] = "Request data failed validation";
static const char bad_file[] = "Request file is invalid";

int request_refuse(
	struct request_refusal *why, const char *title, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	why->title = title;
	strbuf_puts(&why->description, text);
	return -1;
}

/* ---- the words of jsonschema ---- */

/* Refuse a value: its repr(), then what is wrong with it. */
static int refuse_value(
	struct request_refusal *why, const json_t *v, const char *what)
{
	struct strbuf *b = &why->description;

	why->title = invalid;
	python_repr(b, v);
	if (b->n > PYTHON_REPR_MAX) {
		b->n = PYTHON_REPR_MAX;
		while (b->n > 0 && ((unsigned char)b->s[b->n] & 0xc0) == 0x80)
			b->n--;
		strbuf_puts(b, "...");
	}
	strbuf_printf(b, " %s", what);
	return -1;
}

static int check_type(
	struct request_refusal *why, const json_t *v, json_type type)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "is not of type 'object'",
		[JSON_ARRAY] = "is not of type 'array'",
		[JSON_STRING] = "is not of type 'string'",
	};

	return !v || json_typeof(v) == type ? 0
					    : refuse_value(why, v, names[type]);
}

/* Check the items of a list. The last mistake counts. */
static int check_strings(struct request_refusal *why, const json_t *list)
{
	for (size_t i = json_array_size(list); i-- > 0;)
		if (check_type(why, json_array_get(list, i), JSON_STRING) < 0)
			return -1;
	return 0;
}

static int check_files_items(struct request_refusal *why, const json_t *files)
{
	for (size_t i = json_array_size(files); i-- > 0;) {
		const json_t *f = json_array_get(files, i);

		if (check_type(why, f, JSON_OBJECT) < 0)
			return -1;
		if (!json_object_get(f, "path"))
			return request_refuse(
				why, invalid, "'path' is a required property");
	}
	return 0;
}

/* True if re.search() finds ^(?!/)(?!.*\\0).*$: no slash in front, no backslash
 * before a zero in the first line, and no second line. */
static bool path_matches(const char *s, size_t n)
{
	const char *nl = memchr(s, '\n', n);
	size_t line = nl ? (size_t)(nl - s) : n;

	return (n == 0 || s[0] != '/') && !memmem(s, line, "\\0", 2) &&
	       line + 1 >= n;
}

static int check_file(struct request_refusal *why, const json_t *f)
{
	const json_t *path = json_object_get(f, "path");

	if (check_type(why, path, JSON_STRING) < 0)
		return -1;
	if (!path_matches(json_string_value(path), json_string_length(path)))
		return refuse_value(
			why, path, "does not match '^(?!/)(?!.*\\\\\\\\0).*$'");
	return check_type(why, json_object_get(f, "content"), JSON_STRING);
}

static int check_files(struct request_refusal *why, const json_t *files)
{
	for (size_t i = json_array_size(files); i-- > 0;)
		if (check_file(why, json_array_get(files, i)) < 0)
			return -1;
	return 0;
}

/* Check the least deep values first, the deepest last. */
static int check_snekbox(struct request_refusal *why, const json_t *root)
{
	const json_t *files, *args;

	if (check_type(why, root, JSON_OBJECT) < 0)
		return -1;
	files = json_object_get(root, "files");
	args = json_object_get(root, "args");
	if (!args && !json_object_get(root, "input"))
		return refuse_value(why, root,
			"is not valid under any of the given schemas");
	if (check_type(why, json_object_get(root, "input"), JSON_STRING) < 0 ||
		check_type(why, files, JSON_ARRAY) < 0 ||
		check_type(why, json_object_get(root, "executable_path"),
			JSON_STRING) < 0 ||
		check_type(why, args, JSON_ARRAY) < 0 ||
		check_files_items(why, files) < 0 ||
		check_strings(why, args) < 0)
		return -1;
	return check_files(why, files);
}

/* ---- files ---- */

/* Remove "." and ".." from a path of the home, without looking at any file.
 * NULL: the path leads out of the home. */
static char *clean_path(const char *path)
{
	size_t n = 0, len;
	/* The home counts as /home: "../home/x" is "x". */
	char *to = malloc(strlen(path) + 8);

	if (!to)
		return NULL;
	strcpy(to, "/home");
	n = 5;
	for (; *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.'))
			continue;
		if (len == 2 && !memcmp(path, "..", 2)) {
			while (n > 0 && to[--n] != '/')
				;
			to[n] = '\0';
			continue;
		}
		to[n++] = '/';
		memcpy(to + n, path, len);
		n += len;
		to[n] = '\0';
	}
	if (strncmp(to, "/home", 5) != 0 || (to[5] && to[5] != '/')) {
		free(to);
		return NULL;
	}
	/* The home itself becomes ".". It is no file, and is refused later. */
	memmove(to, to[5] ? to + 6 : ".", strlen(to[5] ? to + 6 : ".") + 1);
	return to;
}

static int take_content(struct request_file *f, const json_t *content,
	const struct request_rules *rules, struct request_refusal *why)
{
	size_t n = content ? json_string_length(content) : 0;

	f->content = malloc(BASE64_ROOM(n));
	if (!f->content)
		return request_refuse(why, bad_file, "out of memory");
	if (n && base64_decode(
			 json_string_value(content), n, f->content, &f->n) < 0)
		return request_refuse(why, bad_file,
			"Invalid base64 encoding for file '%.900s'", f->path);
	if ((int64_t)f->n > rules->limits->max_file_bytes)
		return request_refuse(why, bad_file,
			"File '%.900s' is larger than files.max_file", f->path);
	return 0;
}

static int take_file(struct request_file *f, const json_t *file,
	const struct request_rules *rules, struct request_refusal *why)
{
	const json_t *path = json_object_get(file, "path");

	f->path = json_string_value(path);
	f->fd = -1;
	if (strlen(f->path) != json_string_length(path))
		return request_refuse(why, bad_file,
			"File path '%.900s' may not hold a NUL", f->path);
	f->clean = clean_path(f->path);
	if (!f->clean)
		return request_refuse(why, bad_file,
			"File path '%.900s' may not traverse beyond root",
			f->path);
	return take_content(f, json_object_get(file, "content"), rules, why);
}

static int take_files(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	const json_t *files = json_object_get(r->root, "files");
	size_t n = json_array_size(files);

	if (n > (size_t)rules->limits->max_count)
		return request_refuse(why, bad_file,
			"%zu files are more than files.max_count, %d", n,
			rules->limits->max_count);
	r->files = calloc(n + 1, sizeof(*r->files));
	if (!r->files)
		return request_refuse(why, bad_file, "out of memory");
	for (size_t i = 0; i < n; i++) {
		r->nfiles = i + 1;
		if (take_file(&r->files[i], json_array_get(files, i), rules,
			    why) < 0)
			return -1;
	}
	return 0;
}

/* ---- snekbox's form ---- */

static void take_argument(struct request *r, size_t *n, const json_t *text)
{
	const char *s = json_string_value(text);

	if (*n == 0 && json_string_length(text) == 0)
		return;
	r->has_nul |= strlen(s) != json_string_length(text);
	r->args[(*n)++] = s;
}

static bool find_python(
	struct request *r, const char *path, const struct request_rules *rules)
{
	for (size_t i = 0; i < rules->npythons; i++) {
		if (strcmp(rules->pythons[i], path) != 0 &&
			strcmp(rules->resolved[i], path) != 0)
			continue;
		r->python = i;
		return true;
	}
	return false;
}

static int check_args(
	const struct request *r, size_t n, struct request_refusal *why)
{
	size_t total = 0, len = 0;

	for (size_t i = 0; i < n && len <= ARG_BYTES_MAX; i++) {
		len = strlen(r->args[i]) + 1;
		total += len;
	}
	if (len > ARG_BYTES_MAX)
		return request_refuse(why, invalid,
			"an argument, as 'input' is, is longer than %d bytes",
			ARG_BYTES_MAX - 1);
	if (n > ARGS_MAX)
		return request_refuse(why, invalid,
			"there are more than %d arguments", ARGS_MAX);
	if (total > ARGS_BYTES_MAX)
		return request_refuse(why, invalid,
			"the arguments are longer than %d bytes together",
			ARGS_BYTES_MAX);
	return 0;
}

/* Take the interpreter that the request names, if it may be used. In a locked
 * configuration the refusal does not say what else the host has. */
static int take_python(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	static const char missing[] = "executable_path does not exist";
	const json_t *v = json_object_get(r->root, "executable_path");
	const char *path = json_string_value(v);
	bool has_nul = path && strlen(path) != json_string_length(v);
	char real[PATH_MAX];
	struct stat st;

	if (!path || (!has_nul && (!*path || find_python(r, path, rules))))
		return 0;
	if (rules->locked || has_nul || !realpath(path, real) ||
		stat(real, &st) < 0)
		return request_refuse(why, missing, "%.900s", path);
	if (!S_ISREG(st.st_mode))
		return request_refuse(
			why, "executable_path is not a file", "%.900s", path);
	if (find_python(r, real, rules))
		return 0;
	return request_refuse(why, "executable_path is not executable",
		st.st_mode & 0111 ? "%.900s is not one of python.executable"
				  : "%.900s",
		path);
}

static int take_snekbox(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	const json_t *args = json_object_get(r->root, "args");
	const json_t *input = json_object_get(r->root, "input");
	size_t n = 0;

	if (check_snekbox(why, r->root) < 0 || take_python(r, rules, why) < 0)
		return -1;
	r->args = calloc(json_array_size(args) + 3, sizeof(*r->args));
	if (!r->args)
		return request_refuse(why, invalid, "out of memory");
	for (size_t i = 0; i < json_array_size(args); i++)
		take_argument(r, &n, json_array_get(args, i));
	if (input && !args)
		r->args[n++] = "-c";
	if (input)
		take_argument(r, &n, input);
	if (check_args(r, n, why) < 0)
		return -1;
	return take_files(r, rules, why);
}

/* ---- our form ---- */

static int refuse_key(
	struct request_refusal *why, const char *name, const char *what)
{
	struct strbuf *b = &why->description;

	why->title = invalid;
	python_repr_text(b, name, strlen(name));
	strbuf_puts(b, what);
	return -1;
}

static int check_key(
	struct request_refusal *why, const char *name, const json_t *v)
{
	const struct request_field *f = fields_find(fields_code_request, name);
	char words[40];

	if (!f)
		return refuse_key(
			why, name, " is not a key of this form of request");
	if (fields_takes(f, v))
		return 0;
	strbuf_printf(&why->description, "%s: ", name);
	snprintf(words, sizeof(words), "is not of type '%s'", f->type);
	return refuse_value(why, v, words);
}

static int check_keys(struct request_refusal *why, json_t *root)
{
	const char *name;
	json_t *v;

	json_object_foreach(root, name, v)
	{
		if (check_key(why, name, v) < 0)
			return -1;
	}
	return 0;
}

/* Refuse other keys: a file that names one of a store must not silently become
 * an empty file. */
static int check_files_keys(struct request_refusal *why, const json_t *files)
{
	size_t i;
	json_t *file, *v;
	const char *name;

	json_array_foreach(files, i, file)
	{
		json_object_foreach(file, name, v)
		{
			if (strcmp(name, "path") != 0 &&
				strcmp(name, "content") != 0)
				return refuse_key(why, name,
					" is not a key of a file here: it has "
					"'path' and 'content'");
		}
	}
	return 0;
}

static bool is_identifier(const char *s)
{
	size_t n = strlen(s);
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";

	if (n == 0 || !strchr(letters, s[0]))
		return false;
	/* Names such as __name__ belong to Python. */
	if (n > 4 && !strncmp(s, "__", 2) && !strcmp(s + n - 2, "__"))
		return false;
	for (; *s; s++)
		if (!strchr(letters, *s) && (*s < '0' || *s > '9'))
			return false;
	return true;
}

static int check_variables(struct request_refusal *why, json_t *variables)
{
	const char *name;
	json_t *v;

	json_object_foreach(variables, name, v)
	{
		if (is_identifier(name))
			continue;
		strbuf_puts(&why->description, "variables: ");
		return refuse_key(why, name,
			" is not a name of ASCII letters, digits and "
			"underscores, or it has two at both ends");
	}
	return 0;
}

static int take_timeout(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	const json_t *v = json_object_get(r->root, "timeout_ms");
	json_int_t most = rules->limits->cell_wall_ms;

	r->timeout_ms = v ? json_integer_value(v) : most;
	if (r->timeout_ms < 1) {
		strbuf_puts(&why->description, "timeout_ms: ");
		return refuse_value(why, v, "is less than the minimum of 1");
	}
	if (r->timeout_ms > most)
		return request_refuse(why, invalid,
			"timeout_ms exceeds maximum of %lld ms",
			(long long)most);
	return 0;
}

static void take_input(struct request *r)
{
	const json_t *input = json_object_get(r->root, "stdin");

	if (!json_is_string(input))
		return;
	r->input = json_string_value(input);
	r->input_n = json_string_length(input);
}

/* Make the source that jail/guest/request.py reads. */
static int make_source(struct request *r, struct request_refusal *why)
{
	const json_t *variables = json_object_get(r->root, "variables");
	const json_t *shows = json_object_get(r->root, "last_line_interactive");
	struct strbuf *b = &r->source;

	/* A jail that an older maker made takes three. */
	python_marshal_tuple(b, r->works ? 5 : r->bundles ? 4 : 3);
	python_marshal_bytes(b, r->code, r->code_n);
	if (variables)
		python_marshal(b, variables);
	else
		strbuf_puts(b, "{0");
	strbuf_puts(b, json_is_false(shows) ? "F" : "T");
	if (r->bundles || r->works)
		strbuf_puts(b, r->bundles ? "T" : "F");
	if (r->works)
		strbuf_puts(b, "T");
	if (b->n > SOURCE_MAX)
		return request_refuse(
			why, invalid, "variables: longer than 32 MiB");
	return b->failed ? request_refuse(why, invalid, "out of memory") : 0;
}

static int take_ours(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	const json_t *code = json_object_get(r->root, "code");
	const json_t *files = json_object_get(r->root, "files");

	if (check_keys(why, r->root) < 0 || check_files_items(why, files) < 0 ||
		check_files(why, files) < 0 ||
		check_files_keys(why, files) < 0 ||
		check_variables(why, json_object_get(r->root, "variables")) <
			0 ||
		take_timeout(r, rules, why) < 0)
		return -1;
	r->code = json_string_value(code);
	r->code_n = json_string_length(code);
	if ((int64_t)r->code_n > rules->limits->source_bytes)
		return request_refuse(why, invalid,
			"code: longer than cell.source, %lld bytes",
			(long long)rules->limits->source_bytes);
	r->bundles = json_is_true(json_object_get(r->root, "mime"));
	r->works = rules->works;
	take_input(r);
	return take_files(r, rules, why);
}

int request_add_main(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	struct limits limits = *rules->limits;
	struct request_rules roomier = *rules;

	if (!memmem(r->code, r->code_n, "__file__", strlen("__file__")))
		return 0;
	limits.max_count++;
	roomier.limits = &limits;
	return request_add_content(
		r, "__main__.py", r->code, r->code_n, &roomier, why);
}

static int take_alone(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	if (json_is_true(json_object_get(r->root, "session")))
		return request_refuse(why, invalid,
			"session: goes alone, on the first line of a stream");
	if (take_ours(r, rules, why) < 0)
		return -1;
	r->form = REQUEST_OURS;
	return make_source(r, why);
}

/* ---- sessions ---- */

/* Standard input of a cell must hold no control keys: Ctrl-C would interrupt
 * the cell. */
static int take_cell(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	for (const struct request_field *f = fields_code_request; f->name; f++)
		if (json_object_get(r->root, f->name) &&
			!fields_find(fields_cell_request, f->name))
			return request_refuse(
				why, invalid, "%s: not in a session", f->name);
	if (take_ours(r, rules, why) < 0)
		return -1;
	if (r->input_n && !utf8_is_text(r->input, r->input_n, "\t\n"))
		return request_refuse(why, invalid,
			"stdin: no control characters in a session");
	r->form = REQUEST_CELL;
	return 0;
}

static int check_pattern(const char *p, struct request_refusal *why)
{
	int stars = 0;

	for (; *p; p++) {
		if (*p == '/')
			stars = 0;
		else if (*p == '*' && ++stars > STARS_MAX)
			return request_refuse(why, invalid,
				"read: more than two stars in one name");
	}
	return 0;
}

static int take_undo(
	struct request *r, const json_t *v, struct request_refusal *why)
{
	const struct request_field *f =
		fields_find(fields_undo_request, "undo");
	json_int_t n = json_integer_value(v);
	char words[64] = "is not of type 'integer'";

	r->form = REQUEST_UNDO;
	r->undo = n < f->least || n > f->most ? 0 : (int)n;
	if (r->undo)
		return 0;
	if (json_is_integer(v))
		snprintf(words, sizeof(words),
			n < f->least ? "is less than the minimum of %lld"
				     : "is greater than the maximum of %lld",
			(long long)(n < f->least ? f->least : f->most));
	strbuf_puts(&why->description, "undo: ");
	return refuse_value(why, v, words);
}

/* Take a command: an object with one key. */
static int take_command(struct request *r, struct request_refusal *why)
{
	const json_t *undo = json_object_get(r->root, "undo");
	const json_t *pattern = json_object_get(r->root, "read");

	if (json_object_size(r->root) != 1) {
		return refuse_value(why, r->root,
			"is neither a cell nor one of undo, reset and read");
	} else if (undo) {
		return take_undo(r, undo, why);
	} else if (json_is_true(json_object_get(r->root, "reset"))) {
		r->form = REQUEST_RESET;
	} else if (json_is_string(pattern)) {
		r->form = REQUEST_READ;
		r->pattern = json_string_value(pattern);
		if (strlen(r->pattern) != json_string_length(pattern))
			return request_refuse(
				why, invalid, "read: may not hold a NUL");
		return check_pattern(r->pattern, why);
	} else {
		return refuse_value(why, r->root,
			"is neither a cell nor one of undo, reset and read");
	}
	return 0;
}

static int take_session(struct request *r, struct request_refusal *why)
{
	r->form = REQUEST_SESSION;
	return json_object_size(r->root) == 1
		       ? 0
		       : request_refuse(why, invalid,
				 "session: goes alone, on the first line of a "
				 "stream");
}

static int take_in_session(struct request *r, const struct request_rules *rules,
	struct request_refusal *why)
{
	return json_object_get(r->root, "code") ? take_cell(r, rules, why)
						: take_command(r, why);
}

/* ---- both ---- */

bool request_is_deep(const char *text, size_t n)
{
	bool quoted = false;
	int depth = 0, values = 0, nkeys = 0;

	for (size_t i = 0;
		i < n && depth <= REQUEST_DEPTH_MAX &&
		values <= REQUEST_VALUES_MAX && nkeys <= REQUEST_KEYS_MAX;
		i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted)
			depth += (text[i] == '{' || text[i] == '[') -
				 (text[i] == '}' || text[i] == ']');
		values += !quoted && strchr(",[{", text[i]) && text[i];
		nkeys += !quoted && text[i] == ':';
	}
	return depth > REQUEST_DEPTH_MAX || values > REQUEST_VALUES_MAX ||
	       nkeys > REQUEST_KEYS_MAX;
}

int request_parse(struct request *r, const char *text, size_t n,
	const struct request_rules *rules, struct request_refusal *why)
{
	json_error_t e;

	*r = (struct request){0};
	*why = (struct request_refusal){0};
	r->root = json_loadb(text, n,
		JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
	if (!r->root)
		return request_refuse(why, "Invalid JSON",
			"Could not parse JSON body - %.900s", e.text);
	if (rules->session)
		return take_in_session(r, rules, why);
	if (json_object_get(r->root, "code"))
		return take_alone(r, rules, why) < 0
			       ? -1
			       : request_add_main(r, rules, why);
	if (json_is_true(json_object_get(r->root, "session")))
		return take_session(r, why);
	return take_snekbox(r, rules, why);
}

int request_take(struct request *r, json_t *root,
	const struct request_rules *rules, struct request_refusal *why)
{
	*r = (struct request){.root = root};
	*why = (struct request_refusal){0};
	return rules->session ? take_in_session(r, rules, why)
			      : take_alone(r, rules, why);
}

int request_add_file(struct request *r, const char *path, int fd, off_t from,
	size_t n, const struct request_rules *rules,
	struct request_refusal *why)
{
	struct request_file *f;

	if (r->nfiles >= (size_t)rules->limits->max_count ||
		array_grow(&r->files, r->nfiles, sizeof(*r->files)) < 0)
		return request_refuse(why, bad_file,
			"there are more files than files.max_count, %d",
			rules->limits->max_count);
	if ((int64_t)n > rules->limits->max_file_bytes)
		return request_refuse(why, bad_file,
			"File '%.900s' is larger than files.max_file", path);
	f = &r->files[r->nfiles++];
	*f = (struct request_file){
		.path = path, .fd = fd, .from = from, .n = n};
	f->clean = clean_path(path);
	return f->clean ? 0
			: request_refuse(why, bad_file,
				  "File path '%.900s' may not traverse beyond "
				  "root",
				  path);
}

int request_add_content(struct request *r, const char *path, const char *p,
	size_t n, const struct request_rules *rules,
	struct request_refusal *why)
{
	struct request_file *f;

	if (request_add_file(r, path, -1, 0, n, rules, why) < 0)
		return -1;
	f = &r->files[r->nfiles - 1];
	f->path = r->path = f->clean;
	f->content = malloc(n + 1);
	if (!f->content)
		return request_refuse(why, bad_file, "out of memory");
	if (n)
		memcpy(f->content, p, n);
	return 0;
}

void request_fini(struct request *r)
{
	for (size_t i = 0; i < r->nfiles; i++) {
		free(r->files[i].clean);
		free(r->files[i].content);
	}
	free(r->files);
	free(r->args);
	strbuf_free(&r->source);
	json_decref(r->root);
	*r = (struct request){0};
}
