//! Who decides: the judges that implement the port in [`crate::recall::judge`].

pub mod embedded;
pub mod reply;
