"""chat.py - sluice-chat beside transformers, with 250 dialogues a template.

What it proves: the text of real chat templates, ids and masks are those of transformers' apply_chat_template, where a
template marks generations; elsewhere the spans are those of all prefixes, and of the turns' own marks. About 24
templates; JUDGES_FULL=1: all, with 1,000 dialogues. `make python` fetches the templates, tokenizers and
transformers; without them it is skipped. python/tests/test_chat.py has the comparison, which `make check-python` runs for fewer dialogues.
"""
import os

python = os.environ.get("O", "build") + "/python/venv/bin/python"
if not os.path.exists(python):
    print("skip chat: no %s (make python)" % python)
else:
    full = os.environ.get("JUDGES_FULL")
    os.environ["CHAT_DIALOGUES"] = os.environ.get("CHAT_DIALOGUES", "1000" if full else "250")
    os.environ["CHAT_TEMPLATES"] = "0" if full else "24"
    os.execv(python, [python, "python/tests/test_chat.py", "test_templates", "test_tokenizers", "test_masks"])
