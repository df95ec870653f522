//! Recall of reference contexts by string similarity.
