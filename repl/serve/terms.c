/* SPDX-License-Identifier: MIT */
/*
 * terms.c - what a client asks of a session that begins, or goes on
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: the body is a client's
 * Leaves:    limits that are no looser than the configuration, or a refusal
 */
#include "repl/serve/parts.h"

#include "jail/base/io.h"
#include "jail/spec.h"
#include "repl/config/config.h"
#include "repl/json/json.h"

#include <string.h>

#define METADATA_KEYS 16
#define METADATA_BYTES 4096

static const char invalid[] = "Request data failed validation";

static int check_field(const struct request_field *f, const char *name,
	const json_t *v, struct request_refusal *why)
{
	if (!f)
		return request_refuse(
			why, invalid, "%.100s: there is no such key", name);
	if (!fields_takes(f, v))
		return request_refuse(
			why, invalid, "%s: is not of type '%s'", name, f->type);
	if (json_is_integer(v) && json_integer_value(v) < f->least)
		return request_refuse(why, invalid,
			"%s: is less than the minimum of %lld", name,
			(long long)f->least);
	return 0;
}

static const char no_object[] = "the body must be an object of JSON";

static int check_object(const struct request_field *fields, json_t *o,
	struct request_refusal *why)
{
	const char *name;
	json_t *v;

	if (!json_is_object(o))
		return request_refuse(why, invalid, no_object);
	json_object_foreach(o, name, v)
	{
		if (check_field(fields_find(fields, name), name, v, why) < 0)
			return -1;
	}
	for (; fields->name; fields++)
		if (fields->required && !json_object_get(o, fields->name))
			return request_refuse(why, invalid,
				"'%s' is a required property", fields->name);
	return 0;
}

/* NULL: a refusal. The caller frees it. */
static json_t *parse_body(const struct strbuf *body,
	const struct request_field *fields, struct request_refusal *why)
{
	json_error_t e;
	json_t *root;

	if (body->n == 0 || request_is_deep(body->s, body->n)) {
		request_refuse(why, invalid, no_object);
		return NULL;
	}
	root = json_loadb(
		body->s, body->n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
	if (!root)
		request_refuse(why, invalid,
			"Could not parse JSON body - %.900s", e.text);
	else if (check_object(fields, root, why) == 0)
		return root;
	json_decref(root);
	return NULL;
}

/* Lower *limit to the value of that name, if there is one. */
static int lower_limit(int64_t *limit, const json_t *limits, const char *name,
	const char *key, struct request_refusal *why)
{
	const json_t *v = json_object_get(limits, name);

	if (!v)
		return 0;
	if (json_integer_value(v) > *limit)
		return request_refuse(why, invalid,
			"limits: %s exceeds the maximum of %lld (%s)", name,
			(long long)*limit, key);
	*limit = json_integer_value(v);
	return 0;
}

static int take_limits(
	struct terms *t, json_t *limits, struct request_refusal *why)
{
	struct limits *l = &t->limits;
	int64_t home;

	if (!limits)
		return 0;
	if (check_object(fields_limits_request, limits, why) < 0 ||
		lower_limit(&l->cell_wall_ms, limits, "timeout_ms",
			"cell.timeout", why) < 0 ||
		lower_limit(&l->idle_ms, limits, "idle_ms", "session.idle",
			why) < 0 ||
		lower_limit(&l->lifetime_ms, limits, "lifetime_ms",
			"session.lifetime", why) < 0 ||
		lower_limit(&l->memory_bytes, limits, "memory_bytes",
			"session.memory", why) < 0)
		return -1;
	home = config_home_beside(l->memory_bytes);
	if (json_object_get(limits, "memory_bytes") && home < l->home_bytes)
		l->home_bytes = home;
	return 0;
}

static int take_metadata(
	struct terms *t, json_t *metadata, struct request_refusal *why)
{
	const char *name;
	json_t *v;

	if (!metadata)
		return 0;
	if (json_object_size(metadata) > METADATA_KEYS)
		return request_refuse(why, invalid,
			"metadata: more than %d keys", METADATA_KEYS);
	json_object_foreach(metadata, name, v)
	{
		if (!json_is_string(v))
			return request_refuse(why, invalid,
				"metadata: every value is a string");
	}
	t->metadata = json_dumps(metadata, JSON_ENSURE_ASCII);
	if (!t->metadata)
		return request_refuse(why, invalid, "metadata: out of memory");
	if (strlen(t->metadata) > METADATA_BYTES)
		return request_refuse(why, invalid,
			"metadata: longer than %d bytes", METADATA_BYTES);
	return 0;
}

int terms_parse(struct terms *t, const struct strbuf *body,
	const struct limits *most, struct request_refusal *why)
{
	json_t *root;
	int r;

	*t = (struct terms){.limits = *most};
	if (body->n == 0)
		return 0;
	root = parse_body(body, fields_session_request, why);
	if (!root)
		return -1;
	r = take_limits(t, json_object_get(root, "limits"), why);
	if (r == 0)
		r = take_metadata(t, json_object_get(root, "metadata"), why);
	json_decref(root);
	return r;
}

int terms_parse_extension(
	int64_t *ms, const struct strbuf *body, struct request_refusal *why)
{
	json_t *root = parse_body(body, fields_extend_request, why);

	if (root)
		*ms = json_integer_value(json_object_get(root, "lifetime_ms"));
	json_decref(root);
	return root ? 0 : -1;
}

void terms_fini(struct terms *t)
{
	free(t->metadata);
	t->metadata = NULL;
}

void terms_add(struct strbuf *b, const struct terms *t)
{
	emit_open(b, "limits", '{');
	emit_int(b, "timeout_ms", t->limits.cell_wall_ms);
	emit_int(b, "idle_ms", t->limits.idle_ms);
	emit_int(b, "lifetime_ms", t->limits.lifetime_ms);
	emit_int(b, "memory_bytes", t->limits.memory_bytes);
	emit_close(b, '}');
	emit_word(b, "metadata", t->metadata ? t->metadata : "{}");
}
