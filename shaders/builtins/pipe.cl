// Pipes: what the instructions of SPIR-V on them do (OpenCL C specification, section "Pipe Functions").
//
// The reader of the lowering compiler makes calls of these functions, by name. A pipe is the address of its bytes: first
// what it is and its counters, then a ring of packets (`pipe.rs` of the lowering compiler has the same layout).
//
// Each end has three counters of packets, modulo 2^32: *taken* by reservations, *done* with (committed), and *open*, what
// the other end may count on. Reservations may be committed in any order; when as many packets are done as were taken, all
// before that place are, and it is what the other end sees. A packet is at its number modulo the places of the ring, which
// are a power of two. No function waits for another work-item.
//
// A reservation is the number of its first packet in the low half and how many it has in the high half, at least one and
// less than 2^31; other values are no reservations.

// Words of the header; those that are written often lie in cache lines of their own.
#define PIPE_PACKET_SIZE 0
#define PIPE_MAX_PACKETS 1
#define PIPE_LAST_PLACE 2
#define PIPE_WRITE 32
#define PIPE_READ 128
#define PIPE_TAKEN 0
#define PIPE_DONE 32
#define PIPE_OPEN 64
#define PIPE_FIRST_PACKET 896

#define PIPE __global uint *
typedef volatile __global atomic_uint *counter;

// The reader makes a load of it that orders what it says; of the language's own function some compilers lose the order.
uint OVERLOAD pumice_atomic_load_explicit(counter, memory_order, memory_scope);

ALWAYS_INLINE uint pipe_load(PIPE p, uint word, memory_order order)
{
    return order == memory_order_acquire
        ? pumice_atomic_load_explicit((counter)(p + word), memory_order_acquire, memory_scope_device)
        : pumice_atomic_load_explicit((counter)(p + word), memory_order_relaxed, memory_scope_device);
}

// Takes packets at an end: what it has taken may come to what the other end has open, and `room` more.
ALWAYS_INLINE ulong pipe_reserve(PIPE p, uint packets, uint size, uint end, uint other, uint room)
{
    if (packets == 0 || size != p[PIPE_PACKET_SIZE])
        return 0;
    uint taken = pipe_load(p, end + PIPE_TAKEN, memory_order_relaxed);
    do {
        // Never less than what is taken, but where that was read too early: then the exchange fails.
        uint rest = pipe_load(p, other + PIPE_OPEN, memory_order_acquire) + room - taken;
        if (packets > rest)
            return 0;
    } while (!__opencl_atomic_compare_exchange_strong((counter)(p + end + PIPE_TAKEN), &taken, taken + packets,
                                                      memory_order_relaxed, memory_order_relaxed,
                                                      memory_scope_device));
    return (ulong)packets << 32 | taken;
}

ulong __pumice_pipe_reserve_write(PIPE p, uint packets, uint size)
{
    return pipe_reserve(p, packets, size, PIPE_WRITE, PIPE_READ, p[PIPE_MAX_PACKETS]);
}

ulong __pumice_pipe_reserve_read(PIPE p, uint packets, uint size)
{
    return pipe_reserve(p, packets, size, PIPE_READ, PIPE_WRITE, 0);
}

ALWAYS_INLINE void pipe_commit(PIPE p, ulong reservation, uint end)
{
    uint packets = (uint)(reservation >> 32);
    if ((int)packets <= 0)
        return;
    uint done = packets + __opencl_atomic_fetch_add((counter)(p + end + PIPE_DONE), packets, memory_order_acq_rel,
                                                    memory_scope_device);
    // Whoever is behind a packet that is not done yet leaves the rest to the one who commits that.
    if (done != pipe_load(p, end + PIPE_TAKEN, memory_order_relaxed))
        return;
    uint open = pipe_load(p, end + PIPE_OPEN, memory_order_relaxed);
    while ((int)(done - open) > 0 &&
           !__opencl_atomic_compare_exchange_strong((counter)(p + end + PIPE_OPEN), &open, done,
                                                    memory_order_acq_rel, memory_order_relaxed, memory_scope_device))
        ;
}

void __pumice_pipe_commit_write(PIPE p, ulong reservation) { pipe_commit(p, reservation, PIPE_WRITE); }
void __pumice_pipe_commit_read(PIPE p, ulong reservation) { pipe_commit(p, reservation, PIPE_READ); }

// Where a packet of a reservation is.
__global uchar *__pumice_pipe_packet(PIPE p, ulong reservation, uint index, uint size)
{
    ulong place = ((uint)reservation + index) & p[PIPE_LAST_PLACE];
    return (__global uchar *)p + PIPE_FIRST_PACKET + place * size;
}

uint __pumice_pipe_num_packets(PIPE p)
{
    uint taken = pipe_load(p, PIPE_READ + PIPE_TAKEN, memory_order_relaxed);
    uint packets = pipe_load(p, PIPE_WRITE + PIPE_OPEN, memory_order_relaxed) - taken;
    // More than it holds: both ends went on between the two loads.
    return packets > p[PIPE_MAX_PACKETS] ? p[PIPE_MAX_PACKETS] : packets;
}

uint __pumice_pipe_max_packets(PIPE p) { return p[PIPE_MAX_PACKETS]; }
