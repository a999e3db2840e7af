// Pipes: what the instructions of SPIR-V on them do (OpenCL C specification, section "Pipe Functions").
//
// The reader of the lowering compiler makes calls of these functions, by name. A pipe is the address of its bytes: first
// what it is and its counters, then a ring of packets (`pipe.rs` of the lowering compiler has the same layout).
//
// Each end has four counters of packets. *Room* is how many may be taken there: at the end that is written free places, at
// the one that is read packets that are complete. *Taken* by reservations and *done* with (committed) count modulo 2^32,
// and so does *open*, which of those the other end has been given as room. Reservations may be committed in any order;
// when as many packets are done as were taken, all before that place are, and the other end gets them. A packet is at its
// number modulo the places of the ring, which are a power of two. No function waits for another work-item.
//
// Order: whoever gives room knows that all packets before its place are done. Taking room and then a number, each with
// acquire, and the number with release, hands that on to all who have a number before that place.
//
// A reservation is the number of its first packet in the low half and how many it has in the high half, at least one and
// less than 2^31; other values are no reservations.

// Words of the header; those that are written often lie in cache lines of their own.
#define PIPE_PACKET_SIZE 0
#define PIPE_MAX_PACKETS 1
#define PIPE_LAST_PLACE 2
#define PIPE_WRITE 32
#define PIPE_READ 160
#define PIPE_TAKEN 0
#define PIPE_DONE 32
#define PIPE_OPEN 64
#define PIPE_ROOM 96
#define PIPE_FIRST_PACKET 1152

#define PIPE __global uint *
#define COUNTER(word) ((atomic_word)(p + (word)))

ALWAYS_INLINE uint pipe_load(PIPE p, uint word)
{
    return pumice_atomic_load_explicit(COUNTER(word), memory_order_relaxed, memory_scope_device);
}

ALWAYS_INLINE bool pipe_take_room(PIPE p, uint packets, uint end)
{
    uint room = pipe_load(p, end + PIPE_ROOM);
    if ((int)packets <= 0 || (int)room < (int)packets)
        return false;
    // Work-items that take one each do not stand in each other's way. What is below zero for a moment is no room either.
    if (packets == 1) {
        room = pumice_atomic_fetch_sub_explicit(COUNTER(end + PIPE_ROOM), 1u, memory_order_acquire,
                                                memory_scope_device);
        if ((int)room > 0)
            return true;
        pumice_atomic_fetch_add_explicit(COUNTER(end + PIPE_ROOM), 1u, memory_order_relaxed, memory_scope_device);
        return false;
    }
    while (!atomic_exchanges(COUNTER(end + PIPE_ROOM), &room, room - packets, memory_order_acquire))
        if ((int)room < (int)packets)
            return false;
    return true;
}

ALWAYS_INLINE ulong pipe_reserve(PIPE p, uint packets, uint size, uint end)
{
    if (size != p[PIPE_PACKET_SIZE] || !pipe_take_room(p, packets, end))
        return 0;
    uint first = pumice_atomic_fetch_add_explicit(COUNTER(end + PIPE_TAKEN), packets, memory_order_acq_rel,
                                                  memory_scope_device);
    return (ulong)packets << 32 | first;
}

ulong __pumice_pipe_reserve_write(PIPE p, uint packets, uint size)
{
    return pipe_reserve(p, packets, size, PIPE_WRITE);
}

ulong __pumice_pipe_reserve_read(PIPE p, uint packets, uint size)
{
    return pipe_reserve(p, packets, size, PIPE_READ);
}

ALWAYS_INLINE void pipe_commit(PIPE p, ulong reservation, uint end, uint other)
{
    uint packets = (uint)(reservation >> 32);
    if ((int)packets <= 0)
        return;
    uint done = packets + pumice_atomic_fetch_add_explicit(COUNTER(end + PIPE_DONE), packets, memory_order_acq_rel,
                                                           memory_scope_device);
    // Whoever is behind a packet that is not done yet leaves the rest to the one who commits that.
    if (done != pipe_load(p, end + PIPE_TAKEN))
        return;
    uint open = pipe_load(p, end + PIPE_OPEN);
    while ((int)(done - open) > 0)
        if (atomic_exchanges(COUNTER(end + PIPE_OPEN), &open, done, memory_order_relaxed)) {
            pumice_atomic_fetch_add_explicit(COUNTER(other + PIPE_ROOM), done - open, memory_order_release,
                                             memory_scope_device);
            return;
        }
}

void __pumice_pipe_commit_write(PIPE p, ulong reservation) { pipe_commit(p, reservation, PIPE_WRITE, PIPE_READ); }
void __pumice_pipe_commit_read(PIPE p, ulong reservation) { pipe_commit(p, reservation, PIPE_READ, PIPE_WRITE); }

// Where a packet of a reservation is.
__global uchar *__pumice_pipe_packet(PIPE p, ulong reservation, uint index, uint size)
{
    ulong place = ((uint)reservation + index) & p[PIPE_LAST_PLACE];
    return (__global uchar *)p + PIPE_FIRST_PACKET + place * size;
}

uint __pumice_pipe_num_packets(PIPE p)
{
    uint packets = pipe_load(p, PIPE_READ + PIPE_ROOM);
    return (int)packets < 0 ? 0 : packets;
}

uint __pumice_pipe_max_packets(PIPE p) { return p[PIPE_MAX_PACKETS]; }
