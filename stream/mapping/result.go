package mapping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Writer writes results. Many goroutines use it.
type Writer struct {
	cfg      ResultConfig
	adds     []add
	codec    codec // nil: results are JSON
	schema   Schema
	indexes  []int    // of the message, in a frame
	registry Registry // nil: results are written without it

	mu  sync.Mutex
	ids map[string]int // of the schema, by the stream of results
}

// add is one member that a record gets.
type add struct {
	name string
	path Path
}

// NewWriter makes a writer of results of records of a format; registry may be nil.
func NewWriter(cfg ResultConfig, records Format, registry Registry) (*Writer, error) {
	if err := cfg.Check(records, registry != nil); err != nil {
		return nil, err
	}
	w := &Writer{cfg: cfg, ids: map[string]int{}}
	given := cfg.Add
	if len(given) == 0 {
		given = map[string]string{"prediction": "$"}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		path, err := ParsePath(given[name])
		if err != nil {
			return nil, err
		}
		w.adds = append(w.adds, add{name, path})
	}
	if cfg.SchemaFile == "" {
		return w, nil
	}
	var err error
	if w.codec, w.schema, err = fileCodec(cfg.Format, cfg.SchemaFile, cfg.Message); err != nil {
		return nil, err
	}
	if w.registry = registry; registry != nil {
		w.indexes = indexesOf(w.codec)
	}
	return w, nil
}

// indexesOf are the indexes of a protobuf message in its file; nil for other formats.
func indexesOf(c codec) (indexes []int) {
	message, is := c.(protoCodec)
	if !is {
		return nil
	}
	for d := protoreflect.Descriptor(message.message); d != nil; d = d.Parent() {
		if _, isFile := d.(protoreflect.FileDescriptor); isFile {
			break
		}
		indexes = append(indexes, d.Index())
	}
	slices.Reverse(indexes)
	return indexes
}

// Own says that results are Topsail's messages in protobuf, which the writer does not write.
func (w *Writer) Own() bool { return w.cfg.Format == Protobuf && w.codec == nil }

// ContentType is what the header content-type of results says.
func (w *Writer) ContentType() string { return w.cfg.Format.contentType() }

// Registers says whether results are written with a registry's schema, which comes first.
func (w *Writer) Registers() bool { return w.registry != nil }

// Register finds out, for streams of results, the id of their schema, and adds the schema to the registry
// where it may.
func (w *Writer) Register(ctx context.Context, streams []string) error {
	for _, to := range streams {
		id, err := w.registry.Register(ctx, to+"-value", w.schema, w.cfg.Register)
		if err != nil {
			return fmt.Errorf("subject %s-value: %w", to, err)
		}
		w.mu.Lock()
		w.ids[to] = id
		w.mu.Unlock()
	}
	return nil
}

// Write writes the result of a record to a stream, of its prediction and the output in that, both JSON.
func (w *Writer) Write(to string, r *Record, prediction, output []byte) ([]byte, error) {
	if w.codec == nil {
		return w.json(r, prediction, output)
	}
	tree, err := w.tree(r, prediction, output)
	if err != nil {
		return nil, err
	}
	value, err := w.codec.encode(tree)
	if err != nil || w.registry == nil {
		return value, err
	}
	w.mu.Lock()
	id, known := w.ids[to]
	w.mu.Unlock()
	if !known {
		return nil, fmt.Errorf("the schema of results to %s is not registered", to)
	}
	return append(appendFrame(nil, id, w.indexes), value...), nil
}

// json is the result as JSON.
func (w *Writer) json(r *Record, prediction, output []byte) ([]byte, error) {
	switch w.cfg.Value {
	case Prediction:
		return prediction, nil
	case OutputOnly:
		return output, nil
	}
	members, isObject := r.tree.(map[string]any)
	if !isObject {
		return nil, errNoObject
	}
	added, err := w.added(prediction)
	if err != nil {
		return nil, err
	}
	if r.mapping.format != JSON || w.replaces(members) {
		return appendJSON(nil, joined(members, added))
	}
	return w.appendTo(r.value, len(members) == 0, added)
}

var errNoObject = errors.New("the record is not an object, so that nothing can be added to it")

// tree is the result as a tree.
func (w *Writer) tree(r *Record, prediction, output []byte) (any, error) {
	switch w.cfg.Value {
	case Prediction:
		return ParseJSON(prediction)
	case OutputOnly:
		return ParseJSON(output)
	}
	members, isObject := r.tree.(map[string]any)
	if !isObject {
		return nil, errNoObject
	}
	added, err := w.added(prediction)
	return joined(members, added), err
}

// added are the members that a record gets of its prediction; null where the prediction has none.
func (w *Writer) added(prediction []byte) (map[string]any, error) {
	tree, err := ParseJSON(prediction)
	if err != nil {
		return nil, err
	}
	all := make(map[string]any, len(w.adds))
	for _, a := range w.adds {
		all[a.name], _ = a.path.Of(tree)
	}
	return all, nil
}

// replaces says whether a record has a member of the name of one that is added.
func (w *Writer) replaces(members map[string]any) bool {
	return slices.ContainsFunc(w.adds, func(a add) bool {
		_, is := members[a.name]
		return is
	})
}

// joined is one object of both.
func joined(members, added map[string]any) map[string]any {
	all := make(map[string]any, len(members)+len(added))
	maps.Copy(all, members)
	maps.Copy(all, added)
	return all
}

// appendTo is the text of an object with more members, and otherwise as it was.
func (w *Writer) appendTo(object []byte, empty bool, added map[string]any) ([]byte, error) {
	more, err := appendJSON(nil, added)
	if err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(bytes.TrimSpace(object), []byte{'}'})
	out := make([]byte, 0, len(head)+len(more)+1)
	out = append(out, head...)
	if !empty {
		out = append(out, ',')
	}
	return append(out, more[1:]...), nil
}
