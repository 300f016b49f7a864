//! The decoder of a model's partitions, on bytes nobody vouches for.
//!
//! What is decoded must be encoded as bytes that are decoded as the same.
//!
//!     cargo +nightly fuzz run partition_decode

#![no_main]

use foreread_sources::files::Partition;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(partition) = Partition::decode(bytes, || 1) {
        let encoded = partition.encode();
        assert_eq!(encoded.len(), bytes.len());
        let again = Partition::decode(&encoded, || 1).expect("what was encoded");
        assert_eq!(again.encode(), encoded);
    }
});
