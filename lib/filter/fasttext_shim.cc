/* fasttext_shim.cc - libfasttext behind fasttext.h; no exception leaves it. */
#include <cmath>
#include <cstdio>
#include <exception>
#include <fasttext/fasttext.h>
#include <sstream>
#include <string>
#include <vector>

#include "lib/filter/fasttext.h"

using fasttext::FastText;

static void say(const char *what, char *why, size_t n_why)
{
    snprintf(why, n_why, "%s", what);
}

static void *open_model(const char *path, char *why, size_t n_why)
{
    FastText *f = nullptr;
    try {
        f = new FastText;
        f->loadModel(std::string(path));
        return f;
    } catch (const std::exception &e) {
        say(e.what(), why, n_why);
    } catch (...) {
        say("an unknown error", why, n_why);
    }
    delete f;
    return nullptr;
}

static int label_number(const void *model, const char *name)
{
    const FastText *f = static_cast<const FastText *>(model);
    try {
        for (const std::string &l : {std::string(name), f->getArgs().label + name}) {
            const auto d = f->getDictionary();
            for (int i = 0; i < d->nlabels(); i++)
                if (d->getLabel(i) == l)
                    return i;
        }
    } catch (...) {
    }
    return -1;
}

static int ask(const void *model, const char *line, size_t n, int label, float *p,
               char *why, size_t n_why)
{
    const FastText *f = static_cast<const FastText *>(model);
    try {
        std::istringstream in(std::string(line, n));
        std::vector<int32_t> words, labels;
        fasttext::Predictions found;
        const auto d = f->getDictionary();
        d->getLine(in, words, labels);
        *p = 0;
        if (!words.empty())
            f->predict(d->nlabels(), words, found);
        for (const auto &one : found)
            if (one.second == label)
                *p = std::exp(one.first);
        return 0;
    } catch (const std::exception &e) {
        say(e.what(), why, n_why);
    } catch (...) {
        say("an unknown error", why, n_why);
    }
    return -1;
}

static void free_model(void *model)
{
    delete static_cast<FastText *>(model);
}

extern "C" __attribute__((visibility("default")))
const struct slu_fasttext_lib slu_fasttext_lib;
const struct slu_fasttext_lib slu_fasttext_lib = {SLU_FASTTEXT_ABI, open_model,
                                                  label_number, ask, free_model};
