//! Objects: counting references, queries, and what makes them.

use crate::table::Table;

mod memory;
mod platform;
mod programs;
mod queries;

pub fn rows(t: &mut Table) {
    queries::rows(t);
    platform::rows(t);
    memory::rows(t);
    programs::rows(t);
}
