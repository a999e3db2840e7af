static inline __attribute__((overloadable, convergent)) event_t async_work_group_copy_3D3D(
    PUMICE_TO void *dst, size_t dst_offset, const PUMICE_FROM void *src, size_t src_offset,
    size_t num_bytes_per_element, size_t num_elements_per_line, size_t num_lines, size_t num_planes,
    size_t src_total_line_length, size_t src_total_plane_area, size_t dst_total_line_length,
    size_t dst_total_plane_area, event_t event)
{
    size_t lane = get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
    size_t lanes = get_local_size(0) * get_local_size(1) * get_local_size(2);
    size_t all = num_elements_per_line * num_lines * num_planes;
    for (size_t i = lane; i < all; i += lanes) {
        size_t x = i % num_elements_per_line, y = i / num_elements_per_line % num_lines;
        size_t z = i / num_elements_per_line / num_lines;
        size_t to = (dst_offset + x + y * dst_total_line_length + z * dst_total_plane_area) * num_bytes_per_element;
        size_t from = (src_offset + x + y * src_total_line_length + z * src_total_plane_area) * num_bytes_per_element;
        PUMICE_TO uchar *d = (PUMICE_TO uchar *)dst + to;
        const PUMICE_FROM uchar *s = (const PUMICE_FROM uchar *)src + from;
        for (size_t b = 0; b < num_bytes_per_element; b++)
            d[b] = s[b];
    }
    return event;
}
static inline __attribute__((overloadable, convergent)) event_t async_work_group_copy_2D2D(
    PUMICE_TO void *dst, size_t dst_offset, const PUMICE_FROM void *src, size_t src_offset,
    size_t num_bytes_per_element, size_t num_elements_per_line, size_t num_lines, size_t src_total_line_length,
    size_t dst_total_line_length, event_t event)
{
    return async_work_group_copy_3D3D(dst, dst_offset, src, src_offset, num_bytes_per_element, num_elements_per_line,
                                      num_lines, 1, src_total_line_length, 0, dst_total_line_length, 0, event);
}
