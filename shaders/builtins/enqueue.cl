// Device queues and device events: what the instructions of SPIR-V on them do (OpenCL C specification, section "Enqueuing
// Kernels").
//
// The reader of the lowering compiler makes calls of these functions, by name. `device_queue.rs` of the lowering compiler
// has the layout of queues, records, events and of what a launch knows (`state`), and is shared with the runtime, which
// takes the records out of a queue when the launch has ended.
//
// A record is made in three steps: `begin` checks the operands and reserves its place, `fill` writes what is known, and
// after the caller has copied the wait list, the sizes of local memory and what the block captured, `end` checks the wait
// list, makes the event, and hands the record over. Nobody waits for another work-item. What gives an address or an error
// gives the error as a number below zero.

#define BYTES __global uchar *
#define WORD_AT(base, at) (*(__global uint *)((base) + (at)))
#define LONG_AT(base, at) (*(__global ulong *)((base) + (at)))
#define ATOMIC_AT(base, at) ((atomic_word)((base) + (at)))

#define CLK_SUCCESS 0
#define CLK_INVALID_ARG_SIZE -51
#define CLK_INVALID_EVENT_WAIT_LIST -57
#define CLK_EVENT_ALLOCATION_FAILURE -100
#define CLK_ENQUEUE_FAILURE -101
#define CLK_INVALID_QUEUE -102
#define CLK_INVALID_NDRANGE -160
#define CLK_DEVICE_QUEUE_FULL -161

#define QUEUE_LAST 0
#define QUEUE_LIMIT 4
#define QUEUE_RING 8
#define QUEUE_TAIL 64
#define QUEUE_HEAD 128
#define QUEUE_WAITING 132

#define RECORD_SIZE 0
#define RECORD_KIND 4
#define RECORD_CHECK 8
#define RECORD_FLAGS 12
#define RECORD_LAUNCH 16
#define RECORD_BLOCK 24
#define RECORD_RANGE 32
#define RECORD_EVENT 104
#define RECORD_WAITS 112
#define RECORD_CAPTURED 116
#define RECORD_LOCALS 120
#define RECORD_DIMS 124
#define RECORD_BODY 128
#define KIND_CAPTURE 3
#define KIND_PADDING 4

#define EVENT_REFERENCES 0
#define EVENT_STATUS 4
#define EVENT_KIND 8
#define EVENT_RELEASED 12
#define EVENT_TIMES 16
#define EVENT_QUEUE 32
#define EVENT_SIZE 64
#define EVENT_USER 1
#define EVENT_COMMAND 2
#define STATUS_SUBMITTED 2

#define EVENTS_COUNT 0
#define EVENTS_NEXT 64
#define EVENTS_FIRST 128

#define STATE_DEFAULT_QUEUE 0
#define STATE_EVENTS 8
#define STATE_LAUNCH 16
#define STATE_FLAGS 24
#define STATE_MAX_GROUP 28
#define STATE_BLOCKS 32
#define STATE_MAX_ITEMS 40
#define STATE_TABLE 64
#define STATE_ENTRY 24
#define FLAG_PRECISE 1
#define FLAG_UNIFORM 2

ALWAYS_INLINE uint word_load(BYTES base, uint at)
{
    return pumice_atomic_load_explicit(ATOMIC_AT(base, at), memory_order_relaxed, memory_scope_device);
}

// An error as the program may see it.
ALWAYS_INLINE long enqueue_error(ulong state, int code)
{
    return WORD_AT((BYTES)state, STATE_FLAGS) & FLAG_PRECISE ? code : CLK_ENQUEUE_FAILURE;
}

// The last word of a record: with its position, what lay there before cannot be taken for it. The runtime may look at it
// while the kernel runs, and need not see words in the order in which they were written: the check tells it that these are
// of one record.
ALWAYS_INLINE void hand_over(BYTES place, uint position, uint kind, uint size, ulong launch)
{
    uint check = (position | kind) ^ size * 0x85ebca6bu ^ (uint)launch * 0xc2b2ae35u ^ (uint)(launch >> 32) * 0x27d4eb2fu;
    WORD_AT(place, RECORD_CHECK) = check;
    pumice_atomic_store_explicit(ATOMIC_AT(place, RECORD_KIND), position | kind, memory_order_release,
                                 memory_scope_device);
}

// A place of so many bytes in a queue, 0: it is full.
ALWAYS_INLINE BYTES queue_reserve(BYTES queue, uint size)
{
    uint last = WORD_AT(queue, QUEUE_LAST), limit = WORD_AT(queue, QUEUE_LIMIT);
    uint tail = word_load(queue, QUEUE_TAIL), at, padding;
    if (size > limit)
        return 0;
    do {
        at = tail & last;
        padding = size > last + 1 - at ? last + 1 - at : 0;
        uint used = tail - word_load(queue, QUEUE_HEAD);
        if (used + word_load(queue, QUEUE_WAITING) + size > limit || used + padding + size > last + 1)
            return 0;
    } while (!atomic_exchanges(ATOMIC_AT(queue, QUEUE_TAIL), &tail, tail + padding + size, memory_order_relaxed));
    BYTES ring = (BYTES)LONG_AT(queue, QUEUE_RING);
    BYTES place = ring + at;
    if (padding) {
        WORD_AT(place, RECORD_SIZE) = padding;
        hand_over(place, tail, KIND_PADDING, padding, 0);
        place = ring;
    }
    WORD_AT(place, RECORD_SIZE) = size;
    // Of no kind yet.
    WORD_AT(place, RECORD_KIND) = tail + padding;
    return place;
}

// The place of a record, or an error. Sizes are those of the ND-range; of a marker they are all 0, with 0 dimensions.
long __pumice_enqueue_begin(ulong state, BYTES queue, uint dims, ulong offset_x, ulong offset_y, ulong offset_z,
                            ulong global_x, ulong global_y, ulong global_z, ulong local_x, ulong local_y,
                            ulong local_z, uint waits, uint has_list, uint captured, uint locals, uint empty_local,
                            uint is_marker)
{
    if (!queue)
        return enqueue_error(state, CLK_INVALID_QUEUE);
    if ((waits != 0) != (has_list != 0) || (is_marker && !waits))
        return enqueue_error(state, CLK_INVALID_EVENT_WAIT_LIST);
    if (!is_marker) {
        bool wrong = dims - 1 > 2;
        // Ids would go round.
        wrong |= global_x + offset_x < offset_x || global_y + offset_y < offset_y || global_z + offset_z < offset_z;
        if ((local_x | local_y | local_z) != 0) {
            ulong most = WORD_AT((BYTES)state, STATE_MAX_GROUP);
            wrong |= local_x - 1 >= WORD_AT((BYTES)state, STATE_MAX_ITEMS);
            wrong |= local_y - 1 >= WORD_AT((BYTES)state, STATE_MAX_ITEMS + 4);
            wrong |= local_z - 1 >= WORD_AT((BYTES)state, STATE_MAX_ITEMS + 8);
            wrong = wrong || local_x * local_y * local_z > most;
            if (!wrong && WORD_AT((BYTES)state, STATE_FLAGS) & FLAG_UNIFORM)
                wrong = global_x % local_x || global_y % local_y || global_z % local_z;
        }
        if (wrong)
            return enqueue_error(state, CLK_INVALID_NDRANGE);
        if (empty_local)
            return enqueue_error(state, CLK_INVALID_ARG_SIZE);
    }
    // Longer than any queue, and not to be added up.
    if (waits > 1 << 20 || locals > 1 << 20 || captured > 1 << 28)
        return enqueue_error(state, CLK_DEVICE_QUEUE_FULL);
    uint size = (RECORD_BODY + 8 * waits + 4 * locals + 15 & ~15u) + (captured + 15 & ~15u);
    BYTES place = queue_reserve(queue, size);
    if (!place)
        return enqueue_error(state, CLK_DEVICE_QUEUE_FULL);
    LONG_AT(place, RECORD_EVENT) = 0;
    LONG_AT(place, RECORD_LAUNCH) = LONG_AT((BYTES)state, STATE_LAUNCH);
    WORD_AT(place, RECORD_WAITS) = waits;
    WORD_AT(place, RECORD_CAPTURED) = captured;
    WORD_AT(place, RECORD_LOCALS) = locals;
    WORD_AT(place, RECORD_DIMS) = dims;
    LONG_AT(place, RECORD_RANGE) = offset_x;
    LONG_AT(place, RECORD_RANGE + 8) = offset_y;
    LONG_AT(place, RECORD_RANGE + 16) = offset_z;
    LONG_AT(place, RECORD_RANGE + 24) = global_x;
    LONG_AT(place, RECORD_RANGE + 32) = global_y;
    LONG_AT(place, RECORD_RANGE + 40) = global_z;
    LONG_AT(place, RECORD_RANGE + 48) = local_x;
    LONG_AT(place, RECORD_RANGE + 56) = local_y;
    LONG_AT(place, RECORD_RANGE + 64) = local_z;
    return (long)place;
}

// Where what the block captured goes.
BYTES __pumice_enqueue_captured(BYTES place)
{
    return place + (RECORD_BODY + 8 * WORD_AT(place, RECORD_WAITS) + 4 * WORD_AT(place, RECORD_LOCALS) + 15 & ~15u);
}

uint __pumice_event_is_valid(ulong state, ulong event)
{
    ulong events = LONG_AT((BYTES)state, STATE_EVENTS);
    ulong at = event - (events + EVENTS_FIRST);
    if (!event || at >= (ulong)WORD_AT((BYTES)events, EVENTS_COUNT) * EVENT_SIZE || at % EVENT_SIZE)
        return 0;
    return word_load((BYTES)event, EVENT_REFERENCES) != word_load((BYTES)event, EVENT_RELEASED);
}

void __pumice_event_retain(ulong state, ulong event)
{
    if (__pumice_event_is_valid(state, event))
        pumice_atomic_fetch_add_explicit(ATOMIC_AT((BYTES)event, EVENT_REFERENCES), 1u, memory_order_relaxed,
                                         memory_scope_device);
}

void __pumice_event_release(ulong state, ulong event)
{
    if (__pumice_event_is_valid(state, event))
        pumice_atomic_fetch_sub_explicit(ATOMIC_AT((BYTES)event, EVENT_REFERENCES), 1u, memory_order_acq_rel,
                                         memory_scope_device);
}

// A new event, 0 where all are in use.
ALWAYS_INLINE ulong event_new(ulong state, uint kind, uint references, ulong queue)
{
    BYTES events = (BYTES)LONG_AT((BYTES)state, STATE_EVENTS);
    uint count = WORD_AT(events, EVENTS_COUNT);
    uint next = pumice_atomic_fetch_add_explicit(ATOMIC_AT(events, EVENTS_NEXT), 1u, memory_order_relaxed,
                                                 memory_scope_device);
    for (uint tried = 0; tried < count; tried++) {
        BYTES event = events + EVENTS_FIRST + (ulong)(next + tried & count - 1) * EVENT_SIZE;
        uint none = word_load(event, EVENT_RELEASED);
        if (word_load(event, EVENT_REFERENCES) != none)
            continue;
        if (!atomic_exchanges(ATOMIC_AT(event, EVENT_REFERENCES), &none, none + references, memory_order_acquire))
            continue;
        WORD_AT(event, EVENT_STATUS) = STATUS_SUBMITTED;
        WORD_AT(event, EVENT_KIND) = kind;
        LONG_AT(event, EVENT_QUEUE) = queue;
        return (ulong)event;
    }
    return 0;
}

// Hands a record over. The event where one is wanted, 0 where not, or an error: then the record is void.
long __pumice_enqueue_end(ulong state, BYTES queue, BYTES place, ulong block, uint flags, uint kind, uint wants_event)
{
    uint waits = WORD_AT(place, RECORD_WAITS);
    int failed = 0;
    for (uint i = 0; i < waits; i++)
        if (!__pumice_event_is_valid(state, LONG_AT(place, RECORD_BODY + 8 * i)))
            failed = CLK_INVALID_EVENT_WAIT_LIST;
    ulong event = 0;
    if (!failed && wants_event) {
        // One for the program, one for the runtime.
        event = event_new(state, EVENT_COMMAND, 2, (ulong)queue);
        if (!event)
            failed = CLK_EVENT_ALLOCATION_FAILURE;
    }
    if (!failed)
        for (uint i = 0; i < waits; i++)
            __pumice_event_retain(state, LONG_AT(place, RECORD_BODY + 8 * i));
    LONG_AT(place, RECORD_EVENT) = event;
    LONG_AT(place, RECORD_BLOCK) = block;
    WORD_AT(place, RECORD_FLAGS) = flags;
    ulong launch = failed ? 0 : LONG_AT((BYTES)state, STATE_LAUNCH);
    hand_over(place, WORD_AT(place, RECORD_KIND), failed ? KIND_PADDING : kind, WORD_AT(place, RECORD_SIZE), launch);
    return failed ? enqueue_error(state, failed) : (long)event;
}

ulong __pumice_event_create(ulong state) { return event_new(state, EVENT_USER, 1, 0); }

void __pumice_event_set_status(ulong state, ulong event, uint status)
{
    if (__pumice_event_is_valid(state, event) && WORD_AT((BYTES)event, EVENT_KIND) == EVENT_USER)
        pumice_atomic_store_explicit(ATOMIC_AT((BYTES)event, EVENT_STATUS), status, memory_order_release,
                                     memory_scope_device);
}

// capture_event_profiling_info: now where the event is complete, else by the runtime.
void __pumice_event_capture(ulong state, ulong event, uint name, BYTES to)
{
    if (!__pumice_event_is_valid(state, event) || WORD_AT((BYTES)event, EVENT_KIND) != EVENT_COMMAND || name != 1)
        return;
    if ((int)word_load((BYTES)event, EVENT_STATUS) <= 0) {
        LONG_AT(to, 0) = LONG_AT((BYTES)event, EVENT_TIMES);
        LONG_AT(to, 8) = LONG_AT((BYTES)event, EVENT_TIMES + 8);
        return;
    }
    BYTES place = queue_reserve((BYTES)LONG_AT((BYTES)event, EVENT_QUEUE), RECORD_BODY);
    if (!place)
        return;
    __pumice_event_retain(state, event);
    WORD_AT(place, RECORD_WAITS) = 0;
    WORD_AT(place, RECORD_CAPTURED) = 0;
    WORD_AT(place, RECORD_LOCALS) = 0;
    ulong launch = LONG_AT((BYTES)state, STATE_LAUNCH);
    LONG_AT(place, RECORD_LAUNCH) = launch;
    LONG_AT(place, RECORD_EVENT) = event;
    LONG_AT(place, RECORD_RANGE) = (ulong)to;
    hand_over(place, WORD_AT(place, RECORD_KIND), KIND_CAPTURE, RECORD_BODY, launch);
}

BYTES __pumice_default_queue(ulong state) { return (BYTES)LONG_AT((BYTES)state, STATE_DEFAULT_QUEUE); }

// What the runtime knows of a block: 0 work-items of a group at most, 1 of what its size is best a multiple, 2 work-items of
// a sub-group.
uint __pumice_block_info(ulong state, ulong block, uint which)
{
    uint count = WORD_AT((BYTES)state, STATE_BLOCKS);
    for (uint i = 0; i < count; i++) {
        BYTES entry = (BYTES)state + STATE_TABLE + i * STATE_ENTRY;
        if (LONG_AT(entry, 0) == block)
            return WORD_AT(entry, 8 + 4 * which);
    }
    return 0;
}

// Work-items of a group of an ND-range, as far as it says.
ALWAYS_INLINE ulong group_items(ulong state, ulong block, ulong global_x, ulong global_y, ulong global_z, ulong local_x,
                                ulong local_y, ulong local_z)
{
    ulong most = __pumice_block_info(state, block, 0);
    if (local_x == 0) {
        ulong all = global_x * (global_y ? global_y : 1) * (global_z ? global_z : 1);
        return all < most ? all : most;
    }
    return local_x * (local_y ? local_y : 1) * (local_z ? local_z : 1);
}

uint __pumice_sub_group_count(ulong state, ulong block, ulong global_x, ulong global_y, ulong global_z, ulong local_x,
                              ulong local_y, ulong local_z)
{
    ulong size = __pumice_block_info(state, block, 2);
    if (!size)
        return 0;
    return (group_items(state, block, global_x, global_y, global_z, local_x, local_y, local_z) + size - 1) / size;
}

uint __pumice_sub_group_size(ulong state, ulong block, ulong global_x, ulong global_y, ulong global_z, ulong local_x,
                             ulong local_y, ulong local_z)
{
    ulong size = __pumice_block_info(state, block, 2);
    ulong items = group_items(state, block, global_x, global_y, global_z, local_x, local_y, local_z);
    return items && items < size ? items : size;
}

// OpGetKernelLocalSizeForSubgroupCount: 0 where a group cannot have so many.
uint __pumice_local_size_for(ulong state, ulong block, uint sub_groups)
{
    ulong items = (ulong)__pumice_block_info(state, block, 2) * sub_groups;
    return items <= __pumice_block_info(state, block, 0) ? items : 0;
}

uint __pumice_max_sub_groups(ulong state, ulong block)
{
    uint size = __pumice_block_info(state, block, 2);
    return size ? __pumice_block_info(state, block, 0) / size : 0;
}
