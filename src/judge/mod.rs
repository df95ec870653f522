//! Who decides: the judges that implement the port in [`crate::recall::judge`].

pub mod atomic;
mod attribution;
pub mod chat;
pub mod embedded;
mod likeness;
pub mod prompt;
pub mod reply;
mod round;
mod session;
mod votes;
mod windows;
