/* csv_reader - tables of text with one row a sample; libcsv's header has the shorter name. */
#ifndef MIMUS_DATA_CSV_READER_H
#define MIMUS_DATA_CSV_READER_H

#include "reader.h"

extern const mimus__reader mimus__csv_reader;

#endif
