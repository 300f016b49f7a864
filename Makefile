# foreread: build, test, measure, install.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
# Where rustup puts cargo, which only a new shell has in its PATH.
export PATH := $(HOME)/.cargo/bin:$(PATH)
# Seconds given to each fuzz target.
FUZZ_SECONDS ?= 60
# Seconds of random programs.
SOAK_SECONDS ?= 3600

RELEASE := target/release
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
BIN := $(DESTDIR)$(PREFIX)/bin
LIB64 := $(DESTDIR)$(PREFIX)/lib
LIB := $(LIB64)/foreread
INCLUDE := $(DESTDIR)$(PREFIX)/include
SHARE := $(DESTDIR)$(PREFIX)/share
LIBEXEC := $(DESTDIR)$(PREFIX)/libexec

# The program that runs and records, the one with all other commands, and the daemon.
PROGRAMS := foreread foreread-tools forereadd

# Where the translator is built, and where Debian has the Clang it is built with.
SLICER := target/slicer
CLANG := /usr/lib/llvm-19/lib/cmake/clang

.PHONY: all build slicer sqlite python bench-build test test-all test-rust test-programs test-loom test-slicer test-sqlite \
	test-sqlite-quick test-python test-python-quick soak lint bench bench-quick demo install uninstall deb test-deb tarball test-tarball crates deps fuzz clean help

all: build

help:
	@echo 'make build                  target/release: foreread, foreread-tools, forereadd,'
	@echo '                            libforeread_preload.so, libforeread.so and .a;'
	@echo '                            those for MPI (libforeread_mpich.so, _openmpi.so) where its compiler is there'
	@echo 'make slicer                 what foreread cc and foreread slice need: the translator (Clang 19), its runtime'
	@echo 'make sqlite, python         the SQLite extension (sqlite/foreread.so); the wheel (python/wheels)'
	@echo 'make test                   the tests for each change: units, policies in virtual time, a hundred whole programs'
	@echo 'make test-all               all other tests; what this machine cannot run is skipped with the reason'
	@echo 'make lint                   formatting and clippy, warnings denied'
	@echo 'make demo                   a real program, several times faster on its second cold run'
	@echo 'make bench-quick, bench     the benchmarks: under ten minutes, or all'
	@echo 'make fuzz                   FUZZ_SECONDS of each fuzz target (nightly and cargo-fuzz)'
	@echo 'make soak                   SOAK_SECONDS of random programs, killed and short of memory and disk'
	@echo 'make install PREFIX=DIR     the program, the libraries and headers, man pages and completions'
	@echo 'make deb, tarball, crates   target/deb, target/foreread-*.tar.gz, target/package; test-deb and test-tarball try them'
	@echo 'make deps                   the Debian packages all this needs; test and demo see to theirs'
	@echo 'make clean                  remove what was built'

# What is built here is what `cargo test --release` and clippy use again. The preload library has a profile of its own. It is loaded
# into every process: without pages to be made read-only after relocation that takes two system calls and a page fault less. Without
# the C compiler's start files, and with its data on one page, it takes three page faults less. It lies
# where the program finds it, as an installed one would. Programs are copied, as they are when installed: what a linker has
# written the kernel holds in single pages, which takes a start 0.3 ms more.
build:
	@sh packages.sh build
	$(CARGO) build --release -p foreread -p foreread-tools -p foreread-daemon -p foreread-capi
	@! sh observers/ebpf/ready.sh || $(CARGO) build --release -p foreread-ebpf-module
	$(call finish,$(PROGRAMS))
	$(MAKE) -s -C observers/pmpi OUT=$(CURDIR)/$(RELEASE)
	sh observers/preload/loaders.sh $(RELEASE)/loaders $(RELEASE)/libforeread_[mop]*.so
	sh crates/capi/link.sh $(RELEASE)/libforeread.a $(RELEASE)/libforeread.so.1
	ln -sf libforeread.so.1 $(RELEASE)/libforeread.so

# finish PROGRAMS: copies programs, and builds the preload library beside them.
define finish
	$(CARGO) rustc --profile preload -p foreread-preload -- -C relro-level=off -C link-arg=-nostartfiles \
		-C link-arg=-Wl,-z,separate-loadable-segments
	for program in $(1); do \
		install -m 755 $(RELEASE)/$$program $(RELEASE)/.$$program && \
		mv $(RELEASE)/.$$program $(RELEASE)/$$program || exit; \
	done
	install -m 755 target/preload/libforeread_preload.so $(RELEASE)/
endef

# What `foreread run` takes, and nothing else.
.PHONY: build-run
build-run:
	$(CARGO) build --release -p foreread
	$(call finish,foreread)
	sh observers/preload/loaders.sh $(RELEASE)/loaders $(RELEASE)/libforeread_[mop]*.so

slicer: build
	@test -d $(CLANG) || { \
		echo 'make slicer: Clang 19 is missing (no $(CLANG)):' >&2; \
		echo '  apt-get install libclang-19-dev llvm-19-dev clang-19 cmake ninja-build' >&2; exit 1; }
	cmake -G Ninja -S slicer -B $(SLICER) -DCMAKE_BUILD_TYPE=Release
	ninja -C $(SLICER)
	$(MAKE) -C slicer/runtime OUT=$(CURDIR)/$(SLICER)/runtime
	ln -f $(SLICER)/foreread-slice $(SLICER)/runtime/libforeread_preexec.a $(RELEASE)/
	install -m 644 slicer/runtime/foreread_preexec.h slicer/runtime/foreread_counter.h $(RELEASE)/

sqlite: build
	$(MAKE) -C sqlite

python:
	$(MAKE) -C python wheel

bench-build: build sqlite python
	@if test -d $(CLANG); then $(MAKE) slicer; \
	else echo 'bench-build: without the group slice: Clang 19 is missing (libclang-19-dev)'; fi
	$(CARGO) build --release -p foreread -p foreread-tools -p foreread-daemon -p foreread-capi -p foreread-bench

# The rings of tests: `test` for each change, `test-all` for everything else. Each runs all its steps, then sums up (tests/ring.sh).
test:
	@sh packages.sh test
	@MAKE='$(MAKE)' tests/ring.sh quick test-rust test-sqlite-quick test-python-quick

test-all:
	@sh packages.sh test
	@MAKE='$(MAKE)' tests/ring.sh rest test-programs test-loom test-slicer test-sqlite test-python

# Unit and property tests, policies in virtual time, and the quick ring of the whole programs, which load the libraries that `build`
# leaves into real programs.
test-rust: build
	$(CARGO) test --release --no-fail-fast

# The whole-program tests that are not in the quick ring, and the C programs linked in other ways.
# Of the packages that test-rust builds: of fewer, some would have other features, and be compiled anew.
test-programs: build
	FOREREAD_RING=rest $(CARGO) test --release --no-fail-fast --test programs

# What threads and processes share, in every order. The models are crates of their own (tests/models), with loom's atomics and locks.
test-loom:
	$(CARGO) test --release -p foreread-models-ring -p foreread-models-segment -p foreread-models-engine --lib -- models

# Without Clang 19 there is nothing to test but the driver, which test-rust does.
test-slicer:
	@if test -d $(CLANG); then $(MAKE) test-slicer-here; \
	else echo 'test-slicer: skipped: Clang 19 is missing (libclang-19-dev)'; fi

.PHONY: test-slicer-here
test-slicer-here: slicer
	ctest --test-dir $(SLICER) --output-on-failure -j 2
	$(MAKE) -C slicer/runtime OUT=$(CURDIR)/$(SLICER)/runtime test
	$(MAKE) -C slicer/programs OUT=$(CURDIR)/$(SLICER)/programs test
	$(CARGO) test --release --test programs -- translated
	python3 slicer/suites/semantics.py --quick

test-sqlite: sqlite
	$(MAKE) -C sqlite test

test-sqlite-quick: sqlite
	$(MAKE) -C sqlite test-quick

test-python:
	$(MAKE) -C python test

test-python-quick:
	$(MAKE) -C python test-quick

# Random programs, killed, short of memory and of disk, under `foreread run` and without it, for SOAK_SECONDS.
soak: build
	python3 tests/soak.py --seconds $(SOAK_SECONDS)

lint:
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --release --all-targets -- -D warnings
	$(CARGO) clippy --profile preload -p foreread-preload -- -D warnings
	$(CARGO) clippy --release -p foreread-python -- -D warnings
	@! sh observers/ebpf/ready.sh || $(CARGO) clippy --release -p foreread-ebpf-module -- -D warnings

bench: bench-build
	$(RELEASE)/foreread-bench

bench-quick: bench-build
	$(RELEASE)/foreread-bench --quick

demo:
	@sh packages.sh demo
	@test -x $(RELEASE)/foreread || echo 'building foreread: a minute or two, the first time'
	@$(MAKE) -s build-run
	@bench/demo.sh

# Builds only what is missing, so that `sudo make install` after `make build` needs no cargo. The dynamic linker finds
# what is new in its own folders, /usr/local/lib among them, by a cache, which ldconfig brings up to date.
install:
	test -x $(RELEASE)/foreread -a -x $(RELEASE)/foreread-tools -a -x $(RELEASE)/forereadd -a -f $(RELEASE)/libforeread_preload.so || $(MAKE) build
	install -D -m 755 --strip $(RELEASE)/foreread $(BIN)/foreread
	install -D -m 755 --strip $(RELEASE)/foreread-tools $(LIBEXEC)/foreread-tools
	install -D -m 755 --strip $(RELEASE)/forereadd $(LIBEXEC)/forereadd
	install -D -m 644 $(RELEASE)/libforeread_preload.so $(LIB)/libforeread_preload.so
	test ! -f $(RELEASE)/libforeread_ebpf.so || install -D -m 644 --strip $(RELEASE)/libforeread_ebpf.so $(LIB)/libforeread_ebpf.so
	for library in $(RELEASE)/libforeread_mpich.so $(RELEASE)/libforeread_openmpi.so; do \
		test ! -f $$library || install -m 644 $$library $(LIB)/ || exit; done
	sh observers/preload/loaders.sh $(LIB)/loaders $(LIB)/libforeread_[mop]*.so
	test -f $(RELEASE)/libforeread.so.1 || $(MAKE) build
	install -D -m 755 --strip $(RELEASE)/libforeread.so.1 $(LIB64)/libforeread.so.1
	ln -sf libforeread.so.1 $(LIB64)/libforeread.so
	install -D -m 644 $(RELEASE)/libforeread.a $(LIB64)/libforeread.a
	strip -S $(LIB64)/libforeread.a
	install -D -m 644 -t $(INCLUDE) crates/capi/include/foreread.h crates/capi/include/libprefetch.h
	install -d $(LIB64)/pkgconfig $(SHARE)/man/man3
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' crates/capi/foreread.pc.in \
		> $(LIB64)/pkgconfig/foreread.pc
	install -m 644 -t $(SHARE)/man/man3 crates/capi/man/*.3
	test ! -f $(RELEASE)/foreread-slice || { \
		install -D -m 755 --strip $(RELEASE)/foreread-slice $(LIB)/foreread-slice && \
		install -m 644 $(RELEASE)/libforeread_preexec.a $(LIB64)/ && \
		install -m 644 $(RELEASE)/foreread_preexec.h $(RELEASE)/foreread_counter.h $(INCLUDE)/; }
	test ! -f sqlite/foreread.so || { \
		install -D -m 755 sqlite/foreread.so $(LIB)/sqlite/foreread.so && \
		ln -sf ../../libforeread.so.1 $(LIB)/sqlite/; }
	install -d $(LIB64)/systemd/system
	for unit in forereadd foreread@; do \
		sed 's|@PREFIX@|$(PREFIX)|' packaging/$$unit.service.in > $(LIB64)/systemd/system/$$unit.service || exit; done
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions \
		$(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	$(RELEASE)/foreread man --output $(SHARE)/man/man1
	$(RELEASE)/foreread completions bash > $(SHARE)/bash-completion/completions/foreread
	$(RELEASE)/foreread completions zsh > $(SHARE)/zsh/site-functions/_foreread
	$(RELEASE)/foreread completions fish > $(SHARE)/fish/vendor_completions.d/foreread.fish
	test -n '$(DESTDIR)' || ldconfig 2>/dev/null || true

uninstall:
	rm -f $(BIN)/foreread $(LIBEXEC)/foreread-tools $(LIBEXEC)/forereadd $(SHARE)/man/man1/foreread.1 $(SHARE)/man/man1/foreread-*.1 \
		$(SHARE)/bash-completion/completions/foreread \
		$(SHARE)/zsh/site-functions/_foreread $(SHARE)/fish/vendor_completions.d/foreread.fish
	rm -f $(LIB64)/libforeread.* $(LIB64)/libforeread_preexec.a $(LIB64)/pkgconfig/foreread.pc \
		$(INCLUDE)/foreread.h $(INCLUDE)/foreread_preexec.h $(INCLUDE)/foreread_counter.h \
		$(INCLUDE)/libprefetch.h \
		$(SHARE)/man/man3/foreread_*.3 $(SHARE)/man/man3/libforeread.3
	rm -f $(LIB64)/systemd/system/forereadd.service $(LIB64)/systemd/system/foreread@.service
	rm -rf $(LIB)

# Packages. The tests install, try and remove them: of Debian in a clean root, of the tarball in an empty home.
deb: build python
	packaging/deb.sh $(VERSION)

test-deb: deb
	packaging/test-deb.sh target/deb

tarball: build
	MAKE='$(MAKE)' packaging/tarball.sh $(VERSION)

test-tarball: tarball
	packaging/test-tarball.sh target/foreread-$(VERSION)-linux-$$(uname -m).tar.gz

# What crates.io gets: the client, and the crates that it depends on, each built from its package alone.
PUBLISHED := features disk plan sys segment sched sources backend engine profiles client
crates:
	$(CARGO) package $(PUBLISHED:%=-p foreread-%)

deps:
	@sh packages.sh deps

fuzz:
	cd fuzz && for target in fuzz_targets/*.rs; do \
		$(CARGO) +nightly fuzz run $$(basename $$target .rs) -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

clean:
	$(CARGO) clean
	$(MAKE) -C sqlite clean
	$(MAKE) -C python clean
	rm -rf bench/out $(SLICER)
