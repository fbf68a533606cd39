/* device_model.h - the figures from which `auto` reckons whether a device would be
 * faster. Private to device.c.
 *
 * NOT MEASURED on a device: those of the device are an H100's data sheet, less a part;
 * those of a core are from tests/bench/NOTES.md. `make bench-kernels` measures them
 * where there is a device (the hash with libxxhash alone), and prints the lines that
 * replace these.
 */
#ifndef SLU_DEVICE_MODEL_H
#define SLU_DEVICE_MODEL_H

#define SLU_MODEL_START_S        0.5  /* 0.3 to 1: the driver, page-locking of 1 GB */
#define SLU_MODEL_BUS_BYTE_PER_S 50e9 /* PCIe 5, each way, page-locked memory */

/* A core, an id of two bytes each. */
#define SLU_MODEL_READ_S 0.2e-9  /* read from a file in the page cache */
#define SLU_MODEL_SCAN_S 0.1e-9  /* searched for the ends of documents */
#define SLU_MODEL_COPY_S 0.45e-9 /* copied into a bin */
#define SLU_MODEL_HASH_S 0.3e-9  /* through XXH3-128, with its bin */

#endif
