//go:build servers

package gateway_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// TestNoAnswerOfAnotherDefinitionInRedis is TestNoAnswerOfAnotherDefinition in Redis, and
// says whether its random stories show enough.
func TestNoAnswerOfAnotherDefinitionInRedis(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	port, err := servers.FreePort()
	require.NoError(t, err)
	server, err := servers.Redis(t.TempDir(), port)
	if err == nil {
		err = server.Start(t.Context())
	}
	require.NoError(t, err)
	defer server.Kill()
	var tally tally
	rapid.Check(t, func(rt *rapid.T) {
		client := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer client.Close()
		require.NoError(rt, client.FlushAll(t.Context()).Err())
		play(rt, network{listen: listenTCP}, &tally, func() (stores, error) {
			store, err := redisstore.Open(context.Background(), redisstore.Config{Server: redisclient.Server{Addrs: []string{server.Addr}}, Log: log})
			return stores{store, store}, err
		})
	})
	tally.check(t)
}

func (t *tally) check(test *testing.T) {
	test.Logf("%+v", *t)
	for what, enough := range map[string]bool{
		"half of the queries had replicas":                      2*t.could > t.asked,
		"four in five of those were answered":                   5*t.all > 4*t.could,
		"a quarter of the answers came from the cache":          4*t.cached > t.all,
		"each app answered a tenth of its queries":              len(t.answered) == len(apps),
		"feedback was learned":                                  t.fresh > 0 && t.learned > 0,
		"feedback was joined with records of other definitions": t.stale > 0,
	} {
		if !enough {
			test.Errorf("the test shows too little; not true: %s", what)
		}
	}
	for app, n := range t.answered {
		if 10*len(apps)*n < t.asked {
			test.Errorf("of %d queries %s answered %d", t.asked/len(apps), app, n)
		}
	}
}
