//! Any bytes as a judge's reply, read beside any bytes as a context.
#![no_main]

#[path = "../reading.rs"]
mod reading;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    // A record separator parts a context from the reply; without one there is only a reply.
    let (context, reply) = text.split_once('\u{1e}').unwrap_or(("", &text));
    reading::holds(context, reply);
});
