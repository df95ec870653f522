//! What some tests need beside the toolchain: found, or said aloud to be missing.

use std::io::Write;

/// Notes that a test is skipped for want of `what`; fails when the environment says that nothing may be skipped.
pub fn skip(test: &str, what: &str) {
    assert!(std::env::var_os("REQUIRE_PEERS").is_none(), "{test} needs {what}, and REQUIRE_PEERS is set");
    // Past the capture of the test runner, so that it is seen in a run that passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: needs {what}");
}
