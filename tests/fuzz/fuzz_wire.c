/* SPDX-License-Identifier: MIT */
/* fuzz-sources: jail/wire/wire.c */
/*
 * fuzz_wire.c - any message on a socket
 *
 * Decoding never reads outside the message and accepts only bounded values.
 */
#include "jail/wire/wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same bytes as the start of a program. */
static void start(const uint8_t *data, size_t size)
{
	int fd = memfd_create("start", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct wire_start s;
	size_t at, n;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
		fcntl(fd, F_ADD_SEALS,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		abort();
	if (wire_start_find(fd, &at, &n, NULL) == 0 && n && at + n != size)
		abort();
	wire_start_read(&s, fd, NULL);
	wire_start_fini(&s);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_guest m;
	char *copy = calloc(1, size ? size : 1);
	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	if (wire_guest_decode(&m, copy, size) == 0) {
		if (m.answer && (m.answer < copy ||
					m.answer + m.answer_n != copy + size))
			abort();
		if (strlen(m.text) >= sizeof(m.text) || m.status > 255)
			abort();
	}
	wire_init_check((const void *)copy,
		size == sizeof(struct wire_init) ? size : 0);
	wire_front_check((const void *)copy,
		size == sizeof(struct wire_front) ? size : 0);
	free(copy);
	start(data, size);
	return 0;
}
