package main

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/containers/openaiengine"
	"github.com/topsail-serving/topsail/internal/obs"
)

// engineCommand is the containers that stand before inference engines.
func engineCommand() *cobra.Command {
	c := &cobra.Command{Use: "engine", Short: "Serve an inference engine as a model; the command of a [[model]]"}
	c.AddCommand(openAIEngineCommand())
	return c
}

func openAIEngineCommand() *cobra.Command {
	var cfg openaiengine.Config
	var keyFile string
	var concurrency uint32
	c := &cobra.Command{
		Use:   "openai",
		Short: "Serve an engine with OpenAI's HTTP API, such as vLLM, SGLang, llama.cpp or TGI",
		Args:  cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringVar(&cfg.URL, "url", "http://127.0.0.1:8000", "address of the engine")
	flags.StringVar(&cfg.Model, "model", "", "the engine's name of the model (default the first that it lists)")
	flags.StringVar(&keyFile, "api-key-file", "", "file with the engine's API key")
	flags.StringVar(&cfg.ReadyPath, "ready-path", "/health", "path that answers 200 when the engine is ready")
	flags.StringVar(&cfg.MetricsPath, "metrics-path", "/metrics", "path of the engine's metrics; empty: it has none")
	flags.Uint32Var(&concurrency, "concurrency", 0, "most queries that the engine gets at a time; 0: as many as have their first tokens in time")
	flags.DurationVar(&cfg.Idle, "idle", time.Minute, "longest pause between the chunks of an answer")
	flags.BoolVar(&cfg.ForwardCancel, "forward-cancel", true, "cancel the engine's request when its query is cancelled")
	c.RunE = func(c *cobra.Command, _ []string) error {
		container, err := gocontainer.FromEnv()
		if err != nil {
			return err
		}
		container.Concurrency = concurrency
		if keyFile != "" {
			key, err := os.ReadFile(keyFile)
			if err != nil {
				return fmt.Errorf("--api-key-file: %w", err)
			}
			cfg.APIKey = string(bytes.TrimSpace(key))
		}
		if cfg.Log, err = obs.NewLogger(os.Stderr, "info", "auto"); err != nil {
			return err
		}
		if container.ModelsDir != "" { // it is a host
			return openaiengine.ServeAdapters(c.Context(), cfg, container)
		}
		return openaiengine.Serve(c.Context(), cfg, container)
	}
	return c
}
