// Everything that can be done with pipes.
typedef struct {
    char a;
    long b;
} Packet;

kernel void pipes_of_items(read_only pipe Packet in, write_only pipe Packet out, global uint *counts)
{
    Packet packet;
    while (read_pipe(in, &packet) == 0) {
        packet.b++;
        if (write_pipe(out, &packet) != 0)
            break;
    }
    reserve_id_t ids[2] = { reserve_read_pipe(in, 2), reserve_write_pipe(out, 2) };
    if (is_valid_reserve_id(ids[0])) {
        for (uint i = 0; i < 2; i++) {
            read_pipe(in, ids[0], i, &packet);
            if (is_valid_reserve_id(ids[1]))
                write_pipe(out, ids[1], 1 - i, &packet);
        }
        commit_read_pipe(in, ids[0]);
    }
    commit_write_pipe(out, ids[1]);
    counts[0] = get_pipe_num_packets(in);
    counts[1] = get_pipe_max_packets(out);
}

kernel void pipes_of_groups(read_only pipe int in, write_only pipe int out)
{
    local int between[256];
    uint i = get_local_id(0), n = get_local_size(0);
    reserve_id_t id = work_group_reserve_read_pipe(in, n);
    if (!is_valid_reserve_id(id))
        return;
    read_pipe(in, id, i, &between[i & 255]);
    work_group_commit_read_pipe(in, id);
    id = sub_group_reserve_write_pipe(out, get_sub_group_size());
    if (is_valid_reserve_id(id)) {
        write_pipe(out, id, get_sub_group_local_id(), &between[(n - 1 - i) & 255]);
        sub_group_commit_write_pipe(out, id);
    }
}
