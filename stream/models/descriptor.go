package models

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	modelspb "github.com/topsail-serving/topsail/stream/models/proto"
)

// Descriptor says what the model descriptors of FLIP-23 (ModelDescriptor in proto/descriptor.proto) leave open, for those of one
// type of data: each of them is a new version of a model, which replaces the one before.
type Descriptor struct {
	DataType string // that descriptors name
	Model    string // that they are versions of; empty: called as the type of data

	Apps         []string // ask the model
	InputType    string   // of its inputs; empty: as the version has it that is replaced
	InputLength  int
	Requirements []string          // of TensorFlow's models
	Options      map[string]string // of the bundles of these
}

// checkDescriptors says what is wrong with the descriptors of a job, or nil.
func checkDescriptors(all []Descriptor) error {
	for i, d := range all {
		if slices.ContainsFunc(all[:i], func(before Descriptor) bool { return before.DataType == d.DataType }) {
			return fmt.Errorf("the data_type %q is there twice", d.DataType)
		}
		if err := serving.CheckModelName(d.model()); err != nil {
			return err
		}
		if d.InputType != "" {
			if _, err := serving.ParseInputType(d.InputType); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Descriptor) model() string {
	if d.Model != "" {
		return d.Model
	}
	return d.DataType
}

// parseDescriptor reads a descriptor. Its place is its id, and the version that it makes.
func parseDescriptor(r *serving.StreamRecord, known []Descriptor, kinds []OwnKind) (Update, error) {
	var in modelspb.ModelDescriptor
	if err := unmarshal(r.Value, &in); err != nil {
		return Update{}, rejected(stream.Unreadable, "the message is no model descriptor: %v", err)
	}
	at := slices.IndexFunc(known, func(d Descriptor) bool { return d.DataType == in.DataType })
	if at < 0 {
		return Update{}, rejected(UnknownType, "the stream has no models for the data type %.100q: put a [[model_stream.descriptor]] with it into the configuration", in.DataType)
	}
	d := known[at]
	place := strings.ReplaceAll(r.Place, "/", "-")
	m := &Model{
		Name: d.model(), Version: r.At.UTC().Format("20060102T150405") + "-" + place, Description: in.Name,
		InputType: d.InputType, InputLength: uint32(d.InputLength), Apps: d.Apps,
		Data: in.GetData(), Location: locationOf(in.GetLocation()), anyContent: true,
	}
	if in.Description != "" {
		m.Description += ": " + in.Description
	}
	switch in.Modeltype {
	case modelspb.ModelDescriptor_PMML:
		m.Kind = "pmml"
	case modelspb.ModelDescriptor_TENSORFLOW, modelspb.ModelDescriptor_TENSORFLOWSAVED:
		m.Kind, m.Requirements, m.Options = "tensorflow", d.Requirements, d.Options
		m.Archive = in.Modeltype == modelspb.ModelDescriptor_TENSORFLOWSAVED
	default:
		at := slices.IndexFunc(kinds, func(k OwnKind) bool { return k.ModelType == int(in.Modeltype) })
		if at < 0 {
			return Update{}, rejected(UnknownKind, "there is no modeltype %d: use 0 (a frozen graph of TensorFlow), 1 (a SavedModel), 2 (PMML), or one of a [[model_stream.kind]]", in.Modeltype)
		}
		m.Kind = kinds[at].Name
	}
	return Update{UUID: place, Model: m, Format: stream.JSON}, nil
}

// locationOf is where a model is as a URL: a path is one of a file.
func locationOf(location string) string {
	if !strings.HasPrefix(location, "/") {
		return location
	}
	return (&url.URL{Scheme: "file", Path: strings.TrimSuffix(location, "/")}).String()
}
