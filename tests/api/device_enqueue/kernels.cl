// Kernels that enqueue others; see `mod.rs`.

#define FLAGS CLK_ENQUEUE_FLAGS_WAIT_KERNEL

typedef struct { char tag; long wide; float4 vector; short tail; } mixed;

// What blocks capture, and where their work-items are.
kernel void captures(queue_t queue, global long *to, int number, float4 vector, uchar letter)
{
    mixed value = {letter, (long)number << 40, vector, -3};
    global long *behind = to + 10;
    enqueue_kernel(queue, FLAGS, ndrange_1D(4), ^{
        size_t id = get_global_id(0);
        behind[id * 4] = value.wide + id;
        behind[id * 4 + 1] = (long)(value.vector.w * 8) + value.tail;
        behind[id * 4 + 2] = value.tag;
        behind[id * 4 + 3] = number;
    });
}

// Ids and sizes: one number, mixed of all, for each work-item at its linear id.
uint place(void)
{
    ulong mixed = get_work_dim();
    for (uint d = 0; d < 3; d++) {
        mixed = mixed * 31 + get_global_id(d);
        mixed = mixed * 31 + get_global_size(d);
        mixed = mixed * 31 + get_global_offset(d);
    }
    return mixed ^ mixed >> 32;
}

uint grouping(void)
{
    uint mixed = 1;
    for (uint d = 0; d < 3; d++) {
        mixed = mixed * 31 + get_local_size(d);
        mixed = mixed * 31 + get_enqueued_local_size(d);
        mixed = mixed * 31 + get_local_id(d);
        mixed = mixed * 31 + get_group_id(d);
    }
    return mixed;
}

void enqueue_places(queue_t queue, ndrange_t range, global uint *to, int known, global int *status)
{
    *status = enqueue_kernel(queue, FLAGS, range, ^{
        to[get_global_linear_id()] = known ? place() * 7 + grouping() : place();
    });
}

kernel void ranges(queue_t queue, global uint *to, int form, global int *status)
{
    const size_t offset2[2] = {5, 7}, global2[2] = {6, 4}, local2[2] = {3, 2}, far2[2] = {5, (1ul << 34) - 2};
    const size_t offset3[3] = {1, 2, 3}, global3[3] = {4, 3, 2}, local3[3] = {2, 3, 1};
    switch (form) {
    case 0: enqueue_places(queue, ndrange_1D(24), to, 0, status); break;
    case 1: enqueue_places(queue, ndrange_1D(24, 6), to, 1, status); break;
    case 2: enqueue_places(queue, ndrange_1D(100, 24, 8), to, 1, status); break;
    case 3: enqueue_places(queue, ndrange_2D(global2), to, 0, status); break;
    case 4: enqueue_places(queue, ndrange_2D(global2, local2), to, 1, status); break;
    case 5: enqueue_places(queue, ndrange_2D(offset2, global2, local2), to, 1, status); break;
    case 6: enqueue_places(queue, ndrange_3D(global3), to, 0, status); break;
    case 7: enqueue_places(queue, ndrange_3D(global3, local3), to, 1, status); break;
    case 8: enqueue_places(queue, ndrange_3D(offset3, global3, local3), to, 1, status); break;
    // The last work-group is smaller.
    case 9: enqueue_places(queue, ndrange_1D(24, 7), to, 1, status); break;
    // Ids of more than 32 bits.
    case 10: enqueue_places(queue, ndrange_1D(1ul << 33, 24, 8), to, 1, status); break;
    case 11: enqueue_places(queue, ndrange_2D(far2, global2, local2), to, 1, status); break;
    }
}

// The same without a queue, for comparison.
kernel void as_ranges(global uint *to, int known)
{
    to[get_global_linear_id()] = known ? place() * 7 + grouping() : place();
}

// Local memory of three sizes, some of them known at run time only.
kernel void locals(queue_t queue, global int *to, uint bytes)
{
    to[0] = enqueue_kernel(queue, FLAGS, ndrange_1D(32, 16),
                           ^(local void *first, local void *second, local void *third) {
        local int *a = first, *b = second;
        local float *c = third;
        size_t id = get_local_id(0);
        a[id] = id;
        b[15 - id] = 100 * id;
        c[id] = get_global_id(0);
        barrier(CLK_LOCAL_MEM_FENCE);
        to[1 + get_global_id(0)] = a[15 - id] + b[id] + (int)c[id ^ 1];
    }, 64, bytes, (uint)(16 * sizeof(float)));
}

// Each waits for the one before it.
kernel void chain(queue_t queue, global int *to, int length)
{
    clk_event_t before;
    int failed = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 0, 0, &before, ^{ to[1] = 1; });
    for (int i = 1; i < length; i++) {
        clk_event_t after;
        failed |= enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &before, &after,
                                 ^{ to[1] = to[1] * 3 + i; });
        release_event(before);
        before = after;
    }
    release_event(before);
    to[0] = failed;
}

// Two branches and a marker behind both.
kernel void fork_and_join(queue_t queue, global int *to)
{
    clk_event_t branches[2], both, end;
    int failed = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(64), 0, 0, &branches[0],
                                ^{ to[2 + get_global_id(0)] = get_global_id(0); });
    failed |= enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_WORK_GROUP, ndrange_1D(64), 0, 0, &branches[1],
                             ^{ to[66 + get_global_id(0)] = 2 * get_global_id(0); });
    failed |= enqueue_marker(queue, 2, branches, &both);
    failed |= enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &both, &end, ^{
        int sum = 0;
        for (int i = 0; i < 128; i++)
            sum += to[2 + i];
        to[1] = sum;
    });
    retain_event(both);
    release_event(both);
    to[0] = failed | (is_valid_event(both) ? 0 : 4096);
    release_event(both);
    release_event(end);
    release_event(branches[0]);
    release_event(branches[1]);
}

// A user event that is completed, or fails, before or after a child waits for it.
kernel void user_event(queue_t queue, global int *to, int status, int late)
{
    clk_event_t user = create_user_event(), waited;
    to[0] = is_valid_event(user);
    if (!late)
        set_user_event_status(user, status);
    to[1] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &user, &waited, ^{ to[2] = 22; });
    to[4] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &waited, 0, ^{ to[3] = 33; });
    if (late)
        set_user_event_status(user, status);
    release_event(user);
    release_event(waited);
}

// The event is left for another kernel to set.
kernel void wait_for_another(queue_t queue, global int *to, global clk_event_t *left)
{
    clk_event_t user = create_user_event();
    to[0] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &user, 0, ^{ to[1] = 11; });
    *left = user;
}

kernel void set_for_another(global int *to, global clk_event_t *left)
{
    to[2] = is_valid_event(*left);
    set_user_event_status(*left, CL_COMPLETE);
    release_event(*left);
}

// As many events as there may be, over and over.
kernel void many_events(queue_t queue, global int *to)
{
    int failed = 0;
    for (int i = 0; i < 400; i++) {
        clk_event_t event;
        failed |= enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 0, 0, &event,
                                 ^{ atomic_inc(to + 1); });
        release_event(event);
    }
    if (failed)
        to[0] = failed;
}

// Events that nobody releases: at last there are no more.
kernel void use_up_events(global int *to, int count)
{
    for (int i = 0; i < count; i++)
        to[0] += is_valid_event(create_user_event()) ? 1 : 0;
    clk_event_t none = create_user_event();
    to[1] = is_valid_event(none);
    clk_event_t event;
    to[2] = enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 0, 0, &event, ^{ to[3] = 1; });
    to[4] = enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), ^{ to[5] = 1; });
}

kernel void profile(queue_t queue, global ulong *times, global int *to)
{
    clk_event_t event, after;
    int failed = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 0, 0, &event, ^{
        for (int i = 0; i < 1000; i++)
            to[1] += to[i & 1];
    });
    // Of a command that is not over.
    capture_event_profiling_info(event, CLK_PROFILING_COMMAND_EXEC_TIME, times);
    failed |= enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1), 1, &event, &after, ^{
        // Of one that is.
        capture_event_profiling_info(event, CLK_PROFILING_COMMAND_EXEC_TIME, times + 2);
        release_event(event);
    });
    release_event(after);
    to[0] = failed;
}

kernel void queries(global uint *to)
{
    void (^plain)(void) = ^{ to[20] = 1; };
    void (^with_local)(local void *) = ^(local void *p) { *(local int *)p = 1; };
    ndrange_t range = ndrange_1D(200, 50);
    to[0] = get_kernel_work_group_size(plain);
    to[1] = get_kernel_preferred_work_group_size_multiple(plain);
    to[2] = get_kernel_work_group_size(with_local);
#ifdef __opencl_c_subgroups
    to[3] = get_kernel_max_sub_group_size_for_ndrange(range, plain);
    to[4] = get_kernel_sub_group_count_for_ndrange(range, plain);
#endif
}

global int counted;
global int *global counted_by = &counted;

kernel void variables(queue_t queue, global int *to)
{
    counted = 5;
    enqueue_kernel(queue, FLAGS, ndrange_1D(10), ^{ atomic_add(counted_by, 2); });
}

kernel void read_variables(global int *to) { to[0] = counted; }

kernel void speaks(queue_t queue)
{
    printf("parent\n");
    enqueue_kernel(queue, FLAGS, ndrange_1D(1), ^{ printf("child %d\n", 7); });
}

// A tree of `depth` levels with `width` children each.
void grow(queue_t queue, global int *to, int depth, int width)
{
    atomic_inc(to);
    if (depth > 0)
        for (int i = 0; i < width; i++)
            if (enqueue_kernel(queue, FLAGS, ndrange_1D(1), ^{ grow(get_default_queue(), to, depth - 1, width); }))
                atomic_inc(to + 1);
}

kernel void tree(queue_t queue, global int *to, int depth, int width) { grow(queue, to, depth, width); }

// Enqueues more than fits, and reports the error.
kernel void overflow(queue_t queue, global int *to, int count)
{
    for (int i = 0; i < count; i++) {
        int status = enqueue_kernel(queue, FLAGS, ndrange_1D(1), ^{ atomic_inc(to); });
        if (status)
            to[2] = status;
        to[1] += status ? 1 : 0;
    }
}

// A group of a size.
kernel void long_group(queue_t queue, global int *to, uint x, uint y, uint z)
{
    const size_t size[3] = {x, y, z};
    to[1] = enqueue_kernel(queue, FLAGS, ndrange_3D(size, size), ^{ atomic_inc(to); });
}

kernel void errors(queue_t queue, global int *to, uint zero, ulong many, global clk_event_t *no_event)
{
    clk_event_t made, wrong = *no_event;
    queue_t none = *(queue_t *)&to[18];
    const size_t empty[3] = {4, 0, 2};
    to[0] = enqueue_kernel(none, FLAGS, ndrange_1D(1), ^{ atomic_inc(to + 19); });
    to[1] = enqueue_kernel(queue, FLAGS, ndrange_1D(many, many, 1), ^{ atomic_inc(to + 19); });
    to[2] = enqueue_kernel(queue, FLAGS, ndrange_1D(many, 1 << 20), ^{ atomic_inc(to + 19); });
    to[3] = enqueue_kernel(queue, FLAGS, ndrange_1D(1), 1, &wrong, &made, ^{ atomic_inc(to + 19); });
    to[4] = enqueue_kernel(queue, FLAGS, ndrange_1D(1), 0, &wrong, &made, ^{ atomic_inc(to + 19); });
    to[5] = enqueue_kernel(queue, FLAGS, ndrange_1D(1), 1, 0, &made, ^{ atomic_inc(to + 19); });
    to[6] = enqueue_marker(queue, 0, 0, &made);
    to[7] = enqueue_kernel(queue, FLAGS, ndrange_1D(1), ^(local void *p) { atomic_inc(to + 19); }, zero);
    to[8] = is_valid_event(wrong);
    // An empty range is none.
    to[9] = enqueue_kernel(queue, FLAGS, ndrange_3D(empty), ^{ atomic_inc(to + 19); });
    to[10] = enqueue_kernel(queue, FLAGS, ndrange_1D(7), ^{ atomic_inc(to + 20); });
}

// A child that needs more local memory than there is.
kernel void too_much(queue_t queue, global int *to)
{
    clk_event_t event;
    to[0] = enqueue_kernel(queue, FLAGS, ndrange_1D(1), 0, 0, &event,
                           ^(local void *p) { *(local int *)p = 1; to[1] = 1; }, 1 << 30);
    enqueue_kernel(queue, FLAGS, ndrange_1D(1), 1, &event, 0, ^{ to[2] = 1; });
    enqueue_kernel(queue, FLAGS, ndrange_1D(1), ^{ to[3] = 1; });
    release_event(event);
}

// From all work-items at once.
kernel void from_all(queue_t queue, global int *to)
{
    int id = get_global_id(0);
    if (id % 3 != 1) {
        int status = enqueue_kernel(queue, FLAGS, ndrange_1D(2), ^{ atomic_add(to + 1, id); });
        if (status)
            atomic_inc(to);
    }
}

kernel void add(global int *to, int what) { to[0] = to[1] * what; }
