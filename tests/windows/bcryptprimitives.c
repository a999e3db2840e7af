/* SPDX-License-Identifier: MIT OR Apache-2.0
 * bcryptprimitives.dll for Wine 8, which lacks it: Rust's standard library takes its random numbers from there. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG); /* RtlGenRandom, of advapi32.dll */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
    return SystemFunction036(data, (ULONG)length);
}
