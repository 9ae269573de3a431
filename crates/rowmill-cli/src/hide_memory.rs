//! Protects the memory of this process, and so its keys, from other processes of the same user.

/// From now on no other process of this user can read the memory or the environment of this one, and a
/// crash leaves no core file with them. Otherwise, a tool that a model calls could read every key of
/// the run from `/proc`. Processes that are started later are not protected.
pub(crate) fn hide_memory() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // The kernel rejects only values that it does not know.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    }
}
