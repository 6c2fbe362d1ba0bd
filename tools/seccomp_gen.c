/* SPDX-License-Identifier: MIT */
/*
 * seccomp_gen.c - the filters of jail/walls/seccomp_rules.h as BPF, in C
 *
 * Runs in:   the build, on the building machine
 * Trusts:    the rules; compares every filter with them, call by call, before
 *            it prints anything
 *
 * libseccomp supplies the number of every call on every architecture. It does
 * not make the filter, because it cannot express what the rules need most:
 * "allow these requests, compared in 32 bits, and fail any other with this
 * errno". A binary tree over runs of calls with the same fate is also much
 * smaller than one over single calls.
 */
#include "jail/walls/seccomp_rules.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 1024
#define CODE_MAX 4096
#define CASES_MAX 128
#define X32_BIT 0x40000000u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct arch {
	const char *macro, *name;
	uint32_t scmp, audit;
	int x32;
	uint32_t direct; /* O_DIRECT; that of the host may be another's */
};

static const struct arch arches[] = {
	{"__x86_64__", "x86-64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64, 1,
		040000},
	{"__aarch64__", "arm64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64, 0,
		0200000},
};

static const char *const profiles[] = {"guest", "guest_nomem", "init", "front",
	"init_shared", "server", "control", "trial"};

/* A check of the rules with a case for each value of a list. */
struct check {
	int otherwise;
	size_t n;
	struct rules_case cases[CASES_MAX];
};

/* The fate of one call: an action of the rules, or a check. */
struct fate {
	int action;
	const struct check *check;
};

struct program {
	struct sock_filter code[CODE_MAX];
	size_t n;
};

static void fail(const char *what, const char *call)
{
	fprintf(stderr, "seccomp_gen: %s: %s\n", what, call);
	exit(1);
}

/* ---- rules to fates ---- */

/* The number of a call on an architecture, -1 where it does not exist. An
 * unknown name is a typing error, and ends the build. */
static int call_number(const char *name, const struct arch *a)
{
	int nr = seccomp_syscall_resolve_name_arch(a->scmp, name);

	for (size_t i = 0; nr < 0 && i < COUNT(rules_numbers); i++)
		if (!strcmp(rules_numbers[i].call, name))
			return rules_numbers[i].nr;
	if (nr == __NR_SCMP_ERROR)
		fail("unknown call", name);
	if (nr >= CALLS)
		fail("number too large", name);
	return nr < 0 ? -1 : nr;
}

static void fates_set(struct fate *fates, int *taken, const struct arch *a,
	const char *calls, struct fate f)
{
	char buf[1024];
	char *save = NULL;

	if (strlen(calls) >= sizeof(buf))
		fail("group too long", calls);
	strcpy(buf, calls);
	for (char *w = strtok_r(buf, " ", &save); w;
		w = strtok_r(NULL, " ", &save)) {
		int nr = call_number(w, a);

		if (nr < 0)
			continue;
		if (taken[nr])
			fail("ruled on twice", w);
		taken[nr] = 1;
		fates[nr] = f;
	}
}

static void check_add(struct check *c, struct rules_case rc)
{
	if (c->n == CASES_MAX)
		fail("check too long", "");
	c->cases[c->n++] = rc;
}

static void check_expand(
	struct check *c, const struct rules_check *from, const struct arch *a)
{
	*c = (struct check){.otherwise = from->otherwise};
	for (int i = 0; i < RULES_CASES && from->cases[i].test[0].op; i++) {
		struct rules_case one = from->cases[i];
		int at = one.test[0].op == OP_ONE_OF ? 0 : 1;
		struct rules_test list = one.test[at];

		for (size_t j = 0; j < COUNT(one.test); j++)
			if (one.test[j].op == OP_DIRECT)
				one.test[j] = (struct rules_test)ANY(
					one.test[j].arg, a->direct);
		if (list.op != OP_ONE_OF) {
			check_add(c, one);
			continue;
		}
		for (size_t j = 0; j < list.length; j++) {
			one.test[at] =
				(struct rules_test)EQ(list.arg, list.list[j]);
			check_add(c, one);
		}
	}
}

static void fates_fill(struct fate *fates, const struct arch *a, unsigned bit,
	const struct check *checks)
{
	int taken[CALLS] = {0};

	for (int i = 0; i < CALLS; i++)
		fates[i] = (struct fate){.action = ENOSYS};
	for (size_t i = 0; i < COUNT(rules_groups); i++)
		if (rules_groups[i].profiles & bit)
			fates_set(fates, taken, a, rules_groups[i].calls,
				(struct fate){
					.action = rules_groups[i].action});
	for (size_t i = 0; i < COUNT(rules_checks); i++)
		if (rules_checks[i].profiles & bit)
			fates_set(fates, taken, a, rules_checks[i].calls,
				(struct fate){.check = &checks[i]});
}

/* ---- fates to BPF ---- */

static void emit(
	struct program *p, uint16_t op, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (p->n == CODE_MAX)
		fail("filter too long", "");
	p->code[p->n++] = (struct sock_filter){op, jt, jf, k};
}

static uint32_t action_value(int action)
{
	if (action == PRETEND)
		return SECCOMP_RET_ERRNO; /* 0 */
	if (action == ASK)
		return SECCOMP_RET_TRACE;
	return action ? SECCOMP_RET_ERRNO | (uint32_t)action
		      : SECCOMP_RET_ALLOW;
}

static void emit_return(struct program *p, int action)
{
	emit(p, BPF_RET | BPF_K, 0, 0, action_value(action));
}

/* The offset of an argument's lower (0) or upper (1) half, little endian. */
static uint32_t arg_offset(int arg, int half)
{
	return (uint32_t)(offsetof(struct seccomp_data, args) +
			  8 * (size_t)arg + 4 * (size_t)half);
}

/* Emit one test: execution falls through when the test holds. The jumps for a
 * test that fails are noted in `patch`, because the end of the case is not
 * known yet. `loaded` is the argument whose lower half the accumulator holds,
 * or -1. */
static void emit_test(struct program *p, const struct rules_test *t,
	int *loaded, size_t *patch, int *n)
{
	if (*loaded != t->arg)
		emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, arg_offset(t->arg, 0));
	*loaded = t->arg;
	switch (t->op) {
	case OP_END:
	case OP_ONE_OF:
	case OP_DIRECT: /* expanded */
		return;
	case OP_EQ:
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, t->value);
		break;
	case OP_ANY:
		emit(p, BPF_JMP | BPF_JSET | BPF_K, 0, 0, t->value);
		break;
	case OP_BITS:
		*loaded = -1;
		emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, t->mask);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, t->value);
		break;
	case OP_NULL:
		*loaded = -1;
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0);
		patch[(*n)++] = p->n - 1;
		emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, arg_offset(t->arg, 1));
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 0);
		break;
	}
	patch[(*n)++] = p->n - 1;
}

static int test_same(const struct rules_test *a, const struct rules_test *b)
{
	return a->op == b->op && a->arg == b->arg && a->value == b->value &&
	       a->mask == b->mask;
}

/* Whether the next case differs in the value of the second test alone, as in a
 * list. */
static int is_like_next(const struct check *c, size_t i)
{
	const struct rules_case *a = &c->cases[i], *b = a + 1;

	return i + 1 < c->n && a->action == b->action &&
	       test_same(&a->test[0], &b->test[0]) && a->test[1].op == OP_EQ &&
	       b->test[1].op == OP_EQ && a->test[1].arg == b->test[1].arg;
}

/* How many cases behind this one are like it. */
static size_t likes(const struct check *c, size_t i)
{
	size_t n = 0;

	while (is_like_next(c, i + n))
		n++;
	return n;
}

/* Emit one value of a list: when it is the one, `more` others and their return
 * follow. */
static void emit_value(
	struct program *p, const struct rules_test *t, int *loaded, size_t more)
{
	if (*loaded != t->arg)
		emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, arg_offset(t->arg, 0));
	*loaded = t->arg;
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)more, 0, t->value);
}

static void emit_check(struct program *p, const struct check *c)
{
	int loaded = -1;

	for (size_t i = 0; i < c->n; i++) {
		const struct rules_case *rc = &c->cases[i];
		size_t patch[4];
		int n = 0, before;

		emit_test(p, &rc->test[0], &loaded, patch, &n);
		before =
			loaded; /* what the next case finds if this one fails */
		if (rc->test[1].op) {
			for (; is_like_next(c, i); i++)
				emit_value(p, &c->cases[i].test[1], &loaded,
					likes(c, i));
			emit_test(p, &c->cases[i].test[1], &loaded, patch, &n);
			before = -1;
		}
		emit_return(p, rc->action);
		for (int j = 0; j < n; j++)
			p->code[patch[j]].jf = (uint8_t)(p->n - patch[j] - 1);
		loaded = before;
	}
	emit_return(p, c->otherwise);
}

/* Runs of calls with the same fate: from `start[i]` up to `start[i + 1]`. */
struct runs {
	int start[CALLS + 1];
	int n;
};

static int fate_same(const struct fate *a, const struct fate *b)
{
	return a->action == b->action && a->check == b->check;
}

static void runs_find(struct runs *r, const struct fate *fates)
{
	r->n = 0;
	for (int i = 0; i < CALLS; i++)
		if (i == 0 || !fate_same(&fates[i], &fates[i - 1]))
			r->start[r->n++] = i;
}

/* Emit runs [lo, hi) as a binary tree; the accumulator holds the number. */
static void emit_tree(struct program *p, const struct runs *r,
	const struct fate *fates, int lo, int hi)
{
	int mid = (lo + hi) / 2;
	size_t jump;

	if (hi - lo == 1) {
		const struct fate *f = &fates[r->start[lo]];

		if (f->check)
			emit_check(p, f->check);
		else
			emit_return(p, f->action);
		return;
	}
	/* A conditional jump reaches only 255 instructions. So an unconditional
	 * jump leads over the lower half to the upper one. */
	emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, (uint32_t)r->start[mid]);
	emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
	jump = p->n - 1;
	emit_tree(p, r, fates, lo, mid);
	p->code[jump].k = (uint32_t)(p->n - jump - 1);
	if (p->code[jump].k <= 255 - 1) {
		/* Within reach: one conditional jump is enough. */
		memmove(&p->code[jump], &p->code[jump + 1],
			(p->n - jump - 1) * sizeof(p->code[0]));
		p->n--;
		p->code[jump - 1].jt = (uint8_t)(p->n - jump);
		p->code[jump - 1].jf = 0;
	}
	emit_tree(p, r, fates, mid, hi);
}

/* ---- fewer returns ---- */

/* Where a jump leads, as indices; both are the same if it is unconditional. */
struct jump {
	size_t yes, no;
};

static int is_return(const struct sock_filter *f)
{
	return f->code == (BPF_RET | BPF_K);
}

static int is_jump(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_JMP;
}

static void jumps_find(const struct program *p, struct jump *jumps)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct sock_filter *f = &p->code[i];
		int always = f->code == (BPF_JMP | BPF_JA);

		jumps[i].yes = i + 1 + (always ? f->k : f->jt);
		jumps[i].no = i + 1 + (always ? f->k : f->jf);
	}
}

/* The last return before `end` with the same value as the one at `at`. */
static size_t last_like(const struct program *p, size_t at, size_t end)
{
	if (!is_return(&p->code[at]))
		return at;
	for (size_t i = end < p->n ? end : p->n; i-- > at;)
		if (is_return(&p->code[i]) && p->code[i].k == p->code[at].k)
			return i;
	return at;
}

/* Remove the instructions that are not `used`, and adjust the jumps. */
static void program_pack(
	struct program *p, const struct jump *jumps, const int *used)
{
	static size_t moved[CODE_MAX];
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		moved[i] = n;
		n += used[i] != 0;
	}
	for (size_t i = 0; i < p->n; i++) {
		struct sock_filter *f = &p->code[moved[i]];

		if (!used[i])
			continue;
		*f = p->code[i];
		if (f->code == (BPF_JMP | BPF_JA)) {
			f->k = (uint32_t)(moved[jumps[i].yes] - moved[i] - 1);
		} else if (is_jump(f)) {
			f->jt = (uint8_t)(moved[jumps[i].yes] - moved[i] - 1);
			f->jf = (uint8_t)(moved[jumps[i].no] - moved[i] - 1);
		}
	}
	p->n = n;
}

/*
 * Almost every second instruction is a return, and there are few different
 * values. Point each jump to a return at the last equal return within reach,
 * and drop the returns that no jump uses. The kernel translates a filter each
 * time it is loaded, which delays the start of every session.
 */
static void program_share(struct program *p)
{
	static struct jump jumps[CODE_MAX];
	static int used[CODE_MAX];
	size_t before;

	do {
		before = p->n;
		jumps_find(p, jumps);
		memset(used, 0, sizeof(used));
		used[0] = 1;
		for (size_t i = 0; i < p->n; i++) {
			const struct sock_filter *f = &p->code[i];
			size_t reach = i + 1 + 255 + 1;

			if (is_jump(f)) {
				jumps[i].yes =
					last_like(p, jumps[i].yes, reach);
				jumps[i].no = last_like(p, jumps[i].no, reach);
				used[jumps[i].yes] = used[jumps[i].no] = 1;
			} else if (!is_return(f)) {
				used[i + 1] = 1;
			}
		}
		program_pack(p, jumps, used);
	} while (p->n < before);
}

static void program_make(
	struct program *p, const struct arch *a, const struct fate *fates)
{
	struct runs r;

	p->n = 0;
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0,
		offsetof(struct seccomp_data, arch));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, a->audit);
	emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0,
		offsetof(struct seccomp_data, nr));
	if (a->x32) {
		/* -1 has the x32 bit too, but is only an unknown call. */
		emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 3, X32_BIT);
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0xffffffff);
		emit_return(p, ENOSYS);
		emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	}
	runs_find(&r, fates);
	emit_tree(p, &r, fates, 0, r.n);
	program_share(p);
}

/* ---- the check: does the filter do what the rules say? ---- */

/* The value that the kernel would return for this call. */
static uint32_t program_run(
	const struct program *p, const struct seccomp_data *d)
{
	uint32_t acc = 0;

	for (size_t pc = 0; pc < p->n; pc++) {
		const struct sock_filter *f = &p->code[pc];
		int yes = 0;

		switch (f->code) {
		case BPF_RET | BPF_K:
			return f->k;
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&acc, (const char *)d + f->k, sizeof(acc));
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			acc &= f->k;
			continue;
		case BPF_JMP | BPF_JA:
			pc += f->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = acc == f->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = acc >= f->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = (acc & f->k) != 0;
			break;
		}
		pc += yes ? f->jt : f->jf;
	}
	fail("filter runs off its end", "");
	return 0;
}

/* The value that the rules demand for this call. */
static int test_holds(const struct rules_test *t, const uint64_t *args)
{
	uint32_t low = (uint32_t)args[t->arg];

	switch (t->op) {
	case OP_END:
	case OP_ONE_OF:
	case OP_DIRECT: /* expanded */
		return 1;
	case OP_EQ:
		return low == t->value;
	case OP_ANY:
		return (low & t->value) != 0;
	case OP_BITS:
		return (low & t->mask) == t->value;
	case OP_NULL:
		return args[t->arg] == 0;
	}
	return 0;
}

static int fate_action(const struct fate *f, const uint64_t *args)
{
	if (!f->check)
		return f->action;
	for (size_t i = 0; i < f->check->n; i++) {
		const struct rules_case *c = &f->check->cases[i];

		if (test_holds(&c->test[0], args) &&
			test_holds(&c->test[1], args))
			return c->action;
	}
	return f->check->otherwise;
}

static void compare(const struct program *p, const struct arch *a, int nr,
	const struct fate *f, const uint64_t *args)
{
	struct seccomp_data d = {.nr = nr, .arch = a->audit};
	char what[32];

	memcpy(d.args, args, sizeof(d.args));
	if (program_run(p, &d) == action_value(fate_action(f, args)))
		return;
	snprintf(what, sizeof(what), "call %d", nr);
	fail("filter and rules differ", what);
}

/* Try arguments near the values of a check: each value, and each value with one
 * bit changed, the high bits too, with each value of the other test. */
static void compare_check(const struct program *p, const struct arch *a, int nr,
	const struct fate *f)
{
	for (size_t i = 0; i < f->check->n; i++) {
		const struct rules_test *t = f->check->cases[i].test;

		for (int bit = -1; bit < 64; bit++) {
			uint64_t flip = bit < 0 ? 0 : (uint64_t)1 << bit;
			uint64_t args[6] = {0};

			args[t[0].arg] = t[0].value ^ flip;
			compare(p, a, nr, f, args);
			args[t[1].arg] = t[1].value;
			compare(p, a, nr, f, args);
			args[t[0].arg] = t[0].value;
			args[t[1].arg] ^= t[1].op ? flip : 0;
			compare(p, a, nr, f, args);
		}
	}
}

static void program_verify(
	const struct program *p, const struct arch *a, const struct fate *fates)
{
	const struct fate none = {.action = ENOSYS};
	const uint64_t args[6] = {0};
	struct seccomp_data d = {.nr = 0, .arch = a->audit ^ 1};

	for (int nr = 0; nr < CALLS; nr++) {
		compare(p, a, nr, &fates[nr], args);
		if (fates[nr].check)
			compare_check(p, a, nr, &fates[nr]);
	}
	compare(p, a, CALLS, &none, args);
	compare(p, a, -1, &none, args);
	if (program_run(p, &d) != SECCOMP_RET_KILL_PROCESS)
		fail("foreign architecture lives", a->name);
	d = (struct seccomp_data){.nr = (int)X32_BIT, .arch = a->audit};
	if (a->x32 && program_run(p, &d) != SECCOMP_RET_KILL_PROCESS)
		fail("x32 lives", a->name);
}

/* ---- out ---- */

static void program_print(
	const struct program *p, const struct arch *a, const char *profile)
{
	printf("/* %s, %s: %zu instructions */\n", profile, a->name, p->n);
	printf("static const struct sock_filter seccomp_bpf_%s[] = {\n",
		profile);
	for (size_t i = 0; i < p->n; i++)
		printf("\t{0x%02x, %u, %u, 0x%08x},\n", p->code[i].code,
			p->code[i].jt, p->code[i].jf, p->code[i].k);
	printf("};\n");
}

int main(void)
{
	static struct program p;
	static struct fate fates[CALLS];
	static struct check checks[COUNT(rules_checks)];

	printf("/* Made by tools/seccomp_gen.c from "
	       "jail/walls/seccomp_rules.h. */\n"
	       "#include <linux/filter.h>\n\n");
	for (size_t i = 0; i < COUNT(arches); i++) {
		printf("%s defined(%s)\n", i ? "#elif" : "#if",
			arches[i].macro);
		for (size_t j = 0; j < COUNT(checks); j++)
			check_expand(&checks[j], &rules_checks[j], &arches[i]);
		for (size_t j = 0; j < COUNT(profiles); j++) {
			fates_fill(fates, &arches[i], 1u << j, checks);
			program_make(&p, &arches[i], fates);
			program_verify(&p, &arches[i], fates);
			program_print(&p, &arches[i], profiles[j]);
		}
	}
	printf("#else\n#define SECCOMP_BPF_NONE 1\n#endif\n");
	return fflush(stdout) || ferror(stdout);
}
