# Cellblock. `make run` and `make test` are all a newcomer needs; `make help`
# lists the rest. Everything that is made lands in $(BUILD).

# The one place that has the version is the first line of debian/changelog.
VERSION  := $(shell sed -n '1s/^cellblock (\(.*\)).*/\1/p' debian/changelog)
BUILD    ?= build
PREFIX   ?= /usr/local
UNITDIR  ?= $(PREFIX)/lib/systemd/system
ZSHDIR   ?= $(PREFIX)/share/zsh/site-functions
DOCDIR   ?= $(PREFIX)/share/doc/cellblock
CC       ?= gcc
CLANG    ?= clang
HOST_CC  ?= $(CC)
PYTHON   ?= /usr/bin/python3

WARN     := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wformat=2 \
            -Wswitch-enum -Wvla -Wno-missing-field-initializers
# The flags of it that this compiler and machine know.
HARDEN   := $(shell for f in -fPIE -fstack-protector-strong \
              -fcf-protection=full -mbranch-protection=standard \
              -ftrivial-auto-var-init=zero; do \
              echo 'int x;' | $(CC) $$f -Werror -x c -c -o /dev/null - \
              2>/dev/null && echo $$f; done)
FORTIFY  := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
OPT      ?= -O2 -g
WERROR   ?= $(if $(CI),-Werror)
SAN      :=
COVER    :=
# Taken from their archives where those are there (SHARED=1: never): to load
# them costs a third of the front end's start.
archives  = $(if $(SHARED),,$(foreach l,$(1),$(filter /%,$(shell \
              $(CC) -print-file-name=lib$l.a 2>/dev/null))))
library   = $(if $(filter $(words $(1)),$(words $(call archives,$(1)))),\
              $(call archives,$(1)),-l$(firstword $(1)))
LIBS     := $(foreach l,edit:bsd:md:tinfo cap inih jansson md sixel z,\
              $(call library,$(subst :, ,$l))) -ldl
# The same bytes in whatever directory it is built.
PLACE    := -ffile-prefix-map=$(CURDIR)=.
CFLAGS   += -std=gnu17 $(OPT) $(PLACE) $(WARN) $(WERROR) $(HARDEN) $(FORTIFY) $(SAN) $(COVER)
CPPFLAGS += -D_GNU_SOURCE -DCELLBLOCK_VERSION='"$(VERSION)"' -I. -I$(BUILD)/gen
LDFLAGS  += -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(SAN)

GUEST_SRC := jail/guest/copy.c jail/guest/look.c
GUEST_PARTS := $(filter-out %/load.py,$(wildcard jail/guest/*.py))
# Those that one cell needs, without a session around it.
GUEST_CELL  := $(patsubst %,jail/guest/%.py,boot cells customize errors awaits \
  machine wait lease request figures bundle)
SRC      := $(filter-out $(GUEST_SRC),$(sort $(shell find jail repl -name '*.c'))) \
            $(if $(COVER),tests/lib/covered.c)
OBJ      := $(SRC:%.c=$(BUILD)/%.o)
LIBOBJ   := $(filter-out $(BUILD)/repl/main.o,$(OBJ))
OBJ      += $(if $(SAN),$(BUILD)/tests/lib/asan.o)
LIB      := $(BUILD)/libcellblock.a
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT     := $(UNIT_SRC:tests/unit/%.c=$(BUILD)/tests/unit/%)
GEN      := $(BUILD)/gen/guest.h $(BUILD)/gen/seccomp_bpf.h \
            $(BUILD)/gen/mcp_tools.h $(BUILD)/gen/openapi.h $(BUILD)/gen/help.h \
            $(BUILD)/gen/fields.h $(BUILD)/gen/docs.h

# The fuzz targets, and one library of what they name and what all of them use.
# REPLAY is the same targets without libFuzzer: any compiler builds them, from
# the objects of the product, and they take files.
FUZZ_SRC := $(sort $(wildcard jail/base/*.c repl/text/*.c) $(shell \
              head -qn 12 tests/fuzz/fuzz_*.c | grep -oE '(jail|repl)/[a-z_/]+\.c'))
FUZZ     := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_LIBS := -Wl,--as-needed -linih -ljansson -lsixel -lz -ldl
REPLAY   := $(FUZZ:$(BUILD)/fuzz/%=$(BUILD)/tests/fuzz/%)
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_CC   = $(CLANG) -std=gnu17 -O1 -g1 $(CPPFLAGS) -UCELLBLOCK_VERSION \
              -DCELLBLOCK_VERSION='"fuzz"'
# Every processor, where make was not told how many.
PARALLEL := $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null))

.PHONY: all deps build everything run test test-all test-vm check \
        unit asan coverage fuzz fuzzers bench mutants soak tidy format install install-package \
        install-apparmor uninstall deb rpm dist clean help

all: build

help:
	@sed -n 's/^## //p' Makefile

## make run        install what is missing, build, start a session
run:
	@tools/deps run
	@$(MAKE) --no-print-directory $(PARALLEL) -s build
	@exec $(BUILD)/cellblock $(ARGS)

## make test       the same, then every promise is tested once
test:
	@tools/deps run
	@set -e; $(MAKE) --no-print-directory $(PARALLEL) -s build & \
	  tools/deps test; wait $$!
	@$(MAKE) --no-print-directory $(PARALLEL) -s everything
	@BUILD=$(BUILD) tests/run $(TEST_ARGS)

## make test-all   that, and what it leaves out: everything else as root and as
##                 a user, all shapes, the long repetitions, the fuzzers, and
##                 under AddressSanitizer the tests of what reads hostile bytes
test-all:
	@tools/deps run
	@set -e; { $(MAKE) --no-print-directory $(PARALLEL) -s build && \
	  $(ASAN) $(PARALLEL) -s build; } & tools/deps all; wait $$!
	@$(MAKE) --no-print-directory test
	@BUILD=$(BUILD) tests/run --rest --after=$(BUILD)/tests-once.json $(TEST_ARGS)
	@$(ASAN) $(PARALLEL) -s check TEST_ARGS="--once $(ASAN_TESTS) \
	  --after=$(BUILD)/tests-once.json --after=$(BUILD)/tests-rest.json $(TEST_ARGS)"

## make build      only build
build: $(BUILD)/cellblock

## make deps       install missing packages with apt, or name them
deps:
	@tools/deps all

## make check      every test as root and as a user, without installing anything
check: everything
	@BUILD=$(BUILD) tests/run --all $(TEST_ARGS)

# What `make test` needs built, and the benchmarks, which are to stay buildable.
BENCH    := $(addprefix $(BUILD)/tests/bench/,crowd first jail)
everything: build $(UNIT) $(REPLAY) $(BENCH)

## make unit       the unit tests alone
unit: $(UNIT)
	@BUILD=$(BUILD) tests/run unit

$(BUILD)/cellblock: $(OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJ) $(LIBS)

$(LIB): $(LIBOBJ)
	@rm -f $@
	$(AR) rcs $@ $(LIBOBJ)

$(BUILD)/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# The sources that say the version.
$(patsubst %.c,$(BUILD)/%.o,$(shell grep -rlw --include=*.c CELLBLOCK_VERSION \
  jail repl)): debian/changelog

# The guest: the loader's text, the driver's parts compiled for the Python of
# this host, and the library that the driver loads.
# (no columns for tracebacks: nobody sees the driver's frames, and the driver
# of one cell, for -e, fits where no file may be larger than 128 KiB)
$(BUILD)/gen/guest_parts: tools/freeze $(GUEST_PARTS)
$(BUILD)/gen/guest_cell: tools/freeze $(GUEST_CELL)
$(BUILD)/gen/guest_parts $(BUILD)/gen/guest_cell:
	@mkdir -p $(@D)
	$(PYTHON) -X no_debug_ranges $^ > $@.tmp && mv $@.tmp $@

$(BUILD)/gen/guest_load: jail/guest/load.py
	@mkdir -p $(@D)
	sed '/^#/d' $< > $@

$(BUILD)/gen/guest_copy.so: $(GUEST_SRC)
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -O2 -D_GNU_SOURCE -U_FORTIFY_SOURCE $(WARN) $(WERROR) \
	  -fPIC -fvisibility=hidden -shared -s \
	  -Wl,-z,now,-z,noseparate-code -o $@ $^

$(BUILD)/gen/guest.h: tools/embed $(BUILD)/gen/guest_load \
		$(BUILD)/gen/guest_parts $(BUILD)/gen/guest_cell \
		$(BUILD)/gen/guest_copy.so
	$^ > $@.tmp && mv $@.tmp $@

# The fields of requests, as tables; and what clients are told of them: the tools
# of --mcp, and the paths of --serve.
FIELDS := tools/fields repl/json/fields.txt

$(BUILD)/gen/fields.h: $(FIELDS)
	@mkdir -p $(@D)
	$(PYTHON) $< tables repl/json/fields.txt > $@.tmp && mv $@.tmp $@

$(BUILD)/gen/tools.json: $(FIELDS) repl/mcp/tools.txt
	@mkdir -p $(@D)
	$(PYTHON) $< tools $(wordlist 2,3,$^) > $@.tmp && mv $@.tmp $@

$(BUILD)/gen/openapi.json: $(FIELDS) repl/serve/paths.txt debian/changelog
	@mkdir -p $(@D)
	$(PYTHON) $< openapi $(VERSION) $(wordlist 2,3,$^) > $@.tmp && \
	  mv $@.tmp $@

$(BUILD)/gen/mcp_tools.h: tools/embed $(BUILD)/gen/tools.json
	$^ > $@.tmp && mv $@.tmp $@

$(BUILD)/gen/openapi.h: tools/embed $(BUILD)/gen/openapi.json
	$^ > $@.tmp && mv $@.tmp $@

# The page of /docs, and what a browser may do in it.
$(BUILD)/gen/docs.html: tools/page $(BUILD)/gen/openapi.json repl/serve/docs.html
	$(PYTHON) $< html $(wordlist 2,3,$^) > $@.tmp && mv $@.tmp $@

$(BUILD)/gen/docs.policy: tools/page $(BUILD)/gen/docs.html
	$(PYTHON) $< policy $(word 2,$^) > $@.tmp && mv $@.tmp $@

$(BUILD)/gen/docs.h: tools/embed $(BUILD)/gen/docs.html $(BUILD)/gen/docs.policy
	$^ > $@.tmp && mv $@.tmp $@

# The pages of :help.
$(BUILD)/gen/help.h: tools/help man/cellblock.1
	@mkdir -p $(@D)
	$(PYTHON) $^ > $@.tmp && mv $@.tmp $@

# The seccomp filters, built once at compile time (a filter takes milliseconds
# to build, and the path to the first prompt has none to spare).
$(BUILD)/tools/seccomp_gen: tools/seccomp_gen.c $(wildcard jail/walls/seccomp*.h)
	@mkdir -p $(@D)
	$(HOST_CC) -std=gnu17 -O1 -D_GNU_SOURCE -I. $(WARN) -o $@ $< -lseccomp

$(BUILD)/gen/seccomp_bpf.h: $(BUILD)/tools/seccomp_gen
	@mkdir -p $(@D)
	$< > $@.tmp && mv $@.tmp $@

$(BUILD)/tests/bench/%: tests/bench/%.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -o $@ $< $(LDFLAGS) $(LIB) $(LIBS)

# To optimise a unit test takes longer than it runs.
$(BUILD)/tests/unit/%: tests/unit/%.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(filter-out $(FORTIFY),$(CFLAGS)) -O0 -MMD -MP -o $@ $< \
	  $(LDFLAGS) $(LIB) $(LIBS) -lcmocka

## make test-vm    what depends on the kernel, on others than this host's
# (ARCH=arm64: on another processor; emulated, what took seconds takes minutes;
# tests/vm/run says what it needs)
test-vm:
	+@BUILD=$(BUILD) tests/vm/run

# No leak check: LeakSanitizer traces the process, which the front end and the
# guests refuse to everyone. The sanitizers slow down all.
ASAN      = ASAN_OPTIONS=detect_leaks=0 \
              CELLBLOCK_TEST_PATIENCE=$${CELLBLOCK_TEST_PATIENCE:-4} $(MAKE) \
              --no-print-directory BUILD=$(BUILD)/asan OPT="-O1 -g" FORTIFY= \
              SAN="$(SANITIZE) -fno-omit-frame-pointer"
# Where bytes of a guest, a terminal, a client or a file meet C.
ASAN_TESTS := fuzz unit escape/test_terminal.py mcp json/test_cells.py \
  $(addprefix hostile/test_,answers.py connection.py keys.py pictures.py random.py) \
  $(addprefix serve/test_,files.py http.py listen.py logs.py) \
  $(addprefix session/test_,completion.py config.py editing.py expressions.py files.py \
    pager.py terminals.py) program/test_exit.py \
  $(addprefix maker/test_,numbers.py submit.py) grade/test_grade.py \
  grade/test_plans.py

## make asan       every test under AddressSanitizer and UBSan
asan:
	@$(ASAN) check

# A program built for it writes what it runs into a file of $(BUILD)/ran, as any user.
$(BUILD)/tests/lib/covered.o: override COVER := -DCOVERAGE_DIR='"$(abspath $(BUILD))/ran"'

## make coverage   which lines the tests run, as a page: $(BUILD)/covered/index.html
coverage:
	@rm -rf $(BUILD)/covered/ran && mkdir -p $(BUILD)/covered/ran
	@chmod 777 $(BUILD)/covered/ran
	@tools/deps test
	-@$(MAKE) --no-print-directory $(PARALLEL) -s check \
	  BUILD=$(BUILD)/covered OPT="-Og -g" FORTIFY= \
	  COVER=-fsanitize-coverage=trace-pc TEST_ARGS="$(or $(TEST_ARGS),--once)"
	@tools/coverage $(BUILD)/covered

## make fuzz       the fuzzers, FUZZ_SECONDS (60) each; needs clang
fuzz:
	@BUILD=$(BUILD) tests/fuzz/run $(or $(FUZZ_SECONDS),60)

fuzzers: $(FUZZ)

$(BUILD)/fuzz/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(SANITIZE) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/lib.a: $(FUZZ_SRC:%.c=$(BUILD)/fuzz/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

$(FUZZ): $(BUILD)/fuzz/%: tests/fuzz/%.c $(BUILD)/fuzz/lib.a
	$(FUZZ_CC) $(SANITIZE) -fsanitize=fuzzer -MMD -MP -o $@ $< $(BUILD)/fuzz/lib.a $(FUZZ_LIBS)

$(BUILD)/tests/fuzz/lib.a: $(FUZZ_SRC:%.c=$(BUILD)/%.o) $(BUILD)/tests/fuzz/replay.o \
		$(if $(COVER),$(BUILD)/tests/lib/covered.o)
	@rm -f $@
	$(AR) rcs $@ $^

$(REPLAY): $(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(BUILD)/tests/fuzz/lib.a
	$(CC) $(CPPFLAGS) $(CFLAGS) -O1 -MMD -MP -o $@ $< $(BUILD)/tests/fuzz/lib.a $(LDFLAGS) $(FUZZ_LIBS)

## make bench      measure, print the table
bench: build $(BENCH)
	@tests/bench/run

## make mutants    lines broken one at a time, and whether a test notices; ARGS="-n 25"
mutants: build
	@BUILD=$(BUILD) tools/mutants $(ARGS)

## make soak       a laboratory in use for HOURS (2), and what is left of it; root
soak: build
	@BUILD=$(BUILD) tests/soak/run $(or $(HOURS),2) $(STUDENTS)

## make tidy       clang-tidy and cppcheck
tidy: $(GEN)
	clang-tidy --quiet $(SRC) -- -std=gnu17 $(CPPFLAGS)
	cppcheck --quiet --enable=warning,portability --inline-suppr \
	  --error-exitcode=1 -I. -I$(BUILD)/gen $(SRC)

## make format     clang-format every source
format:
	clang-format -i $(SRC) $(GUEST_SRC) $(shell find jail repl -name '*.h') $(UNIT_SRC)

# The texts for people, as pages and as a template for translators.
.PHONY: html texts

## make html       the manuals and documents, in $(BUILD)/html; needs cmark-gfm
html:
	@tools/html $(BUILD)/html

## make texts      every text for people, in $(BUILD)/texts.pot; needs gettext
texts:
	@mkdir -p $(BUILD)
	@tools/texts > $(BUILD)/texts.pot

# The files to install besides the program, as FILE:PLACE. A command that a file
# gives with the path of the program has the path in $(PREFIX) afterwards.
SYSTEMD  := $(wildcard etc/systemd/*.service etc/systemd/*.socket)
EXAMPLES := $(addprefix etc/,cellblock.conf sshd_config.d/cellblock.conf \
              apparmor.d/cellblock haproxy/haproxy.cfg slurm/cellblock-grade nginx/cellblock.conf \
              caddy/Caddyfile container/seccomp.json kubernetes/cellblock.yaml)
SHIPPED  := $(foreach n,1 5 8,$(foreach f,$(wildcard man/*.$n),\
              $f:$(PREFIX)/share/man/man$n/$(notdir $f))) \
            $(foreach f,$(SYSTEMD),$f:$(UNITDIR)/$(notdir $f)) \
            $(foreach d,sysusers.d tmpfiles.d,\
              etc/$d/cellblock.conf:$(PREFIX)/lib/$d/cellblock.conf) \
            lab/cellblock-lab:$(PREFIX)/sbin/cellblock-lab \
            $(foreach n,cellblock cellblock-lab,\
              completions/$n.bash:$(PREFIX)/share/bash-completion/completions/$n \
              completions/$n.zsh:$(ZSHDIR)/_$n \
              completions/$n.fish:$(PREFIX)/share/fish/vendor_completions.d/$n.fish) \
            $(foreach f,$(wildcard docs/*.md),$f:$(DOCDIR)/$(notdir $f)) \
            $(foreach f,$(EXAMPLES),$f:$(DOCDIR)/$(f:etc/%=%)) \
            etc/systemd/user-.slice.d/cellblock.conf:$(DOCDIR)/user-.slice.d/cellblock.conf
# The other files of a package: it may change the host's configuration.
PACKAGED := etc/cellblock.conf:/etc/cellblock/cellblock.conf \
            etc/package/end-sessions:$(PREFIX)/lib/cellblock/end-sessions

define copy
	@set -e; for f in $(1); do \
	  from=$${f%%:*}; to=$(DESTDIR)$${f#*:}; install -d "$${to%/*}"; \
	  sed 's|/usr/local/bin/cellblock -|$(PREFIX)/bin/cellblock -|' "$$from" \
	    >"$$to"; mode=644; test ! -x "$$from" || mode=755; \
	  chmod $$mode "$$to"; done
endef

## make install    to $(PREFIX) (/usr/local); DESTDIR is honoured
install: build
	install -Dm755 $(BUILD)/cellblock $(DESTDIR)$(PREFIX)/bin/cellblock
	$(call copy,$(SHIPPED))

# With PREFIX=/usr, for debian/rules and the spec file.
install-package: install
	$(call copy,$(PACKAGED))

## make deb        the package for Debian, in $(BUILD)/deb; needs mmdebstrap
# (SUITE=bookworm, MIRROR=URL: for and from which Debian)
deb:
	@BUILD=$(BUILD) tools/deb $(SUITE) $(MIRROR)

## make rpm        the package for Fedora, in $(BUILD)/rpm; needs rpmbuild
rpm:
	@BUILD=$(BUILD) VERSION=$(VERSION) tools/rpm

## make dist       the release, in $(BUILD)/dist: a tarball that builds without git,
##                 what this host's program is made of (SPDX), and checksums
dist: $(BUILD)/sbom.spdx.json
	@BUILD=$(BUILD) tools/dist $(VERSION) $<

$(BUILD)/sbom.spdx.json: tools/sbom $(BUILD)/cellblock debian/changelog
	$(PYTHON) $< $(BUILD)/cellblock $(VERSION) $(LIBS) > $@.tmp && mv $@.tmp $@

## make install-apparmor  allow user namespaces where AppArmor restricts them
install-apparmor:
	install -Dm644 etc/apparmor.d/cellblock $(DESTDIR)/etc/apparmor.d/cellblock
	apparmor_parser -r $(DESTDIR)/etc/apparmor.d/cellblock

uninstall:
	rm -f $(addprefix $(DESTDIR),$(PREFIX)/bin/cellblock \
	  $(foreach f,$(SHIPPED),$(lastword $(subst :, ,$f))))
	rm -rf $(DESTDIR)$(DOCDIR)

clean:
	rm -rf $(BUILD)

-include $(OBJ:.o=.d) $(UNIT:=.d) $(wildcard $(BUILD)/tests/bench/*.d) \
  $(FUZZ:=.d) $(REPLAY:=.d) $(FUZZ_SRC:%.c=$(BUILD)/fuzz/%.d)
