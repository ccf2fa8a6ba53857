package edge

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

// exchange sends a request and reads its answer.
func exchange(c net.Conn, request string) (status int, header http.Header, body string, err error) {
	if err := c.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		return 0, nil, "", err
	}
	if _, err := io.WriteString(c, request); err != nil {
		return 0, nil, "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(text), err
}
