// Package gocontainer serves a model written in Go: it connects to a sidecar,
// announces the model, and answers batches, as docs/protocol.md describes.
package gocontainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Result is the answer to one input: an output, or an error of its own.
type Result struct {
	Output     serving.Value
	Outputs    []serving.Value // instead of Output: named ones, in any order
	Confidence *float64        // optional
	Qualifiers []serving.Value // optional: named values beside the output
	Err        error
}

// Predict answers a batch: one result per input, in order. The inputs' data are
// valid until it returns.
type Predict func(inputs []serving.Value) []Result

// Query is one input of a batch, with whose it is.
type Query struct {
	Inputs  []serving.Value // in the order of the signature; one without a name where there is none
	User    string
	Context string        // only for a version with session = true
	Left    time.Duration // until its answer must be there; below 0: as long as it takes
	Parts   bool          // of ServeStreams: its answer is wanted in parts
}

// Input is the input of a name, or nil.
func (q *Query) Input(name string) *serving.Value {
	for i := range q.Inputs {
		if q.Inputs[i].Name == name {
			return &q.Inputs[i]
		}
	}
	return nil
}

// PredictQueries is a Predict that gets named inputs and sessions.
type PredictQueries func(queries []Query) []Result

// Config says where to connect and what is served there.
type Config struct {
	Sidecar     string // host:port
	Token       string
	TokenFile   string // holds the token, when Token is empty; read for every connection
	Model       serving.ModelID
	InputType   serving.InputType  // 0: any
	InputLength int                // 0: any
	Signature   *serving.Signature // nil: none
	Replica     string
	Corrector   Corrector    // nil: the model does not learn while it serves
	Log         *slog.Logger // of failed corrections; nil: nothing is logged

	// Dial reaches the sidecar; nil is TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Concurrency is how many queries ServeStreams takes side by side; 0: the sidecar finds it out.
	Concurrency uint32
	// Metrics is called at most once a second, and returns totals since the container started; nil:
	// the model has no metrics of its own.
	Metrics func() []rpc.Metric
	// Ready runs while the container serves, until ctx ends, and says when the model becomes ready and
	// when it is loading again. It is loading at first. nil: it is always ready.
	Ready func(ctx context.Context, set func(ready bool))

	// ModelsDir is where the sidecar of a host has bundles unpacked, for ServeHost.
	ModelsDir string

	// Stages is what the version says of the stages of a pipeline, for ServePipeline.
	Stages serving.Pipeline

	one         bool        // the model takes one value per input
	hosts       bool        // it loads versions of other models
	stageWorker stageWorker // of a worker of a pipeline
}

// FromEnv reads the configuration that a sidecar's environment gives.
func FromEnv() (Config, error) {
	cfg := Config{
		Sidecar: os.Getenv("TOPSAIL_SIDECAR"),
		Token:   os.Getenv("TOPSAIL_TOKEN"),
		Model:   serving.ModelID{Model: os.Getenv("TOPSAIL_MODEL"), Version: os.Getenv("TOPSAIL_VERSION")},
		Replica: os.Getenv("TOPSAIL_REPLICA"),

		TokenFile: os.Getenv("TOPSAIL_TOKEN_FILE"), ModelsDir: os.Getenv("TOPSAIL_MODELS_DIR"),
	}
	if cfg.Sidecar == "" {
		return cfg, fmt.Errorf("TOPSAIL_SIDECAR is not set: this program is a model container: name it as the command of a [[model]], and topsail starts it")
	}
	var err error
	if t := os.Getenv("TOPSAIL_INPUT_TYPE"); t != "" {
		if cfg.InputType, err = serving.ParseInputType(t); err != nil {
			return cfg, fmt.Errorf("TOPSAIL_INPUT_TYPE: %w", err)
		}
	}
	if n := os.Getenv("TOPSAIL_INPUT_LENGTH"); n != "" {
		if cfg.InputLength, err = strconv.Atoi(n); err != nil {
			return cfg, fmt.Errorf("TOPSAIL_INPUT_LENGTH: %w", err)
		}
	}
	if cfg.Signature, err = serving.ParseSignature([]byte(os.Getenv("TOPSAIL_SIGNATURE"))); err != nil {
		return cfg, fmt.Errorf("TOPSAIL_SIGNATURE: %w", err)
	}
	if text := os.Getenv("TOPSAIL_STAGES"); text != "" {
		if cfg.Stages, err = serving.ParsePipeline([]byte(text)); err != nil {
			return cfg, fmt.Errorf("TOPSAIL_STAGES: %w", err)
		}
	}
	return cfg, nil
}

// Serve answers batches until ctx ends; then it finishes the running batch and returns nil. It
// connects again when the connection is lost, and returns an error only when the sidecar refuses
// the connection.
func Serve(ctx context.Context, cfg Config, predict Predict) error {
	if cfg.Signature != nil && len(cfg.Signature.Inputs) > 1 {
		return fmt.Errorf("the signature has %d inputs: use ServeQueries, which gets them by name", len(cfg.Signature.Inputs))
	}
	cfg.one = true
	return ServeQueries(ctx, cfg, predict.queries())
}

// queries is the same for queries of one value each.
func (p Predict) queries() PredictQueries {
	var inputs []serving.Value
	return func(queries []Query) []Result {
		inputs = inputs[:0]
		for _, q := range queries {
			inputs = append(inputs, q.Inputs[0])
		}
		return p(inputs)
	}
}

// ServeQueries is Serve for a model with named inputs, or one that wants to know whose queries are.
func ServeQueries(ctx context.Context, cfg Config, predict PredictQueries) error {
	learning := newLearning(cfg.Corrector, cfg.Metrics, cfg.logger())
	cfg.Concurrency = 0
	return cfg.serve(ctx, func(ctx context.Context, _ *announcer, conn *rpc.Conn) error {
		w := &worker{replier: newReplier(conn, &cfg), predict: predict, one: cfg.one, cpus: cfg.stageWorker.cpus, learning: learning, batches: make(chan rpc.Frame, 1)}
		return w.run(ctx)
	})
}

// answerer answers what comes on a connection until ctx ends or it is lost, and says why.
type answerer func(ctx context.Context, announcer *announcer, conn *rpc.Conn) error

// serve keeps up a connection on which answer answers, until ctx ends.
func (cfg *Config) serve(ctx context.Context, answer answerer) error {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	announcer := newAnnouncer(cfg)
	if cfg.Ready != nil {
		watching.Go(func() { cfg.Ready(ctx, announcer.setReady) })
	}
	for ctx.Err() == nil {
		if err := cfg.serveOnce(ctx, announcer, answer); errors.Is(err, rpc.ErrRefused) {
			return err
		}
		retry.Sleep(ctx, redial+rand.N(redial))
	}
	return nil
}

func (cfg *Config) logger() *slog.Logger {
	if cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return cfg.Log
}

// redial is the least wait before connecting again.
const redial = 100 * time.Millisecond

// serveOnce serves one connection and returns why it ended.
func (cfg *Config) serveOnce(ctx context.Context, announcer *announcer, answer answerer) error {
	dial := cfg.Dial
	if dial == nil {
		dial = dialTCP
	}
	nc, err := dial(ctx, cfg.Sidecar)
	if err != nil {
		return err
	}
	token, err := cfg.token()
	if err != nil {
		nc.Close()
		return err
	}
	conn, err := rpc.Connect(ctx, nc, rpc.Hello{
		Minor: rpc.Minor, Role: rpc.RoleContainer, Features: cfg.features(), MaxFrame: rpc.MaxFrame,
		Name: cfg.Replica, Token: token, Software: "topsail gocontainer",
	})
	if err != nil {
		return err
	}
	if err := announcer.connected(conn); err != nil {
		return err
	}
	return answer(ctx, announcer, conn)
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", addr)
}

func (cfg *Config) features() rpc.Features {
	features := rpc.FeatureLZ4 | rpc.FeatureStages | rpc.FeatureTensors
	if cfg.Concurrency > 0 || cfg.hosts {
		features |= rpc.FeatureParts
	}
	if cfg.hosts {
		features |= rpc.FeatureHost
	}
	return features
}

// token is the token for the sidecar. A sidecar that listens has written its file, so the file is
// read once the connection stands: one of a sidecar before it would be refused.
func (cfg *Config) token() ([]byte, error) {
	if cfg.Token != "" || cfg.TokenFile == "" {
		return []byte(cfg.Token), nil
	}
	text, err := os.ReadFile(cfg.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("TOPSAIL_TOKEN_FILE: %w", err)
	}
	token := bytes.TrimSpace(text)
	if len(token) == 0 {
		return nil, fmt.Errorf("TOPSAIL_TOKEN_FILE: %s is empty", cfg.TokenFile)
	}
	return token, nil
}
