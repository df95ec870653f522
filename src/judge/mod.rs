//! Who decides: the judges that implement the port in [`crate::recall::judge`].

pub mod chat;
pub mod embedded;
pub mod prompt;
pub mod reply;
