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
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Result is the answer to one input: an output, or an error of its own.
type Result struct {
	Output     serving.Value
	Confidence *float64 // optional
	Err        error
}

// Predict answers a batch: one result per input, in order. The inputs' data are
// valid until it returns.
type Predict func(inputs []serving.Value) []Result

// Config says where to connect and what is served there.
type Config struct {
	Sidecar     string // host:port
	Token       string
	TokenFile   string // holds the token, when Token is empty; read for every connection
	Model       serving.ModelID
	InputType   serving.InputType // 0: any
	InputLength int               // 0: any
	Replica     string
	Corrector   Corrector    // nil: the model does not learn while it serves
	Log         *slog.Logger // of failed corrections; nil: nothing is logged

	// Stages is what the version says of the stages of a pipeline, for ServePipeline.
	Stages serving.Pipeline

	stageWorker stageWorker // of a worker of a pipeline
}

// FromEnv reads the configuration that a sidecar's environment gives.
func FromEnv() (Config, error) {
	cfg := Config{
		Sidecar: os.Getenv("TOPSAIL_SIDECAR"),
		Token:   os.Getenv("TOPSAIL_TOKEN"),
		Model:   serving.ModelID{Model: os.Getenv("TOPSAIL_MODEL"), Version: os.Getenv("TOPSAIL_VERSION")},
		Replica: os.Getenv("TOPSAIL_REPLICA"),

		TokenFile: os.Getenv("TOPSAIL_TOKEN_FILE"),
	}
	if cfg.Sidecar == "" {
		return cfg, fmt.Errorf("TOPSAIL_SIDECAR is not set: this program is a model container, to be named as the command of a [[model]] and started by topsail")
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
	if text := os.Getenv("TOPSAIL_STAGES"); text != "" {
		if cfg.Stages, err = serving.ParsePipeline([]byte(text)); err != nil {
			return cfg, fmt.Errorf("TOPSAIL_STAGES: %w", err)
		}
	}
	return cfg, nil
}

// Serve answers batches until ctx ends; then it finishes the batch in hand and
// returns nil. It connects again when the connection is lost, and returns an
// error only when the sidecar refuses the connection.
func Serve(ctx context.Context, cfg Config, predict Predict) error {
	learning := newLearning(cfg.Corrector, cfg.logger())
	for ctx.Err() == nil {
		if err := serveOnce(ctx, cfg, predict, learning); errors.Is(err, rpc.ErrRefused) {
			return err
		}
		select {
		case <-time.After(redial + rand.N(redial)):
		case <-ctx.Done():
		}
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
func serveOnce(ctx context.Context, cfg Config, predict Predict, learning *learning) error {
	var dialer net.Dialer
	nc, err := dialer.DialContext(ctx, "tcp", cfg.Sidecar)
	if err != nil {
		return err
	}
	token, err := cfg.token()
	if err != nil {
		nc.Close()
		return err
	}
	conn, err := rpc.Connect(ctx, nc, rpc.Hello{
		Minor: rpc.Minor, Role: rpc.RoleContainer, Features: rpc.FeatureLZ4 | rpc.FeatureStages, MaxFrame: rpc.MaxFrame,
		Name: cfg.Replica, Token: token, Software: "topsail gocontainer",
	})
	if err != nil {
		return err
	}
	announcement := rpc.Announcement{ID: 1, State: rpc.StateReady, InputType: cfg.InputType, InputLength: cfg.InputLength, Model: cfg.Model, Stage: cfg.stageWorker.stage, Pipeline: cfg.stageWorker.pipeline}
	if err := conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, announcement)); err != nil {
		return err
	}
	w := &worker{conn: conn, predict: predict, learning: learning, batches: make(chan []byte, 1)}
	return w.run(ctx)
}

// token is what the sidecar wants to see. A sidecar that listens has written its
// file, so the file is read once the connection stands: one of a sidecar before it
// would be refused.
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
