/* tensorboard - a run's metrics as an event file, which TensorBoard shows while it trains.
 *
 * A record is its length (uint64, little-endian), that one's CRC, a message of tensorboard.proto
 * and its CRC. A CRC is of the Castagnoli kind, rotated right by 15 and shifted by 0xa282ead8, so
 * that a CRC of bytes which hold CRCs stays one of use (tensorflow/core/lib/io/record_writer.h).
 * Readers wait at a torn last record, which is all that a killed process leaves.
 *
 * Every process that trains into a run begins a file of its own, as TensorBoard wants it: it reads
 * the files of a folder in the order of their names, and of each only what is added at its end. */
#ifndef MIMUS_REPORT_TENSORBOARD_H
#define MIMUS_REPORT_TENSORBOARD_H

#include "json.h"

/* Begin a file in `folder` for the steps behind `step`, and note the settings in it. What earlier
 * files of the folder hold of later steps, or torn, is cut off; a TensorBoard that has read it
 * already is told to forget it. `*path` is the new file; free with free(). */
mimus_status mimus__tensorboard_begin(char **path, const char *folder, uint64_t step,
                                      const json_t *config);

/* Add an epoch that ends with `step` and has just ended: `row` is that of metrics.jsonl. One write,
 * of these tags, those without a value left out:
 *
 *   loss/step                                    of every step
 *   loss/train, loss/heldout                     of the epoch, as are all others
 *   agreement/HEAD/train, agreement/HEAD/heldout
 *   nll/HEAD/train, nll/HEAD/heldout
 *   lr, gradient/norm, steps/skipped, epoch
 *   throughput/samples_per_second, throughput/epoch_seconds */
mimus_status mimus__tensorboard_append(const char *path, uint64_t step, const json_t *row);

#endif
