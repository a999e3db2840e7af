// Extended bit operations and integer dot products by name. LLVM's SPIR-V target makes instructions of them; llvm-spirv
// leaves the calls.

#define BITS_OF(type, utype, stype, bits)                                                                              \
    type OVERLOAD bitfield_insert(type base, type insert, uint offset, uint count)                                     \
    {                                                                                                                  \
        utype ones = (utype)(count >= bits ? (utype)-1 : (utype)(((utype)1 << (count & (bits - 1))) - 1));             \
        utype mask = (utype)(ones << (offset & (bits - 1)));                                                           \
        return (type)(((utype)base & ~mask) | (((utype)insert << (offset & (bits - 1))) & mask));                      \
    }                                                                                                                  \
    utype OVERLOAD bitfield_extract_unsigned(type base, uint offset, uint count)                                       \
    {                                                                                                                  \
        utype ones = (utype)(count >= bits ? (utype)-1 : (utype)(((utype)1 << (count & (bits - 1))) - 1));             \
        return (utype)((utype)((utype)base >> (offset & (bits - 1))) & ones);                                          \
    }                                                                                                                  \
    stype OVERLOAD bitfield_extract_signed(type base, uint offset, uint count)                                         \
    {                                                                                                                  \
        if (count == 0)                                                                                                \
            return 0;                                                                                                  \
        utype high = (utype)((utype)base << ((bits - offset - count) & (bits - 1)));                                   \
        return (stype)((stype)high >> ((bits - count) & (bits - 1)));                                                  \
    }                                                                                                                  \
    type OVERLOAD bit_reverse(type base)                                                                               \
    {                                                                                                                  \
        ulong u = (utype)base;                                                                                         \
        u = ((u >> 1) & 0x5555555555555555UL) | ((u & 0x5555555555555555UL) << 1);                                     \
        u = ((u >> 2) & 0x3333333333333333UL) | ((u & 0x3333333333333333UL) << 2);                                     \
        u = ((u >> 4) & 0x0f0f0f0f0f0f0f0fUL) | ((u & 0x0f0f0f0f0f0f0f0fUL) << 4);                                     \
        u = ((u >> 8) & 0x00ff00ff00ff00ffUL) | ((u & 0x00ff00ff00ff00ffUL) << 8);                                     \
        u = ((u >> 16) & 0x0000ffff0000ffffUL) | ((u & 0x0000ffff0000ffffUL) << 16);                                   \
        u = (u >> 32) | (u << 32);                                                                                     \
        return (type)(u >> (64 - bits));                                                                               \
    }

#define BITS_VECTOR(type, utype, stype, n)                                                                             \
    typedef type type##_v##n __attribute__((ext_vector_type(n)));                                                      \
    typedef utype type##_u##n __attribute__((ext_vector_type(n)));                                                     \
    typedef stype type##_s##n __attribute__((ext_vector_type(n)));                                                     \
    type##_v##n OVERLOAD bitfield_insert(type##_v##n base, type##_v##n insert, uint offset, uint count)                \
    {                                                                                                                  \
        type##_v##n r;                                                                                                 \
        for (int i = 0; i < n; i++)                                                                                    \
            r[i] = bitfield_insert((type)base[i], (type)insert[i], offset, count);                                     \
        return r;                                                                                                      \
    }                                                                                                                  \
    type##_u##n OVERLOAD bitfield_extract_unsigned(type##_v##n base, uint offset, uint count)                          \
    {                                                                                                                  \
        type##_u##n r;                                                                                                 \
        for (int i = 0; i < n; i++)                                                                                    \
            r[i] = bitfield_extract_unsigned((type)base[i], offset, count);                                            \
        return r;                                                                                                      \
    }                                                                                                                  \
    type##_s##n OVERLOAD bitfield_extract_signed(type##_v##n base, uint offset, uint count)                            \
    {                                                                                                                  \
        type##_s##n r;                                                                                                 \
        for (int i = 0; i < n; i++)                                                                                    \
            r[i] = bitfield_extract_signed((type)base[i], offset, count);                                              \
        return r;                                                                                                      \
    }                                                                                                                  \
    type##_v##n OVERLOAD bit_reverse(type##_v##n base)                                                                 \
    {                                                                                                                  \
        type##_v##n r;                                                                                                 \
        for (int i = 0; i < n; i++)                                                                                    \
            r[i] = bit_reverse((type)base[i]);                                                                         \
        return r;                                                                                                      \
    }

#define BITS(type, utype, stype, bits)                                                                                 \
    BITS_OF(type, utype, stype, bits)                                                                                  \
    BITS_VECTOR(type, utype, stype, 2)                                                                                 \
    BITS_VECTOR(type, utype, stype, 3)                                                                                 \
    BITS_VECTOR(type, utype, stype, 4)                                                                                 \
    BITS_VECTOR(type, utype, stype, 8)                                                                                 \
    BITS_VECTOR(type, utype, stype, 16)

BITS(char, uchar, char, 8)
BITS(uchar, uchar, char, 8)
BITS(short, ushort, short, 16)
BITS(ushort, ushort, short, 16)
BITS(int, uint, int, 32)
BITS(uint, uint, int, 32)
BITS(long, ulong, long, 64)
BITS(ulong, ulong, long, 64)

// Four products of bytes; those of the packed form lie in one word. `__pumice_dot` is what the compiler has for them.
#define DOT(result, a_type, b_type, letters)                                                                           \
    result OVERLOAD __pumice_dot_##letters(uint a, uint b);                                                            \
    static result saturated_##letters(result sum, result acc)                                                          \
    {                                                                                                                  \
        long wide = (long)sum + (long)acc;                                                                             \
        long low = (result)-1 < 0 ? -0x80000000L : 0, high = (result)-1 < 0 ? 0x7fffffffL : 0xffffffffL;               \
        return (result)(wide < low ? low : wide > high ? high : wide);                                                 \
    }                                                                                                                  \
    result OVERLOAD dot_4x8packed_##letters##_##result(uint a, uint b)                                                 \
    {                                                                                                                  \
        return __pumice_dot_##letters(a, b);                                                                           \
    }                                                                                                                  \
    result OVERLOAD dot_acc_sat_4x8packed_##letters##_##result(uint a, uint b, result acc)                             \
    {                                                                                                                  \
        return saturated_##letters(__pumice_dot_##letters(a, b), acc);                                                 \
    }                                                                                                                  \
    result OVERLOAD dot(a_type##_v4 a, b_type##_v4 b)                                                                  \
    {                                                                                                                  \
        return __pumice_dot_##letters(AS(uint, a), AS(uint, b));                                                       \
    }                                                                                                                  \
    result OVERLOAD dot_acc_sat(a_type##_v4 a, b_type##_v4 b, result acc)                                              \
    {                                                                                                                  \
        return saturated_##letters(__pumice_dot_##letters(AS(uint, a), AS(uint, b)), acc);                             \
    }

DOT(uint, uchar, uchar, uu)
DOT(int, char, char, ss)
DOT(int, uchar, char, us)
DOT(int, char, uchar, su)

// The functions of cl_arm_integer_dot_product_*. Sums wrap around.
#define ARM_DOT(result, byte, half_word)                                                                               \
    result OVERLOAD arm_dot(byte##_v4 a, byte##_v4 b)                                                                  \
    {                                                                                                                  \
        return dot(a, b);                                                                                              \
    }                                                                                                                  \
    result OVERLOAD arm_dot_acc(byte##_v4 a, byte##_v4 b, result acc)                                                  \
    {                                                                                                                  \
        return (result)((uint)dot(a, b) + (uint)acc);                                                                  \
    }                                                                                                                  \
    result OVERLOAD arm_dot_acc(half_word##_v2 a, half_word##_v2 b, result acc)                                        \
    {                                                                                                                  \
        return (result)((uint)a.x * (uint)b.x + (uint)a.y * (uint)b.y + (uint)acc);                                    \
    }                                                                                                                  \
    result OVERLOAD arm_dot_acc_sat(byte##_v4 a, byte##_v4 b, result acc)                                              \
    {                                                                                                                  \
        return dot_acc_sat(a, b, acc);                                                                                 \
    }

ARM_DOT(uint, uchar, ushort)
ARM_DOT(int, char, short)
