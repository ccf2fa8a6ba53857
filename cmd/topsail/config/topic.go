package config

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/mapping"
	"github.com/topsail-serving/topsail/stream/records"
)

// Record is the table [stream.record]: how records are read that are not Topsail's own messages.
type Record struct {
	Format  mapping.Format    `toml:"format" help:"how values are written: json, protobuf, avro, bytes or text"`
	Input   string            `toml:"input" help:"where the input is: a path such as a.b[0].c, header:NAME or key:; by default the value is the input"`
	Fields  []string          `toml:"fields" help:"where the numbers of a vector are, in this order"`
	Inputs  map[string]string `toml:"inputs" help:"of an app with a signature: its inputs, and where each is"`
	ID      string            `toml:"id" help:"where the id is that the result has; by default it is topic/partition/offset"`
	Key     string            `toml:"key" help:"where the model key is; by default it is the record's key"`
	App     string            `toml:"app" help:"where the name is that apps maps to an app"`
	User    string            `toml:"user" help:"where the user is"`
	Context string            `toml:"context" help:"where the context is"`

	SchemaFile string `toml:"schema_file" path:"true" help:"file of the schema of records that are written without a registry: of Avro, a descriptor set of protobuf, or a .proto file"`
	Message    string `toml:"message" help:"of protobuf with schema_file: full name of the message"`
}

// Result is the table [stream.result]: what results look like.
type Result struct {
	Value      string            `toml:"value" default:"prediction" enum:"prediction record output" help:"prediction, with its id; record, with the prediction added; or output, alone"`
	Add        map[string]string `toml:"add" help:"of record: members to add, and for each a path into the prediction; by default prediction = \"$\", all of it"`
	Format     mapping.Format    `toml:"format" default:"json" help:"how results are written: json, or by schema_file avro or protobuf"`
	SchemaFile string            `toml:"schema_file" path:"true" help:"file of the schema of results"`
	Message    string            `toml:"message" help:"of protobuf: full name of the message in schema_file"`
	Register   bool              `toml:"register" default:"true" help:"add the schema to the registry where it is missing"`
}

// Route is one [[stream.route]]: where the results go that fit it.
type Route struct {
	App        string            `toml:"app" help:"the app that was asked"`
	Default    *bool             `toml:"default" help:"whether the output is the default"`
	Class      string            `toml:"class" accept:"integer float boolean" help:"the output, a text or a number"`
	Qualifiers map[string]string `toml:"qualifiers" help:"values that stand beside the output"`
	Output     string            `toml:"output" help:"topic or stream of these results"`
	Drop       bool              `toml:"drop" help:"these records get no result"`
}

// topic is how the stream reads records that are not Topsail's own messages; nil: they are.
func (s *Stream) topic() *records.Topic {
	if s.Record == nil {
		return nil
	}
	result := Result{Value: mapping.Prediction, Format: mapping.JSON, Register: true}
	if s.Result != nil {
		result = *s.Result
	}
	return &records.Topic{
		Record: mapping.Config{
			Format: s.Record.Format, Input: s.Record.Input, Fields: s.Record.Fields, Inputs: s.Record.Inputs,
			ID: s.Record.ID, Key: s.Record.Key, App: s.Record.App, User: s.Record.User, Context: s.Record.Context,
			SchemaFile: s.Record.SchemaFile, Message: s.Record.Message,
		},
		Result: mapping.ResultConfig{
			Value: result.Value, Add: result.Add, Format: result.Format,
			SchemaFile: result.SchemaFile, Message: result.Message, Register: result.Register,
		},
		Registered: s.SchemaRegistry != "",
	}
}

// routes are those of the job.
func (s *Stream) routes() (all []records.Route) {
	for _, r := range s.Routes {
		all = append(all, records.Route(r))
	}
	return all
}

// topicProblems are what is wrong with the tables of records and results; the job checks what is in them.
func (s *Stream) topicProblems() (errs []error) {
	wrong := func(text string) { errs = append(errs, errors.New(text)) }
	if s.Record == nil && s.Result != nil {
		wrong("result needs a table [stream.record]; without one, records and results are Topsail's own messages")
	}
	if s.Record != nil && s.Format != stream.AnyFormat {
		wrong("format is of Topsail's own messages; with a table [stream.record], set the format there alone")
	}
	if s.Record == nil && s.SchemaRegistry != "" {
		wrong("schema_registry needs a table [stream.record]; Topsail's own messages have no schemas there")
	}
	if (s.SchemaRegistryUsername == "") != (s.SchemaRegistryPasswordFile == "") {
		wrong("schema_registry_username and schema_registry_password_file go together")
	}
	if s.SchemaRegistry == "" {
		if s.SchemaRegistryUsername != "" {
			wrong("schema_registry_username needs a schema_registry")
		}
		return errs
	}
	if u, err := url.Parse(s.SchemaRegistry); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		errs = append(errs, fmt.Errorf("schema_registry %q must be a URL such as http://127.0.0.1:8081, without a user and a query", s.SchemaRegistry))
	}
	return errs
}
