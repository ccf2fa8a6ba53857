package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/models"
)

// ModelStream is one [[model_stream]] of the file: updates of models and ensembles.
type ModelStream struct {
	Name string `toml:"name" help:"of the job, in logs and metrics"`
	Source

	API     string `toml:"api" help:"URL of the management API, such as http://127.0.0.1:1338; by default that of web.addr"`
	KeyFile string `toml:"key_file" path:"true" help:"file of the key that is shown to the management API, with the role deployer"`

	Format         stream.Format `toml:"format" default:"any" help:"how updates are written: protobuf, json or any"`
	Locations      []string      `toml:"locations" help:"URLs of folders, http, https or file, that models may be fetched from; none: they are in their messages"`
	Python         string        `toml:"python" help:"the Python of models that name none, such as 3.11"`
	Batch          int           `toml:"batch" default:"16" min:"1" help:"most updates that are polled and committed together"`
	Concurrency    int           `toml:"concurrency" default:"4" min:"1" help:"most models that are deployed at a time"`
	MaxRecordBytes int           `toml:"max_record_bytes" default:"16777216" min:"1" help:"largest update, with its key and headers"`
	MaxModelBytes  int           `toml:"max_model_bytes" default:"4294967296" min:"1" help:"largest model, and of an archive all that is in it"`
	Patience       time.Duration `toml:"patience_micros" default:"30000000" min:"0" help:"how long to wait for an unavailable location, an app or model that does not exist, or a version to remove that still answers, in microseconds"`
	Descriptors    []Descriptor  `toml:"descriptor"`
	Kinds          []OwnKind     `toml:"kind"`
	KeepVersions   int           `toml:"keep_versions" default:"10" min:"0" help:"how many versions of a model that it created the stream keeps, the newest, beside those in use; 0: all, even when the bundle store is full"`
}

// Descriptor is one [[model_stream.descriptor]]: what FLIP-23's model descriptors of one type of data leave open.
type Descriptor struct {
	DataType     string            `toml:"data_type" help:"the dataType of the descriptors, as FLIP-23 has them; their stream has no other messages"`
	Model        string            `toml:"model" help:"the model that they are versions of; by default it is called as the type of data"`
	Apps         []string          `toml:"apps" help:"the apps that ask the model"`
	InputType    string            `toml:"input_type" help:"what the first version takes, such as doubles"`
	InputLength  int               `toml:"input_length" min:"0" help:"elements of every input; 0: any"`
	Requirements []string          `toml:"requirements" help:"what TensorFlow's models require, such as tensorflow==2.19.0"`
	Options      map[string]string `toml:"options" help:"options of TensorFlow's models, as in the manifest of a bundle"`
}

// OwnKind is one [[model_stream.kind]]: a kind of model of the user's own.
type OwnKind struct {
	Name         string   `toml:"name" help:"as messages say it"`
	Code         string   `toml:"code" path:"true" help:"file or folder of the class in Python"`
	Entry        string   `toml:"entry" help:"module:class, with the methods load(path) and predict(inputs)"`
	Requirements []string `toml:"requirements" help:"what it requires, beside what messages say"`
	ModelType    int      `toml:"model_type" min:"0" help:"the modeltype of the descriptors of FLIP-23 that are of this kind, from 3 on"`
}

// Job is what the stream is as a job, without a consumer and an API.
func (s *ModelStream) Job() models.Config {
	c := models.Config{
		Config:    s.job(s.Name, s.Format, s.Batch, s.MaxRecordBytes),
		Locations: models.Locations{Prefixes: s.Locations}, Python: s.Python, Concurrency: s.Concurrency,
		MaxModel: int64(s.MaxModelBytes), Patience: s.Patience, KeepVersions: cmp.Or(s.KeepVersions, models.KeepAll),
	}
	for _, k := range s.Kinds {
		c.Kinds = append(c.Kinds, models.OwnKind(k))
	}
	for _, d := range s.Descriptors {
		c.Descriptors = append(c.Descriptors, models.Descriptor(d))
	}
	return c
}

// modelStreams completes and checks every model stream.
func (l *loader) modelStreams() []*ModelStream {
	var all []*ModelStream
	for i := range l.doc.ModelStream {
		s, path := &l.doc.ModelStream[i], element("model_stream", i)
		s.Group = cmp.Or(s.Group, "topsail-"+s.Name)
		job := s.Job()
		l.checked(path, fmt.Sprintf("model stream %q: ", s.Name), job.Check())
		for _, err := range s.problems() {
			l.checked(path, "", errors.Join(fmt.Errorf("model stream %q: %w", s.Name, err)))
		}
		l.nameStream(path, s.Name)
		all = append(all, s)
	}
	return all
}

// problems are what is wrong with where the updates are and go; the job checks the rest.
func (s *ModelStream) problems() []error {
	errs := s.Source.problems(s.Name)
	if s.API == "" {
		return errs
	}
	if u, err := url.Parse(s.API); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		errs = append(errs, fmt.Errorf("api %q must be a URL such as http://127.0.0.1:1338, without a user and a query", s.API))
	}
	return errs
}

// nameStream holds the names of streams of both kinds to be there once.
func (l *loader) nameStream(path, name string) {
	if first, twice := l.named[name]; twice {
		l.wrong(path+".name", "stream %q is already defined in line %d", name, l.file.line(first))
		return
	}
	l.named[name] = path
}

// servedStreams looks for the streams that this process is to serve.
func (l *loader) servedStreams() {
	for _, name := range l.doc.Streaming.Only {
		if _, known := l.named[name]; !known && len(l.named) > 0 {
			l.disagree("streams.only", "streams.only names stream %q, which is not in this file%s", name, schema.DidYouMean(name, keys(l.named)))
		}
	}
}
