// SPDX-License-Identifier: MIT

//! Prints the ten call sites with the most live bytes in the middle of a trace:
//!
//!     rustc sites.rs $(pkg-config --libs-only-L ttdheap) -lttdheap && ./sites trace.ttd
//!
//! Only the functions that the program needs are declared; bindgen makes all of it of ttdtrace/ttdheap.h.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

#[repr(C)]
#[derive(Clone, Copy)]
struct Position {
    sequence: u64,
    steps: u64,
}

#[repr(C)]
struct Failure {
    status: c_int,
    system_error: c_int,
    offset: u64,
    chunk: u64,
    what: *const c_char,
    text: [c_char; 512],
}

#[repr(C)]
struct Answer {
    is_certain: bool,
    reason_count: usize,
    reasons: *const *const c_char,
    position: Position,
    memory: *mut c_void,
}

#[repr(C)]
struct Text {
    data: *const c_char,
    size: usize,
}

#[repr(C)]
struct Group {
    name: Text,
    module: Text,
    number: u64,
    blocks: u64,
    bytes: u64,
    nested_blocks: u64,
    nested_bytes: u64,
    first: Position,
    last: Position,
    stack: u32,
    kind: u32,
}

#[repr(C)]
struct Groups {
    answer: Answer,
    count: usize,
    items: *const Group,
    blocks: u64,
    bytes: u64,
    runtime_blocks: u64,
    runtime_bytes: u64,
}

const BY_STACK: c_int = 0;

extern "C" {
    fn ttdheap_open(path: *const c_char, options: *const c_void, heap: *mut *mut c_void,
                    error: *mut Failure) -> c_int;
    fn ttdheap_close(heap: *mut c_void);
    fn ttdheap_find(heap: *mut c_void, text: *const c_char, position: *mut Position,
                    error: *mut Failure) -> c_int;
    fn ttdheap_go(heap: *mut c_void, position: Position) -> c_int;
    fn ttdheap_groups(heap: *mut c_void, by: c_int, groups: *mut Groups,
                      error: *mut Failure) -> c_int;
    fn ttdheap_free(answer: *mut Answer);
}

fn sites(path: &CStr) -> Result<Vec<(u64, String)>, String> {
    // All zeros are valid in these structs: they have numbers and pointers only.
    unsafe {
        let mut failure: Failure = std::mem::zeroed();
        let mut heap = ptr::null_mut();
        if ttdheap_open(path.as_ptr(), ptr::null(), &mut heap, &mut failure) != 0 {
            return Err(CStr::from_ptr(failure.text.as_ptr()).to_string_lossy().into_owned());
        }
        let mut half = Position { sequence: 0, steps: 0 };
        let mut groups: Groups = std::mem::zeroed();
        let mut found = Vec::new();
        let text = CString::new("50%").unwrap();
        let is_found = ttdheap_find(heap, text.as_ptr(), &mut half, &mut failure) == 0
            && ttdheap_go(heap, half) == 0
            && ttdheap_groups(heap, BY_STACK, &mut groups, &mut failure) == 0;
        if is_found {
            for group in std::slice::from_raw_parts(groups.items, groups.count).iter().take(10) {
                let name = std::slice::from_raw_parts(group.name.data as *const u8, group.name.size);
                found.push((group.bytes, String::from_utf8_lossy(name).into_owned()));
            }
            ttdheap_free(&mut groups.answer);
        }
        ttdheap_close(heap);
        if is_found {
            Ok(found)
        } else {
            Err(CStr::from_ptr(failure.text.as_ptr()).to_string_lossy().into_owned())
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 2 {
        eprintln!("usage: sites TRACE");
        std::process::exit(2);
    }
    match sites(&CString::new(arguments[1].as_str()).expect("no NUL in the name")) {
        Ok(found) => found.iter().for_each(|(bytes, name)| println!("{bytes} bytes by {name}")),
        Err(text) => {
            eprintln!("{text}");
            std::process::exit(1);
        }
    }
}
