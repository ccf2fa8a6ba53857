//go:build edge

package edge

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// malformed is requests that are none: each is refused, or its connection is closed, in time;
// the server has no fault of its own, and answers who asks next.
func malformed() attack {
	list := append(malformedHTTP(), malformedJSON()...)
	return attack{
		name: fmt.Sprintf("%d malformed requests", len(list)),
		run: func(t *testing.T, s *server) {
			for over := time.Now().Add(4 * time.Second); time.Now().Before(over); time.Sleep(100 * time.Millisecond) {
				for _, request := range list {
					if status, text := s.refusal(request); status == 200 || status >= 500 || status == -1 {
						t.Errorf("%.80q: %d %.200s", request, status, text)
					}
					time.Sleep(5 * time.Millisecond)
				}
			}
			if strings.Contains(s.output(), "panic") {
				t.Error("something panicked")
			}
		},
	}
}

// refusal is the status that a request gets after which nothing comes, 0 where the connection is
// just closed, and -1 where it stays open without an answer.
func (s *server) refusal(request string) (int, string) {
	c, err := net.DialTimeout("tcp", s.gateway, time.Second)
	if err != nil {
		return -1, err.Error()
	}
	defer vanish(c)
	_, _ = io.WriteString(c, request)
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
	text, err := io.ReadAll(c)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		return -1, string(text)
	}
	status := 0
	_, _ = fmt.Sscanf(string(text), "HTTP/1.1 %d", &status)
	return status, string(text)
}

func malformedHTTP() []string {
	line, body := "POST /target/predict HTTP/1.1\r\n", "\r\n{\"input\":[1]}"
	host := line + "Host: 127.0.0.1\r\n"
	return []string{
		"\r\n\r\n", "\x00\x00\x00\x00\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "POST /target/predict\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "\x80\x2e\x01\x00\x02\r\n\r\n",
		line + "Content-Length: 13\r\n" + body, // no Host
		host + "Content-Length: x\r\n" + body, host + "Content-Length: -1\r\n" + body, host + "Content-Length: +13\r\n" + body, host + "Content-Length: 0x0d\r\n" + body,
		host + "Content-Length: 99999999999999999999\r\n" + body, host + "Content-Length: 13, 14\r\n" + body, host + "Content-Length: 13\r\nContent-Length: 14\r\n" + body,
		host + "Content-Length : 13\r\n" + body, host + " Content-Length: 13\r\n" + body, host + "Content-Length: 14\r\n" + body, // the last one is cut
		host + "Transfer-Encoding: gzip, chunked\r\n\r\nd\r\n{\"input\":[1]}\r\n0\r\n\r\n", host + "Transfer-Encoding: xchunked\r\n\r\nd\r\n{\"input\":[1]}\r\n0\r\n\r\n",
		host + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", host + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}", host + "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}",
		host + "Transfer-Encoding: chunked\r\n\r\n5\r\n{}", host + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n",
		host + "No colon\r\n" + body, host + ": no name\r\n" + body, host + "X\x00Y: a\r\n" + body,
		host + "X: " + strings.Repeat("x", 20_000) + "\r\n" + body, host + strings.Repeat("X: y\r\n", 4_000) + body,
		"POST /" + strings.Repeat("x", 20_000) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "POST /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"POST /target%2fpredict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}", "POST /%zz/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}",
		"POST http://evil.example/target/predict HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 13\r\n" + body, "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
		"TRACE / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", strings.Repeat("A", 100) + " /target/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "DELETE /target/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		post("/target/predict", "x", "Content-Encoding: gzip"), post("/target/predict", "x", "Content-Encoding: br"), post("/target/predict", "x", "Content-Encoding: gzip, gzip"),
		post("/target/predict", `{"input":[1]}`, "X-Timeout-Ms: -1"), post("/target/predict", `{"input":[1]}`, "X-Timeout-Ms: 1e9"),
		post("/target/predict", `{"input":[1]}`, "X-Api-Key: "+strings.Repeat("k", 300)+"\x01"),
	}
}

func malformedJSON() (list []string) {
	for _, body := range []string{
		``, ` `, `{`, `}`, `null`, `[]`, `"x"`, `1`, `{}`, `{"input"}`, `{"input":}`, `{"input":[}`, `{"input":[1}`, `{"input":[1,]}`, `{"input":[,1]}`, `{"input":[1]`,
		`{"input":[]}`, `{"input":null}`, `{"input":1}`, `{"input":"x"}`, `{"input":[[1]]}`, `{"input":[1,null]}`, `{"input":["1"]}`, `{"input":[01]}`, `{"input":[1.]}`, `{"input":[.5]}`,
		`{"input":[1e999]}`, `{"input":[NaN]}`, `{"input":[-]}`, `{"input":[+1]}`, `{"input":[0x1]}`, `{"input":[1]}x`, `{"input":[1]}{}`, `{'input':[1]}`, "{\"input\":[1],\"x\":\"\n\"}",
		`{"input":[1],"x":"\ud800"`, `{"input":[1],"x":"\x"}`, "\ufeff" + `{"input":[}`, `{"input":[1],"x":` + strings.Repeat("[", 7_000), `{"input":[1],"uid":{}}`, `{"input":[1],"slo_micros":-1}`,
		`{"input_batch":1}`, `{"input_batch":[1]}`, `{"input_batch":[[1],[]]}`, `{"input":[1],"uid":"` + strings.Repeat("u", 257) + `"}`, `{"input":[1],"version":{}}`,
	} {
		list = append(list, post("/target/predict", body))
	}
	for _, body := range []string{`{}`, `{"label":1}`, `{"query_id":"x","label":1}`, `{"query_id":1}`, `{"query_id":1,"reward":2}`, `{"feedback_batch":{}}`, `{"feedback_batch":[{}]}`, `{"query_id":1,"label":null}`} {
		list = append(list, post("/learns/update", body))
	}
	return list
}
