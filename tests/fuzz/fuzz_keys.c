/* SPDX-License-Identifier: MIT */
/* fuzz-sources: repl/term/keys.c */
/*
 * fuzz_keys.c - keys decoded from any bytes, with pauses anywhere
 */
#include "must.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "repl/term/term.h"
#include "repl/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Text holds no key code and can be encoded. */
static void look(const struct key *out, int n, bool paste)
{
	must(n >= 0 && n <= KEYS_OUT_MAX);
	for (int i = 0; i < n; i++) {
		wchar_t c = out[i].c;

		must(out[i].code > 0 && out[i].code <= KEY_PASTE_END);
		if (out[i].code == KEY_TEXT)
			must(c >= 0x20 && c != 0x7F);
		else if (out[i].code == KEY_PASTE_TEXT)
			must(paste && (c >= 0x20 || c == '\n' || c == '\t'));
		else
			must(c == 0);
		must(!(c >= 0x7F && c < 0xA0) && c <= 0x10FFFF);
		must(!(c >= 0xD800 && c < 0xE000));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct key out[KEYS_OUT_MAX];
	struct keys k;

	keys_init(&k);
	for (size_t i = 0; i < size; i++) {
		bool paste = k.paste || k.stalled;

		/* No terminal sends 0xFE: here it stands for a pause. */
		if (data[i] == 0xFE && keys_wait_ms(&k) >= 0)
			look(out, keys_timeout(&k, out), paste);
		else
			look(out, keys_feed(&k, data[i], out), paste);
	}
	for (int i = 0; i < 2 && keys_wait_ms(&k) >= 0; i++)
		look(out, keys_timeout(&k, out), k.paste);
	must(keys_wait_ms(&k) < 0);
	return 0;
}
