/* SPDX-License-Identifier: MIT */
/*
 * sequence.h - what vt.c and sequence.c share; nobody else includes this
 *
 * vt.c finds where a sequence begins and ends. sequence.c knows what the
 * sequence means and what it leaves behind.
 */
#ifndef REPL_TERM_VT_SEQUENCE_H
#define REPL_TERM_VT_SEQUENCE_H

#include "vt.h"

/* ---- vt.c ---- */

/* Emit bytes of text or of a sequence. Nothing in raw mode, where the guest's
 * own bytes are out already. */
void vt_put(struct vt *v, const char *s, size_t n);

/* Emit in every mode. */
void vt_put_always(struct vt *v, const char *s, size_t n);

/* Count something that is not passed on. */
void vt_count(struct vt *v, enum vt_drop kind);

/* Move the cursor right by `n` columns of text. */
void vt_advance(struct vt *v, size_t n);

/* ---- sequence.c ---- */

/* Pass on or drop a whole control sequence, and remember what it changes. */
void vt_sequence_csi(struct vt *v);

/* The same for a whole escape sequence, of v->inter and v->final. */
void vt_sequence_esc(struct vt *v);

/* Whether text runs on into the next line at the right edge. */
bool vt_sequence_wraps(const struct vt *v);

/* vt_undo() without the flush. */
void vt_sequence_undo(struct vt *v);

#endif
