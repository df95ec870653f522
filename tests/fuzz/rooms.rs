//! The rooms of the service that read foreign text and talk to nobody, under the service's own name.
//!
//! Without the rooms that speak HTTP they are built in seconds, with the coverage marks that a fuzzer wants.
#![expect(missing_docs, reason = "the documented modules are the service's")]

#[path = "../../src/deadline.rs"]
pub mod deadline;
#[path = "../../src/flights.rs"]
pub mod flights;
#[path = "../../src/recall/mod.rs"]
pub mod recall;

#[path = "../../src/judge"]
pub mod judge {
    pub mod reply;
}
