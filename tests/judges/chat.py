"""chat.py - sluice-chat beside transformers, with 1,000 dialogues a template; a part of check-judges-full alone.

What it proves: the text of real chat templates, ids and masks are those of transformers' apply_chat_template, where a
template marks generations; elsewhere the spans are those of all prefixes, and of the turns' own marks. `make python`
fetches the templates, tokenizers and transformers; without them it is skipped. python/tests/test_chat.py has the
comparison, which `make check-python` runs for 40 dialogues.
"""
import os

python = os.environ.get("O", "build") + "/python/venv/bin/python"
if not os.path.exists(python):
    print("skip chat: no %s (make python)" % python)
else:
    os.environ.setdefault("CHAT_DIALOGUES", "1000")
    os.execv(python, [python, "python/tests/test_chat.py", "test_templates", "test_tokenizers", "test_masks"])
