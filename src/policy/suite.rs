//! Words of the `tests` section, shared by checking and running.
