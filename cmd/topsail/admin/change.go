package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/web/api"
)

// changes gives a command what all that change something have.
func changes(c *cobra.Command) *cobra.Command {
	c.Flags().Bool("dry-run", false, "show what would change, and change nothing")
	return c
}

// deletes is changes for commands that take something away.
func deletes(c *cobra.Command) *cobra.Command { return changes(confirms(c)) }

// confirms gives a command what all have that ask before they do what cannot be undone.
func confirms(c *cobra.Command) *cobra.Command {
	c.Flags().BoolP("yes", "y", false, "do not ask for confirmation")
	return c
}

// sure asks whether something is to be done, unless --yes says so already. Without a terminal it fails.
func (k *call) sure(question string, args ...any) (bool, error) {
	if k.flag("yes") {
		return true, nil
	}
	return k.Ask(k.ctx, screen.Clean(fmt.Sprintf(question, args...)))
}

// change sends a request, or dry-runs it, and prints the answer, or for people a sentence.
func (k *call) change(r apiclient.Request, done string, args ...any) error {
	if k.dryRun() {
		_, err := k.preview(r, true)
		return err
	}
	raw, err := k.Do(k.ctx, nil, r)
	if err != nil {
		return err
	}
	k.say(done, args...)
	if k.format == "json" {
		return k.json(raw)
	}
	return nil
}

// remove is change for what takes something away: people see what it does first.
func (k *call) remove(r apiclient.Request, question, done string, args ...any) error {
	if !k.dryRun() && !k.flag("yes") {
		if !k.Asks {
			return screen.ErrNoTerminal
		}
		if _, err := k.preview(r, false); err != nil {
			return err
		}
		if sure, err := k.sure(question, args...); err != nil || !sure {
			return err
		}
	}
	return k.change(r, done, args...)
}

// preview says what a request would do; quiet says that it is the answer and not
// something on the way to one.
func (k *call) preview(r apiclient.Request, answer bool) (*api.DryRun, error) {
	r.Query = maps.Clone(r.Query)
	if r.Query == nil {
		r.Query = url.Values{}
	}
	r.Query.Set("dry_run", "true")
	var would api.DryRun
	raw, err := k.Do(k.ctx, &would, r)
	if err != nil {
		return nil, err
	}
	if answer && k.format == "json" {
		return &would, k.json(raw)
	}
	out := k.Err
	if answer {
		out = k.Out
	}
	for _, line := range append(changeLines(would.Changes), would.Effects...) {
		fmt.Fprintln(out, screen.CleanLines(line))
	}
	if len(would.Changes)+len(would.Effects) == 0 {
		fmt.Fprintln(out, "nothing would change")
	}
	return &would, nil
}

// create is a request that makes something, and may be sent again: what is there and equal is no conflict.
func create(body any, path ...string) apiclient.Request {
	return apiclient.Request{Method: http.MethodPost, Path: path, Body: body, Repeat: true}
}

// patch is a request that changes some members of something.
func patch(members map[string]any, path ...string) apiclient.Request {
	return apiclient.Request{Method: http.MethodPatch, Path: path, Body: members, Type: "application/merge-patch+json"}
}

// put is a request that sets something.
func put(body any, path ...string) apiclient.Request {
	return apiclient.Request{Method: http.MethodPut, Path: path, Body: body}
}

var signs = map[string]string{"create": "+", "update": "~", "delete": "-"}

// changeLines are changes for people: an object in a line, and below it the members that
// change.
func changeLines(all []api.ObjectChange) []string {
	var lines []string
	for _, c := range all {
		sign := signs[c.Action]
		if sign == "" {
			sign = "?"
		}
		lines = append(lines, screen.Clean(fmt.Sprintf("%s %s %s", sign, c.Kind, c.Name)))
		if c.Action == "update" {
			for _, member := range memberLines(c.Before, c.After) {
				lines = append(lines, "    "+member)
			}
		}
	}
	return lines
}

const (
	maxShown = 60 // characters of a value
	absent   = "(none)"
)

// memberLines say which members of an object change, in the order of their names. What
// is in an env may be a secret.
func memberLines(before, after any) []string {
	old, now := map[string]string{}, map[string]string{}
	flatten("", before, old)
	flatten("", after, now)
	names := maps.Clone(old)
	maps.Copy(names, now)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, to := old[name], now[name]
		switch {
		case from == to:
		case name == "env" || strings.HasPrefix(name, "env."):
			lines = append(lines, screen.Clean(name)+" changes")
		default:
			lines = append(lines, fmt.Sprintf("%s: %s → %s", screen.Clean(name), value(from), value(to)))
		}
	}
	return lines
}

func value(text string) string {
	if text == "" {
		return absent
	}
	return screen.Short(screen.Clean(text), maxShown)
}

// flatten writes the members of a JSON object, those of objects in it with both names.
func flatten(name string, v any, into map[string]string) {
	object, ok := v.(map[string]any)
	if !ok {
		if text, err := json.Marshal(v); err == nil && v != nil && name != "" {
			into[name] = string(text)
		}
		return
	}
	for member, v := range object {
		if name != "" {
			member = name + "." + member
		}
		flatten(member, v, into)
	}
}
