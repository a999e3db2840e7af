// The built-in library: everything that libclc lacks, or has for other devices than ours.
#include "common.h"

#include "atomic.cl"
#include "fma.cl"
#include "math.cl"

#include "half.cl"
#include "image.cl"
