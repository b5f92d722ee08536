//! `audit` on logs of several servers, as a process.

use crate::support::Directory;
