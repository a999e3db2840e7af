// Programs as one would write them with device queues; see `samples.rs`.

// Quicksort: a child for each part that is still long.
void sort_short(global int *a, int count)
{
    for (int i = 1; i < count; i++) {
        int value = a[i], at = i;
        for (; at > 0 && a[at - 1] > value; at--)
            a[at] = a[at - 1];
        a[at] = value;
    }
}

void sort_part(global int *a, int count, global int *failed)
{
    while (count > 16) {
        int pivot = a[count / 2], low = 0, high = count - 1;
        while (low <= high) {
            while (a[low] < pivot)
                low++;
            while (a[high] > pivot)
                high--;
            if (low <= high) {
                int swapped = a[low];
                a[low++] = a[high];
                a[high--] = swapped;
            }
        }
        global int *rest = a + low;
        int many = count - low;
        if (enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1),
                           ^{ sort_part(rest, many, failed); }))
            atomic_inc(failed);
        count = high + 1;
    }
    sort_short(a, count);
}

kernel void quicksort(global int *a, int count, global int *failed) { sort_part(a, count, failed); }

// Sierpinski's carpet: of nine squares the middle one is empty, and the others are carpets.
void carpet(global uchar *image, int width, int x, int y, int size)
{
    int third = size / 3;
    const size_t offset[2] = {x + third, y + third}, global_size[2] = {third, third}, local_size[2] = {1, 1};
    enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_2D(offset, global_size, local_size),
                   ^{ image[get_global_id(1) * width + get_global_id(0)] = 0; });
    if (third >= 3)
        for (int i = 0; i < 9; i++)
            if (i != 4) {
                int left = x + i % 3 * third, top = y + i / 3 * third;
                enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_NO_WAIT, ndrange_1D(1),
                               ^{ carpet(image, width, left, top, third); });
            }
}

kernel void sierpinski(global uchar *image, int width) { carpet(image, width, 0, 0, width); }

// Breadth-first search: a level enqueues the next, which reads what it has found.
void level(global const int *first, global const int *edges, global int *distance, global int *found,
           global int *counts, int depth, int from, int count);

void next_level(global const int *first, global const int *edges, global int *distance, global int *found,
                global int *counts, int depth, int from)
{
    int count = counts[0] - from;
    if (count > 0)
        level(first, edges, distance, found, counts, depth, from, count);
}

void level(global const int *first, global const int *edges, global int *distance, global int *found,
           global int *counts, int depth, int from, int count)
{
    clk_event_t done;
    queue_t queue = get_default_queue();
    int status = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(count), 0, 0, &done, ^{
        int node = found[from + get_global_id(0)];
        for (int i = first[node]; i < first[node + 1]; i++)
            if (atomic_cmpxchg(distance + edges[i], -1, depth + 1) == -1)
                found[atomic_inc(counts)] = edges[i];
    });
    status |= enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(1), 1, &done, 0,
                             ^{ next_level(first, edges, distance, found, counts, depth + 1, from + count); });
    release_event(done);
    if (status)
        counts[1] = status;
}

kernel void search(global const int *first, global const int *edges, global int *distance, global int *found,
                   global int *counts)
{
    level(first, edges, distance, found, counts, 0, 0, 1);
}
