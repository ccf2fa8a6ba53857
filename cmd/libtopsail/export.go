package main

// #include <stddef.h>
// #include <stdint.h>
// #include <stdlib.h>
import "C"

import (
	"errors"
	"math"
	"runtime/cgo"
	"time"
	"unsafe"

	"github.com/topsail-serving/topsail/internal/release"
)

//export topsail_version
func topsail_version() *C.char { return C.CString(release.Version()) }

//export topsail_open
func topsail_open(config, dataDir, program *C.char, waitMillis C.int64_t, failure **C.char) C.uint64_t {
	i, err := open(options{C.GoString(config), C.GoString(dataDir), C.GoString(program), time.Duration(max(waitMillis, 0)) * time.Millisecond})
	if report(failure, err) {
		return 0
	}
	return C.uint64_t(cgo.NewHandle(i))
}

//export topsail_predict
func topsail_predict(handle C.uint64_t, app, body *C.char, length C.size_t, failure **C.char) *C.char {
	return call(handle, (*instance).predict, app, body, length, failure)
}

//export topsail_feedback
func topsail_feedback(handle C.uint64_t, app, body *C.char, length C.size_t, failure **C.char) *C.char {
	return call(handle, (*instance).feedback, app, body, length, failure)
}

//export topsail_close
func topsail_close(handle C.uint64_t, failure **C.char) C.int {
	i, err := instanceOf(handle)
	if err == nil {
		if err = i.close(); !errors.Is(err, errClosed) {
			cgo.Handle(handle).Delete()
		}
	}
	if report(failure, err) {
		return -1
	}
	return 0
}

//export topsail_free
func topsail_free(text *C.char) { C.free(unsafe.Pointer(text)) }

// call makes a call of an instance with a body that is the caller's; what is decoded from it points to none of it.
func call(handle C.uint64_t, method func(*instance, string, []byte) ([]byte, error), app, body *C.char, length C.size_t, failure **C.char) *C.char {
	i, err := instanceOf(handle)
	if body == nil {
		length = 0
	}
	var answer []byte
	if err == nil {
		answer, err = method(i, C.GoString(app), unsafe.Slice((*byte)(unsafe.Pointer(body)), min(length, math.MaxInt)))
	}
	if report(failure, err) {
		return nil
	}
	return C.CString(string(answer))
}

// instanceOf is what topsail_open has returned.
func instanceOf(handle C.uint64_t) (i *instance, err error) {
	defer func() {
		if recover() != nil { // as cgo does where there is no such handle
			err = errClosed
		}
	}()
	return cgo.Handle(handle).Value().(*instance), nil
}

// report hands an error to the caller, if it wants it, and says whether there is one.
func report(failure **C.char, err error) bool {
	if failure != nil {
		*failure = nil
		if err != nil {
			*failure = C.CString(err.Error())
		}
	}
	return err != nil
}
