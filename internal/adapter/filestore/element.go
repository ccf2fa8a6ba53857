package filestore

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// element is one entry of a branch or leaf page.
type element struct {
	key, value []byte
	bucket     bool   // the value is a bucket
	child      uint64 // the page below, in a branch page
}

// readElements reads the entries of a page and checks that they lie within it, in
// the order of their keys, the first of them being first and all below limit where
// these are not nil. (bbolt finds a page's entry in its parent by its first key.)
func readElements(page, first, limit []byte) ([]element, error) {
	if len(page) < pageHeader {
		return nil, errors.New("it is too short")
	}
	kind, count := binary.LittleEndian.Uint16(page[8:]), int(binary.LittleEndian.Uint16(page[10:]))
	if kind != branchPage && kind != leafPage || kind == branchPage && count == 0 {
		return nil, errors.New("it is neither a branch nor a leaf")
	}
	if pageHeader+count*elementHeader > len(page) {
		return nil, errors.New("its count is too large")
	}
	elements := make([]element, count)
	for i := range elements {
		e, err := readElement(page[pageHeader+i*elementHeader:], kind)
		switch {
		case err != nil:
			return nil, err
		case len(e.key) == 0, i == 0 && first != nil && !bytes.Equal(e.key, first),
			i > 0 && bytes.Compare(e.key, elements[i-1].key) <= 0,
			limit != nil && bytes.Compare(e.key, limit) >= 0:
			return nil, errors.New("its keys are not in order")
		}
		elements[i] = e
	}
	return elements, nil
}

// readElement reads the entry whose header b begins with; its offset counts from
// there. A branch has offset, key size and page id, a leaf flags, offset, and the
// sizes of key and value.
func readElement(b []byte, kind uint16) (element, error) {
	word := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(b[4*i:])) }
	if kind == branchPage {
		at, end := word(0), word(0)+word(1)
		child := number64(b[8:])
		if end > uint64(len(b)) || child == 0 {
			return element{}, errors.New("a key is out of bounds")
		}
		return element{key: b[at:end], child: child}, nil
	}
	at, value, end := word(1), word(1)+word(2), word(1)+word(2)+word(3)
	if end > uint64(len(b)) {
		return element{}, errors.New("a value is out of bounds")
	}
	return element{key: b[at:value], value: b[value:end], bucket: word(0)&1 != 0}, nil
}
