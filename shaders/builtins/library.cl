// The built-in library: everything that libclc lacks, or has for other devices than ours.
#include "common.h"

#include "atomic.cl"
#include "divide.cl"
#include "exp.cl"
#include "log.cl"
#include "fma.cl"
#include "pow.cl"
#include "trig.cl"
#include "trig_double.cl"
#include "gamma.cl"
#include "integer.cl"
#include "math.cl"
#include "remainder.cl"
#include "trigpi.cl"

#include "half.cl"
#include "image.cl"
