/* SPDX-License-Identifier: MIT */
/* fuzz-sources: jail/wire/wire.c */
/*
 * fuzz_wire.c - any message on a socket
 *
 * Decoding never reads outside the message and accepts only bounded values.
 */
#include "jail/wire/wire.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_guest m;
	char *copy = malloc(size ? size : 1);
	struct err e;

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	if (wire_guest_decode(&m, copy, size, &e) == 0) {
		if (m.answer && (m.answer < copy ||
					m.answer + m.answer_n != copy + size))
			abort();
		if (strlen(m.text) >= sizeof(m.text) || m.status > 255)
			abort();
	}
	wire_init_check((const void *)copy,
		size == sizeof(struct wire_init) ? size : 0, &e);
	wire_front_check((const void *)copy,
		size == sizeof(struct wire_front) ? size : 0, &e);
	free(copy);
	return 0;
}
