package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

const ceilingTime = 500 * time.Millisecond

const noopReply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 43\r\n\r\n" +
	`{"query_id":1,"output":1.0,"default":false}`

// MaxRate measures for a second what the generator can send at most: answers per
// second of a server in the same process that does nothing. A result that comes
// near it says more about the generator than about the server.
func MaxRate(ctx context.Context) (float64, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("load: listen for the self-test: %w", err)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer listener.Close()
	serving.Go(func() { serveNoop(listener, &serving) })
	report, err := Run(ctx, Config{
		URL:      "http://" + listener.Addr().String() + "/",
		Body:     Cycle([]byte(`{"input":[1.0,2.0,3.0,4.0]}`)),
		Rate:     maxRate, // more than can be: all senders are always busy
		Uniform:  true,
		Duration: ceilingTime,
		Timeout:  ceilingTime,
	})
	return report.Rate, err
}

// serveNoop answers every request until the listener and the connections end.
func serveNoop(listener net.Listener, serving *sync.WaitGroup) {
	for {
		nc, err := listener.Accept()
		if err != nil {
			return
		}
		serving.Go(func() {
			defer nc.Close()
			answerNoop(nc)
		})
	}
}

func answerNoop(nc net.Conn) {
	r := bufio.NewReaderSize(nc, maxLine)
	reply := []byte(noopReply)
	var buf []byte
	for {
		m, err := readMessage(r, buf)
		if err != nil {
			return
		}
		buf = m.body
		if _, err := nc.Write(reply); err != nil {
			return
		}
	}
}
