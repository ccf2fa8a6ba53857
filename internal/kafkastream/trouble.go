package kafkastream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sayAgain is how often a trouble that lasts is said.
const sayAgain = 30 * time.Second

// theGroup is what troubles of the membership are about.
const theGroup = "the group"

// troubles says what goes wrong: when it begins, now and then while it lasts, and when
// it is over.
type troubles struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time // by whom or what it is about
}

func newTroubles(log *slog.Logger) *troubles {
	return &troubles{log: log, said: map[string]time.Time{}}
}

func (t *troubles) say(about, message string, err error) {
	t.mu.Lock()
	last, lasts := t.said[about]
	now := time.Now()
	quiet := lasts && now.Sub(last) < sayAgain
	if !quiet {
		t.said[about] = now
	}
	t.mu.Unlock()
	if !quiet {
		t.log.Warn(message, "of", about, "err", err)
	}
}

func (t *troubles) over(about, message string) {
	t.mu.Lock()
	_, was := t.said[about]
	delete(t.said, about)
	t.mu.Unlock()
	if was {
		t.log.Info(message, "of", about)
	}
}

// outage says which brokers cannot be reached, and why a group does not come about. The
// client keeps trying by itself.
type outage struct{ troubles *troubles }

var (
	_ kgo.HookBrokerConnect    = outage{}
	_ kgo.HookGroupManageError = outage{}
)

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (o outage) OnBrokerConnect(broker kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	addr := net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port)))
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed):
		return // by us
	case err != nil:
		o.troubles.say(addr, "cannot get into a broker of kafka; trying on", err)
	default:
		o.troubles.over(addr, "got into a broker of kafka again")
	}
}

// OnGroupManageError implements kgo.HookGroupManageError.
func (o outage) OnGroupManageError(err error) {
	o.troubles.say(theGroup, "not in the consumer group; trying on", err)
}

// clientLog takes what the client library says; it is about single requests.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelNone
}

func (l clientLog) Log(_ kgo.LogLevel, message string, pairs ...any) {
	l.log.Debug("kafka client: "+message, pairs...)
}
