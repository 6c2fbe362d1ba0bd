/* SPDX-License-Identifier: MIT */
/*
 * repeats.c - answers to requests that clients may send again
 *
 * Runs in:   front end, confined
 * Trusts:    nobody: keys and answers come from clients and programs
 * Leaves:    at most serve.answers answers of serve.answers_size bytes
 *            together, each for at most serve.answers_keep
 *
 * A client that lost its connection does not know whether its request ran. With
 * an Idempotency-Key it sends the request again and gets the first answer
 * (draft-ietf-httpapi-idempotency-key-header).
 *
 * We keep no request, only a SipHash of it under a random key, so that nobody
 * can make two requests that look equal.
 */
#include "repl/serve/parts.h"

#include "jail/base/err.h"
#include "jail/base/io.h"
#include "repl/config/config.h"

#include <string.h>
#include <sys/random.h>

struct repeat {
	struct repeats *all;
	struct repeat *next; /* NULL: the newest */
	struct connections_peer owner;
	char key[REPEATS_KEY_MAX + 1];
	uint64_t hash;
	int64_t born_ms; /* of the answer */
	int status;	 /* 0: the request runs */
	const char *type;
	struct strbuf body;
	char *place; /* of the answer; NULL: here */
};

struct repeats {
	const struct config_serve *rules; /* borrowed */
	uint64_t secret[2];
	struct repeat *first; /* the oldest */
};

/* ---- SipHash-2-4 (Aumasson and Bernstein, 2012) ---- */

static uint64_t rotate_left(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void mix_rounds(uint64_t *v, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate_left(v[1], 13) ^ v[0];
		v[3] = rotate_left(v[3], 16) ^ v[2];
		v[0] = rotate_left(v[0], 32) + v[3];
		v[2] += v[1];
		v[1] = rotate_left(v[1], 17) ^ v[2];
		v[3] = rotate_left(v[3], 21) ^ v[0];
		v[2] = rotate_left(v[2], 32);
	}
}

static void mix_word(struct repeats_hash *h, uint64_t m)
{
	h->v[3] ^= m;
	mix_rounds(h->v, 2);
	h->v[0] ^= m;
}

void repeats_hash_begin(struct repeats_hash *h, const struct repeats *s)
{
	*h = (struct repeats_hash){.v = {s->secret[0] ^ 0x736f6d6570736575,
					   s->secret[1] ^ 0x646f72616e646f6d,
					   s->secret[0] ^ 0x6c7967656e657261,
					   s->secret[1] ^ 0x7465646279746573}};
}

void repeats_hash_add(struct repeats_hash *h, const void *buf, size_t n)
{
	const unsigned char *p = buf;

	while (n--) {
		h->word |= (uint64_t)*p++ << 8 * (h->n++ % 8);
		if (h->n % 8 == 0) {
			mix_word(h, h->word);
			h->word = 0;
		}
	}
}

uint64_t repeats_hash_end(struct repeats_hash *h)
{
	mix_word(h, h->word | h->n << 56);
	h->v[2] ^= 0xff;
	mix_rounds(h->v, 4);
	return h->v[0] ^ h->v[1] ^ h->v[2] ^ h->v[3];
}

/* ---- the list ---- */

int repeats_open(struct repeats **out, const struct config_serve *rules)
{
	struct repeats *s = calloc(1, sizeof(*s));

	if (!s)
		return -1;
	s->rules = rules;
	/* getrandom(2) never fails for so few bytes once the system is up. */
	(void)!getrandom(s->secret, sizeof(s->secret), 0);
	*out = s;
	return 0;
}

void repeats_forget(struct repeat *e)
{
	struct repeat **at = &e->all->first;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	strbuf_free(&e->body);
	free(e->place);
	free(e);
}

void repeats_close(struct repeats *s)
{
	if (!s)
		return;
	while (s->first)
		repeats_forget(s->first);
	free(s);
}

/* The oldest answer of a client (NULL: of anybody), or NULL; *n and *bytes: of
 * all of them. */
static struct repeat *count_answers(const struct repeats *s,
	const struct connections_peer *who, int64_t *n, int64_t *bytes)
{
	struct repeat *oldest = NULL;

	*n = *bytes = 0;
	for (struct repeat *e = s->first; e; e = e->next) {
		if (!e->status || (who && !connections_is_same(e->owner, *who)))
			continue;
		++*n;
		*bytes += (int64_t)e->body.n;
		if (!oldest)
			oldest = e;
	}
	return oldest;
}

/* Forget the oldest answers, of one client (NULL: of anybody), until there is
 * room for one more with so many bytes. */
static void make_room(struct repeats *s, const struct connections_peer *who,
	int64_t most, int64_t most_bytes, int64_t more)
{
	struct repeat *oldest;
	int64_t n, bytes;

	while ((oldest = count_answers(s, who, &n, &bytes)) &&
		(n >= most || bytes + more > most_bytes))
		repeats_forget(oldest);
}

void repeats_count(const struct repeats *s, int64_t *n, int64_t *bytes)
{
	count_answers(s, NULL, n, bytes);
}

void repeats_sweep(struct repeats *s)
{
	int64_t now = now_ms();
	struct repeat *next;

	for (struct repeat *e = s->first; e; e = next) {
		next = e->next;
		if (e->status && now - e->born_ms > s->rules->answers_keep_ms)
			repeats_forget(e);
	}
}

/* ---- one request ---- */

enum repeats_found repeats_begin(struct repeats *s,
	struct connections_peer owner, const char *key, uint64_t hash,
	struct repeat **out)
{
	struct repeat *e, **at = &s->first;

	repeats_sweep(s);
	for (; *at; at = &(*at)->next)
		if (!strcmp((*at)->key, key) &&
			connections_is_same((*at)->owner, owner))
			break;
	*out = e = *at;
	if (e)
		return e->hash != hash ? REPEATS_OTHER
		       : e->status     ? REPEATS_ANSWERED
				       : REPEATS_RUNS;
	*out = e = *at = calloc(1, sizeof(*e));
	if (!e)
		return REPEATS_NO_MEMORY;
	e->all = s;
	e->owner = owner;
	e->hash = hash;
	strncpy(e->key, key, REPEATS_KEY_MAX);
	return REPEATS_NEW;
}

/* Move an entry behind all others: its answer is the newest. */
static void move_to_end(struct repeat *e)
{
	struct repeat **at = &e->all->first;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	while (*at)
		at = &(*at)->next;
	*at = e;
	e->next = NULL;
}

bool repeats_fits(const struct repeat *e, size_t n)
{
	return (int64_t)n <= store_share_of_client(e->all->rules->answers_size);
}

void repeats_answer(struct repeat *e, int status, const char *type,
	const struct strbuf *body)
{
	const struct config_serve *c = e->all->rules;
	int64_t n = (int64_t)body->n;

	make_room(e->all, &e->owner, store_share_of_client(c->answers),
		store_share_of_client(c->answers_size), n);
	make_room(e->all, NULL, c->answers, c->answers_size, n);
	if (n)
		strbuf_add(&e->body, body->s, body->n);
	e->status = e->body.failed ? 500 : status;
	e->type = type;
	e->born_ms = now_ms();
	move_to_end(e);
}

void repeats_answer_elsewhere(struct repeat *e, const char *place)
{
	static const struct strbuf none;

	e->place = strdup(place);
	repeats_answer(e, e->place ? 303 : 500, NULL, &none);
}

const char *repeats_place(const struct repeat *e)
{
	return e->place;
}

int repeats_status(const struct repeat *e, const char **type)
{
	*type = e->type;
	return e->status;
}

const struct strbuf *repeats_body(const struct repeat *e)
{
	return &e->body;
}
