#!/usr/bin/env python3
"""lines.py - the pipes of a case as `sluice run`, which must make the same of them.

    lines.py CASE_FILE...   prints the case with its pipes rewritten: those of programs alone, without
                            a redirection inside or of messages, that nothing precedes in their command
    lines.py -list FILE...  names the files that have such pipes
"""
import re
import sys

PROGRAM = r"(?:tokenize|dedup|choose|decompose|pack|shuffle|inspect)"
WORD = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]*\}|\\\n|\\.|[^\s|&;<>()'"`\\])+"""
COMMAND = rf"{PROGRAM}(?:(?:[ \t]|\\\n)+(?!#){WORD})*"
BAR = r"[ \t]*(?<!\|)\|(?!\|)(?:[ \t]|\n)*"
PIPE = re.compile(rf"(?m)((?:^(?<!\\\n)[ \t]*|\$\(|[{{;] |&& |\|\| |\b(?:if|then|do|while) ))({COMMAND}(?:{BAR}{COMMAND})+)(?=\s|[);|]|$)(?![^\n|;)]*2>)")


def rewrite(text):
    """The text, and how many pipes it has."""
    line = lambda m: m.group(1) + 'sluice run ' + re.sub(rf"{BAR}(?={PROGRAM}\b)", " ! ", m.group(2))
    return PIPE.subn(line, text)


if sys.argv[1] == "-list":
    print("\n".join(p for p in sys.argv[2:] if rewrite(open(p).read())[1]))
else:
    for path in sys.argv[1:]:
        sys.stdout.write(rewrite(open(path).read())[0])
