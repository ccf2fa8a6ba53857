package servers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// KafkaOptions change what Kafka makes.
type KafkaOptions struct {
	// Users are names and passwords. With some there is a second port for clients,
	// one after the first, which asks for them: with TLS, by PLAIN and SCRAM.
	Users       map[string]string
	Certificate string // with Users: a file with the certificate of that port and its key, in PEM

	Settings  []string // more lines of its properties
	LongLived bool     // it has Java's own compilers and collector, with which it starts later and answers sooner

	Features []string // of its cluster, where they are not the newest, such as transaction.version=1
}

// kafkaCluster is the id of every cluster of one Kafka.
const kafkaCluster = "dG9wc2FpbC10ZXN0cy0wMQ"

// kafkaFormatWithin bounds the formatting of a folder, which is a JVM's start.
const kafkaFormatWithin = time.Minute

// Kafka is a Kafka of one broker that keeps its data in dir. It takes three ports from
// port on; the first is for clients, without TLS.
//
// It sees sooner than others that a member is gone: members of groups may have a
// session timeout of half a second, transactions end a second after their timeout, and
// a broker that was killed is back in four seconds. Rebalances begin at once.
func Kafka(dir string, port int, opt KafkaOptions) (*Server, error) {
	jars, err := Binary("kafka")
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, errors.New("java is not installed; on Debian: apt-get install default-jre-headless")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "kafka.properties")
	if err := os.WriteFile(file, []byte(kafkaProperties(dir, port, opt)), 0o600); err != nil {
		return nil, err
	}
	argv := []string{java, "-Xmx1g"} // as Kafka's own scripts have it
	if !opt.LongLived {
		// One compiler and one collector: it starts in half the time, and leaves the cores to tests.
		argv = []string{java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	}
	argv = append(argv, "-cp", filepath.Join(jars, "*"))
	return &Server{
		Name: "kafka", Addr: address(port), ready: kafkaReady,
		argv: append(argv, "kafka.Kafka", file), log: filepath.Join(dir, "kafka.log"),
	}, kafkaFormat(dir, argv, file, opt)
}

func kafkaProperties(dir string, port int, opt KafkaOptions) string {
	listeners := "PLAINTEXT://" + address(port)
	secure := ""
	if len(opt.Users) > 0 {
		listeners += ",SECURE://" + address(port+1)
		var plain strings.Builder
		for name, password := range opt.Users {
			fmt.Fprintf(&plain, " user_%s=%q", name, password)
		}
		secure = fmt.Sprintf(`
ssl.keystore.type=PEM
ssl.keystore.location=%s
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required%s;
listener.name.secure.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`, opt.Certificate, plain.String())
	}
	return fmt.Sprintf(`
process.roles=broker,controller
node.id=1
listeners=%s,CONTROLLER://%s
advertised.listeners=%s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
controller.listener.names=CONTROLLER
controller.quorum.voters=1@%s
log.dirs=%s
log.cleaner.dedupe.buffer.size=4194304
auto.create.topics.enable=false

offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1

group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
transaction.abort.timed.out.transaction.cleanup.interval.ms=500

controller.quorum.election.timeout.ms=200
controller.quorum.election.backoff.max.ms=100
broker.heartbeat.interval.ms=300
broker.session.timeout.ms=4000
`, listeners, address(port+2), listeners, address(port+2), filepath.Join(dir, "data")) + secure + strings.Join(opt.Settings, "\n") + "\n"
}

// kafkaFormat makes the folder of the data, once.
func kafkaFormat(dir string, java []string, properties string, opt KafkaOptions) error {
	if _, err := os.Stat(filepath.Join(dir, "data", "meta.properties")); err == nil {
		return nil
	}
	argv := slices.Concat(java, []string{"kafka.tools.StorageTool", "format", "--cluster-id", kafkaCluster, "--config", properties})
	for name, password := range opt.Users {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			argv = append(argv, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, name, password))
		}
	}
	for _, feature := range opt.Features {
		argv = append(argv, "--feature", feature)
	}
	ctx, cancel := context.WithTimeout(context.Background(), kafkaFormatWithin)
	defer cancel()
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("format %s for kafka: %w: %s", dir, err, out[max(0, len(out)-1<<10):])
	}
	return nil
}

// kafkaReady asks for the brokers: one that is not in service yet is not among them.
func kafkaReady(ctx context.Context, addr string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	// Metadata, version 1: its size, correlation 0, no client id, no topics.
	if _, err := conn.Write([]byte{0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}); err != nil {
		return err
	}
	var answer [12]byte // size, correlation, the number of brokers
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if count := binary.BigEndian.Uint32(answer[8:]); count != 1 {
		return fmt.Errorf("it says that there are %d brokers", count)
	}
	return nil
}
