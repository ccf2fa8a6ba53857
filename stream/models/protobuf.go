package models

import (
	"errors"

	"google.golang.org/protobuf/proto"

	modelspb "github.com/topsail-serving/topsail/stream/models/proto"
)

var (
	errNotUTF8    = errors.New("a text is not UTF-8")
	errNoProtobuf = errors.New("it ends in the middle of a field, or was written in another format")
)

// notUTF8 is an error of reading a message with a text that is none.
type notUTF8 interface {
	error
	InvalidUTF8() bool
}

// unmarshal reads a message. Its errors have the same words every time, unlike those of the
// library.
func unmarshal(b []byte, into proto.Message) error {
	err := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, into)
	if _, is := errors.AsType[notUTF8](err); is {
		return errNotUTF8
	}
	if err != nil {
		return errNoProtobuf
	}
	return nil
}

// marshal appends a message, whose texts are UTF-8; else it appends nothing. The same message is
// written the same every time.
func marshal(b []byte, m proto.Message) []byte {
	if all, err := (proto.MarshalOptions{Deterministic: true}).MarshalAppend(b, m); err == nil {
		return all
	}
	return b
}

func (u *Update) parseProtobuf(message []byte) error {
	var in modelspb.Update
	if err := unmarshal(message, &in); err != nil {
		return err
	}
	u.UUID, u.Sequence = in.Uuid, in.Sequence
	if m := in.GetModel(); m != nil {
		u.Model = &Model{
			Name: m.Name, Version: m.Version, Description: m.Description, InputType: m.InputType, InputLength: m.InputLength, Kind: m.Kind,
			Data: m.Data, Location: m.Location, SHA256: m.Sha256, Archive: m.Archive,
			Python: m.Python, Requirements: m.Requirements, Entry: m.Entry, Options: m.Options, Command: m.Command, Example: m.Example,
			Apps: m.Apps, KeepCurrent: m.KeepCurrent, HostedBy: m.HostedBy,
		}
		var err error
		if u.Model.Settings, err = settingsOf(m); err != nil {
			return err
		}
	}
	if e := in.GetEnsemble(); e != nil {
		u.Ensemble = &Ensemble{
			Name: e.Name, Description: e.Description, InputType: e.InputType, Models: e.Models, Policy: e.Policy,
			SLO: e.LatencySloMicros, DefaultOutput: e.DefaultOutput, OutputType: e.OutputType,
		}
	}
	if p := in.GetPolicy(); p != nil {
		u.Policy = &PolicyChange{App: p.App, Parameters: p.Parameters}
	}
	if s := in.GetStream(); s != nil {
		u.Mapping = &StreamChange{Name: s.Name, Apps: s.Apps}
	}
	if r := in.GetRemove(); r != nil {
		u.Remove = &Removal{Model: r.Model, Version: r.Version, App: r.App, Unlink: r.Unlink}
	}
	return nil
}

// AppendProtobuf appends the update as an Update.
func (u *Update) AppendProtobuf(b []byte) []byte {
	out := &modelspb.Update{Uuid: u.UUID, Sequence: u.Sequence}
	if m := u.Model; m != nil {
		model := &modelspb.Model{
			Name: m.Name, Version: m.Version, Description: m.Description, InputType: m.InputType, InputLength: m.InputLength, Kind: m.Kind,
			Data: m.Data, Location: m.Location, Sha256: m.SHA256, Archive: m.Archive,
			Python: m.Python, Requirements: m.Requirements, Entry: m.Entry, Options: m.Options, Command: m.Command, Example: m.Example,
			Apps: m.Apps, KeepCurrent: m.KeepCurrent, HostedBy: m.HostedBy,
		}
		if err := setSettings(model, m.Settings); err != nil {
			return b // rather than another version
		}
		out.What = &modelspb.Update_Model{Model: model}
	}
	if e := u.Ensemble; e != nil {
		out.What = &modelspb.Update_Ensemble{Ensemble: &modelspb.Ensemble{
			Name: e.Name, Description: e.Description, InputType: e.InputType, Models: e.Models, Policy: e.Policy,
			LatencySloMicros: e.SLO, DefaultOutput: e.DefaultOutput, OutputType: e.OutputType,
		}}
	}
	if p := u.Policy; p != nil {
		out.What = &modelspb.Update_Policy{Policy: &modelspb.Policy{App: p.App, Parameters: p.Parameters}}
	}
	if s := u.Mapping; s != nil {
		out.What = &modelspb.Update_Stream{Stream: &modelspb.Stream{Name: s.Name, Apps: s.Apps}}
	}
	if r := u.Remove; r != nil {
		out.What = &modelspb.Update_Remove{Remove: &modelspb.Removal{Model: r.Model, Version: r.Version, App: r.App, Unlink: r.Unlink}}
	}
	return marshal(b, out)
}

func (a *Acknowledgement) parseProtobuf(message []byte) error {
	var in modelspb.Acknowledgement
	if err := unmarshal(message, &in); err != nil {
		return err
	}
	*a = Acknowledgement{UUID: in.Uuid, Outcome: in.Outcome, Model: in.Model, Version: in.Version, App: in.App, Bundle: in.Bundle}
	return nil
}

// AppendProtobuf appends the acknowledgement as an Acknowledgement.
func (a *Acknowledgement) AppendProtobuf(b []byte) []byte {
	return marshal(b, &modelspb.Acknowledgement{Uuid: a.UUID, Outcome: a.Outcome, Model: a.Model, Version: a.Version, App: a.App, Bundle: a.Bundle})
}
