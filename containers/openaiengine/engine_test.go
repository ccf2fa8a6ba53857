package openaiengine

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestConfigsThatAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"not the URL of a server": func(c *Config) { c.URL = "127.0.0.1:8000" },
		"not a path":              func(c *Config) { c.ReadyPath = "health" },
		"may pause":               func(c *Config) { c.Idle = 0 },
	} {
		cfg := testConfig()
		change(&cfg)
		if err := Serve(t.Context(), cfg, gocontainer.Config{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := Serve(t.Context(), testConfig(), gocontainer.Config{InputType: serving.Doubles}); err == nil || !strings.Contains(err.Error(), "input_type chat") {
		t.Error(err)
	}
}

// TestServe has a sidecar ask for an answer in parts, over loopback.
func TestServe(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodPost {
			stream(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`)(w, q)
		}
	}))
	defer server.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	cfg := testConfig()
	cfg.URL, cfg.Log = server.URL, slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, cfg, gocontainer.Config{Sidecar: ln.Addr().String(), Model: serving.ModelID{Model: "m", Version: "1"}})
	}()
	nc, err := ln.Accept()
	require.NoError(t, err)
	conn, err := rpc.Accept(t.Context(), nc, rpc.Hello{Role: rpc.RoleSidecar, Features: rpc.FeatureParts, MaxFrame: rpc.MaxFrame}, nil)
	require.NoError(t, err)
	var got []string
	err = conn.Run(t.Context(), func(f rpc.Frame) error {
		switch f.Kind {
		case rpc.KindAnnounce:
			list, err := rpc.ParseAnnounce(f.Body)
			if err == nil && list[0].State == rpc.StateReady {
				b := rpc.AppendPredictHead(nil, rpc.PredictHead{Batch: 1, Model: 1, Count: 1})
				conn.Send(rpc.KindPredict, 0, rpc.AppendAsk(b, &rpc.Ask{Budget: -1, Bits: rpc.AskParts, Payload: rpc.AppendPayload(nil, serving.Text(chat))}))
			}
			return err
		case rpc.KindReply:
			r, err := rpc.ParseReply(f)
			var a rpc.Answer
			for r.Next(&a) {
				got = append(got, fmt.Sprintf("%v %s %s", a.More, a.Message, a.Payload))
			}
			if r.End {
				stop()
			}
			return err
		case rpc.KindDrain:
			return conn.Send(rpc.KindBye, 0, rpc.AppendBye(nil, "all is answered"))
		}
		return nil
	})
	if err := <-served; err != nil {
		t.Error(err)
	}
	if len(got) != 2 || !strings.Contains(got[0], `"delta"`) || !strings.Contains(got[1], `"message"`) {
		t.Errorf("got %q (%v)", got, err)
	}
}

// What OpenAI's API asks an app for is of the input type chat; both types of text are taken.
func TestInputTypesOfAnEngine(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, of := range []serving.InputType{serving.Chat, serving.Strings} {
		if err := Serve(ctx, testConfig(), gocontainer.Config{InputType: of}); err != nil {
			t.Errorf("%v: %v", of, err)
		}
	}
}
