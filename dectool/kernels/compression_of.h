/* Included by compression.h once for float and once for double; no guard, on purpose. */

#include "levels_of.h"
#include "minmax_of.h"
#ifdef __CUDACC_RTC__
#include "cuda_of.h"
#else
#include "signs_of.h"
#include "select_of.h"
#endif

#undef REAL
#undef BITS
#undef KEY
#undef MAGNITUDE
#undef LARGEST
#undef ONE
#undef HUGE_WIDTH
#undef TINY_WIDTH
#undef GROW
#undef SHRINK
#undef RINT
#undef FLOOR
#undef DIGITS
#undef NAME
