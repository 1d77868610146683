//! What one run of a program may be made of: intake refuses what is more, and so does the engine that runs it. A module is
//! one instance, while a component has a handful of modules inside, most of them a few lines of glue.

pub(crate) const MOST_INSTANCES: u32 = 16;
pub(crate) const MOST_MEMORIES: u32 = 2;
pub(crate) const MOST_TABLES: u32 = 16;
