/* SPDX-License-Identifier: MIT */
/*
 * impl.h - what both directions of a transfer share
 */
#ifndef REPL_FILES_IMPL_H
#define REPL_FILES_IMPL_H

#include "transfer.h"

/* Count and report a file that was left out. Returns -1. */
int transfer_refuse(struct transfer *t, const struct err *e);

/* Count and report a file that arrived: "name   12.4 KiB   → place". */
void transfer_said(
	struct transfer *t, const char *name, int64_t bytes, const char *place);

/* 0, or -1 with e: files.max_file. */
int transfer_check_size(const struct transfer *t, const char *name,
	int64_t bytes, struct err *e);

/* Whether files.max_count is reached; then this one is counted as left out,
 * and in the end they are all reported at once. */
bool transfer_is_full(struct transfer *t);
void transfer_report_left(struct transfer *t);

/* Copy one file of the host to `to` in the home, a directory with `to_dir`.
 * What cannot be is refused: -1. */
int transfer_upload_one(
	struct transfer *t, const char *from, const char *to, bool to_dir);

/* Remember what arrived in the ledger, with the home's own times, so that a
 * change can be seen. */
void transfer_note_arrived(struct transfer *t);

/* Copy every file below `dir`, which has no slash at its end. */
void transfer_upload_tree(struct transfer *t, const char *dir);

#endif
