// The same with plain pointers, which are generic from OpenCL C 2.0 on.
#define private
#include "shared.cl"
