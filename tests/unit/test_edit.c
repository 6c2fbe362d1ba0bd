/* SPDX-License-Identifier: MIT */
/*
 * test_edit.c - keys to a cell, in the editor on a pty
 *
 * The keys lie in the editor's queue when the read begins. The last of them,
 * Alt-Enter, ends the cell.
 */
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "jail/base/err.h"
#include "repl/edit/editor.h"

#define A(c) "\033" c
#define UNDO "\037"
#define REDO A("e")
#define LEFT "\033[D"
#define HOME "\001"
#define KILL "\013"
#define YANK "\031"

/* A terminal of which nobody reads the output. */
struct play {
	int master, slave;
	struct history *history;
	struct editor *ed;
};

static int open_play(void **state)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	struct play *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	setenv("TERM", "xterm", 1);
	p->master = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(
		p->master >= 0 && !grantpt(p->master) && !unlockpt(p->master));
	p->slave = open(ptsname(p->master), O_RDWR | O_NOCTTY);
	assert_true(p->slave >= 0);
	ioctl(p->slave, TIOCSWINSZ, &size);
	p->history = history_new();
	*state = p;
	return 0;
}

static void open_editor(struct play *p, bool vi, size_t max_bytes)
{
	struct editor_opts opts = {.prompt = ">>> ",
		.prompt2 = "... ",
		.vi = vi,
		.max_bytes = max_bytes,
		.history = p->history,
		.in = p->slave,
		.out = p->slave};

	editor_close(p->ed);
	assert_int_equal(editor_open(&p->ed, &opts, NULL), 0);
}

static int close_play(void **state)
{
	struct play *p = *state;

	editor_close(p->ed);
	history_free(p->history);
	close(p->master);
	close(p->slave);
	free(p);
	return 0;
}

/* Read a cell of these keys. Its end tells where the cursor was: a bar. */
static void expect(struct play *p, const char *keys, const char *want)
{
	static const char end[] = "|\033\r";
	struct err e = {0};
	char *cell, flush[4096];
	size_t n;

	editor_type(p->ed, keys, strlen(keys));
	editor_type(p->ed, end, strlen(end));
	assert_int_equal(editor_read(p->ed, &cell, &n, &e), EDITOR_CELL);
	assert_string_equal(cell, want);
	free(cell);
	fcntl(p->master, F_SETFL, O_NONBLOCK);
	while (read(p->master, flush, sizeof(flush)) > 0)
		;
}

static void words_change_their_letters(void **state)
{
	struct play *p = *state;

	open_editor(p, false, 0);
	expect(p, "one two" HOME A("u"), "ONE| two");
	expect(p, "One TWO" HOME A("l") A("l"), "one two|");
	expect(p, "oNE tWO" HOME A("c") A("c"), "One Two|");
	expect(p, "x_y zz2a" HOME A("c") A("c"), "X_Y Zz2A|");
	expect(p, "one" LEFT LEFT A("u"), "oNE|");
	expect(p, "one" A("u"), "one|");
	expect(p, "'one'" HOME A("u"), "'ONE|'");
	/* The first word of the next line is the next word, too. */
	expect(p, "a\017b" HOME LEFT A("u"), "a\nB|");
	expect(p, "äöü ß" HOME A("u") A("u"), "ÄÖÜ ß|");
	/* Marks and characters without a case stay where they are. */
	expect(p, "e\u0301a" HOME A("c"), "E\u0301a|");
	expect(p, "e\u0301a" HOME A("u"), "E\u0301A|");
	expect(p, "שלום 漢字" HOME A("u") A("u"), "שלום 漢字|");
}

static void words_change_places(void **state)
{
	struct play *p = *state;

	open_editor(p, false, 0);
	expect(p, "one two" A("t"), "two one|");
	expect(p, "one two" HOME A("t"), "|one two");
	expect(p, "one" A("t"), "one|");
	expect(p, "(a, b)" A("t"), "(b, a|)");
	expect(p, "one two three" HOME A("f") A("f") LEFT A("t"),
		"two one| three");
	expect(p, "one, two three" HOME A("f") A("t"), "two, one| three");
	expect(p, "a\017b" A("t"), "b\na|");
	expect(p, "cafe\u0301 bar" A("t"), "bar cafe\u0301|");
	expect(p, "שלום 漢字" A("t"), "漢字 שלום|");
}

static void older_cuts_replace_what_was_put_back(void **state)
{
	struct play *p = *state;

	open_editor(p, false, 0);
	expect(p, A("y") "x" YANK A("y"), "x|");
	expect(p, "one" HOME KILL "two" HOME KILL YANK, "two|");
	expect(p, YANK A("y"), "one|");
	/* The ring has turned: the next is the one before. */
	expect(p, YANK A("y") A("y"), "one|");
	expect(p, "three" HOME KILL "a" YANK A("y") A("y") "b", "atwob|");
	/* Behind any other key Alt-Y does nothing. */
	expect(p, YANK LEFT A("y"), "tw|o");
	/* Cuts in a row are one text. */
	expect(p,
		"a b c"
		"\027\027" YANK,
		"a b c|");
	expect(p, YANK A("y"), "two|");
}

static void a_ring_of_cuts_forgets_the_oldest(void **state)
{
	struct play *p = *state;
	char keys[1024] = "";

	open_editor(p, false, 0);
	for (int i = 0; i < 61; i++)
		sprintf(keys + strlen(keys), "%d" HOME KILL "x\010", i);
	strcat(keys, YANK);
	for (int i = 0; i < 59; i++)
		strcat(keys, A("y"));
	expect(p, keys, "1|");
	expect(p, YANK A("y"), "60|");
}

static void add(struct play *p, const char *cell)
{
	assert_int_equal(history_add(p->history, cell, strlen(cell), NULL), 0);
}

static void the_last_words_of_earlier_cells_are_put_in(void **state)
{
	struct play *p = *state;

	open_editor(p, false, 0);
	expect(p, "a" A(".") A("."), "a|");
	add(p, "open(\"a b.txt\")");
	add(p, "print('it\\'s here')  ");
	add(p, "x = 1 # don't go");
	add(p, ":upload ~/grades.csv");
	add(p, "for é in a:\n    print(é)");
	expect(p, A("."), "print(é)|");
	expect(p, "f(" A(".") A(".") ")", "f(~/grades.csv)|");
	expect(p, A(".") A(".") A("."), "go|");
	expect(p, A(".") A(".") A(".") A("."), "print('it\\'s here')|");
	expect(p, A(".") A(".") A(".") A(".") A("."), "open(\"a b.txt\")|");
	/* Behind the oldest comes the newest. */
	expect(p, A(".") A(".") A(".") A(".") A(".") A("."), "print(é)|");
	expect(p, A(".") "," A("."), "print(é),print(é)|");
	expect(p, "()" LEFT A("."), "(print(é)|)");
	/* The entry itself stays as it is. */
	expect(p, "\033[A" A("."), "for é in a:\n    print(é)print(é)|");
	expect(p, "\033[A", "for é in a:\n    print(é)|");
}

static void each_key_is_one_step_of_undo(void **state)
{
	static const char *const changes[] = {HOME A("u"), HOME A("c"), A("t"),
		A("."), A(".") A("."), "\027" YANK, YANK A("y"), "\033[5~"};
	struct play *p = *state;

	open_editor(p, false, 0);
	expect(p, "cut" HOME KILL, "|");
	add(p, "v");
	add(p, "w");
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		char keys[64];

		snprintf(keys, sizeof(keys), "one two%s" UNDO REDO UNDO "%s",
			changes[i], i == 4 || i == 5 || i == 6 ? UNDO : "");
		/* The bar is where the cursor was before the change. */
		expect(p, keys, i < 2 ? "|one two" : "one two|");
	}
}

static void redo_brings_back_what_undo_took(void **state)
{
	struct play *p = *state;

	open_editor(p, false, 0);
	expect(p, "one two" UNDO UNDO REDO REDO, "one two|");
	expect(p, "one two" HOME A("u") UNDO REDO, "ONE| two");
	expect(p, "one two" UNDO "x" REDO, "onex|");
	expect(p, REDO "a" REDO, "a|");
	expect(p,
		"one two"
		"\030\025" A("\037"),
		"one two|");
}

static void no_change_makes_a_cell_too_long(void **state)
{
	struct play *p = *state;

	/* The bar is one byte. U+0250 is a byte longer as a capital. */
	open_editor(p, false, 11);
	add(p, "12345678901");
	expect(p, "ɐɐɐɐɐ" HOME A("u"), "|ɐɐɐɐɐ");
	expect(p, "ɐɐɐ" HOME A("u"), "ⱯⱯⱯ|");
	expect(p, "a" A("."), "a|");
}

static void vi_has_them_in_its_own_way(void **state)
{
	struct play *p = *state;

	open_editor(p, true, 0);
	expect(p, "one Two\0330~~~~~A", "ONE two|");
	expect(p, "e\u0301a\0330~~A", "E\u0301A|");
	expect(p, "one two\0330xxu\022A", "e two|");
	/* In the text Ctrl-R searches. */
	add(p, "found");
	expect(p, "\022fou\001", "|found");
}

int main(void)
{
#define PLAY(test) cmocka_unit_test_setup_teardown(test, open_play, close_play)
	const struct CMUnitTest tests[] = {
		PLAY(words_change_their_letters),
		PLAY(words_change_places),
		PLAY(older_cuts_replace_what_was_put_back),
		PLAY(a_ring_of_cuts_forgets_the_oldest),
		PLAY(the_last_words_of_earlier_cells_are_put_in),
		PLAY(each_key_is_one_step_of_undo),
		PLAY(redo_brings_back_what_undo_took),
		PLAY(no_change_makes_a_cell_too_long),
		PLAY(vi_has_them_in_its_own_way),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests_name("edit", tests, NULL, NULL);
}
