package filestore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
)

// Kinds of pages, as their flags say.
const (
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
)

const (
	pageHeader    = 16 // id 8, flags 2, count 2, overflow 4
	elementHeader = 16
	metaLength    = 64 // with the checksum in the last 8 bytes
	noFreelist    = ^uint64(0)
)

// pages is a bbolt file while it is checked.
type pages struct {
	data []byte
	size int
	used []bool // by page id, up to the high-water mark
}

// checkPages says why data cannot be given to bbolt to work on, or nil. bbolt
// trusts the pages it maps into memory: a count, offset or page id that is wrong
// makes it fault, loop or write over live pages, and its own Tx.Check does the
// same, in a goroutine whose panic no caller can recover. So every reference is followed
// here once, within bounds, by format version 2 of bbolt.
func checkPages(data []byte, pageSize int) error {
	good := metas(data, pageSize)
	if len(good) == 0 {
		return errors.New("both meta pages are broken")
	}
	meta := slices.MaxFunc(good, func(a, b []byte) int { return cmp.Compare(number64(a[48:]), number64(b[48:])) })
	root, freelist, high := number64(meta[16:]), number64(meta[32:]), number64(meta[40:])
	if high > uint64(len(data)/pageSize) {
		return fmt.Errorf("it is cut short: %d bytes for %d pages of %d", len(data), high, pageSize)
	}
	p := &pages{data: data, size: pageSize, used: make([]bool, high)}
	if err := p.checkTree(root, nil, nil); err != nil {
		return err
	}
	if freelist == noFreelist {
		return nil
	}
	return p.checkFreelist(freelist)
}

// metas are the metas that are valid. bbolt goes by that of the later transaction.
func metas(data []byte, pageSize int) (good [][]byte) {
	for i := range 2 {
		at := i*pageSize + pageHeader
		if len(data) < at+metaLength {
			break
		}
		meta := data[at : at+metaLength]
		hash := fnv.New64a()
		hash.Write(meta[:56])
		if hash.Sum64() == number64(meta[56:]) {
			good = append(good, meta)
		}
	}
	return good
}

// page returns a page with its overflow pages, and marks them as used.
func (p *pages) page(id uint64) ([]byte, error) {
	if id < 2 || id >= uint64(len(p.used)) {
		return nil, fmt.Errorf("page %d is not among the %d pages", id, len(p.used))
	}
	b := p.data[int(id)*p.size:]
	count := 1 + uint64(binary.LittleEndian.Uint32(b[12:]))
	if number64(b) != id || count > uint64(len(p.used))-id {
		return nil, fmt.Errorf("page %d has a broken header", id)
	}
	for i := id; i < id+count; i++ {
		if p.used[i] {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		p.used[i] = true
	}
	return b[:int(count)*p.size], nil
}

// checkTree checks the pages from id down, whose keys begin with first and end
// before limit. For the root page of a bucket, both are nil.
func (p *pages) checkTree(id uint64, first, limit []byte) error {
	b, err := p.page(id)
	if err != nil {
		return err
	}
	elements, err := readElements(b, first, limit)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if len(elements) == 0 && first != nil {
		return fmt.Errorf("page %d is empty", id)
	}
	for i, e := range elements {
		next := limit
		if i+1 < len(elements) {
			next = elements[i+1].key
		}
		switch {
		case e.child != 0:
			err = p.checkTree(e.child, e.key, next)
		case e.bucket:
			err = p.checkBucket(e.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkBucket checks a bucket by its header: the id of its root page, or 0 for a
// small bucket, whose one page follows in the value.
func (p *pages) checkBucket(header []byte) error {
	if len(header) < 16 {
		return errors.New("a bucket has no header")
	}
	if root := number64(header); root != 0 {
		return p.checkTree(root, nil, nil)
	}
	inline := header[16:]
	elements, err := readElements(inline, nil, nil)
	if err != nil {
		return fmt.Errorf("a bucket within a page: %w", err)
	}
	below := slices.ContainsFunc(elements, func(e element) bool { return e.child != 0 || e.bucket })
	if below || number64(inline) != 0 {
		return errors.New("a bucket within a page has pages of its own")
	}
	return nil
}

// checkFreelist checks that no page is both free and used, or free twice.
func (p *pages) checkFreelist(id uint64) error {
	b, err := p.page(id)
	if err != nil {
		return err
	}
	count, ids := uint64(binary.LittleEndian.Uint16(b[10:])), b[pageHeader:]
	if count == 0xFFFF { // the count did not fit and comes first
		count, ids = number64(ids), ids[8:]
	}
	if binary.LittleEndian.Uint16(b[8:]) != freelistPage || count > uint64(len(ids)/8) {
		return fmt.Errorf("page %d is not a list of free pages", id)
	}
	for i := range count {
		free := number64(ids[8*i:])
		if free < 2 || free >= uint64(len(p.used)) || p.used[free] {
			return fmt.Errorf("page %d cannot be free", free)
		}
		p.used[free] = true
	}
	return nil
}

func number64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
