/* module.h - shared objects with code that needs a library of C++, loaded when they are
 * needed: from ../lib beside the program's folder, or from the paths of the system's
 * loader. So programs start without these libraries, and work where they are missing.
 * Their names do not conflict with ours, which are looked up separately.
 *
 * Thread safety: any thread. An object stays loaded.
 */
#ifndef SLU_MODULE_H
#define SLU_MODULE_H

/* Returns the address of a symbol of the object, as "libsluice-x.so"; NULL: it is not
 * there, or the program is linked statically. */
const void *slu_module_symbol(const char *object, const char *symbol);

#endif
