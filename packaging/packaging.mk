# Targets that install and package; included by the Makefile.

MAN1  := $(wildcard man/*.1)
MAN3  := $(wildcard man/*.3)
MAN57 := $(wildcard man/*.5 man/*.7)
PUBLIC_H := $(shell grep -v "^\#" lib/public)
ROOT   = $(DESTDIR)$(PREFIX)
BINDIR = $(ROOT)/bin
LIBSUB ?= lib
LIBDIR = $(ROOT)/$(LIBSUB)
INCDIR = $(ROOT)/include/sluice
MANDIR = $(ROOT)/share/man
SHAREDIR = $(ROOT)/share/sluice
DOCDIR = $(ROOT)/share/doc/sluice
# The formats' specifications, and a reader of the stream that is written from its specification.
DOCS := $(wildcard formats/*.md) tests/props/tokstream.py tests/props/tokstream_frames.py
BASHDIR = $(ROOT)/share/bash-completion/completions
ZSHDIR  = $(ROOT)/share/zsh/site-functions
FISHDIR = $(ROOT)/share/fish/vendor_completions.d
PCDIR  = $(LIBDIR)/pkgconfig
COMMANDS = $(PROGRAMS) $(notdir $(SCRIPTS))
# sluice-chat is a program in Python; the package is installed for it alone.
PYTHONDIR = $(SHAREDIR)/python/sluice

install: install-programs install-library
	if [ -e '$(PARQUET_SO)' ]; then install -m 755 '$(PARQUET_SO)' '$(LIBDIR)'; fi
	if [ -e '$(FASTTEXT_SO)' ]; then install -m 755 '$(FASTTEXT_SO)' '$(LIBDIR)'; fi

# The library, its headers and the pages on it. sluice-static.pc is for programs that take the archive.
install-library: lib
	install -d '$(PCDIR)' '$(INCDIR)' '$(MANDIR)/man3'
	install -m 644 $O/libsluice.a $(LIB_SO) '$(LIBDIR)'
	ln -sf '$(notdir $(LIB_SO))' '$(LIBDIR)/libsluice.so'
	for h in $(PUBLIC_H); do install -D -m 644 $$h "$(INCDIR)/$$h" || exit 1; done
	tests/headers -all > '$(INCDIR)/sluice.h'
	for p in sluice sluice-static; do \
	    sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBSUB@|$(LIBSUB)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@PKGS@|$(PKGS)|' \
	        -e 's|@CUDA_LIBS@|$(CUDA_LIBS)|' lib/$$p.pc.in > "$(PCDIR)/$$p.pc" || exit 1; chmod 644 "$(PCDIR)/$$p.pc"; done
	install -m 644 $(MAN3) '$(MANDIR)/man3'
ifeq ($(DESTDIR),)
	-[ "$$(id -u)" != 0 ] || ldconfig
endif

# An installed library for the examples of its manual pages.
installed: lib
	@rm -rf '$O/installed'
	@$(MAKE) --no-print-directory install-library DESTDIR='$(abspath $O/installed)' PREFIX=/usr > '$O/installed.log' 2>&1 || { cat '$O/installed.log'; exit 1; }

install-programs: programs
	install -d '$(BINDIR)' '$(SHAREDIR)' '$(MANDIR)/man1' '$(MANDIR)/man5' '$(MANDIR)/man7'
	install $(STRIP) -m 755 $(SLUICE) '$(BINDIR)'
	for p in $(PROGRAMS); do ln -sfn sluice "$(BINDIR)/$(PROGRAM_PREFIX)$$p" || exit 1; done
	install -m 755 $(SCRIPT_BIN) '$(BINDIR)'
	install -d '$(PYTHONDIR)'
	install -m 644 python/sluice/*.py '$(PYTHONDIR)'
	install -m 644 $(SHARED) '$(SHAREDIR)'
	install -d '$(DOCDIR)'
	install -m 644 $(DOCS) '$(DOCDIR)'
	for m in $(notdir $(MAN1)); do install -m 644 man/$$m "$(MANDIR)/man1/$(PROGRAM_PREFIX)$$m" || exit 1; done
	for m in $(notdir $(MAN57)); do install -m 644 man/$$m "$(MANDIR)/man$${m##*.}/$$m" || exit 1; done
	PROGRAM_PREFIX='$(PROGRAM_PREFIX)' packaging/completion '$(ROOT)' $(COMMANDS)

uninstall:
	rm -f '$(BINDIR)/sluice' $(addprefix '$(LIBDIR)'/,libsluice.a libsluice.so $(notdir $(LIB_SO)) libsluice-parquet.so libsluice-fasttext.so)
	rm -f $(addprefix '$(PCDIR)'/,sluice.pc sluice-static.pc) $(addprefix '$(MANDIR)'/man3/,$(notdir $(MAN3)))
	rm -f $(addprefix '$(BINDIR)'/$(PROGRAM_PREFIX),$(COMMANDS)) $(addprefix '$(MANDIR)'/man1/$(PROGRAM_PREFIX),$(notdir $(MAN1)))
	for m in $(notdir $(MAN57)); do rm -f "$(MANDIR)/man$${m##*.}/$$m"; done
	for n in sluice $(addprefix $(PROGRAM_PREFIX),$(COMMANDS)); do \
	    rm -f "$(BASHDIR)/$$n" "$(ZSHDIR)/_$$n" "$(FISHDIR)/$$n.fish"; done
	rm -rf '$(INCDIR)' '$(SHAREDIR)' '$(DOCDIR)'

# The committed files, as one archive whose bytes depend on the commit alone.
DIST = $O/sluice-$(VERSION).tar.xz
dist:
	@mkdir -p $O
	git archive --format=tar --prefix='sluice-$(VERSION)/' HEAD | xz -9e -T1 > '$(DIST)'
	@echo '$(DIST)'

# Programs without shared libraries, which run on any Linux of this processor. They have neither Arrow nor CUDA, which are
# loaded at run time.
STATIC = $O/static
STATIC_NAME = sluice-$(VERSION)-linux-$(firstword $(subst -, ,$(MACHINE)))
STATIC_MAKE = $(MAKE) --no-print-directory O='$(STATIC)' CUDA=0 ARROW=0 FASTTEXT=0 PKG_CONFIG='$(PKG_CONFIG) --static' \
    LDFLAGS='-static -L$(STATIC)/lib' PROGRAM_PREFIX=
LICENCES = CC='$(CC)' packaging/licences $(patsubst -l%,%,$(shell $(PKG_CONFIG) --static --libs-only-l $(PKGS)))

$(STATIC)/lib/libsimdjson.a: packaging/static-libs
	CC='$(CC)' CXX='$(CXX)' packaging/static-libs '$(@D)' > '$(STATIC).log' 2>&1 || { cat '$(STATIC).log' >&2; exit 1; }

# Objects that are compiled alike are copied, not compiled again: all but module.o and those of CUDA.
STATIC_SAME = $(filter-out %/module.o %.cu.o %/none.o,$(LIB_OBJ) $(TOOL_OBJ))

static: $(STATIC)/lib/libsimdjson.a $(STATIC_SAME)
	@$(STATIC_MAKE) '$(STATIC)/flags'
	@cd '$O' && cp -u --parents $(STATIC_SAME:$O/%=%) '$(abspath $(STATIC))'
	@$(STATIC_MAKE) programs

dist-static: static
	@rm -rf '$(STATIC)/$(STATIC_NAME)'
	@$(STATIC_MAKE) install-programs STRIP=-s DESTDIR='$(abspath $(STATIC)/$(STATIC_NAME))' PREFIX=
	@cp LICENSE README.md '$(STATIC)/$(STATIC_NAME)'
	@$(LICENCES) > '$(STATIC)/$(STATIC_NAME)/LICENSE.libraries'
	tar -C '$(STATIC)' --sort=name --owner=0 --group=0 --mtime=@0 -cf - '$(STATIC_NAME)' | xz -9 -T1 > '$O/$(STATIC_NAME).tar.xz'
	@echo '$O/$(STATIC_NAME).tar.xz'

# These programs and the Python package.
wheel: static
	@rm -rf '$(STATIC)/wheel'
	@cp -r python '$(STATIC)/wheel'
	@cp LICENSE '$(STATIC)/wheel'
	@$(LICENCES) > '$(STATIC)/wheel/LICENSE.libraries'
	@$(STATIC_MAKE) install-programs STRIP=-s DESTDIR='$(abspath $(STATIC)/wheel)/sluice' PREFIX=/programs
	@packaging/wheel '$(STATIC)/wheel' '$O' '$(firstword $(subst -, ,$(MACHINE)))'

# Debian packages of the committed sources.
deb: dist
	@packaging/deb '$(DIST)' '$O' '$(VERSION)'

# All of these, each in a place of its own; FULL=1: in a bare Debian too.
check-packages: programs
	@$(TEST_ENV) MAKE='$(MAKE)' tests/packages $(if $(FULL),full)

#H make install      DESTDIR= PREFIX=/usr/local PROGRAM_PREFIX=; uninstall removes the files
#H make dist         the committed sources as build/sluice-VERSION.tar.xz
#H make dist-static  programs for any Linux of this processor, as build/sluice-VERSION-linux-MACHINE.tar.xz (make deps-dev)
#H make wheel        the same programs and the Python package as one wheel, build/sluice-VERSION-*.whl
#H make deb          Debian packages of the committed sources, in build/deb (make deps-dev)
#H make check-packages  the archive and the wheel, installed and removed; FULL=1: in a bare Debian too

.PHONY: check-packages install install-programs install-library installed uninstall deb dist static dist-static wheel
