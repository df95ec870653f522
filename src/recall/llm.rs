//! Recall of claims.
