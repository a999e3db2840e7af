// Kernels of pipes.rs.

typedef struct {
    char first;
    int second;
    short3 third;
} Mixed;

typedef struct __attribute__((packed)) {
    char first;
    long second;
} Packed;

// The results of writing and reading, one a work-item.
kernel void put(write_only pipe uint p, global const uint *from, global int *result)
{
    size_t i = get_global_id(0);
    result[i] = write_pipe(p, &from[i]);
}

kernel void get(read_only pipe uint p, global uint *to, global int *result)
{
    size_t i = get_global_id(0);
    uint packet = 0xdead;
    result[i] = read_pipe(p, &packet);
    to[i] = packet;
}

kernel void count(read_only pipe uint p, global uint *counts)
{
    counts[0] = get_pipe_num_packets(p);
    counts[1] = get_pipe_max_packets(p);
}

kernel void count_of_written(write_only pipe uint p, global uint *counts)
{
    counts[0] = get_pipe_num_packets(p);
    counts[1] = get_pipe_max_packets(p);
}

#define TYPED(name, type)                                                                                              \
    kernel void put_##name(write_only pipe type p, global const type *from)                                            \
    {                                                                                                                  \
        write_pipe(p, &from[get_global_id(0)]);                                                                        \
    }                                                                                                                  \
    kernel void get_##name(read_only pipe type p, global type *to)                                                     \
    {                                                                                                                  \
        type packet;                                                                                                   \
        if (read_pipe(p, &packet) == 0)                                                                                \
            to[get_global_id(0)] = packet;                                                                             \
    }
TYPED(uchar, uchar)
TYPED(short3, short3)
TYPED(long16, long16)
TYPED(mixed, Mixed)
TYPED(packed, Packed)

kernel void sizes_of(global uint *sizes)
{
    sizes[0] = sizeof(Mixed);
    sizes[1] = sizeof(Packed);
}

// Each work-item takes three packets at once and fills them from the last to the first.
kernel void put_reserved(write_only pipe uint p, global const uint *from, global int *result)
{
    size_t i = get_global_id(0);
    reserve_id_t id = reserve_write_pipe(p, 3);
    int code = is_valid_reserve_id(id) ? 0 : 1000;
    if (is_valid_reserve_id(id)) {
        for (int k = 2; k >= 0; k--)
            code |= write_pipe(p, id, k, &from[3 * i + k]);
        // A packet that is not of the reservation.
        code |= write_pipe(p, id, 3, &from[0]) < 0 ? 0 : 2000;
        commit_write_pipe(p, id);
    }
    result[i] = code;
}

kernel void get_reserved(read_only pipe uint p, global uint *to, global int *result)
{
    local uint before[64];
    size_t i = get_global_id(0);
    reserve_id_t id = reserve_read_pipe(p, 3);
    int code = is_valid_reserve_id(id) ? 0 : 1000;
    if (is_valid_reserve_id(id)) {
        for (int k = 0; k < 3; k++) {
            code |= read_pipe(p, id, k, &before[get_local_id(0)]);
            to[3 * i + k] = before[get_local_id(0)];
        }
        code |= read_pipe(p, id, 3, &before[get_local_id(0)]) < 0 ? 0 : 2000;
        commit_read_pipe(p, id);
    }
    result[i] = code;
}

// One work-item: reservations that are committed the other way round, and what is seen in between.
kernel void out_of_order(write_only pipe uint p, global uint *seen)
{
    reserve_id_t ids[4];
    for (uint k = 0; k < 4; k++)
        ids[k] = reserve_write_pipe(p, 1);
    seen[0] = get_pipe_num_packets(p);
    for (uint k = 4; k-- > 0;) {
        uint packet = 100 + k;
        write_pipe(p, ids[k], 0, &packet);
        commit_write_pipe(p, ids[k]);
        seen[4 - k] = get_pipe_num_packets(p);
    }
    seen[5] = is_valid_reserve_id(reserve_write_pipe(p, 5));
    seen[6] = is_valid_reserve_id(reserve_write_pipe(p, 0));
    seen[7] = is_valid_reserve_id(CLK_NULL_RESERVE_ID);
}

kernel void put_group(write_only pipe uint p, global const uint *from, global int *result)
{
    size_t i = get_global_id(0);
    local reserve_id_t shared_id;
    reserve_id_t id = work_group_reserve_write_pipe(p, get_local_size(0));
    result[i] = is_valid_reserve_id(id) ? 0 : 1000;
    if (is_valid_reserve_id(id)) {
        shared_id = id;
        result[i] |= write_pipe(p, shared_id, get_local_id(0), &from[i]);
        work_group_commit_write_pipe(p, shared_id);
    }
}

kernel void get_group(read_only pipe uint p, global uint *to, global int *result)
{
    size_t i = get_global_id(0);
    reserve_id_t id = work_group_reserve_read_pipe(p, get_local_size(0));
    result[i] = is_valid_reserve_id(id) ? 0 : 1000;
    if (is_valid_reserve_id(id)) {
        // From the far end of the reservation.
        result[i] |= read_pipe(p, id, get_local_size(0) - 1 - get_local_id(0), &to[i]);
        work_group_commit_read_pipe(p, id);
    }
}

// Two reservations of one group at a time.
kernel void put_group_twice(write_only pipe uint p, global const uint *from, global int *result)
{
    size_t i = get_global_id(0);
    uint n = get_local_size(0), l = get_local_id(0);
    reserve_id_t a = work_group_reserve_write_pipe(p, n), b = work_group_reserve_write_pipe(p, n);
    result[i] = is_valid_reserve_id(a) && is_valid_reserve_id(b) ? 0 : 1000;
    if (!result[i]) {
        uint x = from[i], y = x + 1000;
        result[i] |= write_pipe(p, b, l, &y);
        work_group_commit_write_pipe(p, b);
        result[i] |= write_pipe(p, a, l, &x);
        work_group_commit_write_pipe(p, a);
    }
}

#ifdef __opencl_c_subgroups
kernel void put_sub_group(write_only pipe uint p, global const uint *from, global int *result)
{
    size_t i = get_global_id(0);
    reserve_id_t id = sub_group_reserve_write_pipe(p, get_sub_group_size());
    result[i] = is_valid_reserve_id(id) ? 0 : 1000;
    if (is_valid_reserve_id(id)) {
        result[i] |= write_pipe(p, id, get_sub_group_local_id(), &from[i]);
        sub_group_commit_write_pipe(p, id);
    }
}

// Every second sub-group reads, so that sub-groups of a work-group go different ways.
kernel void get_sub_group(read_only pipe uint p, global uint *to, global int *result)
{
    size_t i = get_global_id(0);
    uint n = get_sub_group_size();
    for (uint turn = 0; turn < 2; turn++) {
        if ((get_sub_group_id() & 1) != turn)
            continue;
        reserve_id_t id = sub_group_reserve_read_pipe(p, n);
        result[i] = is_valid_reserve_id(id) ? 0 : 1000;
        if (is_valid_reserve_id(id)) {
            result[i] |= read_pipe(p, id, n - 1 - get_sub_group_local_id(), &to[i]);
            sub_group_commit_read_pipe(p, id);
        }
    }
}
#endif

// A pipe that goes through a function, and two pipes of one kernel.
int pass(read_only pipe uint from, write_only pipe uint to)
{
    uint packet;
    int code = read_pipe(from, &packet);
    if (code == 0) {
        packet += 1000;
        code = write_pipe(to, &packet);
    }
    return code;
}

kernel void forward(read_only pipe uint from, write_only pipe uint to, global int *result)
{
    result[get_global_id(0)] = pass(from, to);
}

// One work-item that writes as long as there is room, and one that reads until it has seen all or has looked too often.
kernel void put_slowly(write_only pipe uint p, uint total, uint most, global uint *done)
{
    uint next = 0;
    for (uint k = 0; k < most && next < total; k++)
        if (write_pipe(p, &next) == 0)
            next++;
    *done = next;
}

kernel void get_slowly(read_only pipe uint p, uint total, uint most, global uint *done, global uint *wrong)
{
    uint next = 0, packet;
    for (uint k = 0; k < most && next < total; k++)
        if (read_pipe(p, &packet) == 0) {
            *wrong += packet != next;
            next++;
        }
    *done = next;
}
