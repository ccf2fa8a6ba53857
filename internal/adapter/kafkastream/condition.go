package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	repeatLog = 30 * time.Second // is how often a problem that lasts is said
	lasts     = 30 * time.Second // is for how long one counts that is not met again; what is tried is tried more often
)

// theGroup is what problems of the membership are about.
const theGroup = "the group"

// conditions says what goes wrong: when it begins, now and then while it lasts, and when
// it is over.
type conditions struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time // by what it is about
	met  map[string]met       // the same
}

// met is a problem when it was met last.
type met struct {
	err error
	at  time.Time
}

func newConditions(log *slog.Logger) *conditions {
	return &conditions{log: log, said: map[string]time.Time{}, met: map[string]met{}}
}

func (t *conditions) say(about, message string, err error) {
	t.mu.Lock()
	last, lasts := t.said[about]
	now := time.Now()
	t.met[about] = met{fmt.Errorf("%s: %w", message, err), now}
	quiet := lasts && now.Sub(last) < repeatLog
	if !quiet {
		t.said[about] = now
	}
	t.mu.Unlock()
	if !quiet {
		t.log.Warn(message, "of", about, "err", err)
	}
}

func (t *conditions) over(about, message string) {
	t.mu.Lock()
	_, was := t.said[about]
	delete(t.said, about)
	delete(t.met, about)
	t.mu.Unlock()
	if was {
		t.log.Info(message, "of", about)
	}
}

// err is what there is at present, or nil.
func (t *conditions) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []error
	for _, about := range slices.Sorted(maps.Keys(t.met)) {
		if m := t.met[about]; time.Since(m.at) < lasts {
			all = append(all, fmt.Errorf("%s: %w", about, m.err))
		} else {
			delete(t.met, about)
		}
	}
	return errors.Join(all...)
}

// outage says which brokers cannot be reached, and why a group does not come about. The
// client keeps trying by itself.
type outage struct{ conditions *conditions }

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
		o.conditions.say(addr, "cannot get into a broker of kafka; retrying", err)
	default:
		o.conditions.over(addr, "got into a broker of kafka again")
	}
}

// OnGroupManageError implements kgo.HookGroupManageError.
func (o outage) OnGroupManageError(err error) {
	o.conditions.say(theGroup, "not in the consumer group; retrying", err)
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
