//! slowdisk
