# Targets that test; included by the Makefile.

check-unit: $(UNIT)
	@set -e; for t in $(UNIT); do echo "== $$t"; $$t; done

.PHONY: check-unit
