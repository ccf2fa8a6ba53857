package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/release"
)

// call is one command on its run: its arguments, its server, and where it writes.
type call struct {
	*apiclient.Client
	*screen.Screen
	ctx    context.Context
	cmd    *cobra.Command
	args   []string
	format string // "table", "wide" or "json"
	now    time.Time
}

const prefix = "/api/v1"

func newCall(c *cobra.Command, args []string) (*call, error) {
	format := text(c, "output")
	if err := checkOutput(format); err != nil {
		return nil, err
	}
	server, err := connect(c, c.Flag("gateway") != nil)
	if err != nil {
		return nil, err
	}
	return &call{
		Client: server,
		Screen: screen.New(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr(), os.Getenv),
		ctx:    c.Context(),
		cmd:    c,
		args:   args,
		format: format,
		now:    time.Now(),
	}, nil
}

// connect makes the client that the flags of a command ask for.
func connect(c *cobra.Command, gateway bool) (*apiclient.Client, error) {
	options := apiclient.Options{
		Server: address(text(c, "server"), envServer, defaultServer, os.Getenv),
		Prefix: prefix,
		Agent:  release.Agent(),
		Next:   "is `topsail local` running? Name another address with --server",
	}
	if gateway {
		options.Server = address(text(c, "gateway"), envGateway, defaultGateway, os.Getenv)
		options.Prefix = ""
		options.Next = "is `topsail local` running? Name another address with --gateway"
	}
	var err error
	if options.Key, err = key(text(c, "key-file"), os.Getenv); err != nil {
		return nil, err
	}
	options.CAFile = text(c, "ca-file")
	if options.Timeout, err = c.Flags().GetDuration("timeout"); err != nil || options.Timeout <= 0 {
		return nil, misused("--timeout must be a time above 0, such as 10s")
	}
	server, err := apiclient.New(options)
	if err != nil {
		return nil, usageError{err}
	}
	return server, nil
}

// show prints a document: as it came for programs, as a table for people.
func (k *call) show(raw json.RawMessage, table *screen.Table) error {
	if k.format == "json" {
		return k.json(raw)
	}
	return k.Write(table)
}

// showList is show for the items of a list.
func (k *call) showList(items []json.RawMessage, table *screen.Table, none string) error {
	if k.format == "json" {
		raw, err := json.Marshal(map[string]any{"items": items})
		if err != nil {
			return err
		}
		return k.json(raw)
	}
	if len(items) == 0 {
		fmt.Fprintln(k.Err, none)
		return nil
	}
	return k.Write(table)
}

// json prints one document. On a terminal its escapes do no harm, as JSON has none but its own.
func (k *call) json(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		return fmt.Errorf("the server's answer is not valid JSON: %w", err)
	}
	out := bytes.TrimSpace(pretty.Bytes())
	if k.Terminal {
		out = []byte(screen.CleanLines(string(out)))
	}
	_, err := k.Out.Write(append(out, '\n'))
	return err
}

// say prints a sentence for people. Programs have the JSON.
func (k *call) say(format string, args ...any) {
	if k.format != "json" {
		fmt.Fprintln(k.Out, screen.CleanLines(fmt.Sprintf(format, args...)))
	}
}

// wide says that a table may have its rarer columns.
func (k *call) wide() bool { return k.format == "wide" }

// flag reads a flag that the command has: false where it has none of that name.
func (k *call) flag(name string) bool {
	set, err := k.cmd.Flags().GetBool(name)
	return err == nil && set
}

func (k *call) dryRun() bool { return k.flag("dry-run") }

// read gets one document and prints it.
func read[T any](k *call, table func(T) *screen.Table, query url.Values, path ...string) error {
	var document T
	raw, err := k.Get(k.ctx, &document, query, path...)
	if err != nil {
		return err
	}
	return k.show(raw, table(document))
}

// items gets a list, of which most at most; 0: all.
func items[T any](k *call, most int, query url.Values, path ...string) ([]T, []json.RawMessage, error) {
	raw, err := k.List(k.ctx, most, query, path...)
	if err != nil {
		return nil, nil, err
	}
	all, err := decode[T](raw)
	return all, raw, err
}

// decode reads every item of a list.
func decode[T any](items []json.RawMessage) ([]T, error) {
	all := make([]T, len(items))
	for i, item := range items {
		if err := json.Unmarshal(item, &all[i]); err != nil {
			return nil, fmt.Errorf("this topsail does not understand the server's list: %w", err)
		}
	}
	return all, nil
}

// tag is the ETag of an object as it is now.
func (k *call) tag(path ...string) (string, error) {
	answer, err := k.Call(k.ctx, apiclient.Request{Path: path})
	if err != nil {
		return "", err
	}
	return answer.Header.Get("ETag"), nil
}

// deletion is a request that deletes.
func deletion(path ...string) apiclient.Request {
	return apiclient.Request{Method: http.MethodDelete, Path: path}
}
