//! Every error that the specification lists for every entry point, from one table: each is provoked, gives exactly its code,
//! and leaves everything as it was. The table is compared with `specification.txt`, which `extract.py` makes of the
//! specification: it has a row for every condition, be it with the reason why that cannot be provoked.

#[macro_use]
mod table;
mod addresses;
mod commands;
mod objects;
mod world;

use pumice_tests::code_name;
use std::fmt::Write;
use table::{How, Table, NOT_HERE};
use world::World;

/// All rows.
fn table() -> Table {
    let mut table = Table::new();
    let t = &mut table;
    commands::rows(t);
    objects::rows(t);
    addresses::rows(t);
    let memory = "needs memory to run out: the fault runner's";
    t.never(code!(CL_OUT_OF_HOST_MEMORY), memory);
    t.never(code!(CL_OUT_OF_RESOURCES), memory);
    t.never(code!(CL_MEM_OBJECT_ALLOCATION_FAILURE), memory);
    let aligned = "needs a context of two devices with different alignments of addresses";
    t.never(code!(CL_MISALIGNED_SUB_BUFFER_OFFSET), aligned);
    table
}

#[test]
fn each_gives_its_code_and_changes_nothing() {
    let (table, world) = (table(), World::new());
    let mut wrong = Vec::new();
    let before = world.counts();
    let mut elsewhere = 0;
    for row in &table.rows {
        let How::Provoked(provoke) = &row.how else {
            continue;
        };
        let codes = provoke(&world);
        if codes == [NOT_HERE] {
            elsewhere += 1;
            continue;
        }
        let mut all = world.check(&before);
        if codes.is_empty() || codes.iter().any(|code| *code != row.code) {
            let names: Vec<String> = codes.into_iter().map(code_name).collect();
            all.insert(0, names.join(", "));
        }
        if !all.is_empty() {
            let (call, name, what) = (row.call, row.name, &row.what);
            wrong.push(format!("{call} {name} ({what}): {}", all.join("; ")));
        }
    }
    println!("{elsewhere} rows are about what this device has not, or has");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn nothing_is_missing() {
    let table = table();
    for row in &table.rows {
        assert!(
            table.listed.contains_key(&(row.call, row.name)),
            "the specification does not list {} {}",
            row.call,
            row.name
        );
    }
    let mut missing = String::new();
    for ((call, name), count) in &table.listed {
        let had = table.count(call, name);
        if had < *count {
            writeln!(missing, "{call} {name} {}", count - had).expect("a string");
        }
    }
    let conditions = |never: bool| {
        let is = |row: &&table::Row| matches!(row.how, How::Never(_)) == never;
        table.rows.iter().filter(is).count()
    };
    println!(
        "{} pairs; rows: {} provoked, {} not to be provoked",
        table.listed.len(),
        conditions(false),
        conditions(true),
    );
    let mut reasons = std::collections::BTreeMap::new();
    for row in &table.rows {
        if let How::Never(why) = row.how {
            *reasons.entry(why).or_insert(0) += 1;
        }
    }
    for (why, count) in reasons {
        println!("{count:5} {why}");
    }
    assert!(missing.is_empty(), "conditions without a row:\n{missing}");
}
