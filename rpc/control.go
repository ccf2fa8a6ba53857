package rpc

// CancelAll is the index that cancels every input of a batch.
const CancelAll = 0xFFFFFFFF

// Cancel asks to drop an input, or a whole batch; the answer may come all the same.
type Cancel struct {
	Batch uint64
	Index uint32
}

// AppendCancel appends the body of a CANCEL frame.
func AppendCancel(b []byte, v Cancel) []byte { return appendU32(appendU64(b, v.Batch), v.Index) }

// ParseCancel reads the body of a CANCEL frame.
func ParseCancel(body []byte) (Cancel, error) {
	c := cursor{frame: "CANCEL", b: body}
	return Cancel{Batch: c.u64("batch"), Index: c.u32("index")}, c.err
}

// maxReason keeps the last frame small enough for any peer, in bytes.
const maxReason = 1 << 10

// AppendBye appends the body of a BYE frame.
func AppendBye(b []byte, reason string) []byte { return appendStr16(b, clip(reason, maxReason)) }

// ParseBye reads the reason of a BYE frame.
func ParseBye(body []byte) (string, error) {
	c := cursor{frame: "BYE", b: body}
	return string(c.str16("reason")), c.err
}
