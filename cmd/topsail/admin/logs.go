package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/web/api"
)

const (
	maxFollowed  = 20        // replicas at a time
	maxLine      = 256 << 10 // bytes of a line of output; longer ones are cut
	maxLogLines  = 10_000
	defaultLines = 100
)

// goneLogs is for the help of commands that print the output of replicas.
const goneLogs = "Replicas that are gone work, too, by their ids, as long as\n" +
	"their logs are kept: in local mode until their files are deleted, and on a cluster until Nomad collects their allocations."

func logsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:               "logs REPLICA|MODEL[:VERSION]",
		Short:             "Print the output of a replica, or of all replicas of a model",
		Long:              "Print the output of a replica, or of all replicas of a model. " + goneLogs,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete(logNames),
		Example:           "  topsail logs -f wine-forest:2",
	}
	logFlags(c)
	return single(c, func(k *call) error {
		replicas, err := k.meant(k.args[0])
		if err != nil {
			return err
		}
		err = k.logs(replicas)
		if p := (*apiclient.Problem)(nil); errors.As(err, &p) && p.Status == http.StatusNotFound {
			p.Detail = fmt.Sprintf("there is no replica %q, and no output of one that is gone: see `topsail replica list`", k.args[0])
		}
		return err
	})
}

func logNames(k *call) ([]string, error) {
	replicas, err := replicaNames(k)
	versions, err2 := versionNames(k)
	return append(replicas, versions...), errors.Join(err, err2)
}

func logFlags(c *cobra.Command) {
	c.Flags().BoolP("follow", "f", false, "follow new output")
	c.Flags().IntP("lines", "n", defaultLines, "number of lines from the end")
	c.Flags().String("stream", "", "on a cluster: all, stdout, stderr or sidecar (default all)")
	c.Flags().String("stage", "", "of this stage's workers only, among the last 10,000 lines")
}

// meant are the replicas that a name is for: the one of that id, which may be gone, or those of a model or of one of
// its versions.
func (k *call) meant(name string) ([]api.Replica, error) {
	all, _, err := items[api.Replica](k, 0, nil, "replicas")
	if err != nil {
		return nil, err
	}
	model, version, _ := strings.Cut(name, ":")
	var found []api.Replica
	for _, r := range all {
		if r.ID == name {
			return []api.Replica{r}, nil
		}
		if r.Model == model && (version == "" || r.Version == version) {
			found = append(found, r)
		}
	}
	switch {
	case len(found) == 0:
		return []api.Replica{{ID: name}}, nil // its output may still be kept
	case len(found) > maxFollowed:
		return nil, fmt.Errorf("%s has %d replicas, and at most %d can be read at a time: name one from `topsail replica list`", name, len(found), maxFollowed)
	}
	return found, nil
}

// logs prints the output of replicas as it comes, with their names if there are several.
func (k *call) logs(replicas []api.Replica) error {
	lines, err := k.cmd.Flags().GetInt("lines")
	if err != nil || lines < 0 || lines > maxLogLines {
		return misused("--lines must be between 0 and %d", maxLogLines)
	}
	query := url.Values{"lines": {strconv.Itoa(lines)}}
	if k.flag("follow") {
		query.Set("follow", "true")
	}
	for _, name := range []string{"stream", "stage"} {
		if value := text(k.cmd, name); value != "" {
			query.Set(name, value)
		}
	}
	out := &lineWriter{out: k.Out, clean: k.Terminal}
	group, ctx := errgroup.WithContext(k.ctx)
	for _, r := range replicas {
		name := ""
		if len(replicas) > 1 {
			name = r.ID + " | "
		}
		group.Go(func() error { return k.log(ctx, r.ID, query, name, out) })
	}
	err = group.Wait()
	if k.ctx.Err() != nil && k.flag("follow") {
		return nil // ctrl-C is how following ends
	}
	return err
}

func (k *call) log(ctx context.Context, id string, query url.Values, name string, out *lineWriter) error {
	response, err := k.Open(ctx, apiclient.Request{Path: []string{"replicas", id, "logs"}, Query: query, Accept: "text/plain"})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	from := bufio.NewReaderSize(response.Body, maxLine)
	for {
		line, more, err := from.ReadLine()
		if len(line) > 0 || err == nil {
			if err := out.line(name, line, more); err != nil {
				return err
			}
		}
		for more && err == nil {
			_, more, err = from.ReadLine()
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the output of %s ends early: %w", id, err)
		}
	}
}

// lineWriter writes whole lines of several sources.
type lineWriter struct {
	mu    sync.Mutex
	out   io.Writer
	clean bool // for a terminal, which obeys what is in a line
}

func (w *lineWriter) line(name string, line []byte, cut bool) error {
	shown := bytes.TrimSuffix(line, []byte("\r"))
	if w.clean {
		shown = []byte(screen.CleanLines(string(shown)))
	}
	if cut {
		shown = append(slices.Clip(shown), "…"...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := fmt.Fprintf(w.out, "%s%s\n", screen.Clean(name), shown)
	return err
}
