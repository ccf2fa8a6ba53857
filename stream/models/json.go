package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/internal/schema"
)

// jsonUpdate is an update as JSON, with the names of proto/models.proto.
type jsonUpdate struct {
	UUID     jsonID        `json:"uuid"`
	Sequence uint64        `json:"sequence,omitempty"`
	Model    *jsonModel    `json:"model,omitempty"`
	Ensemble *jsonEnsemble `json:"ensemble,omitempty"`
	Policy   *jsonPolicy   `json:"policy,omitempty"`
	Stream   *StreamChange `json:"stream,omitempty"`
	Remove   *Removal      `json:"remove,omitempty"`
}

// jsonModel has the members of a model that are no settings.
type jsonModel struct {
	Name         string            `json:"name"`
	Version      jsonID            `json:"version"`
	Description  string            `json:"description,omitempty"`
	InputType    string            `json:"input_type,omitempty"`
	InputLength  uint32            `json:"input_length,omitempty"`
	Kind         string            `json:"kind"`
	Data         []byte            `json:"data,omitempty"` // in base64
	Text         *string           `json:"text,omitempty"` // instead, of models that are text
	Location     string            `json:"location,omitempty"`
	SHA256       string            `json:"sha256,omitempty"`
	Archive      bool              `json:"archive,omitempty"`
	Python       string            `json:"python,omitempty"`
	Requirements []string          `json:"requirements,omitempty"`
	Entry        string            `json:"entry,omitempty"`
	Options      map[string]string `json:"options,omitempty"`
	Command      []string          `json:"command,omitempty"`
	Example      json.RawMessage   `json:"example,omitempty"`
	Apps         []string          `json:"apps,omitempty"`
	KeepCurrent  bool              `json:"keep_current,omitempty"`
	HostedBy     string            `json:"hosted_by,omitempty"`
	settings     json.RawMessage   // all other members
}

// UnmarshalJSON implements json.Unmarshaler. It refuses members that there are not.
func (in *jsonModel) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	own := reflect.ValueOf(in).Elem()
	fields, names := schema.JSON.Fields(own.Type()), settingNames()
	settings := map[string]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at := slices.IndexFunc(fields, func(f schema.Field) bool { return strings.EqualFold(f.Key, name) })
		switch {
		case slices.Contains(names, name) && (at < 0 || string(all[name]) == "null"): // as hosted_by, which is both
			settings[name] = all[name]
		case at < 0:
			return unknown(name, append(names, schema.Keys(fields)...))
		default:
			if err := json.Unmarshal(all[name], own.FieldByIndex(fields[at].Index).Addr().Interface()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return in.set(text)
}

// set gives the model settings, if they are that.
func (in *jsonModel) set(settings json.RawMessage) (err error) {
	if len(settings) > 0 {
		in.settings, err = readSettings(settings)
	}
	return err
}

// MarshalJSON implements json.Marshaler.
func (in *jsonModel) MarshalJSON() ([]byte, error) {
	type own jsonModel
	text, err := json.Marshal((*own)(in))
	if err != nil || len(in.settings) == 0 {
		return text, err
	}
	return slices.Concat(text[:len(text)-1], []byte(","), in.settings[1:]), nil
}

type jsonPolicy struct {
	App        string          `json:"app"`
	Parameters json.RawMessage `json:"parameters"`
}

type jsonEnsemble struct {
	Name          string          `json:"name"`
	Description   string          `json:"description,omitempty"`
	InputType     string          `json:"input_type"`
	Models        []string        `json:"models"`
	Policy        json.RawMessage `json:"policy,omitempty"` // its kind, or the whole of it
	SLO           uint64          `json:"latency_slo_micros"`
	DefaultOutput json.RawMessage `json:"default_output,omitempty"` // a text, or what stands as JSON
	OutputType    string          `json:"output_type,omitempty"`
}

// jsonID is a text, or a whole number that becomes its decimal text.
type jsonID string

// UnmarshalJSON implements json.Unmarshaler.
func (id *jsonID) UnmarshalJSON(text []byte) error {
	switch c := text[0]; {
	case c == '"':
		return json.Unmarshal(text, (*string)(id))
	case (c == '-' || c >= '0' && c <= '9') && !bytes.ContainsAny(text, ".eE"):
		*id = jsonID(text)
		return nil
	}
	return fmt.Errorf("uuid and version must be texts or whole numbers, not %.40s", text)
}

// parseJSON refuses members that there are not: a slip in a descriptor would go unnoticed.
func (u *Update) parseJSON(message []byte) error {
	if !utf8.Valid(message) {
		return errNotUTF8
	}
	var in jsonUpdate
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind it")
	}
	u.UUID, u.Sequence = string(in.UUID), in.Sequence
	var err error
	if in.Model != nil {
		u.Model, err = in.Model.read()
	}
	if in.Ensemble != nil && err == nil {
		u.Ensemble, err = in.Ensemble.read()
	}
	if in.Policy != nil {
		u.Policy = &PolicyChange{App: in.Policy.App, Parameters: string(in.Policy.Parameters)}
	}
	u.Mapping, u.Remove = in.Stream, in.Remove
	return err
}

func (in *jsonModel) read() (*Model, error) {
	m := &Model{
		Name: in.Name, Version: string(in.Version), Description: in.Description, InputType: in.InputType, InputLength: in.InputLength, Kind: in.Kind,
		Data: in.Data, Location: in.Location, SHA256: in.SHA256, Archive: in.Archive, Python: in.Python, Requirements: in.Requirements,
		Entry: in.Entry, Options: in.Options, Command: in.Command, Apps: in.Apps, KeepCurrent: in.KeepCurrent, HostedBy: in.HostedBy,
		Settings: in.settings,
	}
	if in.Text != nil {
		if len(in.Data) > 0 {
			return nil, errors.New("give data or text, and not both")
		}
		m.Data = []byte(*in.Text)
	}
	if text := string(in.Example); text != "null" {
		m.Example = text
	}
	return m, nil
}

func (in *jsonEnsemble) read() (*Ensemble, error) {
	e := &Ensemble{
		Name: in.Name, Description: in.Description, InputType: in.InputType, Models: in.Models, SLO: in.SLO, OutputType: in.OutputType,
	}
	for _, one := range []struct {
		from json.RawMessage
		into *string
	}{{in.Policy, &e.Policy}, {in.DefaultOutput, &e.DefaultOutput}} {
		switch {
		case len(one.from) == 0 || string(one.from) == "null":
		case one.from[0] == '"':
			if err := json.Unmarshal(one.from, one.into); err != nil {
				return nil, err
			}
		default:
			*one.into = string(one.from)
		}
	}
	return e, nil
}

// AppendJSON appends the update as JSON.
func (u *Update) AppendJSON(b []byte) []byte {
	out := jsonUpdate{UUID: jsonID(u.UUID), Sequence: u.Sequence}
	if m := u.Model; m != nil {
		out.Model = &jsonModel{
			Name: m.Name, Version: jsonID(m.Version), Description: m.Description, InputType: m.InputType, InputLength: m.InputLength, Kind: m.Kind,
			Data: m.Data, Location: m.Location, SHA256: m.SHA256, Archive: m.Archive, Python: m.Python, Requirements: m.Requirements,
			Entry: m.Entry, Options: m.Options, Command: m.Command, Example: rawOf(m.Example), Apps: m.Apps, KeepCurrent: m.KeepCurrent, HostedBy: m.HostedBy,
		}
		if err := out.Model.set(m.Settings); err != nil {
			return append(b, "null"...) // rather than another version
		}
	}
	if e := u.Ensemble; e != nil {
		out.Ensemble = &jsonEnsemble{
			Name: e.Name, Description: e.Description, InputType: e.InputType, Models: e.Models, Policy: quoted(e.Policy), SLO: e.SLO,
			DefaultOutput: quoted(e.DefaultOutput), OutputType: e.OutputType,
		}
	}
	if p := u.Policy; p != nil {
		out.Policy = &jsonPolicy{p.App, rawOf(p.Parameters)}
	}
	out.Stream, out.Remove = u.Mapping, u.Remove
	return appendJSON(b, out)
}

// rawOf is JSON as it stands; what is none is left out.
func rawOf(text string) json.RawMessage {
	if !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

func quoted(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return appendJSON(nil, text)
}

func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // of texts and numbers it cannot fail
		return append(b, "null"...)
	}
	return append(b, text...)
}

// AppendJSON appends the acknowledgement as JSON.
func (a *Acknowledgement) AppendJSON(b []byte) []byte { return appendJSON(b, a) }
