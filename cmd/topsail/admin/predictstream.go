package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
)

// predictStream asks for an answer in parts, and prints each as it comes. --timeout is for the
// first part, and then for each after the one before.
func predictStream(k *call, body map[string]any) error {
	said, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	timeout, _ := k.cmd.Flags().GetDuration("timeout") // newCall has read it
	p := partsPrinter{call: k, begun: time.Now()}
	response, err := k.Open(k.ctx, apiclient.Request{
		Method: http.MethodPost, Path: []string{k.args[0], "predict"}, Accept: "text/event-stream",
		Content: bytes.NewReader(said), Length: int64(len(said)),
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return errors.New("the gateway does not answer in parts: update it, or leave out --stream")
	}
	late := time.AfterFunc(timeout, func() { response.Body.Close() })
	defer late.Stop()
	onTime := true
	err = apiclient.ReadEvents(response.Body, func(e apiclient.Event) error {
		onTime = late.Stop() && onTime // printing may take its time
		p.heard = p.event(e)
		late.Reset(timeout)
		return p.heard
	})
	onTime = late.Stop() && onTime
	return errors.Join(p.finish(), p.ended(err, onTime))
}

// partsPrinter prints the events of an answer in parts.
type partsPrinter struct {
	*call
	begun, first time.Time // when the first part came; zero: none has
	open         bool      // the line on standard output is not finished
	heard        error     // what the last event says
}

// errEnded is an answer that has come whole.
var errEnded = errors.New("the answer has ended")

// event prints one event. It fails with the end of the answer, too.
func (p *partsPrinter) event(e apiclient.Event) error {
	if p.format == "json" && json.Valid(e.Data) {
		if err := p.line(e.Data); err != nil {
			return err
		}
	}
	switch e.Topic {
	case "message":
		var part prediction
		if err := json.Unmarshal(e.Data, &part); err != nil || part.Output == nil {
			return errors.New("the gateway sends a part that this topsail does not understand: is it of the same release?")
		}
		if p.first.IsZero() {
			p.first = time.Now()
		}
		return p.part(part.Output)
	case "end":
		var answer prediction
		if err := json.Unmarshal(e.Data, &answer); err != nil {
			return errors.New("the gateway sends an answer that this topsail does not understand: is it of the same release?")
		}
		if err := p.end(answer); err != nil {
			return err
		}
		return errEnded
	case "error":
		cut := struct{ Error, Cause string }{Error: "Answer cut"}
		_ = json.Unmarshal(e.Data, &cut) // what is not understood leaves that it was cut
		return fmt.Errorf("%s: %s", cut.Error, cut.Cause)
	}
	return nil // of a newer gateway
}

// part prints a text as it is, and any other output in a line of its own.
func (p *partsPrinter) part(output json.RawMessage) error {
	if p.format == "json" {
		return nil
	}
	var text string
	if output[0] != '"' || json.Unmarshal(output, &text) != nil {
		if err := p.finish(); err != nil {
			return err
		}
		return p.line(output)
	}
	if p.Terminal {
		text = screen.CleanLines(text)
	}
	if text != "" {
		p.open = !strings.HasSuffix(text, "\n")
	}
	_, err := p.Out.Write([]byte(text))
	return err
}

// end prints what there is to say beside the parts, and the output where none came.
func (p *partsPrinter) end(answer prediction) error {
	if p.format == "json" {
		return nil
	}
	if err := p.finish(); err != nil {
		return err
	}
	took := "all after " + screen.Micros(max(1, time.Since(p.begun).Microseconds()))
	if p.first.IsZero() {
		p.say("%s", answer.Output)
	} else {
		took = "the first part after " + screen.Micros(max(1, p.first.Sub(p.begun).Microseconds())) + ", " + took
	}
	for _, note := range append(answer.notes(), took) {
		fmt.Fprintln(p.Err, screen.CleanLines(note))
	}
	return nil
}

// finish ends the line of a text.
func (p *partsPrinter) finish() error {
	if !p.open {
		return nil
	}
	p.open = false
	_, err := p.Out.Write([]byte("\n"))
	return err
}

// line prints JSON in one line.
func (p *partsPrinter) line(raw json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fmt.Errorf("the gateway's answer is not valid JSON: %w", err)
	}
	out := line.String()
	if p.Terminal {
		out = screen.CleanLines(out)
	}
	_, err := p.Out.Write([]byte(out + "\n"))
	return err
}

// ended is what a command with an answer that ended with err fails with; onTime says that no
// part was late.
func (p *partsPrinter) ended(err error, onTime bool) error {
	switch {
	case errors.Is(err, errEnded):
		return nil
	case p.heard != nil:
		return p.heard
	case p.ctx.Err() != nil:
		return p.ctx.Err()
	}
	away := &apiclient.Away{Server: address(text(p.cmd, "gateway"), envGateway, defaultGateway, os.Getenv), Err: err}
	if !onTime {
		away.Err, away.Next = context.DeadlineExceeded, "--timeout may be longer"
	}
	return away
}
