package grpcapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	googleproto "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/pipes"
	"github.com/topsail-serving/topsail/test/require"
)

// Calls go over TLS with the files that the other listeners have, and nothing else gets through.
func TestTLS(t *testing.T) {
	ca, dir := testca.New(t, "ours"), t.TempDir()
	own, callers := ca.Issue(t, "127.0.0.1"), ca.Issue(t, "caller")
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	files := access.TLS{CertFile: file("cert.pem", own.Cert), KeyFile: file("key.pem", own.Key), CAFile: file("ca.pem", ca.PEM)}
	certificate, err := tls.X509KeyPair(callers.Cert, callers.Key)
	require.NoError(t, err)
	ours, theirs := x509.NewCertPool(), x509.NewCertPool()
	ours.AppendCertsFromPEM(ca.PEM)
	theirs.AppendCertsFromPEM(testca.New(t, "theirs").PEM)
	trusting := credentials.NewTLS(&tls.Config{RootCAs: ours})
	for _, tt := range []struct {
		name     string
		required bool // a certificate of the client
		client   credentials.TransportCredentials
		code     codes.Code
	}{
		{"trusted", false, trusting, codes.OK},
		{"of another authority", false, credentials.NewTLS(&tls.Config{RootCAs: theirs}), codes.Unavailable},
		{"in the clear", false, insecure.NewCredentials(), codes.Unavailable},
		{"without a certificate", true, trusting, codes.Unavailable},
		{"with a certificate", true, credentials.NewTLS(&tls.Config{RootCAs: ours, Certificates: []tls.Certificate{certificate}}), codes.OK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plain, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			files.RequireClientCert = tt.required
			ln, err := files.ListenHTTP2(plain)
			require.NoError(t, err)
			core := newFake()
			c := startOn(t, ln, Config{}, core, admission.Config{}, grpc.WithTransportCredentials(tt.client))
			if _, err := c.ModelInfer(t.Context(), vector("sums", 1, 2)); status.Code(err) != tt.code || (err == nil) != (len(core.queries()) == 1) {
				t.Errorf("%v, and %d queries", err, len(core.queries()))
			}
		})
	}
}

// Reflection lists the services and describes their calls, to callers with a key where one is needed.
func TestReflection(t *testing.T) {
	ask := func(c client, m *reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error) {
		stream, err := reflection.NewServerReflectionClient(c.conn).ServerReflectionInfo(t.Context())
		require.NoError(t, err)
		_ = stream.Send(m) // the reason for an error is received
		return stream.Recv()
	}
	list := &reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_ListServices{}}
	c := start(t, Config{}, newFake(), admission.Config{})
	got, err := ask(c, list)
	require.NoError(t, err)
	var names []string
	for _, service := range got.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	for service, calls := range map[string][]string{
		"inference.GRPCInferenceService": {"ModelInfer", "ModelStreamInfer", "RepositoryIndex"},
		"topsail.v1.Topsail":             {"Predict", "PredictStream", "Feedback"},
		"grpc.health.v1.Health":          {"Check", "Watch"},
	} {
		got, err := ask(c, &reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service}})
		if err != nil || !slices.Contains(names, service) {
			t.Fatalf("%s is not in %q: %v", service, names, err)
		}
		var described []string
		for _, text := range got.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			require.NoError(t, googleproto.Unmarshal(text, file))
			for _, one := range file.GetService() {
				for _, call := range one.GetMethod() {
					described = append(described, call.GetName())
				}
			}
		}
		for _, call := range calls {
			if !slices.Contains(described, call) {
				t.Errorf("%s has no %s: %q", service, call, described)
			}
		}
	}
	if _, err := ask(start(t, Config{}, newFake(), admission.Config{RequireKeys: true}), list); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a key: %v", err)
	}
}

// inBubble runs a test with a server in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, c client, dial func() net.Conn), options ...grpc.DialOption) {
	synctest.Test(t, func(t *testing.T) {
		var network pipes.Network
		ln := network.Listen()
		dial := func(ctx context.Context, addr string) (net.Conn, error) { return network.Dial(ctx, addr) }
		c := startOn(t, ln, Config{}, newFake(), admission.Config{}, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))...)
		test(t, c, func() net.Conn {
			conn, err := dial(t.Context(), ln.Addr().String())
			require.NoError(t, err)
			return newEager(conn)
		})
	})
}

// eager is a connection whose writes do not wait until they are read, as those of pipes do.
type eager struct {
	net.Conn
	out   chan []byte
	close func() error
}

func newEager(conn net.Conn) net.Conn {
	e := &eager{conn, make(chan []byte, 16), nil}
	e.close = sync.OnceValue(func() error { close(e.out); return conn.Close() })
	go func() {
		for b := range e.out {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}()
	return e
}

func (e *eager) Write(b []byte) (int, error) { e.out <- slices.Clone(b); return len(b), nil }
func (e *eager) Close() error                { return e.close() }

// A client that says nothing for a minute is asked whether it is there, and one that does not answer is let go.
func TestClientsThatAreGone(t *testing.T) {
	for _, answers := range []bool{true, false} {
		inBubble(t, func(t *testing.T, _ client, dial func() net.Conn) {
			w, began := newWire(t, dial()), time.Now()
			for pings := 0; pings < 3; {
				f, err := w.ReadFrame()
				if err != nil {
					if took := time.Since(began); answers || pings != 1 || took < pingAfter+pingWithin || took > pingAfter+2*pingWithin {
						t.Errorf("a client that answers (%v) is let go after %v and %d pings: %v", answers, took, pings, err)
					}
					return
				}
				switch f := f.(type) {
				case *http2.SettingsFrame:
					if !f.IsAck() {
						err = w.WriteSettingsAck()
					}
				case *http2.PingFrame:
					if pings++; answers {
						err = w.WritePing(true, f.Data)
					}
				}
				require.NoError(t, err)
			}
			if took := time.Since(began); !answers || took < 3*pingAfter {
				t.Errorf("a client that answers (%v) has had three pings after %v", answers, took)
			}
		})
	}
}

// Clients may ask whether the server is there as often as it says, also without calls, and have to connect anew after half an
// hour.
func TestConnectionsThatStay(t *testing.T) {
	often := keepalive.ClientParameters{Time: pingsEvery, Timeout: time.Second, PermitWithoutStream: true}
	inBubble(t, func(t *testing.T, c client, dial func() net.Conn) {
		for range 40 {
			if _, err := c.ModelInfer(t.Context(), vector("sums", 1, 2)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		w, began := newWire(t, dial()), time.Now()
		for {
			f, err := w.ReadFrame()
			if err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					err = w.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					err = w.WritePing(true, f.Data)
				}
			case *http2.GoAwayFrame:
				if took := time.Since(began); f.ErrCode != http2.ErrCodeNo || took < agedAfter*9/10 || took > agedAfter*11/10 {
					t.Errorf("after %v: %v, %s", took, f.ErrCode, f.DebugData())
				}
				return
			}
			require.NoError(t, err)
		}
	}, grpc.WithKeepaliveParams(often))
}

// One that asks more often is told to go.
func TestClientsThatPingTooOften(t *testing.T) {
	inBubble(t, func(t *testing.T, _ client, dial func() net.Conn) {
		w, away := newWire(t, dial()), make(chan *http2.GoAwayFrame, 1)
		go func() { // all the while: the server does not read while it writes
			defer close(away)
			for {
				f, err := w.ReadFrame()
				if err != nil {
					return
				}
				if f, ok := f.(*http2.GoAwayFrame); ok {
					away <- f
					return
				}
			}
		}()
		for range 5 {
			require.NoError(t, w.WritePing(false, [8]byte{1}))
			time.Sleep(pingsEvery / 10)
		}
		if f := <-away; f == nil || f.ErrCode != http2.ErrCodeEnhanceYourCalm || string(f.DebugData()) != "too_many_pings" {
			t.Error(f)
		}
	})
}
