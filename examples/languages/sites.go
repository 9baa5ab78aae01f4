// SPDX-License-Identifier: MIT

// Prints the ten call sites with the most live bytes in the middle of a trace, by cgo:
//
//	go run sites.go trace.ttd
package main

// #cgo pkg-config: ttdheap
// #include <stdlib.h>
// #include <ttdtrace/ttdheap.h>
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

// The error that the library fills in; cgo checks that it has no pointers of Go.
var failure C.struct_ttdheap_error

func check(status C.enum_ttd_status) {
	if status != C.TTD_OK {
		fmt.Fprintln(os.Stderr, C.GoString(&failure.text[0]))
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sites TRACE")
		os.Exit(2)
	}
	path, text := C.CString(os.Args[1]), C.CString("50%")
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(text))

	var heap *C.struct_ttdheap
	var half C.struct_ttd_position
	var sites C.struct_ttdheap_groups
	check(C.ttdheap_open(path, nil, &heap, &failure))
	defer C.ttdheap_close(heap)
	check(C.ttdheap_find(heap, text, &half, &failure))
	check(C.ttdheap_go(heap, half))
	check(C.ttdheap_groups(heap, C.TTDHEAP_BY_STACK, &sites, &failure))
	defer C.ttdheap_free(&sites.answer)
	for i, site := range unsafe.Slice(sites.items, sites.count) {
		if i == 10 {
			break
		}
		fmt.Printf("%d bytes by %s\n", site.bytes, C.GoStringN(site.name.data, C.int(site.name.size)))
	}
}
