// Made of observers/ebpf/module/bpf/record.h by bindgen; the module's build script checks it.

pub const WHAT_FORK: what = 1;
pub const WHAT_EXEC: what = 2;
pub const WHAT_EXIT: what = 3;
pub const WHAT_FILE: what = 4;
pub const WHAT_OPEN: what = 5;
pub const WHAT_LOOK: what = 6;
pub const WHAT_LIST: what = 7;
pub const WHAT_READ: what = 8;
pub const WHAT_FAULT: what = 9;
pub const WHAT_SUBMIT: what = 10;
pub type what = ::std::os::raw::c_uint;
pub const PROBE_PROCESSES: probe = 0;
pub const PROBE_FILES: probe = 1;
pub const PROBE_OPENS: probe = 2;
pub const PROBE_LOOKS: probe = 3;
pub const PROBE_LISTS: probe = 4;
pub const PROBE_READS: probe = 5;
pub const PROBE_FAULTS: probe = 6;
pub const PROBES: probe = 7;
pub type probe = ::std::os::raw::c_uint;
pub const FOLLOWED_PARENT: followed = 1;
pub const FOLLOWED_STARTING: followed = 2;
pub const FOLLOWED: followed = 3;
pub type followed = ::std::os::raw::c_uint;
pub const CALL_NUMBER: _bindgen_ty_1 = 511;
pub const CALL_COMPAT: _bindgen_ty_1 = 512;
pub const CALLS: _bindgen_ty_1 = 1024;
pub const CALL_URING: _bindgen_ty_1 = 32768;
pub type _bindgen_ty_1 = ::std::os::raw::c_uint;
pub const AT_CURSOR: at = 0;
pub const AT_ARGUMENT: at = 1;
pub const AT_HALVES: at = 2;
pub const AT_POINTER: at = 3;
pub const AT_POINTER32: at = 4;
pub type at = ::std::os::raw::c_uint;
pub const FLAGS_NONE: flags = 0;
pub const FLAGS_ARGUMENT: flags = 1;
pub const FLAGS_POINTER: flags = 2;
pub const FLAGS_FIXED: flags = 3;
pub type flags = ::std::os::raw::c_uint;
pub const NO_ARGUMENT: _bindgen_ty_2 = 7;
pub type _bindgen_ty_2 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct call {
    pub what: ::std::os::raw::c_uchar,
    pub fd: ::std::os::raw::c_uchar,
    pub path: ::std::os::raw::c_uchar,
    pub at: ::std::os::raw::c_uchar,
    pub place: ::std::os::raw::c_uchar,
    pub flags: ::std::os::raw::c_uchar,
    pub flags_value: ::std::os::raw::c_ushort,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of call"][::std::mem::size_of::<call>() - 8usize];
    ["Alignment of call"][::std::mem::align_of::<call>() - 2usize];
    ["Offset of field: call::what"][::std::mem::offset_of!(call, what) - 0usize];
    ["Offset of field: call::fd"][::std::mem::offset_of!(call, fd) - 1usize];
    ["Offset of field: call::path"][::std::mem::offset_of!(call, path) - 2usize];
    ["Offset of field: call::at"][::std::mem::offset_of!(call, at) - 3usize];
    ["Offset of field: call::place"][::std::mem::offset_of!(call, place) - 4usize];
    ["Offset of field: call::flags"][::std::mem::offset_of!(call, flags) - 5usize];
    [
        "Offset of field: call::flags_value",
    ][::std::mem::offset_of!(call, flags_value) - 6usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct record {
    pub what: ::std::os::raw::c_uchar,
    pub reserved: ::std::os::raw::c_uchar,
    pub call: ::std::os::raw::c_ushort,
    pub pid: ::std::os::raw::c_uint,
    pub tid: ::std::os::raw::c_uint,
    pub handle: ::std::os::raw::c_uint,
    pub start: ::std::os::raw::c_ulonglong,
    pub took: ::std::os::raw::c_ulonglong,
    pub offset: ::std::os::raw::c_ulonglong,
    pub len: ::std::os::raw::c_ulonglong,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of record"][::std::mem::size_of::<record>() - 48usize];
    ["Alignment of record"][::std::mem::align_of::<record>() - 8usize];
    ["Offset of field: record::what"][::std::mem::offset_of!(record, what) - 0usize];
    [
        "Offset of field: record::reserved",
    ][::std::mem::offset_of!(record, reserved) - 1usize];
    ["Offset of field: record::call"][::std::mem::offset_of!(record, call) - 2usize];
    ["Offset of field: record::pid"][::std::mem::offset_of!(record, pid) - 4usize];
    ["Offset of field: record::tid"][::std::mem::offset_of!(record, tid) - 8usize];
    [
        "Offset of field: record::handle",
    ][::std::mem::offset_of!(record, handle) - 12usize];
    ["Offset of field: record::start"][::std::mem::offset_of!(record, start) - 16usize];
    ["Offset of field: record::took"][::std::mem::offset_of!(record, took) - 24usize];
    [
        "Offset of field: record::offset",
    ][::std::mem::offset_of!(record, offset) - 32usize];
    ["Offset of field: record::len"][::std::mem::offset_of!(record, len) - 40usize];
};
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct fault {
    pub record: record,
    pub added_first: ::std::os::raw::c_ulonglong,
    pub added_end: ::std::os::raw::c_ulonglong,
    pub along_first: ::std::os::raw::c_ulonglong,
    pub along_end: ::std::os::raw::c_ulonglong,
    pub is_program: ::std::os::raw::c_uint,
    pub reserved: ::std::os::raw::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of fault"][::std::mem::size_of::<fault>() - 88usize];
    ["Alignment of fault"][::std::mem::align_of::<fault>() - 8usize];
    ["Offset of field: fault::record"][::std::mem::offset_of!(fault, record) - 0usize];
    [
        "Offset of field: fault::added_first",
    ][::std::mem::offset_of!(fault, added_first) - 48usize];
    [
        "Offset of field: fault::added_end",
    ][::std::mem::offset_of!(fault, added_end) - 56usize];
    [
        "Offset of field: fault::along_first",
    ][::std::mem::offset_of!(fault, along_first) - 64usize];
    [
        "Offset of field: fault::along_end",
    ][::std::mem::offset_of!(fault, along_end) - 72usize];
    [
        "Offset of field: fault::is_program",
    ][::std::mem::offset_of!(fault, is_program) - 80usize];
    [
        "Offset of field: fault::reserved",
    ][::std::mem::offset_of!(fault, reserved) - 84usize];
};
pub const NAMED_DIRECTORY: _bindgen_ty_3 = 1;
pub const NAMED_REGULAR: _bindgen_ty_3 = 2;
pub const NAMED_DELETED: _bindgen_ty_3 = 4;
pub const NAMED_CUT: _bindgen_ty_3 = 8;
pub const NAMED_APART: _bindgen_ty_3 = 16;
pub type _bindgen_ty_3 = ::std::os::raw::c_uint;
pub const PATH_DEPTH: _bindgen_ty_4 = 64;
pub const PATH_BYTES: _bindgen_ty_4 = 4096;
pub type _bindgen_ty_4 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct named {
    pub record: record,
    pub flags_given: ::std::os::raw::c_ulonglong,
    pub flags: ::std::os::raw::c_uint,
    pub names: ::std::os::raw::c_uint,
    pub given: ::std::os::raw::c_uint,
    pub reserved: ::std::os::raw::c_uint,
    pub path: [::std::os::raw::c_uchar; 8192usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of named"][::std::mem::size_of::<named>() - 8264usize];
    ["Alignment of named"][::std::mem::align_of::<named>() - 8usize];
    ["Offset of field: named::record"][::std::mem::offset_of!(named, record) - 0usize];
    [
        "Offset of field: named::flags_given",
    ][::std::mem::offset_of!(named, flags_given) - 48usize];
    ["Offset of field: named::flags"][::std::mem::offset_of!(named, flags) - 56usize];
    ["Offset of field: named::names"][::std::mem::offset_of!(named, names) - 60usize];
    ["Offset of field: named::given"][::std::mem::offset_of!(named, given) - 64usize];
    [
        "Offset of field: named::reserved",
    ][::std::mem::offset_of!(named, reserved) - 68usize];
    ["Offset of field: named::path"][::std::mem::offset_of!(named, path) - 72usize];
};
impl Default for named {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
