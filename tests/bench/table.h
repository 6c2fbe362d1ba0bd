/* SPDX-License-Identifier: MIT */
/*
 * table.h - the clock of the benchmarks, and the lines that they print
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The monotonic clock in milliseconds. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sort `n` values and print "WHAT MEDIAN BEST 95%". */
static inline void print(const char *what, double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	printf("%s\t%.2f\t%.2f\t%.2f\n", what, v[n / 2], v[0], v[n * 95 / 100]);
}

#endif
