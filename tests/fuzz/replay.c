/* SPDX-License-Identifier: MIT */
/*
 * replay.c - run a fuzz target on files, without libFuzzer
 *
 *	fuzz_NAME [-OPTION]... FILE...
 *
 * Linked with a target, it gives it each file once, and says which. Any compiler
 * can build it. Options of libFuzzer are ignored; a file may take SECONDS.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECONDS 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	/* exactly as large as the input, as libFuzzer's is */
	uint8_t *data = NULL;
	long size = -1;
	FILE *f = fopen(path, "rb");
	int result = -1;

	if (!f)
		return -1;
	if (fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	rewind(f);
	if (size >= 0)
		data = malloc(size ? (size_t)size : 1);
	if (data && fread(data, 1, (size_t)size, f) == (size_t)size) {
		LLVMFuzzerTestOneInput(data, (size_t)size);
		result = 0;
	}
	free(data);
	fclose(f);
	return result;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-')
			continue;
		printf("Running: %s\n", argv[i]);
		fflush(stdout);
		alarm(SECONDS);
		if (replay(argv[i]) < 0) {
			perror(argv[i]);
			return 1;
		}
	}
	return 0;
}
