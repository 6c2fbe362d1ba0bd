/* SPDX-License-Identifier: MIT */
/*
 * sequence.h - between the parts of the terminal parser
 *
 * vt.c finds where sequences begin and end, vt_sequence.c knows what they
 * mean, vt_mode.c what they leave behind. Nobody else includes this.
 */
#ifndef REPL_TERM_VT_SEQUENCE_H
#define REPL_TERM_VT_SEQUENCE_H

#include "vt.h"

/* What a row's function finds. */
enum verdict {
	PASS,	 /* emit what the parameters now say */
	SWALLOW, /* nothing is left to emit, and nothing is lost */
	REFUSE,	 /* drop, and count as the row says */
};

/* A whole control sequence, its parameters parsed, ended by `final`. */
void vt_sequence_csi(struct vt *v, char final);

/* A whole escape sequence: v->inter, and `final`. */
void vt_sequence_esc(struct vt *v, char final);

/* Emit bytes of a sequence or of text; nothing in raw mode, where the guest's
 * own bytes have gone out already. */
void vt_put(struct vt *v, const char *s, size_t n);

/* Emit in every mode. */
void vt_put_always(struct vt *v, const char *s, size_t n);

/* Count something that is not passed on. */
void vt_count(struct vt *v, enum vt_drop kind);

/* The cursor goes right by `n` columns of text. */
void vt_advance(struct vt *v, size_t n);

/* True while text runs on into the next line at the right edge. */
bool vt_wraps(const struct vt *v);

/* The decimal digits of `n` >= 0 at `p`; where they end. */
char *vt_put_number(char *p, int n);

/* DECSC and DECRC, whatever they are called this time. */
enum verdict vt_mode_save(struct vt *v, char final);
enum verdict vt_mode_restore(struct vt *v, char final);

/* DECSET ('h') and DECRST ('l'): leave only the modes a guest may change in
 * v->params, and remember what they change. */
enum verdict vt_mode_change(struct vt *v, char final);

#endif
