//! Link options of the driver.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // It has threads of its own, and handlers for the end of the process: a loader that unloads it must leave it mapped.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
