package models

import (
	"google.golang.org/protobuf/encoding/protowire"

	"maps"
	"slices"

	"github.com/topsail-serving/topsail/stream/internal/wire"
)

// The numbers of proto/models.proto, which never change.
const (
	updateUUID     protowire.Number = 1
	updateSequence protowire.Number = 2
	updateModel    protowire.Number = 3
	updateEnsemble protowire.Number = 4

	modelName         protowire.Number = 1
	modelVersion      protowire.Number = 2
	modelDescription  protowire.Number = 3
	modelInputType    protowire.Number = 4
	modelInputLength  protowire.Number = 5
	modelKind         protowire.Number = 6
	modelData         protowire.Number = 7
	modelLocation     protowire.Number = 8
	modelSHA256       protowire.Number = 9
	modelArchive      protowire.Number = 10
	modelPython       protowire.Number = 11
	modelRequirements protowire.Number = 12
	modelEntry        protowire.Number = 13
	modelOptions      protowire.Number = 14
	modelCommand      protowire.Number = 15
	modelExample      protowire.Number = 16
	modelApps         protowire.Number = 17
	modelKeepCurrent  protowire.Number = 18
	modelHostedBy     protowire.Number = 19

	optionKey   protowire.Number = 1
	optionValue protowire.Number = 2

	ensembleName        protowire.Number = 1
	ensembleDescription protowire.Number = 2
	ensembleInputType   protowire.Number = 3
	ensembleModels      protowire.Number = 4
	ensemblePolicy      protowire.Number = 5
	ensembleSLO         protowire.Number = 6
	ensembleDefault     protowire.Number = 7
	ensembleOutputType  protowire.Number = 8

	ackUUID    protowire.Number = 1
	ackOutcome protowire.Number = 2
	ackModel   protowire.Number = 3
	ackVersion protowire.Number = 4
	ackApp     protowire.Number = 5
	ackBundle  protowire.Number = 6
)

func (u *Update) parseProtobuf(message []byte) error {
	return wire.Each(message, func(f wire.Field) error {
		switch f.Number {
		case updateUUID:
			return f.Text(&u.UUID)
		case updateSequence:
			number(f, &u.Sequence)
		case updateModel:
			if f.Kind == protowire.BytesType {
				if u.Model == nil { // one that comes in parts is one
					u.Model = &Model{}
				}
				u.Ensemble = nil // of a choice the last one counts
				return u.Model.parseProtobuf(f.Bytes)
			}
		case updateEnsemble:
			if f.Kind == protowire.BytesType {
				if u.Ensemble == nil {
					u.Ensemble = &Ensemble{}
				}
				u.Model = nil
				return u.Ensemble.parseProtobuf(f.Bytes)
			}
		}
		return nil
	})
}

func (m *Model) parseProtobuf(message []byte) error {
	texts := map[protowire.Number]*string{
		modelName: &m.Name, modelVersion: &m.Version, modelDescription: &m.Description, modelInputType: &m.InputType, modelKind: &m.Kind,
		modelLocation: &m.Location, modelSHA256: &m.SHA256, modelPython: &m.Python, modelEntry: &m.Entry, modelExample: &m.Example, modelHostedBy: &m.HostedBy,
	}
	lists := map[protowire.Number]*[]string{modelRequirements: &m.Requirements, modelCommand: &m.Command, modelApps: &m.Apps}
	return wire.Each(message, func(f wire.Field) error {
		if into := texts[f.Number]; into != nil {
			return f.Text(into)
		}
		if into := lists[f.Number]; into != nil {
			return element(f, into)
		}
		switch f.Number {
		case modelInputLength:
			if f.Kind == protowire.VarintType {
				m.InputLength = uint32(f.Value)
			}
		case modelData:
			if f.Kind == protowire.BytesType {
				m.Data = f.Bytes
			}
		case modelArchive:
			boolean(f, &m.Archive)
		case modelKeepCurrent:
			boolean(f, &m.KeepCurrent)
		case modelOptions:
			return m.parseOption(f)
		}
		return nil
	})
}

func (m *Model) parseOption(f wire.Field) error {
	if f.Kind != protowire.BytesType {
		return nil
	}
	var key, value string
	err := wire.Each(f.Bytes, func(f wire.Field) error {
		switch f.Number {
		case optionKey:
			return f.Text(&key)
		case optionValue:
			return f.Text(&value)
		}
		return nil
	})
	if m.Options == nil {
		m.Options = map[string]string{}
	}
	m.Options[key] = value
	return err
}

func (e *Ensemble) parseProtobuf(message []byte) error {
	texts := map[protowire.Number]*string{
		ensembleName: &e.Name, ensembleDescription: &e.Description, ensembleInputType: &e.InputType, ensemblePolicy: &e.Policy,
		ensembleDefault: &e.DefaultOutput, ensembleOutputType: &e.OutputType,
	}
	return wire.Each(message, func(f wire.Field) error {
		if into := texts[f.Number]; into != nil {
			return f.Text(into)
		}
		switch f.Number {
		case ensembleModels:
			return element(f, &e.Models)
		case ensembleSLO:
			number(f, &e.SLO)
		}
		return nil
	})
}

func element(f wire.Field, into *[]string) error {
	if f.Kind != protowire.BytesType {
		return nil
	}
	*into = append(*into, "")
	return f.Text(&(*into)[len(*into)-1])
}

func number(f wire.Field, into *uint64) {
	if f.Kind == protowire.VarintType {
		*into = f.Value
	}
}

func boolean(f wire.Field, into *bool) {
	if f.Kind == protowire.VarintType {
		*into = protowire.DecodeBool(f.Value)
	}
}

// AppendProtobuf appends the update as an Update.
func (u *Update) AppendProtobuf(b []byte) []byte {
	b = wire.Append(b, updateUUID, u.UUID)
	b = wire.AppendNumber(b, updateSequence, u.Sequence)
	if u.Model != nil {
		b = wire.AppendElement(b, updateModel, u.Model.appendProtobuf(nil))
	}
	if u.Ensemble != nil {
		b = wire.AppendElement(b, updateEnsemble, u.Ensemble.appendProtobuf(nil))
	}
	return b
}

func (m *Model) appendProtobuf(b []byte) []byte {
	b = wire.Append(b, modelName, m.Name)
	b = wire.Append(b, modelVersion, m.Version)
	b = wire.Append(b, modelDescription, m.Description)
	b = wire.Append(b, modelInputType, m.InputType)
	b = wire.AppendNumber(b, modelInputLength, uint64(m.InputLength))
	b = wire.Append(b, modelKind, m.Kind)
	b = wire.Append(b, modelData, m.Data)
	b = wire.Append(b, modelLocation, m.Location)
	b = wire.Append(b, modelSHA256, m.SHA256)
	b = wire.AppendNumber(b, modelArchive, protowire.EncodeBool(m.Archive))
	b = wire.Append(b, modelPython, m.Python)
	b = appendAll(b, modelRequirements, m.Requirements)
	b = wire.Append(b, modelEntry, m.Entry)
	for _, name := range slices.Sorted(maps.Keys(m.Options)) {
		option := wire.Append(wire.Append(nil, optionKey, name), optionValue, m.Options[name])
		b = wire.AppendElement(b, modelOptions, option)
	}
	b = appendAll(b, modelCommand, m.Command)
	b = wire.Append(b, modelExample, m.Example)
	b = appendAll(b, modelApps, m.Apps)
	b = wire.AppendNumber(b, modelKeepCurrent, protowire.EncodeBool(m.KeepCurrent))
	return wire.Append(b, modelHostedBy, m.HostedBy)
}

func (e *Ensemble) appendProtobuf(b []byte) []byte {
	b = wire.Append(b, ensembleName, e.Name)
	b = wire.Append(b, ensembleDescription, e.Description)
	b = wire.Append(b, ensembleInputType, e.InputType)
	b = appendAll(b, ensembleModels, e.Models)
	b = wire.Append(b, ensemblePolicy, e.Policy)
	b = wire.AppendNumber(b, ensembleSLO, e.SLO)
	b = wire.Append(b, ensembleDefault, e.DefaultOutput)
	return wire.Append(b, ensembleOutputType, e.OutputType)
}

func appendAll(b []byte, number protowire.Number, texts []string) []byte {
	for _, text := range texts {
		b = wire.AppendElement(b, number, text)
	}
	return b
}

// AppendProtobuf appends the acknowledgement as an Acknowledgement.
func (a *Acknowledgement) AppendProtobuf(b []byte) []byte {
	b = wire.Append(b, ackUUID, a.UUID)
	b = wire.Append(b, ackOutcome, a.Outcome)
	b = wire.Append(b, ackModel, a.Model)
	b = wire.Append(b, ackVersion, a.Version)
	b = wire.Append(b, ackApp, a.App)
	return wire.Append(b, ackBundle, a.Bundle)
}

func (a *Acknowledgement) parseProtobuf(message []byte) error {
	texts := map[protowire.Number]*string{
		ackUUID: &a.UUID, ackOutcome: &a.Outcome, ackModel: &a.Model, ackVersion: &a.Version, ackApp: &a.App, ackBundle: &a.Bundle,
	}
	return wire.Each(message, func(f wire.Field) error {
		if into := texts[f.Number]; into != nil {
			return f.Text(into)
		}
		return nil
	})
}
