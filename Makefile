# sluice: one Makefile, no recursion. `make help` lists the targets.
#
#   O=build          folder for all files that are made
#   CUDA=auto|0|1    kernels for NVIDIA GPUs: if nvcc is found, never, or required
#   FASTTEXT=auto|0|1  tokenize --fasttext: if pkg-config finds libfasttext, never, or required
#   ARROW=auto|0|1   Parquet: if pkg-config finds Apache Arrow's C++ library, never, or required
#   SAN=...          e.g. SAN=address,undefined: sanitizers in every program and test
#   CC, CXX, CFLAGS, WERROR=1, PREFIX, DESTDIR, PROGRAM_PREFIX as usual

VERSION := 0.2.0
# A release that changes or removes a function or a struct of lib/public has the next number (libsluice(3)).
SOVERSION := 0
O       ?= build
CUDA    ?= auto
ARROW   ?= auto
SAN     ?=
WERROR  ?= 0
PREFIX  ?= /usr/local
DESTDIR ?=
PROGRAM_PREFIX ?=

PROGRAMS := tokenize dedup choose decompose pack shuffle forget schedule inspect
PKGS     := libzstd zlib liblzma libxxhash libarchive libpcre2-8 simdjson

all: programs

# One job a processor, unless -j says how many, which make 4.3 shows to commands alone. `make clean all` keeps its order.
ifeq ($(MAKELEVEL)$(filter clean,$(MAKECMDGOALS)),0)
MAKEFLAGS += $(shell { echo "$$MAKEFLAGS" | tr ' ' '\n'; tr '\0' '\n' </proc/$$PPID/cmdline; } | grep -qE '^(-[a-zA-Z]*j|--jobs)' || echo -j$$(nproc))
endif

# ---- the compiler ---------------------------------------------------------------------------

CC        ?= cc
CXX       ?= c++
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
NVCC      ?= nvcc
PKG_CONFIG ?= pkg-config
# -O3: gcc 12 leaves loops with unknown counts scalar at -O2, which halves the verifying pass.
OPT       ?= -O3 -g
WARN      := -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wpointer-arith -Wvla -Wundef -Wwrite-strings
CWARN     := -Wmissing-prototypes -Wstrict-prototypes -Wold-style-definition
ifeq ($(WERROR),1)
WARN += -Werror
endif
MACHINE   := $(shell $(CC) -dumpmachine 2>/dev/null)
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null)
CPPFLAGS_ALL = -I. -D_GNU_SOURCE -DSLU_VERSION='"$(VERSION)"' $(PKG_CFLAGS) $(CPPFLAGS)
# The same objects are in the programs, the archive and the shared library: the programs need no more instructions for it.
PIC          = -fPIC -fno-semantic-interposition
CFLAGS_ALL   = -std=gnu11 -pthread $(PIC) $(OPT) $(WARN) $(CWARN) $(SANFLAGS) $(CFLAGS)
CXXFLAGS_ALL = -std=c++17 -pthread -fno-rtti $(PIC) $(OPT) $(WARN) $(SANFLAGS) $(CXXFLAGS)
LDLIBS_ALL   = $(PKG_LIBS) $(CUDA_LIBS) -lm -pthread $(LDLIBS)
ifneq ($(SAN),)
SANFLAGS := -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
endif

# Files named *_avx2.c and *_avx512.c hold one SIMD level each; their callers choose at run time.
%_avx2.o: SIMD_FLAGS := -mavx2 -mbmi -mbmi2 -mfma
%_avx512.o: SIMD_FLAGS := -mavx2 -mbmi -mbmi2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd -mavx512vbmi -mavx512vbmi2

# The only object of programs without shared libraries that is another than that of the others (packaging.mk).
%/module.o: CPPFLAGS_ALL += $(if $(filter -static,$(LDFLAGS)),-DSLU_STATIC)

# Floating-point results decide bytes of the output here: without contraction all hosts agree.
%/pack_nnls.o: SIMD_FLAGS := -ffp-contract=off

# ---- CUDA -----------------------------------------------------------------------------------

HAVE_NVCC := $(shell command -v $(NVCC) 2>/dev/null)
ifeq ($(CUDA),auto)
ifneq ($(HAVE_NVCC),)
ifneq ($(filter x86_64-% aarch64-%,$(MACHINE)),)
USE_CUDA := 1
endif
endif
else ifeq ($(CUDA),1)
ifeq ($(HAVE_NVCC),)
$(error CUDA=1 but there is no $(NVCC); install the CUDA toolkit or use CUDA=0)
endif
USE_CUDA := 1
endif
ifneq ($(SAN),)
USE_CUDA :=
endif
CUDA_ARCH := -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
             -gencode arch=compute_100,code=[sm_100,compute_100]
NVCCFLAGS := -O3 -std=c++17 -I. $(CUDA_ARCH) -Xcompiler -fPIC
CU_SRC   := $(wildcard kernels/*.cu)
ifeq ($(USE_CUDA),1)
# nvcc prints the folder of its toolkit, whatever name or wrapper it was found by.
CUDA_HOME ?= $(realpath $(shell $(NVCC) --dryrun -x cu /dev/null 2>&1 | sed -n 's/^.*TOP=//p'))
CUDA_LIBDIR := $(patsubst %/,%,$(dir $(firstword $(wildcard $(addsuffix /libcudart_static.a,\
    $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib $(CUDA_HOME)/targets/*/lib)))))
CUDA_LIBS := -L$(CUDA_LIBDIR) -lcudart_static -ldl -lrt
endif

# ---- Parquet --------------------------------------------------------------------------------
# arrow_*.cc become a shared object that the programs load when they meet Parquet
# (formats/parquet/parquet.h says why). Arrow's headers need C++20, and count as system headers, which
# give no warnings. `make arrow` uses the library of a Python package instead.

ARROW_NEEDED := arrow >= 15 parquet >= 15
ifneq ($(ARROW),0)
USE_ARROW   := $(shell $(PKG_CONFIG) --exists '$(ARROW_NEEDED)' 2>/dev/null && echo 1)
ifeq ($(ARROW)$(USE_ARROW),1)
$(error ARROW=1 but $(PKG_CONFIG) does not find $(ARROW_NEEDED); set PKG_CONFIG_PATH or use ARROW=0)
endif
endif
ARROW_CONFIG = $(if $(USE_ARROW),,PKG_CONFIG_PATH='$(abspath $O/arrow/pc)') $(PKG_CONFIG)
ARROW_CFLAGS = $(patsubst -I%,-isystem %,$(shell $(ARROW_CONFIG) --cflags arrow parquet))
PARQUET_SO   := $O/lib/libsluice-parquet.so
PARQUET_SRC  := $(sort $(wildcard formats/parquet/arrow_*.cc)) formats/text/block.c lib/base/buf.c lib/base/err.c lib/base/json_write.c lib/base/number.c lib/base/value.c
PARQUET_OBJ  := $(addprefix $O/arrow/,$(addsuffix .o,$(PARQUET_SRC)))

# ---- fastText --------------------------------------------------------------------------------
# fasttext_shim.cc becomes a shared object that tokenize --fasttext loads (lib/filter/fasttext.h).

FASTTEXT ?= auto
ifneq ($(FASTTEXT),0)
USE_FASTTEXT := $(shell $(PKG_CONFIG) --exists fasttext 2>/dev/null && echo 1)
ifeq ($(FASTTEXT)$(USE_FASTTEXT),1)
$(error FASTTEXT=1 but $(PKG_CONFIG) does not find fasttext; install libfasttext-dev or use FASTTEXT=0)
endif
endif
FASTTEXT_SO := $O/lib/libsluice-fasttext.so

# ---- sources --------------------------------------------------------------------------------

LIB_C   := $(sort $(wildcard lib/*/*.c lib/*/*/*.c formats/*/*.c)) \
           $(filter-out kernels/none.c,$(sort $(wildcard kernels/*.c)))
LIB_CC  := $(filter-out formats/parquet/arrow_%.cc lib/filter/fasttext_shim.cc,$(sort $(wildcard lib/*/*.cc formats/*/*.cc)))
LIB_S   := $(sort $(wildcard lib/*/*.S))
ifeq ($(filter x86_64-%,$(MACHINE)),)
LIB_C   := $(filter-out %_avx2.c %_avx512.c,$(LIB_C))
endif
ifeq ($(USE_CUDA),1)
LIB_CU  := $(CU_SRC)
else
LIB_C   += $(wildcard kernels/none.c)
endif
# tools/NAME/ is the program NAME. All are one executable, to which links by their names lead.
TOOL_OBJ   := $(patsubst %.c,$O/%.o,$(sort $(wildcard tools/*/*.c)))
LIB_OBJ    := $(LIB_C:%.c=$O/%.o) $(LIB_CC:%.cc=$O/%.o) $(LIB_S:%.S=$O/%.o) $(LIB_CU:%.cu=$O/%.cu.o)
LIB_SO     := $O/libsluice.so.$(SOVERSION)
SLUICE     := $O/bin/sluice
BIN        := $(PROGRAMS:%=$O/bin/$(PROGRAM_PREFIX)%)
UNIT_C     := $(sort $(wildcard tests/unit/*.c))
UNIT       := $(UNIT_C:tests/unit/%.c=$O/unit/%)

# These programs are scripts. They find their files in ../share/sluice, as in an installation.
SCRIPTS    := tools/batch/sluice-batch tools/sluice/sluice-chat
SHARED     := $(sort $(wildcard tools/batch/*.*))
SCRIPT_BIN := $(addprefix $O/bin/$(PROGRAM_PREFIX),$(notdir $(SCRIPTS)))
SHARE      := $(SHARED:tools/batch/%=$O/share/sluice/%) $O/share/sluice/python

# What `make arrow` has built stays in step with the programs, whose structs it knows.
programs: $(BIN) $(SCRIPT_BIN) $(SHARE) $(if $(USE_ARROW)$(wildcard $(PARQUET_SO)),$(PARQUET_SO)) $(if $(USE_FASTTEXT),$(FASTTEXT_SO))
	$(LINE_END)
lib: $O/libsluice.a $(LIB_SO)
	$(LINE_END)

$O/libsluice.a: $(LIB_OBJ)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(LIB_OBJ)

# For other people's programs. Ours take the archive: they also call functions that are not public.
$O/libsluice.map: $O/libsluice.a lib/public tests/headers
	$(Q)O='$O' CC='$(CC)' tests/headers -map > $@
$(LIB_SO): $(LIB_OBJ) $O/libsluice.map
	$(Q)$(CXX) -shared $(OPT) $(SANFLAGS) $(LDFLAGS) -Wl,-soname,$(@F) -Wl,--version-script=$O/libsluice.map \
	    -Wl,-Bsymbolic-functions -o $@ $(LIB_OBJ) $(LDLIBS_ALL)

$(SLUICE): $(TOOL_OBJ) $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $O/libsluice.a $(LDLIBS_ALL)
$(BIN): $(SLUICE)
	$(Q)ln -sfn sluice $@

$O/bin/$(PROGRAM_PREFIX)sluice-%: $(SCRIPTS)
	@mkdir -p $(@D)
	$(Q)install -m 755 $(filter %/sluice-$*,$(SCRIPTS)) $@
$O/share/sluice/python:
	@mkdir -p $(@D)
	$(Q)ln -sfn '$(abspath python)' $@
$O/share/sluice/%: tools/batch/%
	@mkdir -p $(@D)
	$(Q)install -m 644 $< $@

$O/unit/%: $O/tests/unit/%.o $O/libsluice.a
	@mkdir -p $(@D)
	$(Q)$(CXX) $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $< $O/libsluice.a -lcmocka $(LDLIBS_ALL)

$O/%.o: %.c $O/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(SIMD_FLAGS) -MMD -MP -c -o $@ $<

$O/%.o: %.cc $O/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CPPFLAGS_ALL) $(CXXFLAGS_ALL) -MMD -MP -c -o $@ $<

$O/%.o: %.S $O/flags
	@mkdir -p $(@D)
	$(Q)$(CC) -I. -MMD -MP -c -o $@ $<

$O/%.cu.o: %.cu $O/flags
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCCFLAGS) -MMD -MP -c -o $@ $<

$O/arrow/%.cc.o: %.cc $O/flags $O/arrow/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CPPFLAGS_ALL) $(CXXFLAGS_ALL) -std=c++20 -frtti -fvisibility=hidden $(ARROW_CFLAGS) -MMD -MP -c -o $@ $<

$O/arrow/%.c.o: %.c $O/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fvisibility=hidden -MMD -MP -c -o $@ $<

$(PARQUET_SO): $(PARQUET_OBJ) $O/arrow/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared $(OPT) $(SANFLAGS) $(LDFLAGS) -o $@ $(PARQUET_OBJ) $(shell $(ARROW_CONFIG) --libs parquet arrow) -pthread

$(FASTTEXT_SO): lib/filter/fasttext_shim.cc lib/filter/fasttext.h $O/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CPPFLAGS_ALL) $(CXXFLAGS_ALL) -std=c++17 -fexceptions -frtti -fvisibility=hidden -shared $(LDFLAGS) -o $@ $< \
	    $(shell $(PKG_CONFIG) --libs fasttext)

$O/arrow/flags: force
	@mkdir -p $(@D)
	@echo '$(ARROW_CFLAGS)' | cmp -s - $@ || echo '$(ARROW_CFLAGS)' > $@

# Vocabularies are kept compiled (lib/token/compiled.h) under a key that changes with each source
# on which they depend.
$O/source_id.h: $(sort $(wildcard $(foreach d,base stream token,lib/$d/*.[ch] lib/$d/*.cc) lib/token/builtin/*))
	@mkdir -p $(@D)
	$(Q)printf '#define SLU_SOURCE_ID "%s"\n' "$$(cat $^ | sha256sum | cut -c 1-32)" > $@
$O/lib/token/compiled.o: CPPFLAGS_ALL += -include $O/source_id.h
$O/lib/token/compiled.o: $O/source_id.h

# Objects are made again when the compiler or its flags change.
FLAGS_NOW := $(CC) $(CXX) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(CXXFLAGS_ALL) $(USE_CUDA) $(NVCCFLAGS)
$O/flags: force
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(FLAGS_NOW))' | cmp -s - $@ || echo '$(subst ','\'',$(FLAGS_NOW))' > $@

# Only below folders of objects: $O also has corpora that tests unpacked.
OBJECT_DIRS := $(wildcard $(addprefix $O/,lib formats kernels tools tests arrow fake emu))
-include $(if $(OBJECT_DIRS),$(shell find $(OBJECT_DIRS) -type f -name '*.d'))

include tests/tests.mk
include packaging/packaging.mk

clean:
	rm -rf $O

.PHONY: all programs lib clean force
.SECONDARY:
.DELETE_ON_ERROR:
# V=1 shows the commands. Else a terminal shows what is made and, of all objects, how many are there.
ifneq ($(V),1)
Q := @
ifneq ($(MAKE_TERMERR),)
OBJECTS    := $(sort $(LIB_OBJ) $(TOOL_OBJ))
N_OBJECT   := $(words $(OBJECTS))
THERE      := $(wildcard $(OBJECTS))
LINE_END    = @printf '\r\033[K' >&2
Q           = @$(if $(filter $(OBJECTS),$@),$(eval THERE := $(sort $(THERE) $@)))printf '\r\033[K%s of %s  %s\r' $(words $(THERE)) $(N_OBJECT) '$@' >&2;
endif
endif
