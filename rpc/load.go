package rpc

import (
	"bytes"

	"github.com/topsail-serving/topsail/serving"
)

// Load asks a peer with FeatureHost to load a model version beside others: a gateway asks the
// sidecar of a host, which fetches the bundle and asks its container. The answer is an ANNOUNCE of
// the version: ready, or gone with the reason.
type Load struct {
	InputType   serving.InputType
	InputLength int // elements; 0: any
	Model       serving.ModelID
	Bundle      string // its digest
	URL         string // to a sidecar: where the bundle is; empty: where the sidecar knows
	Folder      string // to a container: where the bundle is unpacked, in the folder of models
	Batch       []byte // to a sidecar: a serving.BatchSpec in JSON; empty: the default
	Generation  string // to a sidecar: of the definition, which it announces
	Signature   []byte // a serving.Signature in JSON; empty: none
}

const (
	loadBundle = 1
	loadURL    = 2
	loadFolder = 3
	loadBatch  = 4
	loadGen    = 5
	loadSign   = 6
)

// AppendLoad appends the body of a LOAD frame.
func AppendLoad(b []byte, list ...Load) []byte {
	b = appendU32(b, uint32(len(list)))
	for _, v := range list {
		var at int
		b, at = openSize(b)
		b = append(b, uint8(v.InputType), 0, 0, 0)
		b = appendU32(b, uint32(v.InputLength))
		b = appendStr8(b, clip(v.Model.Model, 255))
		b = appendStr8(b, clip(v.Model.Version, 255))
		for tag, text := range []string{loadBundle: v.Bundle, loadURL: v.URL, loadFolder: v.Folder, loadBatch: string(v.Batch), loadGen: clip(v.Generation, serving.MaxGeneration), loadSign: string(v.Signature)} {
			if text != "" {
				b = appendFieldString(b, uint8(tag), text)
			}
		}
		b = closeSize(b, at)
	}
	return b
}

// ParseLoad reads the body of a LOAD frame; nothing points into body.
func ParseLoad(body []byte) ([]Load, error) {
	c := cursor{frame: "LOAD", b: body}
	var list []Load
	for left := c.count(); left > 0 && c.err == nil; left-- {
		e := c.sub("entry")
		v := parseLoad(&e)
		if c.err = e.err; c.err == nil {
			list = append(list, v)
		}
	}
	return list, c.err
}

// Definition is what is to be held.
func (v *Load) Definition() serving.Definition {
	return serving.Definition{ModelID: v.Model, Generation: v.Generation}
}

// parseLoad reads an entry to its end.
func parseLoad(e *cursor) Load {
	v := Load{InputType: serving.InputType(e.u8("input type"))}
	e.take(3, "reserved")
	length := e.u32("input length")
	v.InputLength = int(length)
	v.Model.Model = string(e.str8("model"))
	v.Model.Version = string(e.str8("version"))
	for e.more() {
		tag, value := e.field()
		switch tag {
		case loadBundle:
			v.Bundle = string(value.rest())
		case loadURL:
			v.URL = string(value.rest())
		case loadFolder:
			v.Folder = string(value.rest())
		case loadBatch:
			v.Batch = bytes.Clone(value.rest())
		case loadGen:
			v.Generation = string(value.rest())
		case loadSign:
			v.Signature = bytes.Clone(value.rest())
		}
	}
	switch {
	case e.err != nil:
	case v.InputType > serving.Chat:
		e.fail("input type", "is unknown")
	case len(v.Generation) > serving.MaxGeneration:
		e.fail("generation", "is too long")
	case length > MaxFrame:
		e.fail("input length", "is above the largest frame")
	case serving.CheckModelName(v.Model.Model) != nil || serving.CheckVersion(v.Model.Version) != nil:
		e.fail("model", "name or version is invalid")
	}
	return v
}

// AppendUnload appends the body of an UNLOAD frame: the id that the container announced.
func AppendUnload(b []byte, id uint32) []byte { return appendU32(b, id) }

// ParseUnload reads the body of an UNLOAD frame.
func ParseUnload(body []byte) (id uint32, err error) {
	c := cursor{frame: "UNLOAD", b: body}
	return c.u32("id"), c.err
}
