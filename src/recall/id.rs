//! Recall of ids.
