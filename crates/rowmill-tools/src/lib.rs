//! Tools that agents call.
