# shellcheck shell=bash disable=SC2154
# device_fake.sh - programs with a fake device (tests/fake/device_fake.c): the same bytes as on the CPU. If a call of
# the device fails, auto gives one warning and the same bytes, and cuda exit status 1 and one line.
# check-more: longer

have tokenize decompose pack || return 0
if [ ! -x "$O/fake/bin/pack" ] || [ ! -x "$O/fake/bin/decompose" ]; then
    skip "no $O/fake/bin (make check builds it)"
    return 0
fi
corpus c.jsonl 60000 12
tokenize -t bytes --domain-field domain c.jsonl >c.tks
decompose --min 64 --max 256 c.tks >d.tks
"$PYTHON" - <<'END'
import random, struct
r = random.Random(5)
ids = [r.randrange(1, 500) if r.randrange(90) else 0 for _ in range(60000)] + [0]
open("ids.npy", "wb").write(struct.pack("<%dH" % len(ids), *ids))
END
"$PYTHON" "$top/tests/cli/device_fake.py" "$O/fake/bin" "$BIN"
