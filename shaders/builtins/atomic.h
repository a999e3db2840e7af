// Atomics on words of global memory, for the library's own use: named functions that the reader of the lowering compiler
// makes operations of, with the order and scope they are given. Neither the language's own functions nor the compiler's
// `__opencl_atomic_*` serve: some compilers give every order to loads, others leave calls of what nobody defines.

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

typedef volatile __global atomic_uint *atomic_word;

uint OVERLOAD pumice_atomic_load_explicit(atomic_word, memory_order, memory_scope);
void OVERLOAD pumice_atomic_store_explicit(atomic_word, uint, memory_order, memory_scope);
uint OVERLOAD pumice_atomic_fetch_add_explicit(atomic_word, uint, memory_order, memory_scope);
uint OVERLOAD pumice_atomic_fetch_sub_explicit(atomic_word, uint, memory_order, memory_scope);
uint OVERLOAD pumice_atomic_cmpxchg_explicit(atomic_word, uint expected, uint desired, memory_order, memory_scope);

// Whether the word had the expected value, which then becomes the desired one; else `expected` becomes what it has, without
// an order.
ALWAYS_INLINE bool atomic_exchanges(atomic_word p, __private uint *expected, uint desired, memory_order order)
{
    uint seen = pumice_atomic_cmpxchg_explicit(p, *expected, desired, order, memory_scope_device);
    bool same = seen == *expected;
    *expected = seen;
    return same;
}
