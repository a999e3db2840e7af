// Atomics of OpenCL 1.x and fences by name: some compilers leave them as calls.

typedef enum memory_scope {
    memory_scope_work_item = __OPENCL_MEMORY_SCOPE_WORK_ITEM,
    memory_scope_work_group = __OPENCL_MEMORY_SCOPE_WORK_GROUP,
    memory_scope_device = __OPENCL_MEMORY_SCOPE_DEVICE,
    memory_scope_all_svm_devices = __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES,
    memory_scope_sub_group = __OPENCL_MEMORY_SCOPE_SUB_GROUP
} memory_scope;
typedef enum memory_order {
    memory_order_relaxed = __ATOMIC_RELAXED,
    memory_order_acquire = __ATOMIC_ACQUIRE,
    memory_order_release = __ATOMIC_RELEASE,
    memory_order_acq_rel = __ATOMIC_ACQ_REL,
    memory_order_seq_cst = __ATOMIC_SEQ_CST
} memory_order;
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

void OVERLOAD atomic_work_item_fence(uint, memory_order, memory_scope);

#define RMW(space, type, prefix, name, builtin)                                                                        \
    type OVERLOAD prefix##name(volatile space type *p, type value)                                                     \
    {                                                                                                                  \
        return builtin((volatile space atomic_##type *)p, value, memory_order_relaxed, memory_scope_device);           \
    }
#define ATOMICS(space, type, prefix)                                                                                   \
    RMW(space, type, prefix, add, __opencl_atomic_fetch_add)                                                           \
    RMW(space, type, prefix, sub, __opencl_atomic_fetch_sub)                                                           \
    RMW(space, type, prefix, xchg, __opencl_atomic_exchange)                                                           \
    RMW(space, type, prefix, min, __opencl_atomic_fetch_min)                                                           \
    RMW(space, type, prefix, max, __opencl_atomic_fetch_max)                                                           \
    RMW(space, type, prefix, and, __opencl_atomic_fetch_and)                                                           \
    RMW(space, type, prefix, or, __opencl_atomic_fetch_or)                                                             \
    RMW(space, type, prefix, xor, __opencl_atomic_fetch_xor)                                                           \
    type OVERLOAD prefix##inc(volatile space type *p)                                                                  \
    {                                                                                                                  \
        return __opencl_atomic_fetch_add((volatile space atomic_##type *)p, (type)1, memory_order_relaxed,             \
                                         memory_scope_device);                                                         \
    }                                                                                                                  \
    type OVERLOAD prefix##dec(volatile space type *p)                                                                  \
    {                                                                                                                  \
        return __opencl_atomic_fetch_sub((volatile space atomic_##type *)p, (type)1, memory_order_relaxed,             \
                                         memory_scope_device);                                                         \
    }                                                                                                                  \
    type OVERLOAD prefix##cmpxchg(volatile space type *p, type expected, type desired)                                 \
    {                                                                                                                  \
        __opencl_atomic_compare_exchange_strong((volatile space atomic_##type *)p, &expected, desired,                 \
                                                memory_order_relaxed, memory_order_relaxed, memory_scope_device);      \
        return expected;                                                                                               \
    }
#define ALL_TYPES(space)                                                                                               \
    ATOMICS(space, int, atomic_)                                                                                       \
    ATOMICS(space, uint, atomic_)                                                                                      \
    ATOMICS(space, long, atomic_)                                                                                      \
    ATOMICS(space, ulong, atomic_)                                                                                     \
    ATOMICS(space, int, atom_)                                                                                         \
    ATOMICS(space, uint, atom_)                                                                                        \
    ATOMICS(space, long, atom_)                                                                                        \
    ATOMICS(space, ulong, atom_)                                                                                       \
    RMW(space, float, atomic_, xchg, __opencl_atomic_exchange)                                                         \
    RMW(space, float, atom_, xchg, __opencl_atomic_exchange)

ALL_TYPES(__global)
ALL_TYPES(__local)
ALL_TYPES(__generic)

void OVERLOAD mem_fence(uint flags)
{
    atomic_work_item_fence(3, memory_order_acq_rel, memory_scope_work_group);
}
void OVERLOAD read_mem_fence(uint flags)
{
    atomic_work_item_fence(3, memory_order_acquire, memory_scope_work_group);
}
void OVERLOAD write_mem_fence(uint flags)
{
    atomic_work_item_fence(3, memory_order_release, memory_scope_work_group);
}
