package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"testing"
)

// Of more connections than there may be, some wait until others end.
func TestConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const most = 2
	served, warned := make(chan string, 100), make(chan error, 100)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served <- r.URL.Path })}
	go func() { _ = s.Serve(bounded(s, listener, most, func(err error) { warned <- err })) }()
	t.Cleanup(func() { _ = s.Close() })
	connect := func(n int) net.Conn {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", n); err != nil {
			t.Fatal(err)
		}
		return c
	}
	answer := func(c net.Conn) {
		t.Helper()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
	first, second := connect(0), connect(1)
	answer(first)
	answer(second)
	third := connect(2)
	if _, err := fmt.Fprint(first, "GET /again HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer(first) // one that is open goes on
	_ = second.Close()
	answer(third)
	var order []string
	for range 4 {
		order = append(order, <-served)
	}
	if order[2] != "/again" || order[3] != "/2" {
		t.Errorf("it has answered %q", order)
	}
	if len(warned) == 0 {
		t.Error("nobody was told")
	}
	for files, want := range map[uint64]int{1024: 896, 1 << 20: mostConnections, math.MaxUint64: mostConnections} {
		if is := connections(files); is != want {
			t.Errorf("of %d files, %d are connections", files, is)
		}
	}
}
