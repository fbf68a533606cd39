# Targets that test and measure; included by the Makefile.

PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
JUDGES_PYTHON := $(abspath $O/judges/venv/bin/python)
FUZZ_SECONDS ?= 300
CLANG    ?= clang
CLANGXX  ?= clang++
# Variables that the scripts in tests/ read.
TEST_ENV = O='$O' SAN='$(SAN)' BIN='$(abspath $O/bin)' CC='$(CC)' PYTHON='$(PYTHON)' \
           JUDGES_PYTHON='$(JUDGES_PYTHON)' PROGRAM_PREFIX='$(PROGRAM_PREFIX)'

# ---- packages ---------------------------------------------------------------------------------
# $O/deps.mk is an included file that is made again when tests/deps changes; make then starts over
# and so sees the new answers of pkg-config. `make demo`, `make check` and the other targets that are
# run on fresh machines install missing packages; all others only name them.

NO_DEPS   := clean dist help deps deps-dev deps-slurm uninstall lint-includes check-gpu bench-kernels
INSTALLING := demo check check-more check-full check-all judges check-judges check-judges-full
GOALS     := $(or $(MAKECMDGOALS),all)
ifneq ($(filter-out $(NO_DEPS),$(GOALS)),)
include $O/deps.mk
$O/deps.mk: tests/deps
	@mkdir -p $(@D)
ifneq ($(filter $(INSTALLING),$(GOALS)),)
	@PYTHON='$(PYTHON)' tests/deps
else
	@PYTHON='$(PYTHON)' tests/deps -m || { echo "these packages are missing; 'make deps' installs them" >&2; exit 1; }
endif
	@echo '# tests/deps was content' > $@
endif
# Targets that need more, and their groups in tests/deps.
NEEDS := fuzz:fuzz arm64:arm64 check-arm64:arm64 wheel:package dist-static:package deb:package \
         check-packages:package valgrind:valgrind check-abi:abi check-slurm:slurm check-slurm-full:slurm
NEEDED := $(foreach g,$(GOALS),$(patsubst $g:%,%,$(filter $g:%,$(NEEDS))))
MISSING := $(strip $(foreach g,$(NEEDED),$(shell tests/deps -m $g)))
ifneq ($(MISSING),)
$(error these packages are missing: $(MISSING); '$(if $(filter slurm,$(NEEDED)),make deps-slurm,make deps-dev)' installs them)
endif

deps:
	@PYTHON='$(PYTHON)' tests/deps

deps-slurm:
	@PYTHON='$(PYTHON)' tests/deps slurm

deps-dev:
	@PYTHON='$(PYTHON)' tests/deps dev

# ---- tests ------------------------------------------------------------------------------------
# One script runs the suites, counts `ok`, `not ok` and `skip` lines and closes with
# "N passed, N failed, N skipped".

SHIM_C := $(wildcard tests/shim/*.c)
SHIM   := $(SHIM_C:tests/shim/%.c=$O/shim/%.so)

$O/shim/%.so: tests/shim/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -fPIC -shared -o $@ $< -ldl -pthread

# Programs and a unit test with a fake device (tests/fake), which auto uses for any amount of work.
# The fake's functions come before those of the archive, with and without CUDA.
FAKE     := pack decompose inspect
FAKE_BIN := $(FAKE:%=$O/fake/bin/%) $O/fake/bin/sluice
FAKE_OBJ := $O/tests/fake/device_fake.o $O/tests/fake/kernels_fake.o $O/fake/device.o
UNIT     := $O/unit/test_fake $(UNIT) # it takes longest

$O/fake/device.o: lib/base/device.c $O/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -DSLU_DEVICE_EAGER $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(FAKE:%=$O/fake/bin/%): $O/fake/bin/sluice
$(FAKE:%=$O/emu/bin/%): $O/emu/bin/sluice
$(FAKE:%=$O/fake/bin/%) $(FAKE:%=$O/emu/bin/%):
	$(Q)ln -sfn sluice $@
$O/fake/bin/sluice: $(TOOL_OBJ) $(FAKE_OBJ) $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $O/libsluice.a $(LDLIBS_ALL)

$O/unit/test_fake: $O/tests/fake/test_fake.o $(FAKE_OBJ) $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $O/libsluice.a -lcmocka $(LDLIBS_ALL)

# The kernels beside their oracles; each kernel has a file.
TEST_KERNELS := $(patsubst %.c,$O/%.o,$(wildcard tests/kernels/*.c))
UNIT         += $O/unit/test_kernels

$O/unit/test_kernels: $(TEST_KERNELS) $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -Wl,--as-needed $(LDLIBS_ALL)

# The kernels' PTX, run on the processor (tests/emu): CUDA's functions come from there, not from its
# library. Only nvcc is needed, so this works in builds without CUDA, too.
EMU_OBJ := $(patsubst tests/%.c,$O/tests/%.o,$(filter-out tests/emu/test_%,$(wildcard tests/emu/*.c)))
EMU_CU  := $(CU_SRC:%.cu=$O/emu/%.cu.o)
EMU_BIN := $(FAKE:%=$O/emu/bin/%) $O/emu/bin/sluice $O/emu/test_kernels $O/emu/test_scan $O/emu/test_calls
EMU_HOME = $(realpath $(shell $(NVCC) --dryrun -x cu /dev/null 2>&1 | sed -n 's/^.*TOP=//p'))
UNIT    += $O/unit/test_emu $O/unit/test_opcodes
EMU_ARCH := $(foreach a,80 90 100,-gencode arch=compute_$a,code=compute_$a)

$O/emu/kernels/%.cu.o: kernels/%.cu $O/flags
	@mkdir -p $(@D)
	$(Q)$(NVCC) -O3 -std=c++17 -I. $(EMU_ARCH) --compress-mode=none -Xcompiler -fPIC -MMD -MP -c -o $@ $<

$O/tests/emu/cudart.o $O/tests/emu/test_calls.o: CPPFLAGS_ALL += -isystem $(EMU_HOME)/include

$O/emu/bin/sluice: $(TOOL_OBJ) $O/fake/device.o $(EMU_OBJ) $(EMU_CU) $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $O/libsluice.a $(PKG_LIBS) -lm -pthread $(LDLIBS)

$O/emu/test_calls: $O/tests/emu/test_calls.o
$O/emu/test_kernels: $(TEST_KERNELS)
$O/emu/test_scan: $O/tests/unit/test_scan.o
$O/emu/test_%: $(EMU_OBJ) $(EMU_CU) $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $O/libsluice.a -lcmocka $(PKG_LIBS) -lm -pthread $(LDLIBS)

$O/unit/test_emu $O/unit/test_opcodes: $O/unit/%: $O/tests/emu/%.o $(filter-out %/cudart.o,$(EMU_OBJ))
	@mkdir -p $(@D)
	$(Q)$(CC) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka

# The tests of kernels and all of kernels/ that is no device code.
HOST_KERNELS = $(TEST_KERNELS) $(filter-out %/none.o,$(filter $O/kernels/%.o,$(LIB_C:%.c=$O/%.o)))

check-emu: $(if $(HAVE_NVCC),programs $(EMU_BIN))
	@$(TEST_ENV) CXX='$(CXX)' OBJECTS='$(HOST_KERNELS)' tests/emu/run $(if $(FULL),full)

# The kernels as C++, each thread a fiber, under TSan, ASan and UBSan. Needs no nvcc.
check-emu-san: $(HOST_KERNELS)
	@$(TEST_ENV) CXX='$(CXX)' OBJECTS='$(HOST_KERNELS)' tests/emu/san/run

# Plants faults in the kernels, one after the other; the tests must see each. Takes about 20 minutes.
check-mutants: $O/emu/test_kernels
	@$(TEST_ENV) NVCC='$(NVCC)' CXX='$(CXX)' tests/emu/mutants $(ARGS)
check-mutants: export OBJECTS = $(HOST_KERNELS) $(EMU_OBJ) $(EMU_CU)

# These can be built from kernels/ alone, on a bare machine with a device and nvcc. Where packages are there, bench-kernels
# compares with the library, too.
KERNEL_OBJ := $(filter $O/kernels/%,$(LIB_OBJ))

$O/gpu/test_kernels: $(TEST_KERNELS) $(KERNEL_OBJ)
$O/gpu/bench-kernels: $O/tests/bench/kernels.o $O/tests/bench/kernels_packing.o $(KERNEL_OBJ) \
    $(if $(PKG_LIBS),$O/lib/base/hash.o $O/libsluice.a)
$O/gpu/test_kernels $O/gpu/bench-kernels:
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $^ -Wl,--as-needed $(LDLIBS_ALL)

check-gpu: $O/gpu/test_kernels
	@$(TEST_ENV) tests/gpu $O/gpu/test_kernels

# Times of planning, from the histogram on.
$O/bench/plan: $O/tests/bench/plan.o $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $< $O/libsluice.a $(LDLIBS_ALL)

bench-plan: $O/bench/plan
	@$O/bench/plan

bench-kernels: $O/gpu/bench-kernels
	@$O/gpu/bench-kernels $(ARGS)

# Bytes, launches and instructions of programs on an emulated device, and a model's time of them.
bench-emu: programs $(EMU_BIN) $(FAKE_BIN)
	@$(TEST_ENV) $(PYTHON) tests/bench/emu $(ARGS)

check: programs installed $(UNIT) $(SHIM) $(FAKE_BIN)
	@$(TEST_ENV) UNIT='$(UNIT)' tests/check quick

# The tests that check leaves out or shortens; .ci/run runs both.
check-more: programs $(UNIT) $(SHIM) $(FAKE_BIN)
	@$(TEST_ENV) UNIT='$(UNIT)' tests/check more

# All suites in their short form.
check-short: programs installed $(UNIT) $(SHIM) $(FAKE_BIN)
	@$(TEST_ENV) UNIT='$(UNIT)' tests/check short

check-full: programs installed $(UNIT) $(SHIM) $(FAKE_BIN)
	@$(TEST_ENV) UNIT='$(UNIT)' tests/check full

# All there is, in pieces (tests/all), of which those that have passed are not run again.
check-all: programs $(UNIT) $(SHIM) $(FAKE_BIN)
	@$(TEST_ENV) tests/all $(PIECES)

# libsluice.so beside that of the last release.
check-abi: installed
	@$(TEST_ENV) tests/abi

check-unit: $(UNIT)
	@$(TEST_ENV) UNIT='$(UNIT)' tests/check units

check-cli: programs $(SHIM) $(FAKE_BIN)
	@$(TEST_ENV) CASES='$(CASES)' tests/check cli

# The cases of the command line that have a pipe, with `sluice run` in its place.
check-pipes: programs $(SHIM) $(FAKE_BIN)
	@$(TEST_ENV) tests/check pipes

# The suites that tests/for names for files and folders, and suites by name: `make check-for lib/pack unit/test_core`.
ifeq ($(firstword $(MAKECMDGOALS)),check-for)
FOR := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
FOR_NAMES := $(shell tests/check -names $(FOR))
# Files are no targets: all that is compiled from a header would be made again.
FOR_WORDS := $(foreach f,$(FOR),$(if $(and $(wildcard $f),$(if $(wildcard $f/.),,file)),,$f))
$(filter-out lib python,$(FOR_WORDS)):
	@:
.PHONY: $(FOR_WORDS)
endif
check-for: $(patsubst unit/%,$O/unit/%,$(filter unit/%,$(FOR_NAMES))) $(if $(filter-out unit/%,$(FOR_NAMES)),programs $(SHIM) $(FAKE_BIN)) \
           $(if $(filter library-examples headers,$(FOR_NAMES)),installed)
	@$(TEST_ENV) UNIT='$(UNIT)' tests/check for $(FOR)

# Random jobs, each run in several ways that must agree; OTHER names the programs of another build.
check-random: programs
	@$(TEST_ENV) $(PYTHON) tests/random/jobs.py $(if $(SEED),--seed '$(SEED)') $(if $(JOBS),--jobs '$(JOBS)') \
	    $(if $(SECONDS),--seconds '$(SECONDS)') $(if $(OTHER),--other '$(OTHER)') $(ARGS)

ifneq ($(filter demo,$(GOALS)),)
ifeq ($(wildcard $O/libsluice.a),)
$(info demo: first compiles the programs, about a minute on two processors)
endif
endif
demo: programs
	@$(TEST_ENV) tests/demo.sh

# The judges: tokenizers and readers of other projects, and a real corpus, to compare with.
judges: programs
	@$(TEST_ENV) tests/judges/fetch

$O/judges/encode $O/judges/shingles $O/judges/words: $O/judges/%: $O/tests/judges/%_main.o $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $< $O/libsluice.a $(LDLIBS_ALL)

# Parquet. Without an installed Arrow, the Arrow of a Python package is used: of the Python in PATH, or of
# the judges' Python. Without any, the tests of Parquet are skipped.
arrow: programs
ifneq ($(USE_ARROW),1)
	@if tests/judges/arrow-pc '$O/arrow/pc' $(ARROW_PYTHON); then $(MAKE) --no-print-directory '$(PARQUET_SO)'; else rm -f '$(PARQUET_SO)'; $(if $(filter arrow,$(MAKECMDGOALS)),exit 1,true); fi
endif

check-arrow: arrow $(SHIM)
	@$(TEST_ENV) CHECK_MORE=1 CASES='tokenize_parquet shards_parquet' tests/check cli

check-judges: programs arrow $O/judges/encode $O/judges/shingles $O/judges/words
	@$(TEST_ENV) tests/check judges

# 50 MB of text, every code point, every level of SIMD; the Python package by every Python.
check-judges-full: programs arrow $O/judges/encode $O/judges/shingles $O/judges/words
	@$(TEST_ENV) JUDGES_FULL=1 tests/check judges
	@$(MAKE) --no-print-directory check-python CHECK_FULL=1

# sluice-batch on a Slurm cluster of one machine; deps-slurm installs the packages.
check-slurm: programs $(SHIM)
	@$(TEST_ENV) tests/check slurm

check-slurm-full: programs $(SHIM)
	@$(TEST_ENV) CHECK_FULL=1 tests/check slurm

# The Python package, with its optional packages (python/tests/requirements.txt) in a folder of their own.
python: programs
	@$(TEST_ENV) python/tests/fetch
	@$(MAKE) --no-print-directory ARROW_PYTHON='$O/python/venv/bin/python' arrow

check-python: programs
	@$(TEST_ENV) python/tests/run $(CASES)

lint:
	@tests/lint

lint-includes:
	@tests/lint includes

bench: programs
	@$(TEST_ENV) tests/bench/run

# tokenize beside fast tokenizers of other projects; texts and results are in $O/bench.
$O/tests/bench/encode $O/tests/bench/signatures $O/tests/bench/plan_time $O/tests/bench/records: $O/tests/bench/%: $O/tests/bench/%.o $O/libsluice.a
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $< $O/libsluice.a $(LDLIBS_ALL)

bench-tokenize: programs $O/tests/bench/encode
	@$(TEST_ENV) tests/bench/fetch
	@$(TEST_ENV) $(JUDGES_PYTHON) tests/bench/tokenize $(ARGS)

# From raw ids to a histogram of lengths, beside a loop that only reads.
$O/tests/bench/scan: $O/tests/bench/scan.o $O/libsluice.a
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $< $O/libsluice.a $(LDLIBS_ALL)

bench-scan: $O/tests/bench/scan
	@$O/tests/bench/scan $(ARGS)

# Signatures and repeated n-grams of lib/dedup beside those of other projects.
bench-dedup: programs $O/tests/bench/signatures
	@$(TEST_ENV) tests/bench/fetch-dedup
	@$(TEST_ENV) $O/bench/peers/bin/python tests/bench/dedup $(ARGS)
	@$(TEST_ENV) $(PYTHON) tests/bench/ngrams $(NGRAMS_ARGS)

# Packing beside other projects, on the same lengths.
bench-pack: programs $O/tests/bench/plan_time
	@$(TEST_ENV) tests/bench/fetch-pack
	@$(TEST_ENV) $O/bench/peers-pack/bin/python tests/bench/pack $(ARGS)

# The shuffle beside cat and terashuf.
bench-shuffle: programs $O/tests/bench/records
	@$(TEST_ENV) $(PYTHON) tests/bench/shuffle $(ARGS)

# Batch jobs of 1, 2, 4 and 8 parts of equal size: processor seconds a token, by stage.
bench-scaling: programs
	@[ -e $O/bench/multi.jsonl ] || $(TEST_ENV) tests/bench/fetch
	@$(TEST_ENV) $(PYTHON) tests/bench/scaling $(ARGS)

# The cost of each stage and pipe; beside another build with ARGS='--with DIR'.
$O/tests/bench/spend: tests/bench/spend.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 $(WARN) -o $@ $<

bench-stages: programs $O/tests/bench/spend
	@$(TEST_ENV) $(PYTHON) tests/bench/stages $(ARGS)

# Samples a second, beside the readers of trainers.
bench-python: programs
	@$(TEST_ENV) tests/judges/fetch
	@$(MAKE) --no-print-directory arrow
	@$(TEST_ENV) $(abspath $O/judges/readers/bin/python) python/tests/bench.py $(ARGS)

# From text to shards, beside the reference script and the tools of trainers.
bench-shards: programs
	@$(TEST_ENV) tests/bench/fetch-shards
	@$(MAKE) --no-print-directory arrow
	@$(TEST_ENV) $(abspath $O/judges/readers/bin/python) tests/bench/shards $(ARGS)

bench-hostile: programs $O/tests/bench/encode
	@$(TEST_ENV) tests/bench/fetch
	@$(TEST_ENV) $(JUDGES_PYTHON) tests/bench/hostile $(ARGS)

# All tests with instrumented programs, built in a folder of their own.
asan:
	@$(MAKE) --no-print-directory O=$O/asan SAN=address,undefined CUDA=0 check-short

tsan:
	@$(MAKE) --no-print-directory O=$O/tsan SAN=thread CUDA=0 check-short

valgrind: programs $(UNIT)
	@$(TEST_ENV) UNIT='$(UNIT)' tests/check valgrind

fuzz:
	@$(MAKE) --no-print-directory O=$O/fuzz CC='$(CLANG)' CXX='$(CLANGXX)' CUDA=0 \
	    OPT='-O1 -g' SANFLAGS='-fsanitize=address,undefined,fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping -fno-omit-frame-pointer' \
	    fuzz-here

FUZZ_C := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ   := $(FUZZ_C:tests/fuzz/%.c=$O/fuzzers/%)

# This one needs what the programs share.
$O/fuzzers/fuzz_manifest: $(filter $O/tools/cli/%,$(TOOL_OBJ))
$O/fuzzers/%: $O/tests/fuzz/%.o $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $(filter %.o,$^) $O/libsluice.a $(LDLIBS_ALL)

fuzz-here: $(FUZZ)
	@$(TEST_ENV) FUZZERS='$(FUZZ)' FUZZ_SECONDS='$(FUZZ_SECONDS)' tests/fuzz/run

# Stages read forged work files, whose checksums are right and contents wrong; instrumented programs.
forge:
	@$(MAKE) --no-print-directory O=$O/asan SAN=address,undefined CUDA=0 programs
	@BIN='$(abspath $O/asan/bin)' '$(abspath $O/judges/readers/bin/python)' tests/fuzz/forge.py '$(FUZZ_SECONDS)' $(ARGS)

# The portable path, compiled for a machine that is not x86. Debian's cross compiler has the C
# library's headers for arm64; the headers of the dependencies are the same for every machine and come
# last, so that no header of the host's C library is read. This makes objects and the archive, and links
# no program: that would need the dependencies' arm64 libraries.
arm64:
	@$(MAKE) --no-print-directory O=$O/arm64 CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ \
	    AR=aarch64-linux-gnu-ar CUDA=0 ARROW=0 FASTTEXT=0 PKG_CFLAGS='-idirafter /usr/include' WERROR=1 objects
	@! grep -lE 'x86|immintrin' $$(find $O/arm64 -name '*.d') /dev/null || { echo "arm64: x86 headers were read" >&2; exit 1; }
	@echo "arm64: compiled, not linked"

# The same, linked with Debian's arm64 libraries below $O and run by qemu-aarch64.
check-arm64: programs
	@O='$O' FULL='$(FULL)' tests/arm64

objects: $O/libsluice.a $(TOOL_OBJ)

help:
	@sed -n 's/^#H //p' tests/tests.mk packaging/packaging.mk

#H make              all programs, into build/bin
#H make demo         shards from text of this machine, each step explained; installs missing packages
#H make check        the quick tests; installs missing packages
#H make check-for PATH...  the tests of files and folders, by tests/for; or tests by name: check-for unit/test_core cli/masks
#H make check-more   the longer loops that check leaves out, in some minutes; the continuous integration runs both
#H make check-full   the same tests at full length: input cut at each byte, each call failing
#H make check-all    check-full, sanitizers, fuzzers, planted faults, judges ... (tests/all), hours; PIECES='asan fuzz', AGAIN=1
#H make check-random random jobs, each in several ways that must agree; SEED=1 JOBS=320, or SECONDS=; OTHER=DIR: programs of another build
#H make judges       fetches packages, vocabularies and a corpus for check-judges
#H make check-judges compares with tokenizers and readers of other projects; check-judges-full: on more text
#H make arrow        Parquet with the Arrow inside PyPI's pyarrow ('pip install pyarrow' before); check-arrow: and its tests
#H make python       fetches packages for the tests of the Python package; check-python runs these tests
#H make check-slurm  sluice-batch on a Slurm cluster made for the test (root; make deps-slurm); check-slurm-full: longer
#H make check-abi    the shared library beside that of the last release (make deps-dev)
#H make lint         formatting, static analysis, manual pages, shell, include direction
#H make asan|tsan    the tests under AddressSanitizer and UBSan, or ThreadSanitizer
#H make valgrind     the unit tests under valgrind
#H make fuzz         runs each fuzz target for FUZZ_SECONDS=300, with coverage
#H make forge        stages read forged work files for FUZZ_SECONDS=300 (needs make judges); ARGS='SEED JOB...'
#H make bench        figures and timings
#H make bench-tokenize  tokenize beside gigatoken and quicktok; ARGS='--rounds 5 --help'
#H make bench-dedup  signatures beside datatrove, datasketch and rensa; n-grams beside dolma
#H make bench-scan   the search for the ends of documents in raw ids; ARGS='MIB ROUNDS'
#H make bench-pack   bins and seconds beside TRL, OLMo-core, axolotl and a segment tree
#H make bench-shuffle   shuffle beside cat and terashuf; ARGS='--mib 4096 --rounds 3', TERASHUF=PROGRAM
#H make bench-scaling   batch jobs of 1, 2, 4 and 8 parts: processor seconds a token by stage
#H make bench-stages    processor seconds, memory and bytes of each stage and pipe; ARGS='--with OTHER/build/bin --rounds 5 [JOB ...]'
#H make bench-shards    JSONL to shards, beside the reference script and the tools of trainers; ARGS='--help'
#H make bench-python    the Python package beside LitData, MosaicML streaming and datasets; ARGS=ROUNDS
#H make bench-hostile   tokenize on texts that are made to be slow; start, memory
#H make check-emu    the kernels without a device: their PTX, interpreted and checked; needs nvcc. FULL=1: longer
#H make check-emu-san  the kernels as C++ under the sanitizers, each of their threads a fiber
#H make check-mutants  plants faults in the kernels, which the emulated tests must see; ARGS='copy scan'
#H make check-gpu    the kernels on a CUDA device, and under compute-sanitizer; needs nvcc and no package
#H make bench-plan      time of planning by method and bin length, and bins over the lower bound
#H make bench-emu       bytes over the bus, launches and instructions on an emulated device; ARGS='--tokens 1e8'
#H make bench-kernels   each kernel beside its CPU version and plain copies; ARGS='-n 1e9 -T 16'
#H make arm64        compiles everything for arm64; check-arm64 runs it by qemu-aarch64; FULL=1: all unit tests
#H make deps         installs the Debian packages; deps-dev: also those for lint, fuzz and judges
#H make clean        removes build/

.PHONY: check-all check-for check-abi check-random python check-python arrow check-arrow check-emu check-emu-san check-mutants check-gpu bench-plan bench-emu bench-kernels demo check check-more check-short check-full check-unit check-cli check-pipes check-slurm check-slurm-full deps-slurm judges check-judges check-judges-full lint lint-includes bench \
        bench-tokenize bench-scan bench-dedup bench-hostile bench-shuffle bench-shards bench-python bench-scaling bench-stages asan \
        tsan valgrind fuzz fuzz-here forge arm64 check-arm64 objects deps deps-dev help
