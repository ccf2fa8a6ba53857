package httpapi

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// A client that leaves ends its query, in each API, in the clear and under TLS.
func TestALeavingClientEndsItsQuery(t *testing.T) {
	for path, body := range map[string]string{
		"/doubles/predict":         `{"input":[1]}`,
		"/strings/predict":         `{"input_batch":["a","b"]}`,
		"/v2/models/doubles/infer": `{"inputs":[{"name":"input","shape":[1,1],"datatype":"FP64","data":[1]}]}`,
		"/openai/v1/embeddings":    `{"model":"strings","input":["a","b"]}`,
	} {
		for _, secure := range []bool{false, true} {
			f, asked, ended := newFake(), make(chan struct{}), make(chan struct{})
			f.answer = func(ctx context.Context, _ *serving.Query) (serving.Prediction, error) {
				close(asked)
				<-ctx.Done()
				if err := context.Cause(ctx); err != errGone || ctx.Err() != context.Canceled {
					t.Errorf("%s ended with %v, %v", path, err, ctx.Err())
				}
				close(ended)
				return serving.Prediction{}, context.Cause(ctx)
			}
			nc := dialFor(t, f, secure)
			if _, err := io.WriteString(nc, asks(path, body)); err != nil {
				t.Fatal(err)
			}
			within(t, asked, "it was not asked")
			nc.Close()
			within(t, ended, path+": the client was not missed")
		}
	}
}

// So it does where the query is asked in parts, whether the client gets them or not.
func TestALeavingClientEndsItsParts(t *testing.T) {
	for path, body := range map[string]string{
		"/openai/v1/chat/completions": `{"model":"bot","messages":[]}`,
		"/openai/v1/completions":      `{"model":"strings","prompt":"a","stream":true}`,
	} {
		for _, secure := range []bool{false, true} {
			core, f := openaiCore()
			f.next = make(chan string) // which the test gives no more of
			nc := dialFor(t, core, secure)
			if _, err := io.WriteString(nc, asks(path, body)); err != nil {
				t.Fatal(err)
			}
			f.next <- "a"
			nc.Close()
			within(t, f.closed, path+": the client was not missed")
		}
	}
}

func asks(path, body string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// Who waits is answered, and its connection serves on; so it does where the next request has come already.
func TestAWatchedClientIsAnswered(t *testing.T) {
	for _, pipelined := range []bool{false, true} {
		f, watched, answer := newFake(), make(chan struct{}), make(chan struct{})
		f.answer = func(ctx context.Context, _ *serving.Query) (serving.Prediction, error) {
			end := ctx.Done()
			watched <- struct{}{}
			select {
			case <-end:
				t.Errorf("it ended with %v", context.Cause(ctx))
			case <-answer:
			}
			return serving.Prediction{QueryID: 1, Output: []byte("2")}, nil
		}
		nc := dialFor(t, f, false)
		defer nc.Close()
		request := asks("/doubles/predict", `{"input":[1]}`)
		r := bufio.NewReader(nc)
		if pipelined {
			request = strings.Repeat(request, 3)
		}
		for i := range 3 {
			if i == 0 || !pipelined {
				if _, err := io.WriteString(nc, request); err != nil {
					t.Fatal(err)
				}
			}
			<-watched
			answer <- struct{}{}
			response, err := http.ReadResponse(r, nil)
			require.NoError(t, err)
			if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), `"output":2`) {
				t.Errorf("answer %d: %v, %s, %v", i, response.Status, body, err)
			}
		}
	}
}
