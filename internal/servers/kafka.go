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
	// Controller is the port of a KafkaController; 0: the broker is its own. A broker that
	// is killed in the middle of a transaction needs one to come back well: one that is its
	// own controller begins with what it knew before, takes partitions for deleted until it
	// has registered anew, and forgets to end transactions in them.
	Controller int

	// Users are names and passwords. With some there is a second port for clients,
	// one after the first, which asks for them: with TLS, by PLAIN and SCRAM.
	Users       map[string]string
	Certificate string // with Users: a file with the certificate of that port and its key, in PEM

	Settings []string // more lines of its properties
}

// kafkaCluster is the id of every cluster of one Kafka.
const kafkaCluster = "dG9wc2FpbC10ZXN0cy0wMQ"

// kafkaFormatWithin bounds the formatting of a folder, which is a JVM's start.
const kafkaFormatWithin = time.Minute

// Kafka is a Kafka of one broker that keeps its data in dir. It takes three ports from
// port on; the first is for clients, without TLS.
//
// It sees sooner than others that somebody is gone: members of groups may have a
// session timeout of half a second, transactions end a second after their timeout, and
// a broker that was killed is back in four seconds. Rebalances begin at once.
func Kafka(dir string, port int, opt KafkaOptions) (*Server, error) {
	s := &Server{Name: "kafka", Addr: address(port), ready: kafkaReady}
	return s, s.kafka(dir, kafkaProperties(dir, port, opt), opt.Users)
}

// KafkaController is what brokers ask who leads, in a process of its own. It takes one port.
func KafkaController(dir string, port int) (*Server, error) {
	s := &Server{Name: "kafka-controller", Addr: address(port), ready: kafkaAnswers}
	return s, s.kafka(dir, kafkaControllerProperties(dir, port), nil)
}

// kafka prepares a process of Kafka.
func (s *Server) kafka(dir, properties string, users map[string]string) error {
	jars, err := Binary("kafka")
	if err != nil {
		return err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return errors.New("java is not installed; on Debian: apt-get install default-jre-headless")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "kafka.properties")
	if err := os.WriteFile(file, []byte(properties), 0o600); err != nil {
		return err
	}
	// One compiler and one collector: it starts in half the time, and leaves the cores to tests.
	argv := []string{java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*")}
	s.argv, s.log = append(argv, "kafka.Kafka", file), filepath.Join(dir, "kafka.log")
	return kafkaFormat(dir, argv, file, users)
}

func kafkaControllerProperties(dir string, port int) string {
	return fmt.Sprintf(`
process.roles=controller
node.id=100
listeners=CONTROLLER://%s
controller.listener.names=CONTROLLER
controller.quorum.voters=100@%s
log.dirs=%s
%s`, address(port), address(port), filepath.Join(dir, "data"), kafkaTimes)
}

// kafkaTimes are those of controllers and of brokers that are their own.
const kafkaTimes = `
controller.quorum.election.timeout.ms=200
controller.quorum.election.backoff.max.ms=100
broker.heartbeat.interval.ms=300
broker.session.timeout.ms=4000
`

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
	roles, own, voter := "broker,controller", ",CONTROLLER://"+address(port+2), "1@"+address(port+2)
	if opt.Controller != 0 {
		roles, own, voter = "broker", "", "100@"+address(opt.Controller)
	}
	return fmt.Sprintf(`
process.roles=%s
node.id=1
listeners=%s%s
advertised.listeners=%s
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
controller.listener.names=CONTROLLER
controller.quorum.voters=%s
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
`, roles, listeners, own, listeners, voter, filepath.Join(dir, "data")) + kafkaTimes + secure + strings.Join(opt.Settings, "\n") + "\n"
}

// kafkaFormat makes the folder of the data, once.
func kafkaFormat(dir string, java []string, properties string, users map[string]string) error {
	if _, err := os.Stat(filepath.Join(dir, "data", "meta.properties")); err == nil {
		return nil
	}
	argv := slices.Concat(java, []string{"kafka.tools.StorageTool", "format", "--cluster-id", kafkaCluster, "--config", properties})
	for name, password := range users {
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			argv = append(argv, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, name, password))
		}
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
	// Metadata, version 1: correlation 0, no client id, no topics. Its answer begins with the
	// count of brokers.
	count, err := kafkaAsk(ctx, addr, []byte{0, 3, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0})
	if err == nil && count != 1 {
		err = fmt.Errorf("it says that there are %d brokers", count)
	}
	return err
}

// kafkaAnswers asks for the versions of its protocol.
func kafkaAnswers(ctx context.Context, addr string) error {
	_, err := kafkaAsk(ctx, addr, []byte{0, 18, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
	return err
}

// kafkaAsk sends a request and returns the first number of its answer.
func kafkaAsk(ctx context.Context, addr string, request []byte) (uint32, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return 0, err
		}
	}
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return 0, err
	}
	var answer [12]byte // size, correlation, the number
	_, err = io.ReadFull(conn, answer[:])
	return binary.BigEndian.Uint32(answer[8:]), err
}
