//! Runs against real peers; filled in below.
