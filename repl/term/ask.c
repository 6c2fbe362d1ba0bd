/* SPDX-License-Identifier: MIT */
/*
 * ask.c - asks the person's terminal which pictures it can draw
 *
 * Runs in:   front end, before a picture, until the terminal has answered
 * Trusts:    the terminal's answers about its own abilities, nothing else
 * Leaves:    no answer among the keys
 */
#include "repl/term/term.h"

#include "jail/base/io.h"

#include <errno.h>

#define ESC "\033"
#define ASK_TRIES 3
/* From this many bytes on we hold the beginning of an answer. */
#define ASK_SURE 3
#define ST ESC "\\"

/* Kitty's query with a picture of one pixel, which is not drawn; the size of a
 * cell, as iTerm2 and as xterm report it; the number of sixel's colours. */
#define GRAPHICS                                                               \
	ESC "_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA" ST ESC                          \
	    "]1337;ReportCellSize" ST ESC "[16t" ESC "[?1;1;0S"
/* Set a 24-bit colour and ask for the SGR state (DECRQSS). GNU screen passes a
 * DCS on to the outer terminal, whose cursor is in another row. */
#define COLOUR ESC "[48;2;1;2;3m" ESC "P$qm" ST ESC "[m"
#define FENCE ESC "[c"
#define ERASE "\r" ESC "[K"

static bool begins_with_word(const char *value, const char *const *words)
{
	for (; value && *words; words++)
		if (!strncmp(value, *words, strlen(*words)))
			return true;
	return false;
}

/* The Linux console prints strings that it does not know, and answers only the
 * fence. */
void ask_write(struct ask *a, struct strbuf *out)
{
	const char *term = getenv("TERM"), *depth = getenv("COLORTERM");

	a->asked++;
	a->true_colour = begins_with_word(
		depth, (const char *[]){"truecolor", "24bit", NULL});
	if (!begins_with_word(term, (const char *[]){"linux", NULL})) {
		strbuf_puts(out, GRAPHICS);
		if (!begins_with_word(term, (const char *[]){"screen", NULL}))
			strbuf_puts(out, COLOUR);
	}
	strbuf_puts(out, FENCE ERASE);
}

/* ---- answers ---- */

static void take_kitty(struct ask *a, const char *s)
{
	a->kitty |= strstr(s, "i=31") && strstr(s, ";OK" ST);
}

/* Height;width;scale: the size in points, and the pixels of a point. */
static void take_iterm2(struct ask *a, const char *s)
{
	char *end;
	double height = strtod(strchr(s, '=') + 1, &end), width = 0, scale = 1;

	a->iterm2 = true;
	if (*end == ';')
		width = strtod(end + 1, &end);
	if (*end == ';')
		scale = strtod(end + 1, &end);
	if (height >= 1 && height < 1000 && width >= 1 && width < 1000 &&
		scale >= 0.5 && scale < 10) {
		a->cell_height = (int)(height * scale);
		a->cell_width = (int)(width * scale);
	}
}

static void take_colour(struct ask *a, const char *s)
{
	a->true_colour |= s[2] == '1' && strstr(s, "48") &&
			  (strstr(s, "1:2:3") || strstr(s, "1;2;3"));
}

static void take_size(struct ask *a, const char *s)
{
	char *end;
	long height = strtol(s + 4, &end, 10);
	long width = *end == ';' ? strtol(end + 1, NULL, 10) : 0;

	if (height >= 1 && height < 1000 && width >= 1 && width < 1000) {
		a->cell_height = (int)height;
		a->cell_width = (int)width;
	}
}

/* "?1;0;256S": success, 256 sixel colours. "?62;4;22c" (DA1): 4 is sixel. */
static void take_private(struct ask *a, const char *s)
{
	bool fence = s[strlen(s) - 1] == 'c';
	char *end = (char *)s + 2;
	long v[16] = {0};

	for (int i = 0; i < 16; i++) {
		v[i] = strtol(end + 1, &end, 10);
		a->sixel |= fence && i > 0 && v[i] == 4;
		if (*end != ';')
			break;
	}
	a->answered |= fence;
	if (!fence && v[0] == 1 && v[1] == 0 && v[2] > 1)
		a->registers = v[2] < 256 ? (int)v[2] : 256;
}

/* The forms of answers. */
static const struct form {
	const char *begin, *finals; /* NULL: a string, ended by ST or BEL */
	void (*take)(struct ask *a, const char *s);
} forms[] = {
	{ESC "_G", NULL, take_kitty},
	{ESC "]1337;ReportCellSize=", NULL, take_iterm2},
	{ESC "P0$r", NULL, take_colour},
	{ESC "P1$r", NULL, take_colour},
	{ESC "[6;", "t", take_size},
	{ESC "[?", "cS", take_private},
};

enum ask_verdict { NO, PERHAPS, YES };

/* Match n bytes, the last of which is new, against one form. */
static enum ask_verdict match_form(
	const struct form *f, const char *s, size_t n)
{
	size_t begin = strlen(f->begin);
	char last = s[n - 1];

	if (n <= begin)
		return memcmp(s, f->begin, n) ? NO : PERHAPS;
	if (memcmp(s, f->begin, begin) != 0)
		return NO;
	if (f->finals)
		return strchr(f->finals, last) && last		     ? YES
		       : (last >= '0' && last <= '9') || last == ';' ? PERHAPS
								     : NO;
	if (last == '\a' || (last == '\\' && s[n - 2] == *ESC))
		return YES;
	return last == *ESC || (last >= ' ' && last < 0x7f) ? PERHAPS : NO;
}

/* Match the held bytes against all forms; take a whole answer. */
static enum ask_verdict match_answer(struct ask *a)
{
	enum ask_verdict best = NO;

	for (size_t i = 0; i < COUNT(forms); i++) {
		enum ask_verdict v = match_form(&forms[i], a->begun, a->n);

		if (v == YES) {
			a->begun[a->n] = '\0';
			forms[i].take(a, a->begun);
			return YES;
		}
		best = v == PERHAPS ? v : best;
	}
	return a->n == sizeof(a->begun) - 1 ? NO : best;
}

void ask_give_back(struct ask *a, struct strbuf *keys)
{
	strbuf_add(keys, a->begun, a->n);
	a->n = 0;
}

/* Keep holding ASK_SURE bytes or more of an answer; give back fewer. */
static void settle_unsure(struct ask *a, struct strbuf *keys)
{
	if (a->answered || a->n < ASK_SURE)
		ask_give_back(a, keys);
}

static void take_bytes(
	struct ask *a, const char *s, size_t n, struct strbuf *keys)
{
	for (size_t i = 0; i < n; i++) {
		enum ask_verdict v;

		a->begun[a->n++] = s[i];
		v = match_answer(a);
		if (v == YES)
			a->n = 0;
		if (v != NO)
			continue;
		a->n--;
		ask_give_back(a, keys);
		if (s[i] == *ESC)
			a->begun[a->n++] = s[i];
		else
			strbuf_add(keys, &s[i], 1);
	}
}

void ask_wait(struct ask *a, const struct terminal *t, struct strbuf *keys)
{
	int64_t end = now_ms() + ASK_WAIT_MS;

	while (!a->answered) {
		struct pollfd p = {.fd = t->in, .events = POLLIN};
		int64_t left = end - now_ms();
		char buf[1024];
		ssize_t n;

		if (left <= 0 || (poll(&p, 1, (int)left) < 0 && errno != EINTR))
			break;
		if (!p.revents)
			continue;
		n = read(t->in, buf, sizeof(buf));
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
		if (n > 0)
			take_bytes(a, buf, (size_t)n, keys);
	}
	settle_unsure(a, keys);
}

void ask_filter(struct ask *a, const char *s, size_t n, struct strbuf *keys)
{
	if (a->answered || !a->asked)
		strbuf_add(keys, s, n);
	else
		take_bytes(a, s, n, keys);
	settle_unsure(a, keys);
}

bool ask_is_due(const struct ask *a)
{
	return !a->answered && a->asked < ASK_TRIES;
}
