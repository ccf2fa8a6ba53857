package schemaregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/topsail-serving/topsail/stream/mapping"
)

// Options say where the registry is, and the name to use there. URL is required.
type Options struct {
	URL      string
	Username string
	Password func() (string, error) // with Username
	HTTP     *http.Client           // nil: one without TLS certificates
	Agent    string
}

const (
	answerWithin = 10 * time.Second
	maxAnswer    = 4 << 20 // bytes
	maxDepends   = 64      // schemas that one names, and those that these name
)

// Registry is a mapping.Registry. Many goroutines use it.
type Registry struct{ client *sr.Client }

// New makes a registry, which is asked when it is needed.
func New(opt Options) (*Registry, error) {
	client := &http.Client{Timeout: answerWithin}
	if opt.HTTP != nil {
		*client = *opt.HTTP
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
	}
	client.Transport = bounded{client.Transport}
	opts := []sr.ClientOpt{sr.URLs(opt.URL), sr.HTTPClient(client), sr.UserAgent(opt.Agent)}
	if opt.Username != "" {
		opts = append(opts, sr.PreReq(func(req *http.Request) error {
			password, err := opt.Password()
			if err == nil {
				req.SetBasicAuth(opt.Username, password)
			}
			return err
		}))
	}
	made, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("make a client of the schema registry: %w", err)
	}
	return &Registry{made}, nil
}

// bounded lets no answer be larger than maxAnswer.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = body{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

type body struct {
	io.Reader
	io.Closer
}

// Schema implements mapping.Registry.
func (r *Registry) Schema(ctx context.Context, id int) (mapping.Schema, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	got, err := r.client.SchemaByID(ctx, id)
	switch {
	case isCode(err, sr.ErrSchemaNotFound.Code):
		return mapping.Schema{}, mapping.ErrUnknownSchema
	case err != nil:
		return mapping.Schema{}, refusal(err)
	}
	schema := mapping.Schema{Format: formatOf(got.Type), Text: got.Schema}
	d := dependencies{client: r.client, seen: map[sr.SchemaReference]bool{}}
	err = d.add(ctx, got.References)
	schema.References = d.all
	return schema, err
}

func formatOf(t sr.SchemaType) mapping.Format {
	switch t {
	case sr.TypeAvro:
		return mapping.Avro
	case sr.TypeProtobuf:
		return mapping.Protobuf
	}
	return mapping.JSON
}

// dependencies are the schemas that a schema names, those first that others need.
type dependencies struct {
	client *sr.Client
	seen   map[sr.SchemaReference]bool
	all    []mapping.Reference
}

func (d *dependencies) add(ctx context.Context, named []sr.SchemaReference) error {
	for _, one := range named {
		if d.seen[one] {
			continue
		}
		if d.seen[one] = true; len(d.seen) > maxDepends {
			return fmt.Errorf("%w: it needs more than %d others", mapping.ErrBadSchema, maxDepends)
		}
		got, err := d.client.SchemaByVersion(ctx, one.Subject, one.Version)
		switch {
		case isCode(err, sr.ErrSubjectNotFound.Code) || isCode(err, sr.ErrVersionNotFound.Code):
			return fmt.Errorf("%w: it names %s, version %d of subject %s, which is missing", mapping.ErrBadSchema, one.Name, one.Version, one.Subject)
		case err != nil:
			return refusal(err)
		}
		if err := d.add(ctx, got.References); err != nil {
			return err
		}
		d.all = append(d.all, mapping.Reference{Name: one.Name, Text: got.Schema.Schema})
	}
	return nil
}

// Register implements mapping.Registry.
func (r *Registry) Register(ctx context.Context, subject string, s mapping.Schema, add bool) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	schema := sr.Schema{Schema: s.Text, Type: typeOf(s.Format)}
	if add {
		id, err := r.client.RegisterSchema(ctx, subject, schema, -1, -1)
		if isStatus(err, http.StatusConflict) {
			return 0, fmt.Errorf("the schema is not compatible with those that the subject has: change it, or the compatibility of the subject: %w", err)
		}
		return id, refusal(err)
	}
	found, err := r.client.LookupSchema(ctx, subject, schema)
	if isCode(err, sr.ErrSubjectNotFound.Code) || isCode(err, sr.ErrSchemaNotFound.Code) {
		return 0, errors.New("the registry does not have the schema: register it, or set register = true")
	}
	return found.ID, refusal(err)
}

func typeOf(f mapping.Format) sr.SchemaType {
	switch f {
	case mapping.Protobuf:
		return sr.TypeProtobuf
	case mapping.JSON:
		return sr.TypeJSON
	}
	return sr.TypeAvro
}

// refusal is an error with what may be done about it.
func refusal(err error) error {
	answer, answered := errors.AsType[*sr.ResponseError](err)
	switch {
	case !answered:
		return err
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the registry refuses us (%d): check schema_registry_username and its password: %w", answer.StatusCode, shorter(answer))
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("there is no registry at this URL (404): check schema_registry: %w", shorter(answer))
	}
	return fmt.Errorf("the registry answers %d: %w", answer.StatusCode, shorter(answer))
}

// shorter is an answer for a log, which may be a page of HTML.
func shorter(answer *sr.ResponseError) error {
	const most = 300
	text := answer.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return errors.New(text)
}

func isCode(err error, code int) bool {
	answer, answered := errors.AsType[*sr.ResponseError](err)
	return answered && answer.ErrorCode == code
}

func isStatus(err error, status int) bool {
	answer, answered := errors.AsType[*sr.ResponseError](err)
	return answered && answer.StatusCode == status
}
