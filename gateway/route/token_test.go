package route

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// When the token of sidecars changes, connections that stand are kept, so that no
// query suffers; the next one shows the new token.
func TestANewTokenKeepsTheConnection(t *testing.T) {
	bubble(t, func(t *rig) {
		host := t.listen("a")
		accept := func(token string) *rpc.Conn {
			hello := sidecarHello
			hello.Token = []byte(token)
			conn, err := rpc.Accept(t.Context(), <-host, hello, nil)
			require.NoError(t, err)
			return conn
		}
		shown := func(token string) {
			t.lists <- []serving.Endpoint{{Replica: "a", Addr: "a", Token: []byte(token)}}
		}
		shown("first")
		old := accept("first")
		ended := make(chan struct{})
		go func() { defer close(ended); old.Run(t.Context(), func(rpc.Frame) error { return nil }) }()
		synctest.Wait()
		shown("second")
		time.Sleep(time.Minute)
		synctest.Wait()
		if st := t.table.Replicas(); len(t.dials) != 1 || len(st) != 1 || !st[0].Connected {
			t.Fatalf("dialled %d times, replicas %+v", len(t.dials), st)
		}
		old.Send(rpc.KindBye, 0, rpc.AppendBye(nil, "restarting"))
		<-ended
		next := accept("second")
		go next.Run(t.Context(), func(rpc.Frame) error { return nil })
		synctest.Wait()
		if st := t.table.Replicas(); len(t.dials) != 2 || len(st) != 1 || !st[0].Connected {
			t.Errorf("dialled %d times, replicas %+v", len(t.dials), st)
		}
	})
}

// A replica that is not connected tries a new token at once.
func TestANewTokenIsTriedAtOnce(t *testing.T) {
	bubble(t, func(t *rig) {
		for i := range 8 { // until the wait between two tries is long
			t.lists <- []serving.Endpoint{{Replica: "a", Addr: "a", Token: []byte("wrong")}}
			time.Sleep(time.Duration(i) * time.Second)
		}
		synctest.Wait()
		host := t.listen("a")
		start := time.Now()
		t.lists <- []serving.Endpoint{{Replica: "a", Addr: "a", Token: []byte("right")}}
		hello := sidecarHello
		hello.Token = []byte("right")
		conn, err := rpc.Accept(t.Context(), <-host, hello, nil)
		if err != nil || time.Since(start) != 0 {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		go conn.Run(t.Context(), func(rpc.Frame) error { return nil })
	})
}
