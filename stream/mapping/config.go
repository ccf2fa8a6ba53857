package mapping

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Config says where in the records of a topic is what a query is made of. Sources are paths,
// "header:NAME", or "key:" for the record's key. Format is required.
type Config struct {
	Format Format

	Input  string            // the source of the input; empty: the value is the input
	Fields []string          // or the sources of its numbers, in this order
	Inputs map[string]string // or the sources of its tensors, by their names

	ID      string // empty: topic/partition/offset
	Key     string // of the model; empty: the record's key
	App     string // which app is asked, by what the stream's apps call it
	User    string
	Context string

	SchemaFile string // of protobuf or Avro, where records are written without a registry
	Message    string // of protobuf, with SchemaFile: the full name of the message
}

const maxFields = 4096

// Check says everything that is wrong with the configuration, or nil; withRegistry says whether there is
// a schema registry.
func (c *Config) Check(withRegistry bool) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Format == NoFormat {
		wrong("format is missing: use json, protobuf, avro, bytes or text")
		return errors.Join(errs...)
	}
	ways := 0
	for _, given := range []bool{c.Input != "", len(c.Fields) > 0, len(c.Inputs) > 0} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		wrong("input, fields and inputs do not go together: use one of them")
	}
	if len(c.Fields) > maxFields {
		wrong("fields has more than %d elements: send them as one list, and name that in input", maxFields)
	}
	for name, source := range c.sources() {
		if err := c.checkSource(source); err != nil {
			wrong("%s: %w", name, err)
		}
	}
	return errors.Join(append(errs, checkSchema(c.Format, c.SchemaFile, c.Message, withRegistry)...)...)
}

// sources are all sources by the keys that they are the values of, in the order of the keys.
func (c *Config) sources() func(yield func(name, source string) bool) {
	return func(yield func(name, source string) bool) {
		all := [][2]string{{"input", c.Input}, {"id", c.ID}, {"key", c.Key}, {"app", c.App}, {"user", c.User}, {"context", c.Context}}
		for _, field := range c.Fields {
			all = append(all, [2]string{"fields", cmp.Or(field, "$")})
		}
		for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
			all = append(all, [2]string{"inputs", cmp.Or(c.Inputs[name], "$")})
		}
		for _, one := range all {
			if one[1] != "" && !yield(one[0], one[1]) {
				return
			}
		}
	}
}

func (c *Config) checkSource(text string) error {
	source, err := ParseSource(text)
	if err != nil {
		return err
	}
	if len(source.path.steps) > 0 && !c.Format.hasPaths() {
		return fmt.Errorf("the format %v has no parts to name: use header:NAME or key:, not the path %.100q", c.Format, text)
	}
	return nil
}

// checkSchema says what is wrong with where the schema of a format is.
func checkSchema(format Format, file, message string, withRegistry bool) (errs []error) {
	wrong := func(text string, args ...any) { errs = append(errs, fmt.Errorf(text, args...)) }
	switch {
	case !format.hasSchema():
		if file != "" || message != "" {
			wrong("schema_file and message are for protobuf and avro, not for %v", format)
		}
		return errs
	case !withRegistry && file == "":
		wrong("the format %v needs a schema_registry, or a schema_file", format)
	}
	if format == Protobuf && file != "" && message == "" {
		wrong("message is missing: the full name of the message in schema_file, such as shop.v1.Order")
	}
	if format == Avro && message != "" {
		wrong("message is for protobuf; an Avro schema is of one type")
	}
	return errs
}

// ResultConfig says what results look like.
type ResultConfig struct {
	Value      string            // "prediction": the prediction with its id; "record": the record with it added; "output": the output alone
	Add        map[string]string // of "record": members to add, and for each a path into the prediction; nil: prediction = "$"
	Format     Format            // JSON, or with a schema Protobuf or Avro
	SchemaFile string
	Message    string
	Register   bool // with a registry: add the schema where the registry lacks it
}

// What results are.
const (
	Prediction = "prediction"
	WithRecord = "record"
	OutputOnly = "output"
)

// Check says everything that is wrong with what results look like, for records of a format.
func (c *ResultConfig) Check(records Format, withRegistry bool) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Value == WithRecord && !records.hasPaths() {
		wrong("value: records of the format %v have no members, so that nothing can be added: use prediction or output", records)
	}
	if c.Value != WithRecord && len(c.Add) > 0 {
		wrong("add is for value = \"record\"")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Add)) {
		if _, err := ParsePath(c.Add[name]); name == "" || err != nil {
			wrong("add: %q must be the name of a member, with a path into the prediction such as output: %w", name, cmp.Or(err, errNoMember))
		}
	}
	switch c.Format {
	case JSON:
		if c.SchemaFile != "" || c.Message != "" {
			wrong("schema_file and message are for protobuf and avro")
		}
	case Protobuf, Avro:
		errs = append(errs, c.checkSchema(withRegistry)...)
	default:
		wrong("format: results are json, protobuf or avro")
	}
	return errors.Join(errs...)
}

var errNoMember = errors.New("the name is empty")

// checkSchema says what is wrong with the schema of results.
func (c *ResultConfig) checkSchema(withRegistry bool) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case c.Format == Protobuf && c.Value == Prediction && c.SchemaFile == "":
		if c.Message != "" {
			wrong("message needs a schema_file")
		}
	case c.SchemaFile == "":
		wrong("schema_file is missing: the schema of results")
	case c.Format == Protobuf && c.Message == "":
		wrong("message is missing: the full name of the message in schema_file, such as shop.v1.Scored")
	case c.Format == Protobuf && withRegistry && !strings.HasSuffix(c.SchemaFile, ".proto"):
		wrong("schema_file must be a .proto file: a registry takes no descriptor set")
	case c.Format == Avro && c.Message != "":
		wrong("message is for protobuf; an Avro schema is of one type")
	}
	return errs
}
