/* SPDX-License-Identifier: MIT */
/*
 * fuzz_dbus.c - what a service says on D-Bus
 *
 * A message that is taken lies in what came; what is read of its body lies in
 * the message, and strings in it end there.
 */
#include "must.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "jail/base/dbus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_body(struct dbus_answer *a)
{
	const char *s;
	uint32_t v;

	if (dbus_get_signature(a, "as"))
		dbus_get_u32(a, &v);
	while (dbus_get_string(a, &s)) {
		must((const unsigned char *)s + strlen(s) < a->b + a->n);
		must(a->at <= a->n);
	}
}

/* The first byte says whether we were accepted already. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct dbus d;
	struct dbus_answer a;

	if (size < 1 || size - 1 > sizeof(d.b))
		return 0;
	d = (struct dbus){.fd = -1, .is_in = data[0] & 1, .n = size - 1};
	memcpy(d.b, data + 1, size - 1);
	while (dbus_take(&d, &a) > 0) {
		must(a.b >= d.b && a.b + a.n <= d.b + d.n);
		must(a.body <= a.n);
		read_body(&a);
	}
	return 0;
}
