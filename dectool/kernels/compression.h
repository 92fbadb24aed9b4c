/* Compression of flat buffers: min-max codes, packed signs, sums in a fixed order, selection.

   The first half of each header is of single numbers and serves NVRTC as well; the second half has
   the loops of the CPU, over tiles that threads share. No result depends on the number of threads:
   sums have a fixed order, all else is integers. The wire formats are those of dectool.compression,
   little-endian; the NumPy functions beside this file give the same bytes. */

#ifndef DECTOOL_COMPRESSION_H
#define DECTOOL_COMPRESSION_H

#include "numbers.h"

#ifndef __CUDACC_RTC__
#include "parallel.h"
#endif

#define REAL float
#define BITS uint32_t
#define KEY int32_t
#define MAGNITUDE 0x7fffffffu
#define LARGEST 0x1.fffffep127f
#define ONE 1.0f
#define HUGE_WIDTH 0x1p126f
#define TINY_WIDTH 0x1p-100f
#define GROW 0x1p100f
#define SHRINK 0x1p-8f
#define RINT rintf
#define FLOOR floorf
#define DIGITS {20, 10, 0}
#define NAME(name) name##_float32
#include "compression_of.h"

#define REAL double
#define BITS uint64_t
#define KEY int64_t
#define MAGNITUDE 0x7fffffffffffffffu
#define LARGEST 0x1.fffffffffffffp1023
#define ONE 1.0
#define HUGE_WIDTH 0x1p1022
#define TINY_WIDTH 0x1p-996
#define GROW 0x1p996
#define SHRINK 0x1p-8
#define RINT rint
#define FLOOR floor
#define DIGITS {52, 42, 32, 21, 10, 0}
#define NAME(name) name##_float64
#include "compression_of.h"

#include "casts.h"

#endif
