package kafkastream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Broker says where Kafka is and how to get in. Addrs and Log are required.
type Broker struct {
	Addrs     []string               // host:port of some brokers
	TLS       *tls.Config            // nil: no TLS
	Mechanism string                 // of SASL: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: none
	Username  string                 // with Mechanism
	Password  func() (string, error) // with Mechanism; asked for every new connection, so that it may change
	Log       *slog.Logger

	dial func(ctx context.Context, network, addr string) (net.Conn, error) // of tests; nil: the usual one
}

// Bounds of every conversation with Kafka.
const (
	dialTimeout = 3 * time.Second
	ioTimeout   = 5 * time.Second // to write a request, and beyond the time that the broker may take to answer it
	callTimeout = 10 * time.Second

	fetchBytes          = 4 << 20 // that a broker sends at once, and that wait for Poll, before they are decompressed
	fetchPartitionBytes = 1 << 20 // of them of one partition; a single larger record comes nevertheless
	batchBytes          = 1 << 26 // a compressed batch must not become larger
)

func (b Broker) check() error {
	switch {
	case len(b.Addrs) == 0:
		return errors.New("kafka needs an address, such as 127.0.0.1:9092")
	case b.Mechanism == "" && b.Username != "":
		return errors.New("kafka has a username but no mechanism: set PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	case b.Mechanism != "" && (b.Username == "" || b.Password == nil):
		return fmt.Errorf("kafka's mechanism %s needs a username and a password", b.Mechanism)
	case b.Mechanism == "PLAIN" && b.TLS == nil && !loopback(b.Addrs):
		return errors.New("PLAIN shows the password to the network: use TLS, or SCRAM-SHA-512")
	}
	_, err := b.sasl()
	return err
}

func loopback(addrs []string) bool {
	for _, addr := range addrs {
		host, _, err := net.SplitHostPort(addr)
		if err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback() {
			return false
		}
	}
	return true
}

// client makes a client with more options; it dials when it is used.
func (b Broker) client(more ...kgo.Opt) (*kgo.Client, error) {
	opts, err := b.options(newConditions(b.Log))
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("make a client of kafka: %w", err)
	}
	return client, nil
}

// options are those of every client.
func (b Broker) options(conditions *conditions) ([]kgo.Opt, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(b.Addrs...),
		kgo.ClientID("topsail"),
		kgo.MaxVersions(versions(false)),
		kgo.WithLogger(clientLog{b.Log}),
		kgo.WithHooks(outage{conditions}),
		kgo.DisableClientMetrics(),
		kgo.DialTimeout(dialTimeout),
		kgo.RequestTimeoutOverhead(ioTimeout),
		kgo.RetryTimeout(callTimeout),
		kgo.RetryBackoffFn(backoff),
		kgo.MetadataMinAge(250 * time.Millisecond), // how soon a broker that moved is found
		kgo.MetadataMaxAge(time.Minute),            // how soon a topic or a partition that is new
		kgo.MaxDecompressBatchBytes(batchBytes),

		kgo.ProducerBatchCompression(kgo.Lz4Compression(), kgo.NoCompression()),
		kgo.ProducerLinger(0),

		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxBytes(fetchBytes),
		kgo.FetchMaxPartitionBytes(fetchPartitionBytes),
	}
	switch {
	case b.dial != nil:
		opts = append(opts, kgo.Dialer(b.dial))
	case b.TLS != nil:
		opts = append(opts, kgo.DialTLSConfig(b.TLS))
	}
	mechanism, err := b.sasl()
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, err
}

// versions are those of requests. Of the two that commit offsets they are those before topics have ids, and
// before a commit is part of a transaction by itself, unless all brokers have that.
func versions(implicit bool) *kversion.Versions {
	all := kversion.Stable()
	all.SetMaxKeyVersion(kmsg.OffsetCommit.Int16(), 9)
	all.SetMaxKeyVersion(kmsg.TxnOffsetCommit.Int16(), 4)
	if implicit {
		all.SetMaxKeyVersion(kmsg.TxnOffsetCommit.Int16(), 5)
	}
	return all
}

// implicit says whether what is written with the id of a transaction is part of it by itself, with the cluster's version 2 of
// transactions (KIP-890, Kafka 4): then neither topics nor offsets are announced first, which takes two requests.
func (b Broker) implicit(ctx context.Context, conditions *conditions) (bool, error) {
	opts, err := b.options(conditions)
	if err != nil {
		return false, err
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return false, fmt.Errorf("make a client of kafka: %w", err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	ask := kmsg.NewPtrApiVersionsRequest()
	ask.ClientSoftwareName, ask.ClientSoftwareVersion = "topsail", "1"
	answer, err := ask.RequestWith(ctx, client)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return slices.ContainsFunc(answer.FinalizedFeatures, func(f kmsg.ApiVersionsResponseFinalizedFeature) bool {
		return f.Name == "transaction.version" && f.MaxVersionLevel >= 2
	}), nil
}

// backoff is before the nth try again: at first very soon, since a coordinator that is in the middle of another step of the same
// transaction says that it cannot be asked now, and results wait for that. Then ever later, and not together with others who
// lost Kafka.
func backoff(failures int) time.Duration {
	longest := min(time.Millisecond<<min(2*failures, 10), time.Second)
	return longest/2 + rand.N(longest/2)
}

// sasl is how to get in; nil for without.
func (b Broker) sasl() (sasl.Mechanism, error) {
	password := func() (string, error) {
		password, err := b.Password()
		if err != nil {
			return "", fmt.Errorf("get the password of kafka: %w", err)
		}
		return password, nil
	}
	shake := func(context.Context) (scram.Auth, error) {
		pass, err := password()
		return scram.Auth{User: b.Username, Pass: pass}, err
	}
	switch b.Mechanism {
	case "":
		return nil, nil
	case "PLAIN":
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			pass, err := password()
			return plain.Auth{User: b.Username, Pass: pass}, err
		}), nil
	case "SCRAM-SHA-256":
		return scram.Sha256(shake), nil
	case "SCRAM-SHA-512":
		return scram.Sha512(shake), nil
	}
	return nil, fmt.Errorf("kafka's mechanism %q is none of PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512", b.Mechanism)
}
