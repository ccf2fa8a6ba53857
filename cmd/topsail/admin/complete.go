package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// completing bounds what a shell waits for names.
const completing = time.Second

// names asks the API which names an argument can have.
type names func(*call) ([]string, error)

// complete completes arguments by their places. An unavailable server offers nothing.
func complete(kinds ...names) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(kinds) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx := c.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completing)
		defer cancel()
		c.SetContext(ctx)
		k, err := newCall(c, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer k.Close()
		found, err := kinds[len(args)](k)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found = slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, begun) || !plain(name) })
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// plain refuses names with which a server could make a shell do something.
func plain(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"'`$\\;&|<>(){}[]*?!#", r)
	})
}

func appNames(k *call) ([]string, error) {
	all, _, err := items[serving.App](k, 0, nil, "apps")
	return each(all, func(a serving.App) string { return a.Name }), err
}

// appNamesBeside asks the management API, for commands that call a gateway.
func appNamesBeside(k *call) ([]string, error) {
	server, err := connect(k.cmd, false)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	beside := *k
	beside.Client = server
	return appNames(&beside)
}

func modelNames(k *call) ([]string, error) {
	all, _, err := items[api.Model](k, 0, nil, "models")
	return each(all, func(m api.Model) string { return m.Name }), err
}

// versionNames are all versions as MODEL:VERSION.
func versionNames(k *call) ([]string, error) {
	all, _, err := items[api.Model](k, 0, nil, "models")
	var found []string
	for _, m := range all {
		for _, v := range m.Versions {
			found = append(found, m.Name+":"+v)
		}
	}
	return found, err
}

// versionsOf are the versions of the model that the first argument names.
func versionsOf(k *call) ([]string, error) {
	var m api.Model
	_, err := k.Get(k.ctx, &m, nil, "models", k.args[0])
	return m.Versions, err
}

func replicaNames(k *call) ([]string, error) {
	all, _, err := items[api.Replica](k, 0, nil, "replicas")
	return each(all, func(r api.Replica) string { return r.ID }), err
}

func keyNames(k *call) ([]string, error) {
	all, _, err := items[api.Key](k, 0, nil, "keys")
	return each(all, func(a api.Key) string { return a.ID }), err
}

func digests(k *call) ([]string, error) {
	all, _, err := items[api.Artifact](k, 0, nil, "artifacts")
	return each(all, func(a api.Artifact) string { return a.Digest }), err
}

func each[T any](all []T, name func(T) string) []string {
	found := make([]string, 0, len(all))
	for _, one := range all {
		found = append(found, name(one))
	}
	return found
}
