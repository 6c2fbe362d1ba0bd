/* SPDX-License-Identifier: MIT */
/*
 * keys.h - bytes of a terminal to keys
 *
 * A pure state machine. Text is decoded from UTF-8. An escape sequence becomes
 * a key, or nothing when it is not known: an answer of the terminal is never
 * taken for text. Pasted text comes character by character between
 * KEY_PASTE_BEGIN and KEY_PASTE_END.
 */
#ifndef REPL_TERM_KEYS_H
#define REPL_TERM_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

/*
 * Controls keep their codes (1 to 31 and 127). The other keys lie in
 * 0x80..0xFF, so that a table of 256 can say what every key does.
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
	KEY_ESCAPE,
	KEY_PASTE_BEGIN,
	KEY_PASTE_TEXT,
	KEY_PASTE_END,
};

struct key {
	int code;
	wchar_t c; /* of KEY_TEXT and KEY_PASTE_TEXT */
};

/* Most keys that one byte can complete. */
#define KEYS_OUT_MAX 8

/* Numbers of an escape sequence that are kept; later ones are ignored. */
#define KEYS_PARAMS_MAX 4

struct keys {
	int state;
	int skip;     /* bytes that are dropped yet */
	uint8_t u[4]; /* the first u_n bytes of a character */
	uint8_t u_n;
	int param[KEYS_PARAMS_MAX];
	int params;
	bool private_mark; /* ESC [ ? and the like: never a key */
	bool escape_alone; /* Escape, then a letter, are two keys and not Alt */
	bool paste;	   /* inside pasted text */
	bool stalled;	   /* part of the paste was delivered before its end */
	bool cr;	   /* the last pasted character was a carriage return */
	int match;	   /* bytes of the end of a paste seen so far */
};

/* Begin in the ground state. */
void keys_init(struct keys *k);

/* Take one byte. Returns how many keys it completes, 0 to KEYS_OUT_MAX. */
int keys_feed(struct keys *k, unsigned char byte, struct key *out);

/* How long to wait for the next byte before keys_timeout(); -1: for ever. */
int keys_wait_ms(const struct keys *k);

/* No byte came in that time: end the sequence or character. Returns how many
 * keys that completes. */
int keys_timeout(struct keys *k, struct key *out);

#endif
