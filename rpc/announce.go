package rpc

import (
	"bytes"

	"github.com/topsail-serving/topsail/serving"
)

// State is how an announced model version is doing.
type State uint8

const (
	StateGone State = iota // the id is withdrawn
	StateLoading
	StateReady
	StateDraining
)

// Announcement is one entry of an ANNOUNCE: a model version, or one stage of it,
// and the id by which PREDICT names it on this connection.
type Announcement struct {
	ID          uint32
	State       State
	InputType   serving.InputType // 0: any
	InputLength int               // elements; 0: any
	Model       serving.ModelID
	Stage       string
	Pipeline    []byte // with Stage: the stages of the model version, as serving.Pipeline has them in JSON
	Reason      string // with StateGone: why the version could not be loaded
	Generation  string // of the definition that is served; empty: of none
	Concurrency uint32 // from a container: it takes so many queries side by side, one in each PREDICT; 0: batches, one at a time
	Memory      uint64 // bytes that the container takes: for a version that it was asked to load, or of a host, as a whole; 0: unknown
}

const (
	announcePipeline = 1
	announceReason   = 2
	announceMemory   = 3
	announceGen      = 4
	announceConc     = 5
)

// AnyConcurrency is the concurrency of a container that leaves it to the sidecar.
const AnyConcurrency = 0xFFFFFFFF

// AppendAnnounce appends the body of an ANNOUNCE frame.
func AppendAnnounce(b []byte, list ...Announcement) []byte {
	b = appendU32(b, uint32(len(list)))
	for _, a := range list {
		var at int
		b, at = openSize(b)
		b = appendU32(b, a.ID)
		b = append(b, uint8(a.State), uint8(a.InputType), 0, 0)
		b = appendU32(b, uint32(a.InputLength))
		b = appendStr8(b, clip(a.Model.Model, 255))
		b = appendStr8(b, clip(a.Model.Version, 255))
		b = appendStr8(b, clip(a.Stage, 255))
		if len(a.Pipeline) > 0 {
			b = appendField(b, announcePipeline, a.Pipeline)
		}
		if a.Reason != "" {
			b = appendFieldString(b, announceReason, clip(a.Reason, maxReason))
		}
		if a.Memory != 0 {
			b = appendU64(appendU32(append(b, announceMemory), 8), a.Memory)
		}
		if a.Generation != "" {
			b = appendFieldString(b, announceGen, clip(a.Generation, serving.MaxGeneration))
		}
		if a.Concurrency != 0 {
			b = appendU32(appendU32(append(b, announceConc), 4), a.Concurrency)
		}
		b = closeSize(b, at)
	}
	return b
}

// Definition is what is served.
func (a *Announcement) Definition() serving.Definition {
	return serving.Definition{ModelID: a.Model, Generation: a.Generation}
}

// ParseAnnounce reads the body of an ANNOUNCE frame; nothing points into body.
func ParseAnnounce(body []byte) ([]Announcement, error) {
	c := cursor{frame: "ANNOUNCE", b: body}
	var list []Announcement
	for left := c.count(); left > 0 && c.err == nil; left-- {
		e := c.sub("entry")
		a := Announcement{ID: e.u32("id"), State: State(e.u8("state")), InputType: serving.InputType(e.u8("input type"))}
		e.u16("reserved")
		length := e.u32("input length")
		a.InputLength = int(length)
		a.Model.Model = string(e.str8("model"))
		a.Model.Version = string(e.str8("version"))
		a.Stage = string(e.str8("stage"))
		for e.more() {
			tag, value := e.field()
			switch tag {
			case announcePipeline:
				a.Pipeline = bytes.Clone(value.rest())
			case announceReason:
				a.Reason = string(value.rest())
			case announceMemory:
				a.Memory = value.u64("memory")
			case announceGen:
				a.Generation = string(value.rest())
			case announceConc:
				a.Concurrency = value.u32("concurrency")
			}
			if e.err == nil {
				e.err = value.err
			}
		}
		switch {
		case e.err != nil:
		case a.State > StateDraining:
			e.fail("state", "is unknown")
		case a.InputType > serving.Chat:
			e.fail("input type", "is unknown")
		case len(a.Generation) > serving.MaxGeneration:
			e.fail("generation", "is too long")
		case length > MaxFrame:
			e.fail("input length", "is above the largest frame")
		case a.State != StateGone && (serving.CheckModelName(a.Model.Model) != nil || serving.CheckVersion(a.Model.Version) != nil):
			e.fail("model", "name or version is invalid")
		}
		if c.err = e.err; c.err == nil {
			list = append(list, a)
		}
	}
	return list, c.err
}
