// Made of observers/ebpf/module/bpf/system.h by bindgen; the module's build script checks it.

pub const SYSTEM_FORK: system_what = 1;
pub const SYSTEM_EXEC: system_what = 2;
pub const SYSTEM_EXIT: system_what = 3;
pub const SYSTEM_OPEN: system_what = 4;
pub const SYSTEM_FETCH: system_what = 5;
pub type system_what = ::std::os::raw::c_uint;
pub const SYSTEM_PROBE_PROCESSES: system_probe = 0;
pub const SYSTEM_PROBE_OPENS: system_probe = 1;
pub const SYSTEM_PROBE_FETCHES: system_probe = 2;
pub const SYSTEM_PROBE_FLOODS: system_probe = 3;
pub const SYSTEM_PROBE_NAMES: system_probe = 4;
pub const SYSTEM_PROBES: system_probe = 5;
pub type system_probe = ::std::os::raw::c_uint;
pub const SYSTEM_WRITES: _bindgen_ty_1 = 1;
pub type _bindgen_ty_1 = ::std::os::raw::c_uint;
pub const SYSTEM_DEPTH: _bindgen_ty_2 = 48;
pub const SYSTEM_PATH: _bindgen_ty_2 = 2048;
pub type _bindgen_ty_2 = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct system_told {
    pub own: ::std::os::raw::c_uint,
    pub opens: [::std::os::raw::c_uint; 4usize],
    pub compat_opens: [::std::os::raw::c_uint; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of system_told"][::std::mem::size_of::<system_told>() - 36usize];
    ["Alignment of system_told"][::std::mem::align_of::<system_told>() - 4usize];
    [
        "Offset of field: system_told::own",
    ][::std::mem::offset_of!(system_told, own) - 0usize];
    [
        "Offset of field: system_told::opens",
    ][::std::mem::offset_of!(system_told, opens) - 4usize];
    [
        "Offset of field: system_told::compat_opens",
    ][::std::mem::offset_of!(system_told, compat_opens) - 20usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct system_event {
    pub what: ::std::os::raw::c_uchar,
    pub flags: ::std::os::raw::c_uchar,
    pub names_len: ::std::os::raw::c_ushort,
    pub pid: ::std::os::raw::c_uint,
    pub parent: ::std::os::raw::c_uint,
    pub uid: ::std::os::raw::c_uint,
    pub at: ::std::os::raw::c_ulonglong,
    pub device: ::std::os::raw::c_ulonglong,
    pub inode: ::std::os::raw::c_ulonglong,
    pub name: ::std::os::raw::c_ulonglong,
    pub size: ::std::os::raw::c_ulonglong,
    pub offset: ::std::os::raw::c_ulonglong,
    pub len: ::std::os::raw::c_ulonglong,
    pub generation: ::std::os::raw::c_uint,
    pub reserved: ::std::os::raw::c_uint,
    pub names: [::std::os::raw::c_uchar; 2048usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of system_event"][::std::mem::size_of::<system_event>() - 2128usize];
    ["Alignment of system_event"][::std::mem::align_of::<system_event>() - 8usize];
    [
        "Offset of field: system_event::what",
    ][::std::mem::offset_of!(system_event, what) - 0usize];
    [
        "Offset of field: system_event::flags",
    ][::std::mem::offset_of!(system_event, flags) - 1usize];
    [
        "Offset of field: system_event::names_len",
    ][::std::mem::offset_of!(system_event, names_len) - 2usize];
    [
        "Offset of field: system_event::pid",
    ][::std::mem::offset_of!(system_event, pid) - 4usize];
    [
        "Offset of field: system_event::parent",
    ][::std::mem::offset_of!(system_event, parent) - 8usize];
    [
        "Offset of field: system_event::uid",
    ][::std::mem::offset_of!(system_event, uid) - 12usize];
    [
        "Offset of field: system_event::at",
    ][::std::mem::offset_of!(system_event, at) - 16usize];
    [
        "Offset of field: system_event::device",
    ][::std::mem::offset_of!(system_event, device) - 24usize];
    [
        "Offset of field: system_event::inode",
    ][::std::mem::offset_of!(system_event, inode) - 32usize];
    [
        "Offset of field: system_event::name",
    ][::std::mem::offset_of!(system_event, name) - 40usize];
    [
        "Offset of field: system_event::size",
    ][::std::mem::offset_of!(system_event, size) - 48usize];
    [
        "Offset of field: system_event::offset",
    ][::std::mem::offset_of!(system_event, offset) - 56usize];
    [
        "Offset of field: system_event::len",
    ][::std::mem::offset_of!(system_event, len) - 64usize];
    [
        "Offset of field: system_event::generation",
    ][::std::mem::offset_of!(system_event, generation) - 72usize];
    [
        "Offset of field: system_event::reserved",
    ][::std::mem::offset_of!(system_event, reserved) - 76usize];
    [
        "Offset of field: system_event::names",
    ][::std::mem::offset_of!(system_event, names) - 80usize];
};
impl Default for system_event {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
