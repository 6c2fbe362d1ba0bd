/* SPDX-License-Identifier: MIT */
/*
 * keys.h - bytes of a terminal to keys
 *
 * A pure state machine. Text is decoded from UTF-8; escape sequences become
 * keys or, unknown, nothing: no answer of a terminal is ever taken for text.
 * Pasted text comes character by character between two marks.
 */
#ifndef REPL_TERM_KEYS_H
#define REPL_TERM_KEYS_H

#include <stdbool.h>
#include <wchar.h>

/*
 * Controls are themselves (1 to 31 and 127). The rest lie in 0x80..0xFF,
 * where no text can be, so that a table of 256 holds what every key does.
 */
enum {
	KEY_NUL = 0x80, /* Ctrl-Space */
	KEY_TEXT,
	KEY_UP,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_HOME,
	KEY_END,
	KEY_DELETE,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_WORD_LEFT,
	KEY_WORD_RIGHT,
	KEY_TOP,
	KEY_BOTTOM,
	KEY_ALT_ENTER,
	KEY_ALT_BACKSPACE,
	KEY_ALT_D,
	KEY_BACK_TAB,
	KEY_PASTE_BEGIN,
	KEY_PASTE_TEXT,
	KEY_PASTE_END,
	KEY_STOP, /* for the editor's own use: no key makes it */
};

struct key {
	int code;
	wchar_t c; /* of KEY_TEXT and KEY_PASTE_TEXT */
};

/* Most keys that one byte can complete. */
#define KEYS_OUT_MAX 8

/* Numbers an escape sequence may have before the rest is ignored. */
#define KEYS_PARAMS_MAX 4

struct keys {
	int state;
	int skip;	   /* bytes to drop in the state for it */
	unsigned acc, min; /* UTF-8 under way */
	int need;
	int param[KEYS_PARAMS_MAX];
	int params;
	bool private_mark; /* ESC [ ? and the like: never a key */
	bool paste;	   /* pasted text is under way */
	bool stalled;	   /* some of it was delivered before its end came */
	bool cr;	   /* the last pasted character was a carriage return */
	int match;	   /* characters of the end of a paste seen so far */
};

/* Begin in the ground state. */
void keys_init(struct keys *k);

/* Take one byte; the keys it completes, 0 to KEYS_OUT_MAX of them. */
int keys_feed(struct keys *k, unsigned char byte, struct key *out);

/* How long to wait for the next byte before keys_timeout(); -1: for ever. */
int keys_wait_ms(const struct keys *k);

/* No byte came in that time: end what is under way. Keys, as above. */
int keys_timeout(struct keys *k, struct key *out);

#endif
